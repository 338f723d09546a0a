// l3_data.h: opening, describing and reading data sets.
#include "data_set.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "base/crc32.h"
#include "caller_structs.h"
#include "data_error.h"
#include "image_head.h"

namespace loader {
namespace {

// Half of the files that the process may open.
uint32_t default_open_files() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur / 2, 1u << 16));
}

constexpr uint64_t kDefaultIndexBytes = uint64_t{1} << 33;
constexpr uint64_t kDefaultJsonBytes = uint64_t{1} << 28;
constexpr size_t kMaxModelsOpen = 4096;

}  // namespace
}  // namespace loader

using namespace loader;

l3_data_set::l3_data_set(const l3_data_options& wanted)
    : options(wanted), open_files(wanted.max_open_files != 0 ? wanted.max_open_files : default_open_files()) {
  if (options.max_index_bytes == 0) options.max_index_bytes = kDefaultIndexBytes;
  if (options.max_json_bytes == 0) options.max_json_bytes = kDefaultJsonBytes;
}

l3_status l3_data_set::open(const std::string& path, l3_data_error* error) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return fail(error, path, FileFault{{}, errno});
  const l3_status opened = S_ISDIR(status.st_mode) ? open_folder(path, error) : open_shard(path, nullptr, error);
  if (opened != L3_OK) return opened;
  for (const auto& [name, model] : models) {
    if (model != nullptr) valid_models.push_back(model.get());
  }
  return build_table(error);
}

l3_status l3_data_set::open_folder(const std::string& path, l3_data_error* error) {
  const std::string json_path = path + "/" + kIndexFile;
  std::vector<uint8_t> json;
  if (const FileFault fault = read_whole(json_path, options.max_json_bytes, json)) {
    return fault.system_error == ENOENT
               ? fail(error, L3_ERROR_FILE, path, "not a data set, or an unfinished one: index.json is missing",
                      L3_DATA_NONE, ENOENT)
               : fail(error, json_path, fault);
  }
  DataSetIndex index;
  if (const auto fault = read_json({reinterpret_cast<const char*>(json.data()), json.size()}, index)) {
    return fail(error, L3_ERROR_CORRUPT, json_path, fault->reason, fault->offset);
  }
  json = {};
  classes = std::move(index.classes);
  for (const ShardSummary& shard : index.shards) {
    if (const l3_status status = open_shard(path + "/" + shard.file, &shard, error); status != L3_OK) return status;
  }
  return L3_OK;
}

l3_status l3_data_set::open_shard(const std::string& path, const ShardSummary* summary, l3_data_error* error) {
  auto shard = std::make_unique<Shard>(path, open_files);
  if (const FileFault fault = shard->file.measure()) return fail(error, path, fault);
  const uint64_t size = shard->file.size();
  if (summary != nullptr && size != summary->bytes) {
    return fail(error, L3_ERROR_CORRUPT, path, "the size of the file differs from the one in index.json",
                std::min(size, summary->bytes));
  }
  uint8_t head[kHeadBytes], end[kFooterBytes];
  if (const FileFault fault = shard->file.read(0, head, std::min<uint64_t>(size, sizeof head))) {
    return fail(error, path, fault);
  }
  if (const Fault fault = check_head({head, static_cast<size_t>(std::min<uint64_t>(size, sizeof head))})) {
    return fail(error, path, fault);
  }
  if (size < kHeadBytes + kFooterBytes) {
    return fail(error, path, Fault{"the file ends too early", size, L3_ERROR_TRUNCATED});
  }
  if (const FileFault fault = shard->file.read(size - sizeof end, end, sizeof end)) return fail(error, path, fault);
  Footer footer;
  if (const Fault fault = read_footer(end, size, footer)) return fail(error, path, fault);

  index_bytes += footer.index_size;
  if (index_bytes > options.max_index_bytes) {
    return fail(error, L3_ERROR_LIMIT, path, "more bytes of indexes than the limit allows", footer.index_offset);
  }
  std::vector<uint8_t> index(static_cast<size_t>(footer.index_size));
  if (const FileFault fault = shard->file.read(footer.index_offset, index.data(), index.size())) {
    return fail(error, path, fault);
  }
  shard->index = ShardIndex(footer, std::move(index));
  if (const Fault fault = shard->index.check()) return fail(error, path, fault);
  if (summary != nullptr) {
    if (footer.index_check != summary->index_check || footer.entries != summary->samples ||
        footer.groups != summary->groups) {
      return fail(error, L3_ERROR_CORRUPT, path, "not the shard that index.json describes",
                  footer.index_offset + footer.index_size);
    }
    shard->digest = summary->digest;
  }
  if (const l3_status status = open_models(*shard, error); status != L3_OK) return status;
  shard->first_sample = samples;
  shard->first_group = groups;
  samples += footer.entries;
  groups += footer.groups;
  bytes += size;
  shards.push_back(std::move(shard));
  return L3_OK;
}

