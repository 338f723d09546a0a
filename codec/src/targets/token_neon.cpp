// Decodes tiles of token models and of bit models with NEON.
#include "engine/bit_loop.h"
#include "engine/byte_records_16.h"
#include "engine/token_body.h"
#include "targets/dense_warp_neon.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct NeonTokenWarp : ByteRecords16<TokenWarp<NeonTokenWarp, NeonDenseWarp<NeonTokenWarp>>> {
  using Base = ByteRecords16<TokenWarp<NeonTokenWarp, NeonDenseWarp<NeonTokenWarp>>>;
  using Base::native, Base::lanes, Base::records, Base::widen, Base::lane_mask;

  L3_INLINE static int16x8_t shorts_of(Records a) { return (int16x8_t)a.v; }
  L3_INLINE static uint16x8_t numbers_of(Records a) { return (uint16x8_t)a.v; }
  template <class V>
  L3_INLINE static Records from(V v) {
    return {(decltype(Records::v))v};
  }

  L3_INLINE static ByteRecords select(ByteRecords mask, ByteRecords a, ByteRecords b) {
    return {(decltype(mask.v))vbslq_u8((uint8x16_t)mask.v, (uint8x16_t)a.v, (uint8x16_t)b.v)};
  }
  L3_INLINE static bool any(ByteRecords mask) { return vmaxvq_u8((uint8x16_t)mask.v) != 0; }
  L3_INLINE static uint32_t record_bits(ByteRecords mask) {
    static constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8((uint8x16_t)mask.v, vld1q_u8(kBits));
    return uint32_t{vaddv_u8(vget_low_u8(bits))} | uint32_t{vaddv_u8(vget_high_u8(bits))} << 8;
  }
  using Base::select;
  L3_INLINE static Records select(Records mask, Records a, Records b) {
    return from(vbslq_u16(numbers_of(mask), numbers_of(a), numbers_of(b)));
  }
  L3_INLINE static bool any(Records mask) { return vmaxvq_u16(numbers_of(mask)) != 0; }
  L3_INLINE static uint32_t record_bits(Records mask) {
    static constexpr uint16_t kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    return vaddvq_u16(vandq_u16(numbers_of(mask), vld1q_u16(kBits)));
  }
  L3_INLINE static Records at_most_255(Records a) { return from(vminq_u16(numbers_of(a), vdupq_n_u16(255))); }
  L3_INLINE static Records value_distances(Records a, Records b) {
    const uint16x8_t distance = vreinterpretq_u16_s16(vabdq_s16(shorts_of(a), shorts_of(b)));
    return from(vminq_u16(distance, vdupq_n_u16(32767)));
  }
  L3_INLINE static Records error_magnitudes(Records a) { return from(vabsq_s16(shorts_of(a))); }
  L3_INLINE static Records token_errors(Records value, Records p) {
    const int16x8_t error = vqsubq_s16(shorts_of(Base::flipped(value)), shorts_of(Base::flipped(p)));
    return from(vmaxq_s16(error, vdupq_n_s16(-kMaxTokenError)));
  }

  L3_INLINE static Records lower_halves_of(const Sums& sums) {
    return from(vuzp1q_u16((uint16x8_t)sums.low, (uint16x8_t)sums.high));
  }
  template <class V>
  L3_INLINE static V larger_words(const V& a, const V& b) {
    return (V)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
  }
  template <class V>
  L3_INLINE static V lesser_words(const V& a, const V& b) {
    return (V)vminq_s32((int32x4_t)a, (int32x4_t)b);
  }
  // An index beyond the table gives 0, so the upper bytes stay 0.
  L3_INLINE static Records look_up_16(const uint8_t* table, Records index) {
    return from(vqtbl1q_u8(vld1q_u8(table), empty_above(index)));
  }
  L3_INLINE static Records look_up_64(const uint8_t* table, Records index) {
    return from(vqtbl4q_u8(vld1q_u8_x4(table), empty_above(index)));
  }

  L3_INLINE static void widen(Records a, Lanes* words) {
    words[0] = lanes(vmovl_u16(vget_low_u16(numbers_of(a))));
    words[1] = lanes(vmovl_high_u16(numbers_of(a)));
  }
  L3_INLINE static Records narrow(const Lanes* words) {
    return from(vuzp1q_u16((uint16x8_t)words[0].v, (uint16x8_t)words[1].v));
  }
  L3_INLINE static Mask lane_mask(const Records* masks, uint32_t part) {
    const int16x8_t both = shorts_of(masks[part / 2]);
    return lanes(part % 2 == 0 ? vmovl_s16(vget_low_s16(both)) : vmovl_high_s16(both));
  }

 private:
  L3_INLINE static uint8x16_t empty_above(Records index) {
    return vreinterpretq_u8_u16(vorrq_u16(numbers_of(index), vdupq_n_u16(0xFF00)));
  }
};

}  // namespace

Fault decode_tokens_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<NeonTokenWarp>(shape, entry, out, model);
}

Fault decode_bits_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  return decode_bits<NeonTokenWarp>(shape, entry, out, model);
}

}  // namespace l3
