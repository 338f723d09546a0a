// From counts to the frequencies of tables and class tables, for dense and token models.
#pragma once

#include "encode/dense_model.h"

namespace l3 {

// How often each class was seen, by channel and the class of the channel before.
using ClassCounts = uint32_t[kMaxChannels][kMaxClasses][kMaxClasses];

// Model is DenseModel or TokenModel.
template <class Model>
void fit_class_tables(const ClassCounts& counts, uint32_t channels, Model& model);

// Makes frequencies that add up to 4096 and that the format can represent. Each symbol that was seen gets at least 1.
void make_frequencies(const uint32_t* counts, uint32_t symbols, uint16_t* frequencies);
void make_frequencies(const uint64_t* counts, uint32_t symbols, uint16_t* frequencies);

}  // namespace l3
