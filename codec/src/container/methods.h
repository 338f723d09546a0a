// The tile methods, a row each (sections 5 and 6 of the spec), for processors and GPUs alike.
//
// A row says what readers must know of a method before they decode a tile: its number and name, whether its tiles have
// a payload, whether they need a model, and which index entries are valid if payloads are multiples of `unit`. To add a
// method, add a row here and a decoder: in engine/tile_decode.h if it needs no model.
#pragma once

#include "container/dense.h"
#include "container/reason.h"
#include "container/tile.h"

namespace l3 {

// All pixels of the tile are equal; the entry holds the pixel.
struct ConstantMethod {
  static constexpr Method kNumber = Method::constant;
  static constexpr const char* kName = "constant";
  static constexpr bool kHasPayload = false, kNeedsModel = false;

  L3_INLINE static Fault check(const TileEntry& entry, const TileShape& shape, uint32_t) {
    if (entry.parameters != 0) return {Reason::tile_parameters, 1};
    if (entry.payload_bytes != 0) return {Reason::tile_size, 2};
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      const uint32_t maximum = c < shape.channels ? (1u << shape.bits) - 1 : 0;
      if (entry.value[c] > maximum) return {Reason::constant_value, 4 + 2 * c};
    }
    return {};
  }
};

// Samples of `bits` bits each, one after the other.
struct RawMethod {
  static constexpr Method kNumber = Method::raw;
  static constexpr const char* kName = "raw";
  static constexpr bool kHasPayload = true, kNeedsModel = false;

  L3_INLINE static Fault check(const TileEntry& entry, const TileShape& shape, uint32_t unit) {
    if (entry.parameters != 0) return {Reason::tile_parameters, 1};
    return entry.payload_bytes == shape.raw_bytes(unit) ? Fault{} : Fault{Reason::tile_size, 2};
  }
};

// Blocks of packed residuals. The parameters are the colour transform.
struct FastMethod {
  static constexpr Method kNumber = Method::fast;
  static constexpr const char* kName = "fast";
  static constexpr bool kHasPayload = true, kNeedsModel = false;

  L3_INLINE static Fault check(const TileEntry& entry, const TileShape& shape, uint32_t) {
    const uint32_t transform = entry.parameters;
    if (transform >= kTransforms || (transform != 0 && shape.channels < 3)) return {Reason::tile_parameters, 1};
    return entry.payload_bytes >= kMinTinyFast ? Fault{} : Fault{Reason::tile_size, 2};
  }
};

// Symbols of the file's model. The parameters are the number of lanes and the ending.
struct DenseMethod {
  static constexpr Method kNumber = Method::dense;
  static constexpr const char* kName = "dense";
  static constexpr bool kHasPayload = true, kNeedsModel = true;

  L3_INLINE static Fault check(const TileEntry& entry, const TileShape& shape, uint32_t) {
    const uint32_t parameters = entry.parameters, lanes = dense_lanes(parameters);
    if ((parameters & 7) > kMaxLogLanes || dense_ending(parameters) > kMaxEnding ||
        shape.width * shape.height > kMaxPixelsOfLane * lanes) {
      return {Reason::tile_parameters, 1};
    }
    if (entry.payload_bytes < 4 * lanes) return {Reason::tile_size, 2};
    return {};
  }
};

template <class... Rows>
struct MethodTable {
  // Calls visit.operator()<Row>() for the row of a method. Does nothing if there is no such row.
  template <class Visit>
  L3_INLINE static constexpr void visit(Method method, const Visit& visit) {
    static_cast<void>(((method == Rows::kNumber && (visit.template operator()<Rows>(), true)) || ...));
  }

  L3_INLINE static constexpr bool have_payload(Method method) {
    return ((method == Rows::kNumber && Rows::kHasPayload) || ...);
  }
  L3_INLINE static constexpr bool need_model(Method method) {
    return ((method == Rows::kNumber && Rows::kNeedsModel) || ...);
  }
};
using Methods = MethodTable<ConstantMethod, RawMethod, FastMethod, DenseMethod>;

L3_INLINE constexpr bool has_payload(Method method) { return Methods::have_payload(method); }
L3_INLINE constexpr bool needs_model(Method method) { return Methods::need_model(method); }

}  // namespace l3
