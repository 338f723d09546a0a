// Opens data sets: reads index.json and the indexes of all shards, side by side, and verifies them.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "cache_store.h"
#include "callback_store.h"
#include "data_error.h"
#include "data_set.h"

namespace loader {
namespace {

constexpr uint64_t kDefaultIndexBytes = uint64_t{1} << 33;
constexpr uint64_t kDefaultJsonBytes = uint64_t{1} << 28;
constexpr size_t kMaxModelsOpen = 4096;
// The first read of index.json. It holds most of them.
constexpr uint64_t kFirstOfJson = 1 << 20;
// The first read of a shard's end if the size of its index is unknown, and the most that is read before the footer
// shows how large the index really is.
constexpr uint64_t kUsualEnd = 64 << 10, kMaxFirstEnd = 1 << 20;
// Shards are opened in groups that read about this much at first.
constexpr uint64_t kMaxFirstEnds = uint64_t{256} << 20;

constexpr std::string_view kShardExtension = ".l3s";

Read end_of(const Object& object, std::vector<uint8_t>& bytes) {
  Read read;
  read.object = &object;
  read.from_end = true;
  read.size = bytes.size();
  read.to = bytes.data();
  return read;
}

StoreFault read_one(Store& store, Read read) {
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  return fault;
}

// Reads a whole object, which must not be larger than `maximum`.
StoreFault read_whole(Store& store, const Object& object, uint64_t maximum, std::vector<uint8_t>& bytes) {
  bytes.resize(static_cast<size_t>(std::min(kFirstOfJson, maximum + 1)));
  Read read = end_of(object, bytes);
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  if (fault) return fault;
  if (read.object_size > maximum) return {L3_ERROR_LIMIT, 0, maximum, "larger than the limit allows"};
  const uint64_t end = read.size, before = read.object_size - end;
  bytes.resize(static_cast<size_t>(read.object_size));
  if (before == 0) return {};
  std::memmove(bytes.data() + before, bytes.data(), static_cast<size_t>(end));
  Read first;
  first.object = &object;
  first.size = before;
  first.to = bytes.data();
  first.object_size = read.object_size;
  return read_one(store, first);
}

uint64_t first_end_of(const ShardSummary& summary) {
  if (!summary.index_bytes) return kUsualEnd;
  return std::min(*summary.index_bytes, kMaxFirstEnd - kFooterBytes) + kFooterBytes;
}

}  // namespace

l3_status open_data_set(std::shared_ptr<Store> store, const std::string& shard, const l3_data_options& options,
                        l3_data_set** set, l3_data_error* error) {
  auto opened = std::make_unique<l3_data_set>(std::move(store), options);
  if (const l3_status status = opened->open(shard, error); status != L3_OK) return status;
  if (options.cache != nullptr) {
    if (const l3_status status = add_cache(*opened, shard, options.cache, error); status != L3_OK) return status;
  }
  *set = opened.release();
  return succeed(error);
}

StoreOptions store_options(const l3_data_options& options) {
  return {options.timeout_ms, options.attempts, options.connections, options.hedge != 0,
          options.certificates != nullptr ? options.certificates : ""};
}

}  // namespace loader

using namespace loader;

l3_data_set::l3_data_set(std::shared_ptr<Store> of, const l3_data_options& wanted)
    : store(std::move(of)), options(wanted) {
  if (options.max_index_bytes == 0) options.max_index_bytes = kDefaultIndexBytes;
  if (options.max_json_bytes == 0) options.max_json_bytes = kDefaultJsonBytes;
}

// What a cache still has to write needs the shards.
l3_data_set::~l3_data_set() {
  if (cache != nullptr) cache->stop();
}

l3_status l3_data_set::open(const std::string& shard, l3_data_error* error) {
  std::vector<ShardSummary> summaries;
  if (!shard.empty()) {
    summaries.emplace_back().file = shard;
  } else if (const l3_status status = read_json(summaries, error); status != L3_OK) {
    return status;
  }
  if (const l3_status status = open_shards(summaries, shard.empty(), error); status != L3_OK) return status;
  for (const auto& [name, model] : models) {
    if (model != nullptr) valid_models.push_back(model.get());
  }
  return build_table(error);
}

l3_status l3_data_set::read_json(std::vector<ShardSummary>& summaries, l3_data_error* error) {
  const std::unique_ptr<Object> object = store->open(kIndexFile);
  std::vector<uint8_t> json;
  if (const StoreFault fault = read_whole(*store, *object, options.max_json_bytes, json)) {
    return fault.system_error == ENOENT
               ? fail(error, L3_ERROR_FILE, store->name(),
                      "not a data set, or an unfinished one: index.json is missing (l3 convert makes data sets)",
                      L3_DATA_NONE, ENOENT)
               : fail(error, object->name(), fault);
  }
  DataSetIndex index;
  if (const auto fault = loader::read_json({reinterpret_cast<const char*>(json.data()), json.size()}, index)) {
    return fail(error, L3_ERROR_CORRUPT, object->name(), fault->reason, fault->offset);
  }
  classes = std::move(index.classes);
  summaries = std::move(index.shards);
  return L3_OK;
}

