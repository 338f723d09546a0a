// Implements model.h and the functions of l3.h that open and describe models.
#include "models/model.h"

#include <cstring>
#include <memory>
#include <new>

#include "api/options.h"
#include "container/sha256.h"

namespace l3 {
namespace {

constexpr uint32_t kChannelsAt = 1, kBitsAt = 2;  // offsets within a model; no bits in one of kind 0

// Reads a model for the channels and bits that it states itself.
Fault read_for_its_images(const uint8_t* bytes, size_t size, ModelTables& tables) {
  if (size <= kBitsAt) return {Reason::model_head, static_cast<uint32_t>(size)};
  const uint32_t channels = bytes[kChannelsAt];
  uint32_t bits = 8;
  ModelKinds::visit(kind_of_model(bytes, size), [&]<class Kind>() { bits = Kind::stated_bits(bytes); });
  if (channels == 0 || channels > kMaxChannels) return {Reason::model_head, kChannelsAt};
  if (bits == 0 || bits > 16) return {Reason::model_head, kBitsAt};
  return read_tables(bytes, size, channels, bits, tables);
}

// The tables of a default model. Each is built once per process, by the first thread that needs it.
template <uint32_t kIndex>
const ModelTables& built_tables() {
  struct Built {
    Built() {
      const DefaultModel& model = kDefaultModelTable[kIndex];
      (void)read_for_its_images(model.bytes, model.size, tables);  // tests verify the default models
    }
    ModelTables tables;
  };
  static const Built built;
  return built.tables;
}

const ModelTables& default_tables(uint32_t number) {
  using Function = const ModelTables& (*)();
  constexpr Function kOfIndex[kDefaultModels] = {built_tables<0>, built_tables<1>, built_tables<2>, built_tables<3>,
                                                 built_tables<4>, built_tables<5>, built_tables<6>, built_tables<7>};
  return kOfIndex[number - 1]();
}

bool is_name(const uint8_t* a, const uint8_t* b) { return std::memcmp(a, b, kModelNameBytes) == 0; }

}  // namespace

uint32_t default_model_for(uint32_t channels, uint32_t bits) { return bits == 8 ? channels : 0; }

void name_of_model(const uint8_t* bytes, uint64_t size, uint8_t* name) {
  Sha256 sha;
  sha.update(bytes, size);
  uint8_t whole[Sha256::kBytes];
  sha.finish(whole);
  std::memcpy(name, whole, kModelNameBytes);
}

const l3_model* SuppliedModels::find(const uint8_t* name) const {
  for (size_t i = 0; i < count; ++i) {
    if (models[i] != nullptr && is_name(models[i]->name, name)) return models[i];
  }
  return nullptr;
}

Verdict find_model(const uint8_t* data, const Head& head, const SuppliedModels& supplied, ModelTables* own,
                   const ModelTables*& tables) {
  const uint32_t origin = head.model_origin();
  if (origin == L3_MODEL_NONE) return {};
  if (origin == L3_MODEL_OWN) {
    const Section* section = head.find(L3_SECTION_MODEL);
    const uint8_t* bytes = data + section->offset;
    if (!ModelKinds::suits(bytes[0], head.bits)) return {Reason::model_unexpected, model_place(head)};
    const Fault fault = is_announced(features_of_model(bytes, section->size), head.required_features)
                            ? read_tables(bytes, section->size, head.coded_channels(), head.bits, *own)
                            : Fault{Reason::model_kind, 0};
    if (fault.reason != Reason::none) return verdict_of_model(head, fault);
    tables = own;
    return {};
  }
  const ModelTables* known = nullptr;
  if (origin == L3_MODEL_DEFAULT) {
    known = &default_tables(head.default_model);
  } else {
    const l3_model* model = supplied.find(data + head.name_at());
    if (model == nullptr) return {Reason::model_missing, model_place(head)};
    known = &model->tables;
  }
  if (!ModelKinds::suits(known->kind, head.bits)) return {Reason::model_unexpected, model_place(head)};
  if (!is_announced(known->features(), head.required_features)) return verdict_of_model(head, {Reason::model_kind, 0});
  if (known->channels() != head.coded_channels()) return verdict_of_model(head, {Reason::model_head, kChannelsAt});
  if (known->bits() != head.bits) return verdict_of_model(head, {Reason::model_head, kBitsAt});
  tables = known;
  return {};
}

}  // namespace l3

using namespace l3;

l3_status l3_open_model(const void* bytes, size_t size, l3_model** model, l3_error* error) {
  if (bytes == nullptr || model == nullptr) return fail(error, Reason::null_argument);
  *model = nullptr;
  const uint8_t* begin = static_cast<const uint8_t*>(bytes);
  try {
    auto opened = std::make_unique<l3_model>();
    const Fault fault = read_for_its_images(begin, size, opened->tables);
    if (fault.reason != Reason::none) return fail(error, fault.reason, fault.at);
    opened->bytes.assign(begin, begin + size);
    name_of_model(begin, size, opened->name);
    *model = opened.release();
  } catch (const std::bad_alloc&) {
    return fail(error, Reason::out_of_memory);
  }
  return succeed(error);
}

void l3_close_model(l3_model* model) { delete model; }

l3_status l3_describe_model(const l3_model* model, l3_model_info* info, l3_error* error) {
  if (model == nullptr || info == nullptr) return fail(error, Reason::null_argument);
  l3_model_info own{};
  if (!copy_sized(info, own)) return fail(error, Reason::bad_struct_size);
  own.kind = model->bytes[0];
  own.channels = model->tables.channels();
  own.bits = model->tables.bits();
  std::memcpy(own.name, model->name, sizeof(own.name));
  own.bytes = model->bytes.data();
  own.size = model->bytes.size();
  std::memcpy(info, &own, own.struct_size < sizeof(own) ? own.struct_size : sizeof(own));
  return succeed(error);
}

l3_status l3_default_model(uint32_t number, const uint8_t** bytes, size_t* size) {
  if (bytes == nullptr || size == nullptr || number == 0 || number > kDefaultModels) return L3_ERROR_ARGUMENT;
  *bytes = kDefaultModelTable[number - 1].bytes;
  *size = kDefaultModelTable[number - 1].size;
  return L3_OK;
}
