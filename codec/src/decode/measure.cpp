// Measures how many bytes each part of a file takes (l3_measure).
#include "api/options.h"
#include "container/logarithm.h"
#include "decode/file.h"
#include "engine/dense_decode.h"
#include "engine/token_decode.h"
#include "engine/token_warp.h"

namespace l3 {
namespace {

using Warp = PortableTokenWarp;

// A sink for the decoder that adds up the bits of each symbol instead of storing pixels.
class SymbolBits {
 public:
  using Lanes = Warp::Lanes;
  using Mask = Warp::Mask;

  void begin(uint32_t, uint32_t, uint32_t) {}
  template <class Pixels>
  void put(uint32_t, uint32_t, const Lanes&, const Lanes&, const Pixels&, const Mask&) {}
  void end_step(uint32_t) {}
  template <uint32_t kBuckets>
  void on_symbol(const Lanes& frequency, const Mask& active) {
    double& bits = kBuckets == kClassBuckets ? classes : samples;
    for (uint32_t i = 0; i < Warp::kPartLanes; ++i) {
      if (active.v[i] != 0) bits += kProbabilityBits - logarithm(frequency.v[i]);
    }
  }

  void on_raw_bits(const Lanes& count) {
    for (uint32_t i = 0; i < Warp::kPartLanes; ++i) samples += count.v[i];
  }

  double classes = 0, samples = 0;
};

template <uint32_t kChannels>
Fault measure_dense(const TileShape& shape, const TileEntry& entry, const DenseTables& model, SymbolBits& bits) {
  Warp::Delay delay;
  Warp::Classes classes;
  return DenseDecoder<Warp, kChannels, SymbolBits>(shape, entry, model, bits, delay, classes).decode();
}

template <uint32_t kChannels, TokenUse kUse>
Fault measure_tokens(const TileShape& shape, const TileEntry& entry, const TokenTables& model, SymbolBits& bits) {
  using Decoder = TokenDecoder<Warp, kChannels, kUse, SymbolBits>;
  typename Decoder::Delay delay;
  Warp::Classes classes;
  const TokenView view(model);
  return Decoder(shape, entry, view, bits, delay, classes).decode();
}

Fault measure_tile(const TileShape& shape, const TileEntry& entry, const DenseTables& model, SymbolBits& bits) {
  using Function = Fault (*)(const TileShape&, const TileEntry&, const DenseTables&, SymbolBits&);
  constexpr Function kFunctions[kMaxChannels] = {measure_dense<1>, measure_dense<2>, measure_dense<3>,
                                                 measure_dense<4>};
  return kFunctions[shape.channels - 1](shape, entry, model, bits);
}

Fault measure_tile(const TileShape& shape, const TileEntry& entry, const TokenTables& model, SymbolBits& bits) {
  if (model.literal) return measure_tokens<1, TokenUse::literal>(shape, entry, model, bits);
  if (model.hole) return measure_tokens<1, TokenUse::holes>(shape, entry, model, bits);
  using Function = Fault (*)(const TileShape&, const TileEntry&, const TokenTables&, SymbolBits&);
  constexpr Function kFunctions[kMaxChannels] = {measure_tokens<1, TokenUse::plain>, measure_tokens<2, TokenUse::plain>,
                                                 measure_tokens<3, TokenUse::plain>,
                                                 measure_tokens<4, TokenUse::plain>};
  return kFunctions[model.engine_channels - 1](shape, entry, model, bits);
}

Verdict measure(const l3_file& file, l3_sizes& sizes) {
  const Head& head = file.head;
  sizes.head = head.head_bytes;
  sizes.index = head.index_end - head.head_bytes;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const uint64_t bytes = pad_to_unit(head.sections[i].size);
    (head.sections[i].type == L3_SECTION_MODEL ? sizes.model : sizes.sections) += bytes;
  }
  SymbolBits bits;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    TileEntry entry = read_entry(file.data, head.head_bytes, tile);
    if (!has_payload(entry.method)) continue;
    sizes.payloads += entry.payload_bytes;
    if (entry.method != Method::dense) continue;
    const Verdict verdict = check_tile(file, tile, entry);
    if (!verdict.ok()) return verdict;
    if (entry.method != Method::dense) return {Reason::index_check, head.head_bytes, tile};  // it changes meanwhile
    sizes.dense_payloads += entry.payload_bytes;
    sizes.dense_states += uint64_t{4} * dense_lanes(entry.parameters);
    Fault fault;
    ModelKinds::visit(file.model->kind, [&]<class Kind>() {
      fault = measure_tile(head.tile_shape(tile), entry, file.model->of(Kind{}), bits);
    });
    if (fault.reason == Reason::none) continue;
    return {fault.reason, static_cast<uint64_t>(entry.payload - file.data) + fault.at, tile};
  }
  sizes.dense_classes = static_cast<uint64_t>((bits.classes + 7) / 8);
  sizes.dense_samples = static_cast<uint64_t>((bits.samples + 7) / 8);
  return {};
}

l3_status report_sizes(const l3_file& file, l3_sizes* sizes, l3_error* error) {
  l3_sizes own{};
  if (!copy_sized(sizes, own)) return fail(error, Reason::bad_struct_size);
  const uint32_t struct_size = own.struct_size;
  own = l3_sizes{};
  own.struct_size = struct_size;
  const Verdict verdict = measure(file, own);
  if (verdict.ok()) std::memcpy(sizes, &own, struct_size < sizeof(own) ? struct_size : sizeof(own));
  return report(error, verdict);
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_measure(const void* data, size_t size, const l3_decode_options* options, l3_sizes* sizes,
                     l3_error* error) {
  l3_sizes own{};
  if (sizes == nullptr) return fail(error, Reason::null_argument);
  if (!copy_sized(sizes, own)) return fail(error, Reason::bad_struct_size);
  l3_file file;
  Verdict verdict = file.read(data, size, options);
  if (verdict.ok()) verdict = file.check_container(NamedModel::required);
  return verdict.ok() ? report_sizes(file, sizes, error) : report(error, verdict);
}

l3_status l3_file_measure(const l3_file* file, l3_sizes* sizes, l3_error* error) {
  if (file == nullptr || sizes == nullptr) return fail(error, Reason::null_argument);
  return file->of_model.ok() ? report_sizes(*file, sizes, error) : report(error, file->of_model);
}
