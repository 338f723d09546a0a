// Refines predictors' weights, activity weights and the choice of classes, using the real code lengths of the tables.
#pragma once

#include "encode/dense_statistics.h"

namespace l3 {

// For all channels: changes activity weights and predictors while that makes symbols shorter under the model's tables,
// chooses the classes of all blocks again, and predicts the tiles again.
void refine(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
            const l3_parallel& parallel, const RefineLimits& limits, DenseModel& model);

// Chooses the classes of all blocks again, and predicts the tiles again.
void refine_classes(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                    const l3_parallel& parallel, const DenseModel& model);

}  // namespace l3
