// A last choice of classes: by what the symbols really cost, once there are tables.
#pragma once

#include "dense_statistics.h"

namespace l3 {

// Chooses the classes of all blocks anew by the lengths of their symbols under the model's tables, and predicts the
// tiles again.
void refine_classes(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                    const l3_parallel& parallel, const DenseModel& model);

}  // namespace l3