// Reads the ends of many shards at once, so that a far store answers all of them in a few round trips.
l3_status l3_data_set::open_shards(const std::vector<ShardSummary>& summaries, bool are_described,
                                   l3_data_error* error) {
  for (size_t begin = 0; begin < summaries.size();) {
    std::vector<std::unique_ptr<Shard>> opened;
    std::vector<std::vector<uint8_t>> ends;
    std::vector<Read> reads;
    uint64_t first_bytes = 0;
    for (size_t i = begin; i < summaries.size() && (i == begin || first_bytes < kMaxFirstEnds); ++i) {
      opened.push_back(std::make_unique<Shard>());
      opened.back()->object = store->open(summaries[i].file);
      ends.emplace_back(static_cast<size_t>(first_end_of(summaries[i])));
      first_bytes += ends.back().size();
    }
    for (size_t i = 0; i < opened.size(); ++i) reads.push_back(end_of(*opened[i]->object, ends[i]));
    std::vector<StoreFault> faults(reads.size());
    store->read(reads, faults);
    for (size_t i = 0; i < opened.size(); ++i) {
      if (faults[i]) return fail(error, opened[i]->name(), faults[i]);
      opened[i]->size = reads[i].object_size;
      ends[i].resize(static_cast<size_t>(reads[i].size));
      const ShardSummary* summary = are_described ? &summaries[begin + i] : nullptr;
      const l3_status status = add_shard(std::move(opened[i]), std::move(ends[i]), summary, error);
      if (status != L3_OK) return status;
    }
    begin += opened.size();
  }
  return L3_OK;
}

// For a far store this is not worth a request. spec/shard.md, section 4, does not require it.
l3_status l3_data_set::check_head(const Shard& shard, l3_data_error* error) const {
  if (store->is_far()) return L3_OK;
  uint8_t head[kHeadBytes];
  Read read;
  read.object = shard.object.get();
  read.size = std::min<uint64_t>(shard.size, sizeof head);
  read.to = head;
  if (read.size > 0) {
    if (const StoreFault fault = read_one(*store, read)) return fail(error, shard.name(), fault);
  }
  const Fault fault = loader::check_head({head, static_cast<size_t>(read.size)});
  return fault ? fail(error, shard.name(), fault) : L3_OK;
}

l3_status l3_data_set::add_shard(std::unique_ptr<Shard> shard, std::vector<uint8_t> end, const ShardSummary* summary,
                                 l3_data_error* error) {
  const std::string& name = shard->name();
  const uint64_t size = shard->size;
  if (summary != nullptr && size != summary->bytes) {
    return fail(error, L3_ERROR_CORRUPT, name, "the size of the file differs from the one in index.json",
                std::min(size, summary->bytes));
  }
  if (const l3_status status = check_head(*shard, error); status != L3_OK) return status;
  if (size < kHeadBytes + kFooterBytes || end.size() < kFooterBytes) {
    return fail(error, name, Fault{"the file ends too early", size, L3_ERROR_TRUNCATED});
  }
  Footer footer;
  if (const Fault fault = read_footer(end.data() + end.size() - kFooterBytes, size, footer)) {
    return fail(error, name, fault);
  }
  index_bytes += footer.index_size;
  if (index_bytes > options.max_index_bytes) {
    return fail(error, L3_ERROR_LIMIT, name, "more bytes of indexes than the limit allows", footer.index_offset);
  }
  end.resize(end.size() - kFooterBytes);
  const size_t index_size = static_cast<size_t>(footer.index_size);
  if (end.size() < index_size) {  // read what comes before
    const size_t missing = index_size - end.size();
    end.insert(end.begin(), missing, 0);
    Read read;
    read.object = shard->object.get();
    read.offset = footer.index_offset;
    read.size = missing;
    read.to = end.data();
    read.object_size = size;
    if (store->keeps_samples_apart()) {  // it has nothing before the index, and reads only from the end
      end.resize(index_size + kFooterBytes);
      read = end_of(*shard->object, end);
    }
    if (const StoreFault fault = read_one(*store, read)) return fail(error, name, fault);
    end.resize(index_size);
  } else {
    end.erase(end.begin(), end.end() - static_cast<ptrdiff_t>(index_size));
  }
  shard->index = ShardIndex(footer, std::move(end));
  if (const Fault fault = shard->index.check()) return fail(error, name, fault);
  if (summary != nullptr) {
    if (footer.index_check != summary->index_check || footer.entries != summary->samples ||
        footer.groups != summary->groups || footer.index_size != summary->index_bytes.value_or(footer.index_size)) {
      return fail(error, L3_ERROR_CORRUPT, name, "not the shard that index.json describes",
                  footer.index_offset + footer.index_size);
    }
    shard->digest = summary->digest;
  }
  if (const l3_status status = open_models(*shard, error); status != L3_OK) return status;
  shard->number = shards.size();
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
      return fail(error, L3_ERROR_LIMIT, shard.name(), "more than 4096 models", footer.index_offset);
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
    return fail(error, L3_ERROR_LIMIT, shards.back()->name(), "more samples than the limit allows");
  }
  table.emplace(samples);
  const NameTable::NameOf name_of_sample = names();
  for (const auto& shard : shards) {
    for (uint32_t i = 0; i < shard->index.footer().entries; ++i) {
      const uint64_t place = shard->index.place_of_entry(i);
      sample_bytes += load_u64(shard->index.entry(i) + entry::kSize);
      uint64_t other = 0;
      if (!table->add(shard->index.name(i), shard->first_sample + i, name_of_sample, other)) {
        return fail(error, shard->name(), Fault{"two samples have the same name", place + entry::kName});
      }
      const uint32_t label = load_u32(shard->index.entry(i) + entry::kLabel);
      if (!classes.empty() && label != kNoLabel && label >= classes.size()) {
        return fail(error, shard->name(), Fault{"a label has no name", place + entry::kLabel});
      }
    }
  }
  return L3_OK;
}

