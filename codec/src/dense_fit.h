// Fitting a model to an image (section 12 of the spec says what a model is; nothing here is part of the format).
#pragma once

#include "dense_model.h"
#include "dense_tile.h"
#include "l3/l3.h"

namespace l3 {

// How many blocks refine() looks at.
struct RefineLimits {
  uint32_t of_class;     // for the predictor of a class; 0: predictors stay
  uint32_t of_activity;  // for the activity weights of a channel
};

// What an effort spends.
struct DenseEffort {
  uint32_t classes;        // predictors of a channel, at most
  uint32_t rounds;         // of fitting them and choosing among them
  uint32_t settle_rounds;  // of choosing, in tiles that the fit did not see
  uint32_t tables;
  uint64_t fit_pixels;  // the fit looks at tiles with about so many, at most
  uint32_t block_step;  // and there at every so-manieth block
  uint32_t activity_rounds;
  uint32_t group_levels;  // of activity that groups are told apart by
  uint32_t table_rounds;
  uint32_t refine_rounds;  // of refine()
  RefineLimits refine;
};

DenseEffort effort_of(uint32_t effort);

// What an error costs, and weighs, before anything is known.
FitScales first_scales();
// From how large the errors of each fit level were: their number and sum.
void set_scales(FitScales& scales, const uint64_t (*sums)[2]);

// Fits predictors, classes and activity weights of all channels to the given tiles, and leaves in each tile the
// classes, errors and predictions that follow. The tables are left to fit_tables().
void fit_predictors(const std::vector<std::unique_ptr<DenseTile>>& tiles, uint32_t channels, const DenseEffort& effort,
                    const DenseKernels& kernels, const l3_parallel& parallel, DenseModel& model, FitScales* scales,
                    std::vector<uint32_t>* class_costs);

}  // namespace l3
