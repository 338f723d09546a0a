// Reads the first frame of a GIF as a palette image.
//
// This does not use stb_image, which returns colours instead of indices, and takes missing pixels of a truncated frame
// as transparent ones.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "adapters.h"
#include "metadata.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr size_t kHeaderBytes = 13;  // signature and screen
constexpr size_t kFrameBytes = 10;   // header of a frame with its first byte, 0x2C
constexpr uint32_t kMaxCodes = 4096;

struct Frame {
  uint32_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  std::span<const uint8_t> colours;  // RGB triples
  uint32_t code_bits = 0;            // bits of a sample
  std::vector<uint8_t> codes;        // contents of the sub-blocks
  size_t offset = 0;                 // of the codes in the file
  std::optional<uint8_t> transparent;
};

struct Layout {
  uint32_t width = 0, height = 0;
  uint8_t aspect = 0;
  std::optional<Frame> first;
  uint64_t later_frames = 0;
  size_t end = 0;  // after the trailer
};

// Reads the colour table after a header with these flags, and moves `at` to its end. Returns nothing if the file ends
// too early.
std::optional<std::span<const uint8_t>> colours_at(std::span<const uint8_t> file, size_t& at, uint8_t flags) {
  if (!(flags & 0x80)) return std::span<const uint8_t>();
  const size_t bytes = size_t{3} << ((flags & 7) + 1);
  if (file.size() - at < bytes) return std::nullopt;
  at += bytes;
  return file.subspan(at - bytes, bytes);
}

// Reads all blocks of the file without decoding the pixels.
class Walk {
 public:
  Walk(std::span<const uint8_t> file, const ReadOptions& options) : file_(file), options_(options) {}

  Result<Layout> run() {
    if (file_.size() < kHeaderBytes) return ends_inside("its header");
    layout_.width = load_u16_little(&file_[6]);
    layout_.height = load_u16_little(&file_[8]);
    layout_.aspect = file_[12];
    at_ = kHeaderBytes;
    const auto colours = colours_at(file_, at_, file_[10]);
    if (!colours) return ends_inside("its colours");
    screen_colours_ = *colours;
    for (;;) {
      if (at_ == file_.size()) return ends_inside("its blocks: no trailer");
      const uint8_t kind = file_[at_];
      if (kind == 0x3B) break;
      std::optional<Error> error;
      if (kind == 0x2C) {
        error = take_frame();
      } else if (kind == 0x21) {
        error = take_extension();
      } else {
        return Error{at_, "expected a block"};
      }
      if (error) return *std::move(error);
    }
    layout_.end = at_ + 1;
    if (!layout_.first) return Error{at_, "the file has no frame"};
    return std::move(layout_);
  }

 private:
  Error ends_inside(const char* what) const { return Error{file_.size(), std::string("the file ends inside ") + what}; }

  // Skips sub-blocks up to their end and counts their bytes. Appends their contents if wanted.
  std::optional<Error> take_sub_blocks(std::vector<uint8_t>* data, uint64_t* bytes) {
    for (;;) {
      if (at_ == file_.size()) return ends_inside("a block");
      const size_t size = file_[at_++];
      if (size == 0) return std::nullopt;
      if (file_.size() - at_ < size) return ends_inside("a block");
      if (data != nullptr) {
        data->insert(data->end(), file_.begin() + static_cast<std::ptrdiff_t>(at_),
                     file_.begin() + static_cast<std::ptrdiff_t>(at_ + size));
      }
      *bytes += size;
      at_ += size;
    }
  }

  std::optional<Error> take_extension() {
    if (file_.size() - at_ < 2) return ends_inside("a block");
    const uint8_t label = file_[at_ + 1];
    const size_t begin = at_;
    at_ += 2;
    uint64_t bytes = 0;
    if (label == 0xF9) {
      std::vector<uint8_t> control;
      if (auto error = take_sub_blocks(&control, &bytes)) return error;
      if (control.size() != 4) return Error{begin, "a graphic control block of " + std::to_string(bytes) + " bytes"};
      transparent_ = control[0] & 1 ? std::optional<uint8_t>(control[3]) : std::nullopt;
      return std::nullopt;
    }
    if (auto error = take_sub_blocks(nullptr, &bytes)) return error;
    if (label == 0x01) return Error{begin, "a plain text block, which is not supported"};
    if (label == 0xFE) {
      notice_left_out(options_, "a comment", bytes);
    } else if (!(label == 0xFF && is_loop(begin))) {
      notice_left_out(options_, "application data", bytes);
    }
    return std::nullopt;
  }

  // The number of repetitions of an animation does not concern its first frame.
  bool is_loop(size_t begin) const {
    constexpr std::string_view kLoop = "NETSCAPE2.0";
    return file_.size() - begin >= 3 + kLoop.size() &&
           std::equal(kLoop.begin(), kLoop.end(), file_.begin() + static_cast<std::ptrdiff_t>(begin + 3));
  }

