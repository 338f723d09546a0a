// Implements metadata.h: packs and unpacks the metadata section (section 4 of the spec) with libzstd.
#include "container/metadata.h"

#include <zstd.h>

#include <cstring>
#include <memory>
#include <new>

namespace l3 {
namespace {

constexpr int kPackLevel = 12;
constexpr int kPackWindowLog = 18;
constexpr uint64_t kMaxWindow = uint64_t{1} << 23;
constexpr uint64_t kMaxBlock = uint64_t{1} << 17;
constexpr uint32_t kFrameMagic = 0xFD2FB528;
constexpr size_t kPieceBytes = 128 * 1024;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

uint64_t read_number(const uint8_t* bytes, uint32_t width) {
  uint64_t value = 0;
  for (uint32_t i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Whether these bytes, at least nine, are one Zstandard frame as section 4 of the spec allows it, judged by its
// headers (RFC 8878, 3.1.1). libzstd cannot decide this, because its versions differ in what they accept. `first_block`
// is where the blocks begin.
bool is_allowed_frame(const uint8_t* frame, uint64_t size, uint64_t unpacked, uint64_t& first_block) {
  if (load_u32(frame) != kFrameMagic) return false;
  const uint32_t descriptor = frame[4];
  if ((descriptor & 0x08) != 0) return false;  // reserved
  const bool single_segment = (descriptor & 0x20) != 0;
  constexpr uint32_t kDictionaryBytes[4] = {0, 1, 2, 4};
  const uint32_t dictionary_bytes = kDictionaryBytes[descriptor & 3];
  const uint32_t content_bytes = descriptor >> 6 == 0 ? (single_segment ? 1 : 0) : 1u << (descriptor >> 6);
  uint64_t at = single_segment ? 5 : 6;
  if (at + dictionary_bytes + content_bytes > size) return false;

  if (read_number(frame + at, dictionary_bytes) != 0) return false;
  at += dictionary_bytes;
  const uint64_t contents = read_number(frame + at, content_bytes) + (content_bytes == 2 ? 256 : 0);
  at += content_bytes;
  if (content_bytes != 0 && contents != unpacked) return false;
  const uint64_t window = single_segment ? contents : uint64_t{8u + (frame[5] & 7u)} << (7 + (frame[5] >> 3));
  if (window > kMaxWindow) return false;
  const uint64_t most_block = window < kMaxBlock ? window : kMaxBlock;
  first_block = at;

  // Empty blocks take time too. Without this limit a small section could keep a decoder busy for minutes.
  const uint64_t most_blocks = 16 + unpacked / 1024;
  uint64_t blocks = 0;
  for (bool last = false; !last;) {
    if (++blocks > most_blocks || size - at < 3) return false;
    const uint64_t block = read_number(frame + at, 3);
    const uint64_t type = block >> 1 & 3;
    last = (block & 1) != 0;
    if (type == 3 || block >> 3 > most_block) return false;
    const uint64_t bytes = type == 1 ? 1 : block >> 3;
    if (size - at - 3 < bytes) return false;
    at += 3 + bytes;
  }
  return size - at == ((descriptor & 4) != 0 ? 4 : 0);
}

// Unpacks an allowed frame whose blocks are not compressed, as is usual for a few bytes: libzstd may take longer to
// make a context than a tiny image takes to decode. Returns false if the frame needs libzstd.
bool unpack_uncompressed(const uint8_t* frame, uint64_t size, uint64_t first_block, uint8_t* out, uint64_t unpacked) {
  if ((frame[4] & 4) != 0) return false;  // a checksum
  uint64_t at = first_block, done = 0;
  for (bool last = false; !last;) {
    if (size - at < 3) return false;
    const uint64_t block = read_number(frame + at, 3), bytes = block >> 3;
    if ((block >> 1 & 3) != 0 || bytes > unpacked - done || bytes > size - at - 3) return false;
    std::memcpy(out + done, frame + at + 3, static_cast<size_t>(bytes));
    last = (block & 1) != 0;
    at += 3 + bytes;
    done += bytes;
  }
  return done == unpacked;
}

// Checks a sequence of records that arrives in pieces.
class RecordWalk {
 public:
  // Returns false as soon as the bytes cannot be records.
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

// Unpacks piece by piece, for callers that need only the verdict.
Reason walk_pieces(const uint8_t* frame, size_t frame_bytes, uint64_t unpacked, RecordWalk& walk) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  const std::unique_ptr<uint8_t[]> piece(new (std::nothrow) uint8_t[kPieceBytes]);
  if (context == nullptr || piece == nullptr) return Reason::out_of_memory;
  ZSTD_inBuffer in{frame, frame_bytes, 0};
  uint64_t done = 0;
  for (size_t left = 1; left != 0;) {
    ZSTD_outBuffer next{piece.get(), kPieceBytes, 0};
    const size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &next, &in);
    if (ZSTD_isError(left) != 0 || next.pos > unpacked - done) return Reason::metadata_contents;
    if (left != 0 && next.pos == 0 && in.pos == before) return Reason::metadata_contents;  // the frame ends too early
    if (!walk.take(piece.get(), next.pos)) return Reason::metadata_record;
    done += next.pos;
  }
  return done == unpacked ? Reason::none : Reason::metadata_contents;
}

}  // namespace

bool are_records(const uint8_t* bytes, size_t size) {
  RecordWalk walk;
  return size > 0 && walk.take(bytes, size) && walk.complete();
}

uint64_t metadata_bound(size_t size) { return 4 + ZSTD_compressBound(size); }

size_t pack_metadata(const uint8_t* records, size_t size, uint8_t* out, size_t out_size) {
  store_u32(out, static_cast<uint32_t>(size));
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return 0;
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kPackLevel);
  // A small window limits the memory of packing and unpacking. Metadata seldom repeats over long distances.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, kPackWindowLog);
  const size_t packed = ZSTD_compress2(context.get(), out + 4, out_size - 4, records, size);
  return ZSTD_isError(packed) != 0 ? 0 : 4 + packed;
}

Verdict unpack_metadata(const uint8_t* data, const Section& section, uint64_t maximum, uint8_t* out, size_t out_size) {
  const Verdict wrong{Reason::metadata_contents, section.offset};
  if (section.size < kMinMetadataBytes) return {Reason::metadata_size, section.offset};
  const uint8_t* frame = data + section.offset + 4;
  const size_t frame_bytes = static_cast<size_t>(section.size - 4);
  const uint64_t unpacked = load_u32(data + section.offset);
  if (unpacked > maximum) return {Reason::over_metadata_limit, section.offset};
  if (out != nullptr && out_size < unpacked) return {Reason::buffer_too_small};
  uint64_t first_block = 0;
  if (!is_allowed_frame(frame, frame_bytes, unpacked, first_block)) return wrong;
  RecordWalk walk;
  Reason reason = Reason::none;
  if (out == nullptr) {
    reason = walk_pieces(frame, frame_bytes, unpacked, walk);
  } else {
    if (!unpack_uncompressed(frame, frame_bytes, first_block, out, unpacked)) {
      const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
      if (context == nullptr) return {Reason::out_of_memory};
      const auto size = static_cast<size_t>(unpacked);
      if (ZSTD_decompressDCtx(context.get(), out, size, frame, frame_bytes) != unpacked) return wrong;
    }
    if (!walk.take(out, static_cast<size_t>(unpacked))) reason = Reason::metadata_record;
  }
  if (reason == Reason::none && (unpacked == 0 || !walk.complete())) reason = Reason::metadata_record;
  return {reason, section.offset};
}

}  // namespace l3
