// What the decoders of tiles of few lanes share: those with a token model of one channel, which processors decode in
// numbers and not in vectors. `Self` decodes the values.
#pragma once

#include "engine/lane_coder.h"
#include "engine/still_rows.h"
#include "engine/token_context.h"
#include "engine/wavefront.h"

namespace l3 {

template <class Self, class W, TokenUse kUse, class Sink>
class FewLanes : protected Wavefront<W, Sink> {
  using Base = Wavefront<W, Sink>;

 public:
  using typename Base::Classes;

  FewLanes(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes),
        tables_(tables),
        context_(tables),
        pitch_(static_cast<int32_t>(kBefore + shape.width + kBehind)) {}

  Fault decode() {
    this->load_states();
    if (!this->decode_token_blocks(tables_, still_rows_.blocks())) return {Reason::dense_words, this->payload_bytes_};
    if (tables_.still) still_rows_.turn(this->width_, this->height_, tables_.rows ? nullptr : &this->classes_);
    if (!static_cast<Self&>(*this).decode_values()) return {Reason::dense_words, this->payload_bytes_};
    return this->check_end();
  }

 protected:
  static constexpr bool kLiteral = kUse == TokenUse::literal, kHasHoles = kUse == TokenUse::holes;
  // Rows have margins: two numbers before and behind.
  static constexpr uint32_t kBefore = 2, kBehind = 2;

  const TokenTables& tables_;
  const TokenContext context_;
  const int32_t pitch_;
  const uint32_t hole_ = tables_.hole_value ^ kValueBias;
  const bool has_blocks_ = tables_.still || (!kLiteral && tables_.classes[0] > 1);  // that differ
  StillRows still_rows_;
};

}  // namespace l3
