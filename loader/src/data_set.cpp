// l3_data.h: describing and reading data sets.
#include "data_set.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <system_error>

#include "base/crc32.h"
#include "caller_structs.h"
#include "data_error.h"
#include "image_head.h"

using namespace loader;

void l3_data_close(l3_data_set* set) { delete set; }

l3_status l3_data_describe(const l3_data_set* set, l3_data_info* info) {
  if (set == nullptr || info == nullptr) return L3_ERROR_ARGUMENT;
  l3_data_info own = l3_data_info_init();
  own.classes = static_cast<uint32_t>(set->classes.size());
  own.shards = set->shards.size();
  own.samples = set->samples;
  own.groups = set->groups;
  own.bytes = set->bytes;
  own.index_bytes = set->index_bytes;
  own.sample_bytes = set->sample_bytes;
  return copy_out(own, info);
}

l3_status l3_data_get(const l3_data_set* set, uint64_t index, l3_data_sample* sample) {
  if (set == nullptr || sample == nullptr || index >= set->samples) return L3_ERROR_ARGUMENT;
  const size_t shard_number = set->shard_number_of(index);
  const Shard& shard = *set->shards[shard_number];
  const uint32_t number = static_cast<uint32_t>(index - shard.first_sample);
  const uint8_t* at = shard.index.entry(number);
  l3_data_sample own = l3_data_sample_init();
  own.kind = at[entry::kKind];
  const std::string_view name = shard.index.name(number), role = shard.index.role(load_u16(at + entry::kRole));
  own.name = name.data();
  own.name_size = name.size();
  own.role = role.data();
  own.role_size = role.size();
  own.size = load_u64(at + entry::kSize);
  own.width = load_u32(at + entry::kWidth);
  own.height = load_u32(at + entry::kHeight);
  own.channels = load_u16(at + entry::kChannels);
  own.bits = at[entry::kBits];
  own.colour = at[entry::kColour];
  own.label = load_u32(at + entry::kLabel);
  own.group = shard.first_group + load_u32(at + entry::kGroup);
  own.shard = shard_number;
  own.offset = load_u64(at + entry::kOffset);
  const std::string_view metadata = shard.index.metadata(number);
  own.metadata = reinterpret_cast<const uint8_t*>(metadata.data());
  own.metadata_size = metadata.size();
  if (const uint16_t model = load_u16(at + entry::kModel); model != kNoModel) {
    own.model = shard.models[model];
    own.model_bytes = shard.index.model(model).data();
    own.model_size = shard.index.model(model).size();
  }
  own.check = load_u32(at + entry::kCheck);
  std::copy(at + entry::kDigest, at + entry::kDigest + L3_DIGEST_BYTES, own.digest);
  return copy_out(own, sample);
}

uint64_t l3_data_find(const l3_data_set* set, const char* name, size_t name_size) {
  if (set == nullptr || name == nullptr) return L3_DATA_NONE;
  const uint64_t found = set->table->find({name, name_size}, set->names());
  return found == UINT64_MAX ? L3_DATA_NONE : found;
}

