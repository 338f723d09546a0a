// Choices by what symbols really cost, once there are tables: of classes, of predictors' weights, of activity weights.
#pragma once

#include "dense_statistics.h"

namespace l3 {

// Goes through all channels: changes activity weights and predictors as long as symbols get shorter under the model's
// tables, chooses the classes of all blocks anew, and predicts the tiles again.
void refine(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
            const l3_parallel& parallel, const RefineLimits& limits, DenseModel& model);

// Chooses the classes of all blocks anew, and predicts the tiles again.
void refine_classes(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                    const l3_parallel& parallel, const DenseModel& model);

}  // namespace l3