namespace {

constexpr const char* kNull = "a pointer that must not be null is null";
constexpr const char* kNoStructSize = "struct_size is not set: use the _init function";

// Splits a URL of a shard into the URL of its folder and its key. A query stays with the folder.
bool split_shard(const std::string& url, std::string& folder, std::string& key) {
  const size_t query = std::min(url.find('?'), url.size());
  const std::string path = url.substr(0, query);
  if (!path.ends_with(kShardExtension)) return false;
  const size_t slash = path.rfind('/');
  folder = path.substr(0, slash) + url.substr(query);
  key = path.substr(slash + 1);
  return true;
}

l3_status open_url(const std::string& url, const l3_data_options& options, l3_data_set** set, l3_data_error* error) {
  std::string folder = url, shard;
  (void)split_shard(url, folder, shard);
  StoreFault fault;
  std::shared_ptr<Store> store = open_store(folder, store_options(options), fault);
  if (store == nullptr) return fail(error, url_without_secrets(url), fault);
  return open_data_set(std::move(store), shard, options, set, error);
}

l3_status open_path(const std::string& path, const l3_data_options& options, l3_data_set** set, l3_data_error* error) {
  if (is_url(path)) return open_url(path, options, set, error);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return fail(error, L3_ERROR_FILE, path, std::string("cannot read: ") + std::strerror(errno), L3_DATA_NONE, errno);
  }
  const bool is_folder = S_ISDIR(status.st_mode);
  std::shared_ptr<Store> store = make_local_store(is_folder ? path : "", options.max_open_files);
  return open_data_set(std::move(store), is_folder ? "" : path, options, set, error);
}

// Calls `open` with the caller's options, and turns exceptions into errors. `name` is for messages.
template <class Open>
l3_status open_safely(const l3_data_options* options, const char* name, l3_data_error* error, const Open& open) {
  l3_data_options wanted = l3_data_options_init();
  if (options != nullptr) {
    if (options->struct_size == 0) return fail(error, L3_ERROR_ARGUMENT, "", kNoStructSize);
    std::memcpy(&wanted, options, std::min<size_t>(options->struct_size, sizeof wanted));
  }
  const auto fail_here = [&](l3_status status, const std::string& reason) {
    return fail(error, status, is_url(name) ? url_without_secrets(name) : name, reason);
  };
  try {
    return open(wanted);
  } catch (const std::bad_alloc&) {
    return fail_here(L3_ERROR_MEMORY, "out of memory");
  } catch (const std::length_error&) {
    return fail_here(L3_ERROR_MEMORY, "out of memory");
  } catch (const std::system_error& why) {
    return fail_here(L3_ERROR_MEMORY, std::string("cannot start a thread: ") + why.what());
  }
}

}  // namespace

l3_status l3_data_open(const char* path, const l3_data_options* options, l3_data_set** set, l3_data_error* error) {
  if (set != nullptr) *set = nullptr;
  if (path == nullptr || set == nullptr) return fail(error, L3_ERROR_ARGUMENT, "", kNull);
  return open_safely(options, path, error,
                     [&](const l3_data_options& wanted) { return open_path(path, wanted, set, error); });
}

l3_status l3_data_open_store(const l3_store* store, const char* name, const l3_data_options* options, l3_data_set** set,
                             l3_data_error* error) {
  if (set != nullptr) *set = nullptr;
  if (store == nullptr) return fail(error, L3_ERROR_ARGUMENT, "", kNull);
  if (store->struct_size == 0) return fail(error, L3_ERROR_ARGUMENT, "", kNoStructSize);
  l3_store own = l3_store_init();
  std::memcpy(&own, store, std::min<size_t>(store->struct_size, sizeof own));
  CallerStore owner(own);
  if (name == nullptr || set == nullptr || own.size == nullptr || own.read == nullptr) {
    return fail(error, L3_ERROR_ARGUMENT, "", kNull);
  }
  return open_safely(options, name, error, [&](const l3_data_options& wanted) {
    const StoreOptions of_store = with_defaults(store_options(wanted));
    return open_data_set(make_callback_store(std::move(owner), name, of_store), "", wanted, set, error);
  });
}
