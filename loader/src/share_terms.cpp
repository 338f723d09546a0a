#include "share_terms.h"

#include <bit>
#include <initializer_list>

#include "base/hex.h"

namespace loader {
namespace {

// Changes whenever messages, the layout of shared memory or the order of units do.
constexpr int kProtocol = 2;
// A longer value is replaced by its hash.
constexpr size_t kMaxValue = 300;

uint64_t hash_text(std::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = hash_of(hash, static_cast<uint8_t>(c));
  return hash;
}

std::string hexadecimal(uint64_t number) {
  std::string text;
  for (int shift = number >> 32 != 0 ? 60 : 28; shift >= 0; shift -= 4)
    text += "0123456789abcdef"[number >> shift & 15];
  return text;
}

class Lines {
 public:
  void add(std::string_view name, std::string value) {
    if (value.size() > kMaxValue || value.find('\n') != value.npos) value = hexadecimal(hash_text(value));
    text_.append(name).append("=").append(value).append("\n");
  }
  void add(std::string_view name, uint64_t number) { add(name, std::to_string(number)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string text_of_set(const l3_data_set& set) {
  return std::to_string(set.samples) + " samples in " + std::to_string(set.shards.size()) + " shards (" +
         base::hexadecimal(digest_of(set.shards)) + ")";
}

std::string text_of_groups(const l3_loader_options& options) {
  if (options.groups == nullptr) return "all";
  uint64_t hash = 0;
  for (uint64_t i = 0; i < options.group_count; ++i) hash = hash_of(hash, options.groups[i]);
  return std::to_string(options.group_count) + " (" + hexadecimal(hash) + ")";
}

// Bit for bit, as the values are.
std::string text_of_floats(std::initializer_list<float> numbers) {
  std::string text;
  for (const float number : numbers) text.append(" ").append(hexadecimal(std::bit_cast<uint32_t>(number)));
  return text;
}

std::string text_of_four(const float (&numbers)[4]) {
  return text_of_floats({numbers[0], numbers[1], numbers[2], numbers[3]});
}

std::string text_of_size(uint32_t kind, uint32_t width, uint32_t height) {
  std::string text = std::to_string(kind);
  if (kind != 0) text.append(" ").append(std::to_string(width)).append(" x ").append(std::to_string(height));
  return text;
}

std::string text_of_boxes(const l3_loader_options& options) {
  std::string text = std::to_string(options.box);
  if (options.box == L3_BOX_RANDOM) {
    text += text_of_floats({options.scale[0], options.scale[1], options.ratio[0], options.ratio[1]});
  }
  if (options.box == L3_BOX_GIVEN) {
    uint64_t hash = options.box_count;
    for (uint64_t i = 0; i < options.box_count; ++i) {
      const l3_box& box = options.boxes[i];
      for (const uint32_t number : {box.x, box.y, box.width, box.height}) hash = hash_of(hash, number);
    }
    text += " (" + hexadecimal(hash) + ")";
  }
  return text;
}

std::string text_of_tensor(const Tensor& tensor) {
  const l3_tensor_options& wanted = tensor.wanted;
  std::string text = "role ";
  text += tensor.any_role ? "any" : tensor.role;
  text += ", type " + std::to_string(wanted.type) + ", layout " + std::to_string(wanted.layout);
  text += ", as_colours " + std::to_string(wanted.as_colours) + ", scale and bias";
  text += text_of_four(wanted.scale) + text_of_four(wanted.bias);
  for (const uint32_t number : {wanted.interpolation, wanted.channels, wanted.alpha, wanted.bits, wanted.jitter}) {
    text += ", " + std::to_string(number);
  }
  return text + ", pad" + text_of_four(wanted.pad_value) + ", background" + text_of_four(wanted.background);
}

// The first line, which is removed from `text`.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string share_terms(const l3_data_set& set, const l3_loader_options& options, const Units& units) {
  const char* const orders[] = {"stored", "shuffled", "windows"};
  const char* const endings[] = {"even", "pad", "drop", "uneven"};
  const char* const on_error[] = {"fail", "skip", "zero"};
  const char* const crops[] = {"none", "centre", "random"};
  Lines lines;
  lines.add("protocol", kProtocol);
  lines.add("data set", text_of_set(set));
  lines.add("batch_size", options.batch_size);
  lines.add("seed", options.seed);
  lines.add("rank", options.rank);
  lines.add("world_size", options.world_size);
  lines.add("order", orders[options.order]);
  lines.add("window", options.order == L3_ORDER_WINDOWS ? options.window : 0);
  lines.add("last_batch", endings[options.last_batch]);
  lines.add("on_error", on_error[options.on_error]);
  lines.add("crop", crops[options.crop]);
  lines.add("crop_width", options.crop == L3_CROP_NONE ? 0 : options.crop_width);
  lines.add("crop_height", options.crop == L3_CROP_NONE ? 0 : options.crop_height);
  lines.add("flip", options.flip != 0 ? 1 : 0);
  lines.add("orient", options.orient != 0 ? 1 : 0);
  lines.add("box", text_of_boxes(options));
  lines.add("resize", text_of_size(options.resize, options.resize_width, options.resize_height));
  lines.add("pad", text_of_size(options.pad, options.pad_width, options.pad_height) + ", mode " +
                       std::to_string(options.pad_mode));
  lines.add("flip_vertical", options.flip_vertical != 0 ? 1 : 0);
  lines.add("turn", options.turn);
  lines.add("bucket_by", options.bucket_by);
  lines.add("brightness, contrast, saturation, hue",
            text_of_floats({options.brightness, options.contrast, options.saturation, options.hue}));
  lines.add("choice of samples", text_of_groups(options));
  lines.add("number of tensors", units.tensors().size());
  for (size_t i = 0; i < units.tensors().size(); ++i) {
    lines.add("tensor " + std::to_string(i), text_of_tensor(units.tensors()[i]));
  }
  lines.add("max_pixels", options.limits.max_pixels);
  lines.add("max_bytes", options.limits.max_output_bytes);
  return lines.take();
}

std::string difference_of_terms(std::string_view theirs, std::string_view own) {
  while (!theirs.empty() || !own.empty()) {
    const std::string_view their_line = next_line(theirs), own_line = next_line(own);
    if (their_line == own_line) continue;
    const size_t name = own_line.find('='), their_name = their_line.find('=');
    if (name == own_line.npos || their_line.substr(0, their_name) != own_line.substr(0, name)) {
      return "version of l3";
    }
    return std::string(own_line.substr(0, name)) + ": " + std::string(their_line.substr(name + 1)) + ", not " +
           std::string(own_line.substr(name + 1));
  }
  return {};
}

}  // namespace loader