l3_status l3_data_group(const l3_data_set* set, uint64_t group, uint64_t* first, uint64_t* count) {
  if (set == nullptr || first == nullptr || count == nullptr || group >= set->groups) return L3_ERROR_ARGUMENT;
  const auto at = std::upper_bound(set->shards.begin(), set->shards.end(), group,
                                   [](uint64_t number, const auto& shard) { return number < shard->first_group; }) -
                  1;
  const Shard& shard = **at;
  const auto group_of = [&](uint32_t number) { return load_u32(shard.index.entry(number) + entry::kGroup); };
  const uint32_t wanted = static_cast<uint32_t>(group - shard.first_group);
  // Bisects for the first entry whose group is at least `from`. Group numbers rise by at most 1, so none is skipped.
  const auto first_from = [&](uint64_t from) {
    uint32_t low = 0, high = shard.index.footer().entries;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (group_of(middle) < from) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const uint32_t begin = first_from(wanted), end = first_from(uint64_t{wanted} + 1);
  *first = shard.first_sample + begin;
  *count = end - begin;
  return L3_OK;
}

const char* l3_data_class(const l3_data_set* set, uint32_t label) {
  return set != nullptr && label < set->classes.size() ? set->classes[label].c_str() : nullptr;
}

const char* l3_data_shard_name(const l3_data_set* set, uint64_t shard) {
  return set != nullptr && shard < set->shards.size() ? set->shards[shard]->name().c_str() : nullptr;
}

const l3_model* const* l3_data_models(const l3_data_set* set, size_t* count) {
  if (count != nullptr) *count = set != nullptr ? set->valid_models.size() : 0;
  return set != nullptr ? set->valid_models.data() : nullptr;
}

Read l3_data_set::read_of(uint64_t number, const l3_data_sample& sample, uint64_t offset, uint64_t size,
                          void* to) const {
  const Shard& shard = *shards[sample.shard];
  Read read;
  read.object = shard.object.get();
  read.offset = sample.offset + offset;
  read.size = size;
  read.to = static_cast<uint8_t*>(to);
  read.object_size = shard.size;
  read.sample = number - shard.first_sample;
  read.sample_offset = sample.offset;
  read.sample_size = sample.size;
  return read;
}

namespace loader {

std::string_view file_of(const Shard& shard) {
  const std::string_view name = shard.name();
  return name.substr(name.rfind('/') + 1);  // all of it if there is none
}

Digest digest_of(std::span<const std::unique_ptr<Shard>> shards) {
  std::vector<uint8_t> text;
  const auto add = [&](uint64_t number) {
    for (int i = 0; i < 8; ++i) text.push_back(static_cast<uint8_t>(number >> (8 * i)));
  };
  for (const auto& shard : shards) {
    const std::string_view file = file_of(*shard);
    const Footer& footer = shard->index.footer();
    add(file.size());
    text.insert(text.end(), file.begin(), file.end());
    add(shard->size);
    add(footer.entries);
    add(footer.index_check);
  }
  Digest digest{};
  l3_digest(text.data(), text.size(), digest.data());
  return digest;
}

}  // namespace loader

namespace {

l3_status check_head(const Shard& shard, const l3_data_sample& sample, const void* bytes, l3_data_error* error) {
  l3_info info = l3_info_init();
  l3_error why{};
  if (check_image_head(sample, {static_cast<const uint8_t*>(bytes), head_bytes(sample)}, info, why) == L3_OK) {
    return succeed(error);
  }
  return fail(error, why.status, shard.name(), why.reason, sample.offset + why.offset);
}

l3_status read_all(const l3_data_set& set, const Shard& shard, std::span<Read> reads, l3_data_error* error) {
  std::array<StoreFault, 2> faults;
  try {
    set.store->read(reads, {faults.data(), reads.size()});
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, shard.name(), "out of memory");
  } catch (const std::system_error& why) {
    return fail(error, L3_ERROR_MEMORY, shard.name(), std::string("cannot start a thread: ") + why.what());
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    if (faults[i]) return fail(error, shard.name(), faults[i]);
  }
  return succeed(error);
}

}  // namespace

l3_status l3_data_read_part(const l3_data_set* set, uint64_t index, uint64_t offset, void* out, size_t size,
                            l3_data_error* error) {
  if (set == nullptr || (out == nullptr && size > 0)) {
    return fail(error, L3_ERROR_ARGUMENT, "", "a pointer that must not be null is null");
  }
  l3_data_sample sample = l3_data_sample_init();
  if (l3_data_get(set, index, &sample) != L3_OK) {
    return fail(error, L3_ERROR_ARGUMENT, "", "there is no sample with this number");
  }
  if (offset > sample.size || size > sample.size - offset) {
    return fail(error, L3_ERROR_ARGUMENT, set->shards[sample.shard]->name(), "the part is not inside the sample");
  }
  const Shard& shard = *set->shards[sample.shard];
  const bool is_image = sample.kind == L3_DATA_IMAGE;
  const bool has_head = offset == 0 && size >= head_bytes(sample);
  uint8_t head[L3_HEAD_MAX_BYTES];
  // A far store reads the head with the same wait.
  std::array<Read, 2> reads;
  size_t count = 0;
  if (size > 0) reads[count++] = set->read_of(index, sample, offset, size, out);
  if (is_image && !has_head) reads[count++] = set->read_of(index, sample, 0, head_bytes(sample), head);
  const l3_status status = read_all(*set, shard, {reads.data(), count}, error);
  if (status != L3_OK || !is_image) return status;
  return check_head(shard, sample, has_head ? out : head, error);
}

l3_status l3_data_read(const l3_data_set* set, uint64_t index, void* out, size_t out_size, l3_data_error* error) {
  l3_data_sample sample = l3_data_sample_init();
  if (l3_data_get(set, index, &sample) != L3_OK) {
    return fail(error, L3_ERROR_ARGUMENT, "", "there is no sample with this number");
  }
  if (out_size < sample.size) return fail(error, L3_ERROR_BUFFER, "", "the buffer is smaller than the sample");
  if (out == nullptr && sample.size > 0) {
    return fail(error, L3_ERROR_ARGUMENT, "", "a pointer that must not be null is null");
  }
  const Shard& shard = *set->shards[sample.shard];
  const size_t size = static_cast<size_t>(sample.size);
  // The network may damage bytes, so that those of a far store are read once more.
  const int tries = set->store->is_far() ? 2 : 1;
  for (int number = 1;; ++number) {
    Read read = set->read_of(index, sample, 0, size, out);
    read.again = number > 1;
    const l3_status status = read_all(*set, shard, {&read, size > 0 ? size_t{1} : 0}, error);
    if (status != L3_OK) return status;
    if (base::crc32({static_cast<const uint8_t*>(out), size}) == sample.check) break;
    if (number == tries) return fail(error, shard.name(), Fault{"the check of a sample does not match", sample.offset});
  }
  return sample.kind == L3_DATA_IMAGE ? check_head(shard, sample, out, error) : succeed(error);
}