  std::optional<Error> take_frame() {
    if (file_.size() - at_ < kFrameBytes) return ends_inside("a frame");
    Frame frame;
    frame.left = load_u16_little(&file_[at_ + 1]);
    frame.top = load_u16_little(&file_[at_ + 3]);
    frame.width = load_u16_little(&file_[at_ + 5]);
    frame.height = load_u16_little(&file_[at_ + 7]);
    const uint8_t flags = file_[at_ + 9];
    frame.interlaced = flags & 0x40;
    at_ += kFrameBytes;
    const auto colours = colours_at(file_, at_, flags);
    if (!colours || at_ == file_.size()) return ends_inside("a frame");
    frame.colours = colours->empty() ? screen_colours_ : *colours;
    frame.code_bits = file_[at_++];
    frame.offset = at_;
    frame.transparent = std::exchange(transparent_, std::nullopt);
    uint64_t bytes = 0;
    if (auto error = take_sub_blocks(layout_.first ? nullptr : &frame.codes, &bytes)) return error;
    if (layout_.first) {
      ++layout_.later_frames;
    } else {
      layout_.first = std::move(frame);
    }
    return std::nullopt;
  }

  std::span<const uint8_t> file_;
  const ReadOptions& options_;
  size_t at_ = 0;
  std::span<const uint8_t> screen_colours_;
  std::optional<uint8_t> transparent_;
  Layout layout_;
};

// Reads codes of a growing number of bits, the lowest bit first.
class CodeReader {
 public:
  explicit CodeReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::optional<uint32_t> next(uint32_t bits) {
    while (held_ < bits) {
      if (at_ == bytes_.size()) return std::nullopt;
      word_ |= uint32_t{bytes_[at_++]} << held_;
      held_ += 8;
    }
    const uint32_t code = word_ & ((1U << bits) - 1);
    word_ >>= bits;
    held_ -= bits;
    return code;
  }

  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  uint32_t word_ = 0;
  uint32_t held_ = 0;
};

// The meaning of each code: the string of another code and one more sample.
struct Strings {
  std::array<uint16_t, kMaxCodes> before{};
  std::array<uint8_t, kMaxCodes> last{};
  std::array<uint8_t, kMaxCodes> first{};
  std::array<uint16_t, kMaxCodes> length{};
};

// Fills `samples` in the order of the file. Returns the reason if it cannot. Sets `surplus` if there is more data.
std::string unpack(const Frame& frame, std::span<uint8_t> samples, bool* surplus) {
  const uint32_t clear = 1U << frame.code_bits;
  const uint32_t end = clear + 1;
  Strings strings;
  for (uint32_t i = 0; i < clear; ++i) {
    strings.last[i] = strings.first[i] = static_cast<uint8_t>(i);
    strings.length[i] = 1;
  }
  constexpr uint32_t kNone = kMaxCodes;
  CodeReader reader(frame.codes);
  uint32_t bits = frame.code_bits + 1;
  uint32_t next = end + 1;
  uint32_t previous = kNone;
  size_t filled = 0;
  for (;;) {
    const std::optional<uint32_t> code = reader.next(bits);
    // Some programs do not write the end code.
    if (!code || *code == end) break;
    if (*code == clear) {
      bits = frame.code_bits + 1;
      next = end + 1;
      previous = kNone;
      continue;
    }
    // The code that is being defined may be used already.
    const bool told = *code < next || (*code == next && previous != kNone && next < kMaxCodes);
    if (!told) return "an undefined code";
    if (previous != kNone && next < kMaxCodes) {
      strings.before[next] = static_cast<uint16_t>(previous);
      strings.length[next] = static_cast<uint16_t>(strings.length[previous] + 1);
      strings.first[next] = strings.first[previous];
      strings.last[next] = strings.first[*code == next ? previous : *code];
      ++next;
    }
    if (next >= 1U << bits && bits < 12) ++bits;
    previous = *code;
    const size_t length = strings.length[*code];
    if (length > samples.size() - filled) {
      *surplus = true;
      if (filled == samples.size()) return "";
    }
    // Writes the string from its last sample to its first. Samples beyond the end are dropped.
    uint32_t at = *code;
    for (size_t i = length; i-- > 0; at = strings.before[at]) {
      if (i < samples.size() - filled) samples[filled + i] = strings.last[at];
    }
    filled += std::min(length, samples.size() - filled);
  }
  if (filled < samples.size()) return "they end after " + std::to_string(filled) + " samples";
  if (!reader.at_end()) *surplus = true;
  return "";
}

