// Fits a model to an image. Section 12 of the spec defines models; how to fit one is not part of the format.
#pragma once

#include "encode/dense_model.h"
#include "encode/dense_tile.h"
#include "l3/l3.h"

namespace l3 {

// How many blocks refine() uses.
struct RefineLimits {
  uint32_t of_class;     // to refine the predictor of a class; 0: predictors stay unchanged
  uint32_t of_activity;  // to refine the activity weights of a channel
};

// The parameters of the encoder that follow from the effort.
struct DenseEffort {
  uint32_t classes;        // predictors per channel, at most
  uint32_t rounds;         // of fitting predictors and choosing classes
  uint32_t more_rounds;    // of the same with `more_pixels`, afterwards
  bool half_blocks;        // choose classes by half of each block's samples
  uint32_t settle_rounds;  // of choosing classes in tiles that the fit did not see
  uint32_t tables;
  uint64_t fit_pixels;  // the fit uses about this many pixels, at most
  uint64_t more_pixels;
  uint32_t block_step;  // and of those tiles every block_step-th block
  uint32_t activity_rounds;
  uint32_t group_levels;  // activity levels that are distinguished when groups are formed
  uint32_t table_rounds;
  uint32_t refine_rounds;  // rounds of refine()
  RefineLimits refine;
};

DenseEffort effort_of(uint32_t effort);

// The cost and the weight of errors before any statistics exist.
FitScales first_scales();
// Derives costs and weights from the errors in each fit level: their number and the sum of their sizes.
void set_scales(FitScales& scales, const uint64_t (*sums)[2]);

// Fits predictors, classes and activity weights of all channels to the given tiles. Leaves the resulting classes,
// errors and predictions in each tile. With `again`, starts from the model's predictors and the tiles' classes. Does
// not fit tables; fit_tables() does.
void fit_predictors(const std::vector<std::unique_ptr<DenseTile>>& tiles, uint32_t channels, const DenseEffort& effort,
                    bool again, const DenseKernels& kernels, const l3_parallel& parallel, DenseModel& model,
                    FitScales* scales, std::vector<uint32_t>* class_costs);

}  // namespace l3
