#include "set_state.h"

#include <algorithm>

#include "base/crc32.h"
#include "base/little_endian.h"

namespace tools {
namespace {

constexpr uint64_t kMark = 0x326574617473336C;  // "l3state2"
constexpr size_t kFrameBytes = 8;               // size and check

class Writer {
 public:
  void number(uint64_t value) {
    bytes_.resize(bytes_.size() + sizeof value);
    base::store(bytes_.data() + bytes_.size() - sizeof value, value);
  }
  void bytes(std::span<const uint8_t> value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void text(const std::string& value) { bytes({reinterpret_cast<const uint8_t*>(value.data()), value.size()}); }
  void digest(const loader::Digest& value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  void failure(const Failure& value) {
    text(value.file);
    number(value.offset.has_value() ? 1 : 0);
    number(value.offset.value_or(0));
    text(value.reason);
  }
  void totals(const SetTotals& value) {
    for (const uint64_t count : {value.groups, value.files, value.pixels, value.bytes_in, value.bytes_out}) {
      number(count);
    }
  }
  void sample(const loader::NewSample& value) {
    text(value.name);
    text(value.role);
    for (const uint64_t count :
         {value.size, uint64_t{value.check}, uint64_t{value.width}, uint64_t{value.height}, uint64_t{value.channels},
          uint64_t{value.bits}, uint64_t{value.colour}, uint64_t{value.kind}, uint64_t{value.label}}) {
      number(count);
    }
    digest(value.digest);
    number(value.model.has_value() ? 1 : 0);
    digest(value.model.value_or(loader::Digest{}));
    text(value.metadata);
    number(value.opens_group ? 1 : 0);
  }
  // The size, the check, and the bytes written so far.
  std::vector<uint8_t> framed() const {
    const auto size = static_cast<uint32_t>(bytes_.size());
    const uint32_t check = base::crc32(bytes_);
    std::vector<uint8_t> frame(kFrameBytes);
    base::store(frame.data(), size);
    base::store(frame.data() + 4, check);
    frame.insert(frame.end(), bytes_.begin(), bytes_.end());
    return frame;
  }

 private:
  std::vector<uint8_t> bytes_;
};

// Reads what a Writer wrote. After the end of the bytes, every value is 0 or empty and failed() is true.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return bytes_.empty(); }
  uint64_t number() {
    const auto bytes = take(8);
    return bytes.empty() ? 0 : base::load_u64(bytes.data());
  }
  uint32_t small() { return static_cast<uint32_t>(number()); }
  std::vector<uint8_t> bytes() {
    const auto value = take(number());
    return {value.begin(), value.end()};
  }
  std::string text() {
    const auto value = take(number());
    return {value.begin(), value.end()};
  }
  loader::Digest digest() {
    loader::Digest value{};
    const auto bytes = take(value.size());
    std::copy(bytes.begin(), bytes.end(), value.begin());
    return value;
  }
  // The number of items that follow, each of at least `least_bytes` bytes.
  uint64_t count(uint64_t least_bytes) {
    const uint64_t value = number();
    if (value > bytes_.size() / least_bytes) failed_ = true;
    return failed_ ? 0 : value;
  }
  Failure failure() {
    Failure value;
    value.file = text();
    const bool has_offset = number() != 0;
    const uint64_t offset = number();
    if (has_offset) value.offset = offset;
    value.reason = text();
    return value;
  }
  SetTotals totals() {
    SetTotals value;
    for (uint64_t* count : {&value.groups, &value.files, &value.pixels, &value.bytes_in, &value.bytes_out}) {
      *count = number();
    }
    return value;
  }
  loader::NewSample sample() {
    loader::NewSample value;
    value.name = text();
    value.role = text();
    value.size = number();
    for (uint32_t* field : {&value.check, &value.width, &value.height, &value.channels, &value.bits, &value.colour,
                            &value.kind, &value.label}) {
      *field = small();
    }
    value.digest = digest();
    const bool has_model = number() != 0;
    const loader::Digest model = digest();
    if (has_model) value.model = model;
    value.metadata = text();
    value.opens_group = number() != 0;
    return value;
  }

 private:
  std::span<const uint8_t> take(uint64_t size) {
    if (size > bytes_.size()) failed_ = true;
    if (failed_) return {};
    const auto taken = bytes_.first(static_cast<size_t>(size));
    bytes_ = bytes_.subspan(static_cast<size_t>(size));
    return taken;
  }

  std::span<const uint8_t> bytes_;
  bool failed_ = false;
};

// Removes the first frame from `bytes` and returns its contents.
std::optional<std::span<const uint8_t>> take_frame(std::span<const uint8_t>& bytes) {
  if (bytes.size() < kFrameBytes) return std::nullopt;
  uint32_t size = 0, check = 0;
  for (size_t i = 0; i < 4; ++i) {
    size |= uint32_t{bytes[i]} << 8 * i;
    check |= uint32_t{bytes[4 + i]} << 8 * i;
  }
  if (size > bytes.size() - kFrameBytes) return std::nullopt;
  const auto contents = bytes.subspan(kFrameBytes, size);
  if (base::crc32(contents) != check) return std::nullopt;
  bytes = bytes.subspan(kFrameBytes + size);
  return contents;
}

}  // namespace

std::vector<uint8_t> to_bytes(const SetState& state) {
  Writer out;
  out.number(kMark);
  out.text(state.settings);
  out.number(state.trained ? 1 : 0);
  out.number(state.models.size());
  for (const std::vector<uint8_t>& model : state.models) out.bytes(model);
  out.number(state.shards.size());
  for (const loader::ShardSummary& shard : state.shards) {
    out.text(shard.file);
    for (const uint64_t count :
         {shard.bytes, shard.samples, shard.groups, shard.index_bytes.value_or(0), uint64_t{shard.index_check}}) {
      out.number(count);
    }
    out.digest(shard.digest);
  }
  out.number(state.next);
  out.digest(state.sources);
  out.totals(state.totals);
  out.number(state.failures.size());
  for (const Failure& failure : state.failures) out.failure(failure);
  return out.framed();
}

std::optional<SetState> state_of(std::span<const uint8_t> bytes) {
  const auto frame = take_frame(bytes);
  if (!frame || !bytes.empty()) return std::nullopt;
  Reader in(*frame);
  SetState state;
  if (in.number() != kMark) return std::nullopt;
  state.settings = in.text();
  state.trained = in.number() != 0;
  for (uint64_t i = in.count(8); i > 0; --i) state.models.push_back(in.bytes());
  for (uint64_t i = in.count(8 * 6 + L3_DIGEST_BYTES); i > 0; --i) {
    loader::ShardSummary& shard = state.shards.emplace_back();
    shard.file = in.text();
    shard.bytes = in.number();
    shard.samples = in.number();
    shard.groups = in.number();
    shard.index_bytes = in.number();
    shard.index_check = in.small();
    shard.digest = in.digest();
  }
  state.next = in.number();
  state.sources = in.digest();
  state.totals = in.totals();
  for (uint64_t i = in.count(8 * 4); i > 0; --i) state.failures.push_back(in.failure());
  if (in.failed() || !in.at_end()) return std::nullopt;
  return state;
}

std::vector<uint8_t> to_bytes(const JournalEntry& entry) {
  Writer out;
  out.digest(entry.sources);
  out.number(entry.failure ? 1 : 0);
  if (entry.failure) out.failure(*entry.failure);
  out.number(entry.samples.size());
  for (const loader::NewSample& sample : entry.samples) out.sample(sample);
  out.totals(entry.totals);
  return out.framed();
}

std::optional<JournalEntry> take_entry(std::span<const uint8_t>& bytes) {
  std::span<const uint8_t> rest = bytes;
  const auto frame = take_frame(rest);
  if (!frame) return std::nullopt;
  Reader in(*frame);
  JournalEntry entry;
  entry.sources = in.digest();
  if (in.number() != 0) entry.failure = in.failure();
  for (uint64_t i = in.count(8 * 10); i > 0; --i) entry.samples.push_back(in.sample());
  entry.totals = in.totals();
  if (in.failed() || !in.at_end()) return std::nullopt;
  bytes = rest;
  return entry;
}

}  // namespace tools
