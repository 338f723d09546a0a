// Reads parts of a far shard in pieces, several at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "loader/store.h"
#include "transfer.h"

namespace tools {

// A part of a sample. Offsets are those in the shard's file.
struct SamplePart {
  uint64_t sample = 0;  // its number in the shard
  uint64_t sample_offset = 0, sample_size = 0;
  uint64_t offset = 0, size = 0;  // of the part
};

// Parts that are read together, ascending, and what is between them.
struct Piece {
  std::vector<SamplePart> parts;
  uint64_t begin() const { return parts.front().offset; }
  uint64_t end() const { return parts.back().offset + parts.back().size; }
};

// Divides samples into pieces. Calls next() for the samples, which returns nothing after the last one. A sample that
// does not directly follow the one before begins a new piece.
class Pieces {
 public:
  explicit Pieces(std::function<std::optional<SamplePart>()> next) : next_(std::move(next)) { advance(); }
  std::optional<Piece> take();

 private:
  void advance() { rest_ = next_(); }

  std::function<std::optional<SamplePart>()> next_;
  std::optional<SamplePart> rest_;  // of the sample that the next piece begins with
};

// Calls took(offset, bytes) for each piece, in any order, on this thread. Bytes between samples are zero. Stops at the
// first failure, of a read or of took(), and returns it.
std::optional<TransferFailure> read_pieces(
    loader::Store& store, const loader::Object& object, uint64_t object_size, Pieces& pieces,
    const std::function<std::optional<Failure>(uint64_t offset, std::span<const uint8_t> bytes)>& took);

}  // namespace tools
