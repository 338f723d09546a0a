#include "metadata.h"

#include <zstd.h>

#include <cstring>
#include <memory>
#include <new>

namespace l3 {
namespace {

constexpr int kPackLevel = 12;
constexpr uint64_t kMaxWindow = uint64_t{1} << 23;
constexpr uint32_t kFrameMagic = 0xFD2FB528;
constexpr size_t kPieceBytes = 128 * 1024;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// The window that a Zstandard frame of at least nine bytes asks for (RFC 8878, 3.1.1.1.2). Where it has none of its own
// it is the size of the contents.
uint64_t window_of(const uint8_t* frame, uint64_t contents) {
  if ((frame[4] & 0x20) != 0) return contents;
  return uint64_t{8u + (frame[5] & 7u)} << (7 + (frame[5] >> 3));
}

// Follows records through bytes that arrive in pieces.
class RecordWalk {
 public:
  // False as soon as something is no record.
  bool take(const uint8_t* bytes, size_t size) {
    while (size > 0) {
      if (skip_ > 0) {
        const size_t part = size < skip_ ? size : skip_;
        skip_ -= part;
        bytes += part;
        size -= part;
        continue;
      }
      header_[filled_++] = *bytes++;
      --size;
      if (filled_ < kRecordHeaderBytes) continue;
      filled_ = 0;
      if (header_[4] > 2 || header_[5] != 0 || header_[6] != 0 || header_[7] != 0) return false;
      skip_ = load_u32(header_ + 8);
    }
    return true;
  }
  bool complete() const { return skip_ == 0 && filled_ == 0; }

 private:
  uint8_t header_[kRecordHeaderBytes] = {};
  uint32_t filled_ = 0;
  size_t skip_ = 0;
};

}  // namespace

bool are_records(const uint8_t* bytes, size_t size) {
  RecordWalk walk;
  return size > 0 && walk.take(bytes, size) && walk.complete();
}

uint64_t metadata_bound(size_t size) { return 4 + ZSTD_compressBound(size); }

size_t pack_metadata(const uint8_t* records, size_t size, uint8_t* out, size_t out_size) {
  store_u32(out, static_cast<uint32_t>(size));
  const size_t packed = ZSTD_compress(out + 4, out_size - 4, records, size, kPackLevel);
  return ZSTD_isError(packed) != 0 ? 0 : 4 + packed;
}

Verdict unpack_metadata(const uint8_t* data, const Section& section, uint64_t most, uint8_t* out, size_t out_size) {
  const Verdict wrong{Reason::metadata_contents, section.offset};
  if (section.size < kMinMetadataBytes) return {Reason::metadata_size, section.offset};
  const uint8_t* bytes = data + section.offset;
  const uint64_t unpacked = load_u32(bytes);
  if (unpacked > most) return {Reason::over_metadata_limit, section.offset};
  if (out != nullptr && out_size < unpacked) return {Reason::buffer_too_small};
  if (load_u32(bytes + 4) != kFrameMagic || ZSTD_getDictID_fromFrame(bytes + 4, section.size - 4) != 0 ||
      window_of(bytes + 4, unpacked) > kMaxWindow) {
    return wrong;
  }

  const std::unique_ptr<uint8_t[]> piece(new (std::nothrow) uint8_t[kPieceBytes]);
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (piece == nullptr || context == nullptr) return {Reason::out_of_memory};

  RecordWalk walk;
  ZSTD_inBuffer in{bytes + 4, section.size - 4, 0};
  uint64_t done = 0;
  for (size_t left = 1; left != 0;) {
    ZSTD_outBuffer next{piece.get(), kPieceBytes, 0};
    const size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &next, &in);
    if (ZSTD_isError(left) != 0 || next.pos > unpacked - done) return wrong;
    if (left != 0 && next.pos == 0 && in.pos == before) return wrong;  // the frame is cut short
    if (!walk.take(piece.get(), next.pos)) return {Reason::metadata_record, section.offset};
    if (out != nullptr) std::memcpy(out + done, piece.get(), next.pos);
    done += next.pos;
  }
  if (done != unpacked || in.pos != in.size) return wrong;
  if (done == 0 || !walk.complete()) return {Reason::metadata_record, section.offset};
  return {};
}

}  // namespace l3