// Copies a frame to its place on the screen. In an interlaced frame, every eighth row comes first, then the rows
// between.
void place(const Frame& frame, const std::vector<uint8_t>& rows, Image& image) {
  struct Pass {
    size_t first, step;
  };
  constexpr Pass kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, kAtOnce[] = {{0, 1}};
  auto row = rows.begin();
  for (const Pass& pass : frame.interlaced ? std::span<const Pass>(kPasses) : std::span<const Pass>(kAtOnce)) {
    for (size_t y = pass.first; y < frame.height; y += pass.step) {
      const size_t to = (frame.top + y) * image.width + frame.left;
      std::copy_n(row, frame.width, image.pixels.begin() + static_cast<std::ptrdiff_t>(to));
      row += frame.width;
    }
  }
}

// Returns a frame without its pixels, or why it cannot be read.
Result<Image> image_of(const Layout& layout) {
  const Frame& frame = *layout.first;
  if (frame.width == 0 || frame.height == 0) return Error{frame.offset, "width or height is 0"};
  if (frame.colours.empty()) return Error{frame.offset, "no colour table"};
  if (frame.code_bits < 1 || frame.code_bits > 8) {
    return Error{frame.offset, "samples of " + std::to_string(frame.code_bits) + " bits"};
  }
  Image image;
  // A screen that is smaller than the frame grows, as in viewers.
  image.width = std::max(layout.width, frame.left + frame.width);
  image.height = std::max(layout.height, frame.top + frame.height);
  image.colour = Colour::palette;
  image.palette.assign(frame.colours.begin(), frame.colours.end());
  const size_t entries = image.palette.size() / 3;
  image.bits = entries <= 2 ? 1 : entries <= 4 ? 2 : entries <= 16 ? 4 : 8;
  if (frame.transparent && *frame.transparent < entries) {
    image.transparency.assign(size_t{*frame.transparent} + 1, 255);
    image.transparency.back() = 0;
  }
  return image;
}

}  // namespace

bool is_gif(std::span<const uint8_t> file) {
  constexpr std::string_view kOld = "GIF87a", kNew = "GIF89a";
  return file.size() >= kOld.size() &&
         (std::equal(kOld.begin(), kOld.end(), file.begin()) || std::equal(kNew.begin(), kNew.end(), file.begin()));
}

Result<Image> read_gif(std::span<const uint8_t> file, const ReadOptions& options) {
  Result<Layout> layout = Walk(file, options).run();
  if (!layout) return layout.error();
  const Frame& frame = *layout->first;
  Result<Image> image = image_of(*layout);
  if (!image) return image;
  if (std::optional<Error> error = over_limit(*image, options, frame.offset)) return *std::move(error);
  // A code has at least two bits and stands for less than 4096 samples.
  const size_t frame_pixels = size_t{frame.width} * frame.height;
  // The screen may be larger than the frame, but a small file must not allocate very much memory.
  constexpr size_t kFree = 1U << 20;
  if (frame_pixels / kMaxCodes / 4 > frame.codes.size() ||
      (pixel_bytes(*image) > kFree && pixel_bytes(*image) / kMaxCodes / 4 > file.size())) {
    return Error{frame.offset, "the file is too short for the size of the image"};
  }
  if (layout->aspect != 0) {  // width divided by height of a pixel is (aspect + 15) / 64
    if (auto error = add_density(*image, 64, layout->aspect + 15U, DensityUnit::none, options, frame.offset)) {
      return *std::move(error);
    }
  }

  std::vector<uint8_t> samples(frame_pixels);
  bool surplus = false;
  if (const std::string reason = unpack(frame, samples, &surplus); !reason.empty()) {
    return Error{frame.offset, "pixels: " + reason};
  }
  const size_t entries = image->palette.size() / 3;
  const auto beyond = std::find_if(samples.begin(), samples.end(), [&](uint8_t sample) { return sample >= entries; });
  if (beyond != samples.end()) {
    return Error{frame.offset,
                 "pixels: index " + std::to_string(*beyond) + " in a table of " + std::to_string(entries) + " colours"};
  }
  // As in Pillow, pixels outside the frame have the transparent index, or else index 0.
  const bool clear = !image->transparency.empty();
  const size_t around = clear ? image->transparency.size() - 1 : 0;
  const bool covers = pixel_bytes(*image) == frame_pixels;
  image->pixels.assign(pixel_bytes(*image), static_cast<uint8_t>(around));
  place(frame, samples, *image);
  if (!covers) {
    notice(options.notices, std::string("the first frame does not cover the screen: the rest is ") +
                                (clear ? "transparent" : "index 0"));
  }
  if (surplus) notice(options.notices, "data after the last pixel is left out");
  if (layout->later_frames > 0) {
    notice(options.notices, "animated GIF: only the first frame is read, " + std::to_string(layout->later_frames) +
                                (layout->later_frames == 1 ? " frame is left out" : " frames are left out"));
  }
  if (const size_t left = file.size() - layout->end; left > 0) {
    notice(options.notices, std::to_string(left) + " bytes after the trailer are left out");
  }
  return image;
}

}  // namespace formats
