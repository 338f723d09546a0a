#include "share_terms.h"

#include <bit>

#include "base/hex.h"

namespace loader {
namespace {

// Changes whenever messages, the layout of shared memory or the order of units do.
constexpr int kProtocol = 1;
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

std::string text_of_tensor(const Tensor& tensor) {
  const l3_tensor_options& wanted = tensor.wanted;
  std::string text = "role ";
  text += tensor.any_role ? "any" : tensor.role;
  text += ", type " + std::to_string(wanted.type) + ", layout " + std::to_string(wanted.layout);
  text += ", as_colours " + std::to_string(wanted.as_colours) + ", scale and bias";
  // Bit for bit, as the values are.
  for (const float number : wanted.scale) text.append(" ").append(hexadecimal(std::bit_cast<uint32_t>(number)));
  for (const float number : wanted.bias) text.append(" ").append(hexadecimal(std::bit_cast<uint32_t>(number)));
  return text;
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
