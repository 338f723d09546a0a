// The paper's scheme, by our own implementation in paper/.
#include <array>
#include <cstring>

#include "base/little_endian.h"
#include "codec.h"
#include "l3/l3.h"
#include "paper/paper_l3.h"

namespace bench {
namespace {

// The scheme stores only samples. The other parts of an image are appended to its file. Each chunk, and the
// transparency as one more chunk, has 4 bytes of type, 1 of place, 4 of size, and the contents. The last 4 bytes are
// the total size of these chunks.
constexpr size_t kChunkHead = 9;
constexpr std::array<char, 4> kTransparency = {'t', 'R', 'N', 'S'};

uint8_t* put_chunk(uint8_t* to, std::array<char, 4> type, uint8_t place, const std::vector<uint8_t>& data) {
  std::memcpy(to, type.data(), type.size());
  to[4] = place;
  base::store(to + 5, static_cast<uint32_t>(data.size()));
  if (!data.empty()) std::memcpy(to + kChunkHead, data.data(), data.size());
  return to + kChunkHead + data.size();
}

std::string version() { return std::string("bench/paper of libl3 ") + l3_version_text(); }

std::string cannot_hold(const formats::Image& image) {
  if (image.bits != 8) return std::to_string(image.bits) + (image.bits == 1 ? " bit" : " bits");
  return image.colour == formats::Colour::palette ? "palette" : "";
}

std::optional<formats::Error> encode(const formats::Image& image, int, bridge::Buffer& file) {
  const paper::Shape shape{image.width, image.height, formats::channels(image.colour)};
  const uint64_t bound = paper::encode_bound(shape);
  uint64_t beside = 0;
  if (!image.transparency.empty()) beside += kChunkHead + image.transparency.size();
  for (const formats::Chunk& chunk : image.chunks) beside += kChunkHead + chunk.data.size();
  if (bound == 0 || beside > UINT32_MAX) return formats::Error{0, "the image is too large"};

  uint8_t* const start = file.reset(bound + beside + 4);
  uint8_t* to = start + paper::encode(shape, image.pixels.data(), start);
  if (!image.transparency.empty()) to = put_chunk(to, kTransparency, 0, image.transparency);
  for (const formats::Chunk& chunk : image.chunks) to = put_chunk(to, chunk.type, chunk.place, chunk.data);
  base::store(to, static_cast<uint32_t>(beside));
  file.truncate(static_cast<size_t>(to + 4 - start));
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  const formats::Error cut{file.size(), "the file is cut short"};
  if (file.size() < 4) return cut;
  const uint64_t beside = base::load_u32(&file[file.size() - 4]);
  if (beside > file.size() - 4) return cut;
  std::span<const uint8_t> chunks = file.subspan(file.size() - 4 - beside, beside);
  file = file.first(file.size() - 4 - beside);

  paper::Shape shape;
  const paper::Reason head = paper::read_head(file, shape);
  if (head != paper::Reason::none) return formats::Error{0, paper::text(head)};
  image.width = shape.width;
  image.height = shape.height;
  image.bits = 8;
  image.colour = static_cast<formats::Colour>(shape.channels - 1);
  image.palette.clear();
  image.transparency.clear();
  image.chunks.clear();
  while (!chunks.empty()) {
    if (chunks.size() < kChunkHead) return cut;
    const uint32_t size = base::load_u32(&chunks[5]);
    if (size > chunks.size() - kChunkHead) return cut;
    formats::Chunk chunk;
    std::memcpy(chunk.type.data(), chunks.data(), chunk.type.size());
    chunk.place = chunks[4];
    const std::span<const uint8_t> data = chunks.subspan(kChunkHead, size);
    chunk.data.assign(data.begin(), data.end());
    if (chunk.type == kTransparency) {
      image.transparency = std::move(chunk.data);
    } else {
      image.chunks.push_back(std::move(chunk));
    }
    chunks = chunks.subspan(kChunkHead + size);
  }
  image.pixels.resize(shape.pixel_bytes());
  const paper::Reason reason = paper::decode(file, shape, image.pixels.data());
  if (reason != paper::Reason::none) return formats::Error{0, paper::text(reason)};
  return std::nullopt;
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode, nullptr, true, false};

}  // namespace

const Adapter* l3_paper_adapter() { return &kAdapter; }

}  // namespace bench
