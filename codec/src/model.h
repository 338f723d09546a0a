// Models as a whole, whatever their kind: handles of them, the default ones, and which one a file has.
#pragma once

#include <vector>

#include "container_rules.h"
#include "default_model.h"
#include "model_tables.h"

// A model that is verified.
struct l3_model {
  std::vector<uint8_t> bytes;
  uint8_t name[l3::kModelNameBytes];
  l3::ModelTables tables;
};

namespace l3 {

// Those of section 16, in order of their numbers, from 1. Written by default_models.cmake.
extern const DefaultModel kDefaultModelTable[kDefaultModels];

// The number of the default model for images of so many channels and bits; 0 where there is none.
uint32_t default_model_for(uint32_t channels, uint32_t bits);

// The name of a model (section 12).
void name_of_model(const uint8_t* bytes, uint64_t size, uint8_t* name);

// The models that a caller supplied, for files that name theirs.
struct SuppliedModels {
  const l3_model* const* models = nullptr;
  size_t count = 0;

  const l3_model* find(const uint8_t* name) const;
};

// The model of a file: built in place, or one that was supplied.
struct FileModel {
  ModelTables own;
  const ModelTables* tables = &own;
};

// Finds, or reads and verifies, the model of a file whose head and sections are sound; nothing where it has none.
// Without `supplied` a named one is not looked for.
Verdict find_model(const uint8_t* data, const Head& head, const SuppliedModels* supplied, FileModel& model);

}  // namespace l3
