// Measures how many bytes each part of a file takes (l3_measure).
#include "api/options.h"
#include "container/logarithm.h"
#include "decode/container.h"
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

Fault measure_tile(const TileShape& shape, const TileEntry& entry, const ModelTables& model, SymbolBits& bits) {
  if (!model.is_token) {
    using Function = Fault (*)(const TileShape&, const TileEntry&, const DenseTables&, SymbolBits&);
    constexpr Function kDense[kMaxChannels] = {measure_dense<1>, measure_dense<2>, measure_dense<3>, measure_dense<4>};
    return kDense[shape.channels - 1](shape, entry, model.dense, bits);
  }
  const TokenTables& tokens = model.token;
  if (tokens.literal) return measure_tokens<1, TokenUse::literal>(shape, entry, tokens, bits);
  if (tokens.hole) return measure_tokens<1, TokenUse::holes>(shape, entry, tokens, bits);
  using Function = Fault (*)(const TileShape&, const TileEntry&, const TokenTables&, SymbolBits&);
  constexpr Function kTokens[kMaxChannels] = {measure_tokens<1, TokenUse::plain>, measure_tokens<2, TokenUse::plain>,
                                              measure_tokens<3, TokenUse::plain>, measure_tokens<4, TokenUse::plain>};
  return kTokens[tokens.engine_channels - 1](shape, entry, tokens, bits);
}

Verdict measure(const uint8_t* data, uint64_t size, const Target& target, const Head& head,
                const SuppliedModels& supplied, l3_sizes& sizes) {
  FileModel model;
  const Verdict container = check_container(data, size, target, head, &supplied, model);
  if (!container.ok()) return container;
  sizes.head = head.head_bytes;
  sizes.index = head.index_end - head.head_bytes;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const uint64_t bytes = pad_to_unit(head.sections[i].size);
    (head.sections[i].type == L3_SECTION_MODEL ? sizes.model : sizes.sections) += bytes;
  }
  SymbolBits bits;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    const TileEntry entry = read_entry(data, head.head_bytes, tile);
    if (entry.method == Method::constant) continue;
    sizes.payloads += entry.payload_bytes;
    if (entry.method != Method::dense) continue;
    const uint64_t offset = static_cast<uint64_t>(entry.payload - data);
    if (target.check(entry.payload, entry.payload_bytes / 4) != entry.check) return {Reason::tile_check, offset, tile};
    sizes.dense_payloads += entry.payload_bytes;
    sizes.dense_states += uint64_t{4} * dense_lanes(entry.parameters);
    const Fault fault = measure_tile(head.tile_shape(tile), entry, *model.tables, bits);
    if (fault.reason != Reason::none) return {fault.reason, offset + fault.at, tile};
  }
  sizes.dense_classes = static_cast<uint64_t>((bits.classes + 7) / 8);
  sizes.dense_samples = static_cast<uint64_t>((bits.samples + 7) / 8);
  return {};
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_measure(const void* data, size_t size, const l3_decode_options* options, l3_sizes* sizes,
                     l3_error* error) {
  if (data == nullptr || sizes == nullptr) return fail(error, Reason::null_argument);
  l3_sizes own{};
  l3_decode_options wanted{};
  if (!copy_sized(sizes, own) || !copy_sized(options, wanted)) return fail(error, Reason::bad_struct_size);
  const uint32_t struct_size = own.struct_size;
  own = l3_sizes{};
  own.struct_size = struct_size;
  if (wanted.models == nullptr && wanted.model_count != 0) return fail(error, Reason::null_argument);
  const Target* chosen = target();
  if (chosen == nullptr) return fail(error, Reason::unknown_cpu_target);
  Head head{};
  constexpr l3_limits kNone = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  Verdict verdict = read_head(bytes, size, *chosen, kNone, head);
  if (verdict.ok()) verdict = measure(bytes, size, *chosen, head, {wanted.models, wanted.model_count}, own);
  if (!verdict.ok()) return fail(error, verdict.reason, verdict.offset, verdict.tile);
  std::memcpy(sizes, &own, struct_size < sizeof(own) ? struct_size : sizeof(own));
  return succeed(error);
}