l3_status l3_data_set::open_models(Shard& shard, l3_data_error* error) {
  const Footer& footer = shard.index.footer();
  for (uint32_t i = 0; i < footer.models; ++i) {
    const std::span<const uint8_t> bytes_of_model = shard.index.model(i);
    Digest name{};
    l3_digest(bytes_of_model.data(), bytes_of_model.size(), name.data());
    const auto [at, is_new] = models.try_emplace(name);
    if (is_new && models.size() > kMaxModelsOpen) {
      return fail(error, L3_ERROR_LIMIT, shard.file.path(), "more than 4096 models", footer.index_offset);
    }
    if (is_new) {
      l3_model* model = nullptr;
      const l3_status status = l3_open_model(bytes_of_model.data(), bytes_of_model.size(), &model, nullptr);
      if (status == L3_ERROR_MEMORY) throw std::bad_alloc();
      if (status == L3_OK) at->second.reset(model);
    }
    shard.models.push_back(at->second.get());
  }
  return L3_OK;
}

// Builds the table of names. Checks that names are unique, and that all labels have class names if any has.
l3_status l3_data_set::build_table(l3_data_error* error) {
  constexpr uint64_t kMaxSamples = uint64_t{1} << 40;
  if (samples >= kMaxSamples || NameTable::bytes_for(samples) > 2 * options.max_index_bytes) {
    return fail(error, L3_ERROR_LIMIT, shards.back()->file.path(), "more samples than the limit allows");
  }
  table.emplace(samples);
  const NameTable::NameOf name_of_sample = names();
  for (const auto& shard : shards) {
    for (uint32_t i = 0; i < shard->index.footer().entries; ++i) {
      const uint64_t place = shard->index.place_of_entry(i);
      sample_bytes += load_u64(shard->index.entry(i) + entry::kSize);
      uint64_t other = 0;
      if (!table->add(shard->index.name(i), shard->first_sample + i, name_of_sample, other)) {
        return fail(error, shard->file.path(), Fault{"two samples have the same name", place + entry::kName});
      }
      const uint32_t label = load_u32(shard->index.entry(i) + entry::kLabel);
      if (!classes.empty() && label != kNoLabel && label >= classes.size()) {
        return fail(error, shard->file.path(), Fault{"a label has no name", place + entry::kLabel});
      }
    }
  }
  return L3_OK;
}

l3_status l3_data_open(const char* path, const l3_data_options* options, l3_data_set** set, l3_data_error* error) {
  if (set != nullptr) *set = nullptr;
  if (path == nullptr || set == nullptr) {
    return fail(error, L3_ERROR_ARGUMENT, "", "a pointer that must not be null is null");
  }
  l3_data_options wanted = l3_data_options_init();
  if (options != nullptr) {
    if (options->struct_size == 0) {
      return fail(error, L3_ERROR_ARGUMENT, "", "struct_size is not set: use the _init function");
    }
    std::memcpy(&wanted, options, std::min<size_t>(options->struct_size, sizeof wanted));
  }
  try {
    auto opened = std::make_unique<l3_data_set>(wanted);
    const l3_status status = opened->open(path, error);
    if (status != L3_OK) return status;
    *set = opened.release();
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, path, "out of memory");
  } catch (const std::length_error&) {
    return fail(error, L3_ERROR_MEMORY, path, "out of memory");
  }
  return succeed(error);
}

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

const char* l3_data_shard_path(const l3_data_set* set, uint64_t shard) {
  return set != nullptr && shard < set->shards.size() ? set->shards[shard]->file.path().c_str() : nullptr;
}

const l3_model* const* l3_data_models(const l3_data_set* set, size_t* count) {
  if (count != nullptr) *count = set != nullptr ? set->valid_models.size() : 0;
  return set != nullptr ? set->valid_models.data() : nullptr;
}

namespace {

l3_status read_bytes(const Shard& shard, uint64_t offset, void* out, size_t size, l3_data_error* error) {
  const FileFault fault = shard.file.read(offset, out, size);
  return fault ? fail(error, shard.file.path(), fault) : succeed(error);
}

l3_status check_head(const Shard& shard, const l3_data_sample& sample, const void* bytes, l3_data_error* error) {
  l3_info info = l3_info_init();
  l3_error why{};
  if (check_image_head(sample, {static_cast<const uint8_t*>(bytes), head_bytes(sample)}, info, why) == L3_OK) {
    return succeed(error);
  }
  return fail(error, why.status, shard.file.path(), why.reason, sample.offset + why.offset);
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
  const Shard& shard = *set->shards[sample.shard];
  if (offset > sample.size || size > sample.size - offset) {
    return fail(error, L3_ERROR_ARGUMENT, shard.file.path(), "the part is not inside the sample");
  }
  const l3_status status = read_bytes(shard, sample.offset + offset, out, size, error);
  if (status != L3_OK || sample.kind != L3_DATA_IMAGE) return status;
  const size_t head_size = head_bytes(sample);
  if (offset == 0 && size >= head_size) return check_head(shard, sample, out, error);
  uint8_t head[L3_HEAD_MAX_BYTES];
  if (const l3_status read = read_bytes(shard, sample.offset, head, head_size, error); read != L3_OK) return read;
  return check_head(shard, sample, head, error);
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
  if (const l3_status status = read_bytes(shard, sample.offset, out, size, error); status != L3_OK) return status;
  if (base::crc32({static_cast<const uint8_t*>(out), size}) != sample.check) {
    return fail(error, shard.file.path(), Fault{"the check of a sample does not match", sample.offset});
  }
  return sample.kind == L3_DATA_IMAGE ? check_head(shard, sample, out, error) : L3_OK;
}
