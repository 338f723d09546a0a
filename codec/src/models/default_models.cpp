// The table of default models (section 16 of the spec), generated from the files in spec/models.
#include "models/model.h"

#define L3_MODEL_BYTES(name) alignas(kUnit) constexpr uint8_t name[]
#define L3_MODEL_TABLE const DefaultModel kDefaultModelTable[kDefaultModels]

namespace l3 {
#include "default_models.inc"
}  // namespace l3
