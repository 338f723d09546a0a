#include "cache_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/crc32.h"
#include "cache_channel.h"
#include "cache_folder.h"
#include "cache_remote.h"
#include "caller_structs.h"
#include "data_error.h"

namespace loader {

CacheStore::CacheStore(std::shared_ptr<Store> behind, CachePlan plan, std::vector<std::unique_ptr<CachePlace>> places)
    : behind_(std::move(behind)), plan_(std::move(plan)), places_(std::move(places)) {
  has_cached_reads_ = behind_->has_cached_reads();
  for (const auto& place : places_) has_cached_reads_ = has_cached_reads_ || place->store().has_cached_reads();
}

void CacheStore::stop() {
  CacheKeeper* const own = keeper_.exchange(nullptr);
  if (own != nullptr && own->process() == getpid()) delete own;
}

std::unique_ptr<Object> CacheStore::open(std::string_view key) const {
  return std::make_unique<CachedObject>(behind_->open(key), nullptr);
}

CacheKeeper& CacheStore::keeper() {
  CacheKeeper* there = keeper_.load();
  while (there == nullptr || there->process() != getpid()) {
    auto fresh = std::make_unique<CacheKeeper>([this](const Keepsake& sample) { keep(sample); });
    // Another thread of this process may have been faster.
    if (keeper_.compare_exchange_strong(there, fresh.get())) return *fresh.release();
  }
  return *there;
}

void CacheStore::count_hit(uint64_t bytes) {
  counts_.hits.fetch_add(1, std::memory_order_relaxed);
  counts_.hit_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void CacheStore::count_miss(uint64_t bytes) {
  counts_.misses.fetch_add(1, std::memory_order_relaxed);
  counts_.miss_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void CacheStore::count_other(uint64_t bytes) {
  counts_.others.fetch_add(1, std::memory_order_relaxed);
  counts_.other_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void CacheStore::note_failure(const CachePlace& place, const StoreFault& fault) {
  counts_.failures.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(failure_mutex_);
  (void)!fail(&last_failure_, place.name(), fault);
}

// Finds the place for a read, and forgets a sample there that was damaged.
CacheStore::Choice CacheStore::choose(const Read& read) const {
  Choice choice;
  choice.shard = static_cast<const CachedObject*>(read.object)->shard();
  if (choice.shard == nullptr || read.sample == kNoSample) return choice;
  choice.sample = choice.shard->first_sample + read.sample;
  const uint8_t place = plan_.place_of(choice.sample);
  if (place == CachePlan::kNowhere) return choice;
  // A part of a sample that is no image has no check of its own, so what a place says of it could not be verified.
  const uint8_t* const entry = choice.shard->index.entry(static_cast<uint32_t>(read.sample));
  if (read.size != read.sample_size && entry[entry::kKind] != L3_DATA_IMAGE) return choice;
  choice.place = places_[place].get();
  choice.number = place;
  if (read.again) {
    choice.place->forget(choice.sample);
    counts_.damaged.fetch_add(1, std::memory_order_relaxed);
  } else {
    choice.is_there = choice.place->may_have(choice.sample);
  }
  return choice;
}

Read CacheStore::whole_of(const Read& read, const Choice& choice, Bytes& bytes) const {
  bytes = Bytes(read.sample_size);
  if (bytes.data() == nullptr) throw std::bad_alloc();
  Read whole = read;
  whole.object = &static_cast<const CachedObject*>(choice.shard->object.get())->behind();
  whole.offset = read.sample_offset;
  whole.size = read.sample_size;
  whole.to = bytes.data();
  return whole;
}

Keepsake CacheStore::keepsake_of(const Read& read, const Choice& choice, Bytes bytes) const {
  Keepsake sample;
  sample.place = choice.place;
  sample.shard = choice.shard;
  sample.sample = choice.sample;
  sample.offset = read.sample_offset;
  sample.size = read.sample_size;
  sample.check = load_u32(choice.shard->index.entry(static_cast<uint32_t>(read.sample)) + entry::kCheck);
  sample.bytes = std::move(bytes);
  return sample;
}

void CacheStore::keep(const Keepsake& sample) {
  const std::span<const uint8_t> bytes(sample.bytes.data(), static_cast<size_t>(sample.size));
  if (!sample.place->may_keep() || base::crc32(bytes) != sample.check) return;
  const StoreFault fault = sample.place->keep(*sample.shard, sample.sample, sample.offset, bytes);
  if (fault) return note_failure(*sample.place, fault);
  counts_.kept.fetch_add(1, std::memory_order_relaxed);
}

std::unique_ptr<Channel> CacheStore::make_channel(l3_reading reading) {
  return std::make_unique<CacheChannel>(*this, reading);
}

uint64_t CacheStore::read_cached(const Read& read) {
  if (read.again) return 0;
  const Choice choice = choose(read);
  Read own = read;
  if (choice.place == nullptr) {
    own.object = &static_cast<const CachedObject*>(read.object)->behind();
    const uint64_t bytes = behind_->read_cached(own);
    if (bytes == read.size) count_other(bytes);
    return bytes;
  }
  if (!choice.is_there) return 0;
  std::unique_ptr<Object> object;
  choice.place->direct(own, *choice.shard, object);
  const uint64_t bytes = choice.place->store().read_cached(own);
  if (bytes == read.size) count_hit(bytes);
  return bytes;
}

// Reads from the store behind, and keeps what has a place.
void CacheStore::read_behind(std::span<Read> reads, std::span<StoreFault> faults, std::span<const size_t> which,
                             std::span<const Choice> choices) {
  std::vector<Read> own;
  std::vector<Bytes> bytes(which.size());
  for (size_t i = 0; i < which.size(); ++i) {
    const Choice& choice = choices[which[i]];
    const Read& read = reads[which[i]];
    if (choice.place != nullptr && choice.place->may_keep()) {
      own.push_back(whole_of(read, choice, bytes[i]));
    } else {
      own.push_back(read);
      own.back().object = &static_cast<const CachedObject*>(read.object)->behind();
    }
  }
  std::vector<StoreFault> own_faults(own.size());
  behind_->read(own, own_faults);
  for (size_t i = 0; i < which.size(); ++i) {
    const Choice& choice = choices[which[i]];
    Read& read = reads[which[i]];
    read.object_size = own[i].object_size;
    faults[which[i]] = own_faults[i];
    if (choice.place != nullptr) {
      count_miss(read.size);
    } else {
      count_other(read.size);
    }
    if (bytes[i].data() == nullptr) {
      read.size = own[i].size;  // it may have been larger than the object
    } else if (!own_faults[i]) {
      std::memcpy(read.to, bytes[i].data() + (read.offset - read.sample_offset), read.size);
      keep(keepsake_of(read, choice, std::move(bytes[i])));
    }
  }
}

void CacheStore::read(std::span<Read> reads, std::span<StoreFault> faults) {
  std::vector<Choice> choices;
  std::vector<size_t> left;
  for (size_t i = 0; i < reads.size(); ++i) {
    choices.push_back(choose(reads[i]));
    const Choice& choice = choices.back();
    if (choice.place == nullptr || !choice.is_there) {
      left.push_back(i);
      continue;
    }
    Read own = reads[i];
    std::unique_ptr<Object> object;
    choice.place->direct(own, *choice.shard, object);
    choice.place->store().read({&own, 1}, {&faults[i], 1});
    if (faults[i]) {
      choice.place->failed(choice.sample, faults[i]);
      if (faults[i].system_error != ENOENT) note_failure(*choice.place, faults[i]);
      left.push_back(i);
    } else {
      choice.place->succeeded();
      count_hit(reads[i].size);
    }
  }
  if (!left.empty()) read_behind(reads, faults, left, choices);
}

void CacheStore::describe(l3_data_cache_info& info) const {
  info.places = static_cast<uint32_t>(places_.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    info.samples += plan_.part(i).samples;
    info.bytes += plan_.part(i).bytes;
  }
  const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  info.hits = get(counts_.hits);
  info.hit_bytes = get(counts_.hit_bytes);
  info.misses = get(counts_.misses);
  info.miss_bytes = get(counts_.miss_bytes);
  info.others = get(counts_.others);
  info.other_bytes = get(counts_.other_bytes);
  info.kept = get(counts_.kept);
  info.damaged = get(counts_.damaged);
  info.failures = get(counts_.failures);
  const std::lock_guard lock(failure_mutex_);
  info.last_failure = last_failure_;
}

l3_cached CacheStore::state_of(uint64_t sample) const {
  const uint8_t place = plan_.place_of(sample);
  if (place == CachePlan::kNowhere) return L3_CACHED_NEVER;
  CachePlace& at = *places_[place];
  return at.knows_what_it_has() && at.may_have(sample) ? L3_CACHED : L3_CACHED_NOT_YET;
}

std::vector<CachePart> CacheStore::parts(std::span<const std::unique_ptr<Shard>> shards) const {
  std::vector<CachePart> parts(places_.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].place = places_[i]->name();
    parts[i].folder = places_[i]->folder();
    parts[i].samples = plan_.part(i).samples;
    parts[i].bytes = plan_.part(i).bytes;
  }
  for (const auto& shard : shards) {
    for (uint32_t i = 0; i < shard->index.footer().entries; ++i) {
      const uint64_t sample = shard->first_sample + i;
      if (state_of(sample) != L3_CACHED_NOT_YET) continue;
      CachePart& part = parts[plan_.place_of(sample)];
      ++part.missing;
      part.missing_bytes += load_u64(shard->index.entry(i) + entry::kSize);
    }
  }
  return parts;
}

std::vector<CachePart> cache_parts(const l3_data_set& set) {
  return set.cache == nullptr ? std::vector<CachePart>() : set.cache->parts(set.shards);
}

l3_status add_cache(l3_data_set& set, const std::string& shard, const char* places, l3_data_error* error) {
  std::vector<PlaceSize> sizes;
  if (const std::string reason = parse_places(places, sizes); !reason.empty()) {
    return fail(error, L3_ERROR_ARGUMENT, "", reason);
  }
  if (sizes.empty() || set.shards.empty()) return succeed(error);
  CachePlan plan(set.shards, sizes);
  std::string name = shard.empty() ? set.store->name() : set.shards.front()->name();
  std::error_code unknown;
  if (std::filesystem::exists(name, unknown)) name = std::filesystem::absolute(name, unknown).lexically_normal();
  const SetOfShards of{name, set.shards};
  std::vector<std::unique_ptr<CachePlace>> opened;
  for (size_t i = 0; i < sizes.size(); ++i) {
    StoreFault fault;
    if (is_url(sizes[i].where)) {
      opened.push_back(CacheRemote::open(sizes[i].where, plan, store_options(set.options), fault));
    } else {
      opened.push_back(CacheFolder::open(sizes[i].where, plan, i, of, fault));
    }
    if (opened.back() == nullptr) return fail(error, url_without_secrets(sizes[i].where), fault);
  }
  set.cache = std::make_shared<CacheStore>(set.store, std::move(plan), std::move(opened));
  set.store = set.cache;
  for (const auto& one : set.shards) {
    one->object = std::make_unique<CachedObject>(std::move(one->object), one.get());
  }
  return succeed(error);
}

}  // namespace loader

using namespace loader;

l3_status l3_data_cache(const l3_data_set* set, l3_data_cache_info* info) {
  if (set == nullptr || info == nullptr) return L3_ERROR_ARGUMENT;
  l3_data_cache_info own = l3_data_cache_info_init();
  if (set->cache != nullptr) set->cache->describe(own);
  return copy_out(own, info);
}

l3_cached l3_data_is_cached(const l3_data_set* set, uint64_t index) {
  if (set == nullptr || index >= set->samples || set->cache == nullptr) return L3_CACHED_NEVER;
  return set->cache->state_of(index);
}
