// Mutates PNG files chunk by chunk, inside the compressed pixels too, with lengths and checksums that are right again.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "drawing.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace fuzz {

using drawing::Bytes;
using drawing::Dice;

struct Chunk {
  std::array<uint8_t, 4> tag;
  Bytes data;
};

constexpr uint8_t kPngSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr size_t kMaxUnpacked = 1 << 16;

inline uint32_t get_big(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}
inline void put_big(Bytes& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

// The chunks of a PNG as far as they go; none of what is no PNG.
inline std::vector<Chunk> find_chunks(const uint8_t* data, size_t size) {
  std::vector<Chunk> chunks;
  if (size < 8 || std::memcmp(data, kPngSignature, 8) != 0) return chunks;
  for (size_t at = 8; size - at >= 12;) {
    const uint32_t length = get_big(data + at);
    if (length > size - at - 12) break;
    Chunk chunk{{}, Bytes(data + at + 8, data + at + 8 + length)};
    std::copy(data + at + 4, data + at + 8, chunk.tag.begin());
    chunks.push_back(std::move(chunk));
    at += 12 + size_t{length};
  }
  return chunks;
}

inline Bytes join_chunks(const std::vector<Chunk>& chunks) {
  Bytes file(kPngSignature, kPngSignature + 8);
  for (const Chunk& chunk : chunks) {
    put_big(file, static_cast<uint32_t>(chunk.data.size()));
    file.insert(file.end(), chunk.tag.begin(), chunk.tag.end());
    file.insert(file.end(), chunk.data.begin(), chunk.data.end());
    const size_t covered = 4 + chunk.data.size();
    put_big(file, static_cast<uint32_t>(crc32(0, &file[file.size() - covered], static_cast<uInt>(covered))));
  }
  return file;
}

// Mutates what is compressed in all IDAT chunks, and makes them one.
inline void mutate_pixels(Dice& dice, std::vector<Chunk>& chunks) {
  const auto is_pixels = [](const Chunk& chunk) { return std::memcmp(chunk.tag.data(), "IDAT", 4) == 0; };
  const auto first = std::find_if(chunks.begin(), chunks.end(), is_pixels);
  if (first == chunks.end()) return;
  Bytes packed;
  for (const Chunk& chunk : chunks) {
    if (is_pixels(chunk)) packed.insert(packed.end(), chunk.data.begin(), chunk.data.end());
  }
  Bytes rows(kMaxUnpacked);
  uLongf unpacked = rows.size();
  if (uncompress(rows.data(), &unpacked, packed.data(), packed.size()) != Z_OK) return;
  const size_t maximum = std::min<size_t>(kMaxUnpacked, unpacked + dice.roll(64));
  rows.resize(LLVMFuzzerMutate(rows.data(), unpacked, std::max<size_t>(maximum, unpacked)));
  Chunk chunk{first->tag, Bytes(compressBound(rows.size()))};
  uLongf size = chunk.data.size();
  compress2(chunk.data.data(), &size, rows.data(), rows.size(), static_cast<int>(dice.roll(3)));
  chunk.data.resize(size);
  const auto place = chunks.insert(first, std::move(chunk)) + 1;
  chunks.erase(std::remove_if(place, chunks.end(), is_pixels), chunks.end());
}

// LLVMFuzzerCustomMutator for PNG files; of others, libFuzzer's own mutations.
inline size_t mutate_png(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Dice dice(seed);
  std::vector<Chunk> chunks;
  if (!dice.chance(10)) chunks = find_chunks(data, size);
  if (chunks.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const size_t i = dice.roll(chunks.size());
  switch (dice.roll(10)) {
    case 0: chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(i)); break;
    case 1: chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(i), Chunk(dice.pick(chunks))); break;
    case 2: std::swap(chunks[i], dice.pick(chunks)); break;
    case 3: {
      constexpr const char* kTags[] = {"PLTE", "tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "cICP", "eXIf", "tEXt",
                                       "pHYs", "IDAT", "acTL", "fcTL", "fdAT", "IEND", "tIME", "bKGD", "sBIT"};
      std::memcpy(chunks[i].tag.data(), dice.pick(kTags), 4);
      break;
    }
    case 4:
    case 5: mutate_pixels(dice, chunks); break;
    case 6: {  // split, as large files are
      Chunk rest = chunks[i];
      const size_t at = dice.roll(rest.data.size() + 1);
      rest.data.erase(rest.data.begin(), rest.data.begin() + static_cast<ptrdiff_t>(at));
      chunks[i].data.resize(at);
      chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(i) + 1, std::move(rest));
      break;
    }
    default: {
      Bytes& bytes = chunks[i].data;
      const size_t old_size = bytes.size();
      bytes.resize(old_size + 32);
      bytes.resize(LLVMFuzzerMutate(bytes.data(), old_size, bytes.size()));
    }
  }
  const Bytes file = join_chunks(chunks);
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

}  // namespace fuzz
