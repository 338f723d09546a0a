#include <algorithm>

#include "base/crc32.h"
#include "loader/data_writer.h"
#include "loader/shard_format.h"

namespace loader {
namespace {

// Offsets of texts have 32 bits. This leaves room for one more sample of any kind.
constexpr uint64_t kMaxTexts = uint64_t{3} << 30;
constexpr uint64_t kMaxSamples = uint64_t{1} << 31;
constexpr size_t kMaxMetadata = size_t{1} << 26;

}  // namespace

bool describe(std::span<const uint8_t> bytes, uint32_t kind, NewSample& sample) {
  sample.kind = kind;
  sample.size = bytes.size();
  sample.check = base::crc32(bytes);
  if (kind == L3_DATA_BYTES) {
    l3_digest(bytes.data(), bytes.size(), sample.digest.data());
    return true;
  }
  constexpr l3_limits kUnlimited = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  l3_info info = l3_info_init();
  if (l3_read_info(bytes.data(), bytes.size(), &kUnlimited, &info, nullptr) != L3_OK) return false;
  std::copy(std::begin(info.digest), std::end(info.digest), sample.digest.begin());
  sample.width = info.width;
  sample.height = info.height;
  sample.channels = info.channels;
  sample.bits = info.bits;
  sample.colour = info.colour;
  sample.model.reset();
  if (info.model_origin == L3_MODEL_NAMED) {
    std::copy(std::begin(info.model_name), std::end(info.model_name), sample.model.emplace().begin());
  }
  return true;
}

const char* problem(const NewSample& sample) {
  if (!is_name(sample.name))
    return "a name must have 1 to 4096 bytes, no zero byte, and no part that is empty, . or ..";
  if (!is_role(sample.role)) return "a role must have 1 to 255 bytes, without zero bytes and /";
  if (sample.metadata.size() > kMaxMetadata) return "more than 64 MiB of metadata";
  if (sample.size > kMaxSampleBytes) return "more than 64 GiB";
  return nullptr;
}

ShardBuilder::ShardBuilder() : end_(kFirstSample) {}

std::vector<uint8_t> ShardBuilder::head() {
  std::vector<uint8_t> bytes(kFirstSample);
  std::copy(kHeadSignature.begin(), kHeadSignature.end(), bytes.begin());
  store<uint16_t>(&bytes[footer::kVersion], kShardVersion);
  return bytes;
}

uint64_t ShardBuilder::next_after(uint64_t end) { return padded(end); }

uint64_t ShardBuilder::finished_size() const {
  return next() + entries_.size() + models_.size() * kModelEntryBytes + roles_.size() * kRoleEntryBytes +
         texts_.size() + kFooterBytes;
}

bool ShardBuilder::has_room(uint64_t count, uint64_t texts) const {
  return samples_ + count <= kMaxSamples && texts_.size() + texts <= kMaxTexts &&
         models_.size() + count <= kMaxModels && roles_.size() + count < UINT16_MAX;
}

ShardBuilder::Text ShardBuilder::add_text(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return {0, 0};
  const Text text{static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(bytes.size())};
  texts_.insert(texts_.end(), bytes.begin(), bytes.end());
  return text;
}

void ShardBuilder::add(const NewSample& sample, std::span<const uint8_t> model) {
  uint16_t model_number = kNoModel;
  if (sample.model) {
    const auto [at, is_new] = model_numbers_.emplace(*sample.model, static_cast<uint16_t>(models_.size()));
    if (is_new) models_.push_back(add_text(model));
    model_number = at->second;
  }
  const auto [role, is_new_role] = role_numbers_.emplace(sample.role, static_cast<uint16_t>(roles_.size()));
  if (is_new_role) roles_.push_back(add_text(sample.role));
  if (sample.opens_group || samples_ == 0) ++groups_;
  const Text name = add_text(sample.name), metadata = add_text(sample.metadata);

  entries_.resize(entries_.size() + kEntryBytes);
  uint8_t* at = entries_.data() + entries_.size() - kEntryBytes;
  store<uint64_t>(at + entry::kOffset, next());
  store<uint64_t>(at + entry::kSize, sample.size);
  std::copy(sample.digest.begin(), sample.digest.end(), at + entry::kDigest);
  store<uint32_t>(at + entry::kCheck, sample.check);
  store<uint32_t>(at + entry::kWidth, sample.width);
  store<uint32_t>(at + entry::kHeight, sample.height);
  store<uint16_t>(at + entry::kChannels, static_cast<uint16_t>(sample.channels));
  at[entry::kBits] = static_cast<uint8_t>(sample.bits);
  at[entry::kColour] = static_cast<uint8_t>(sample.colour);
  at[entry::kKind] = static_cast<uint8_t>(sample.kind);
  store<uint16_t>(at + entry::kRole, role->second);
  store<uint16_t>(at + entry::kModel, model_number);
  store<uint16_t>(at + entry::kNameSize, static_cast<uint16_t>(name.size));
  store<uint32_t>(at + entry::kName, name.place);
  store<uint32_t>(at + entry::kMetadata, metadata.place);
  store<uint32_t>(at + entry::kMetadataSize, metadata.size);
  store<uint32_t>(at + entry::kLabel, sample.label);
  store<uint32_t>(at + entry::kGroup, static_cast<uint32_t>(groups_ - 1));
  end_ = next() + sample.size;
  ++samples_;
}

std::vector<uint8_t> ShardBuilder::finish(ShardSummary& summary) const {
  std::vector<uint8_t> bytes(next() - end_);
  const size_t index = bytes.size();
  bytes.reserve(finished_size() - end_);
  bytes.insert(bytes.end(), entries_.begin(), entries_.end());
  for (const std::vector<Text>* texts : {&models_, &roles_}) {
    for (const Text& text : *texts) {
      const size_t at = bytes.size();
      bytes.resize(at + kModelEntryBytes);
      store<uint32_t>(&bytes[at], text.place);
      store<uint32_t>(&bytes[at + 4], text.size);
    }
  }
  static_assert(kModelEntryBytes == kRoleEntryBytes);
  bytes.insert(bytes.end(), texts_.begin(), texts_.end());
  const size_t index_size = bytes.size() - index;
  const uint32_t check = base::crc32({bytes.data() + index, index_size});

  const size_t at = bytes.size();
  bytes.resize(at + kFooterBytes);
  uint8_t* const end = &bytes[at];
  std::copy(kFooterSignature.begin(), kFooterSignature.end(), end);
  store<uint16_t>(end + footer::kVersion, kShardVersion);
  store<uint16_t>(end + footer::kModels, static_cast<uint16_t>(models_.size()));
  store<uint16_t>(end + footer::kRoles, static_cast<uint16_t>(roles_.size()));
  store<uint64_t>(end + footer::kIndexOffset, next());
  store<uint64_t>(end + footer::kIndexSize, index_size);
  store<uint32_t>(end + footer::kEntries, static_cast<uint32_t>(samples_));
  store<uint32_t>(end + footer::kGroups, static_cast<uint32_t>(groups_));
  store<uint32_t>(end + footer::kTexts, static_cast<uint32_t>(texts_.size()));
  store<uint32_t>(end + footer::kIndexCheck, check);
  store<uint32_t>(end + footer::kCheck, base::crc32({end, footer::kCheck}));

  summary.bytes = end_ + bytes.size();
  summary.samples = samples_;
  summary.groups = groups_;
  summary.index_bytes = index_size;
  summary.index_check = check;
  l3_digest(bytes.data() + index, index_size + kFooterBytes, summary.digest.data());
  return bytes;
}

}  // namespace loader
