// Finds shapes that recur in an image of two colours, as letters of rendered text do, and says where they are put
// (sections 24.3 and 24.4 of the spec). Which shapes to use is not part of the format.
#pragma once

#include <vector>

#include "encode/bit_tile.h"
#include "encode/model_writer.h"

namespace l3 {

// A picture of ones. Bit i of a row is column i.
struct Picture {
  uint32_t width = 0, height = 0;
  const uint64_t* rows = nullptr;

  bool operator==(const Picture& other) const;
};

// A connected shape of ones in a tile.
struct FoundShape {
  Picture picture;
  uint64_t tile, hash;
  uint32_t x, y;  // of its first column and row
};

// The shapes of an image that are small enough for a model.
class FoundShapes {
 public:
  FoundShapes(const TileSource& source, const BitColours& colours);
  FoundShapes(const FoundShapes&) = delete;  // its pictures point to its rows

  const std::vector<FoundShape>& all() const { return all_; }

 private:
  void add(const BitPlane& plane, uint64_t tile);

  std::vector<FoundShape> all_;
  std::vector<std::vector<uint64_t>> rows_;  // of each tile's pictures
};

// A shape of a model that is put into a tile. Its first column and row may be outside the tile.
struct PutShape {
  uint32_t number;
  int32_t x, y;
};

// The shapes of a model, and where an image has them.
class ImageShapes {
 public:
  // No shapes.
  ImageShapes() = default;
  ImageShapes(ImageShapes&&) = default;  // copies would point to its rows
  ImageShapes& operator=(ImageShapes&&) = default;
  // Those that are worth their bytes, if any.
  ImageShapes(const TileSource& source, const FoundShapes& found);
  // Those of a model, which must outlive this.
  ImageShapes(const TileSource& source, const FoundShapes& found, const BitShapes& of_model);

  bool empty() const { return pictures_.empty(); }
  // About how many bytes a file with them saves; 0 if they are those of a model.
  double saved_bytes() const { return saved_bytes_; }
  // About how many bytes they take in the model and in lists.
  double bytes() const;
  // Writes the part of a model that has the shapes.
  void put(BitWriter& bits) const;
  static constexpr size_t kMaxBytes = size_t{1} << 14;  // that put() writes

  // Takes the shapes out of the pixels of a tile.
  void take_out(uint64_t tile, BitPlane& plane) const;
  // Writes the list of a tile to at most `room` bytes. Returns its size, or 0 if there is not enough room.
  [[nodiscard]] uint32_t write_list(uint64_t tile, uint8_t* out, uint32_t room) const;

 private:
  void place(const TileSource& source, const FoundShapes& found);
  void choose_parameters();

  std::vector<Picture> pictures_;
  std::vector<std::vector<uint64_t>> rows_;  // of the pictures
  std::vector<std::vector<PutShape>> put_;   // by tile, in the order of its list
  uint32_t parameters_[3] = {};              // of numbers
  double saved_bytes_ = 0;
};

}  // namespace l3
