#include "cache_channel.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace loader {
namespace {

const StoreFault kNoMemory{L3_ERROR_MEMORY, 0, L3_DATA_NONE, "out of memory"};

// Submits reads. If that fails, it finishes them, so that nothing is thrown.
void start(Channel& channel, std::span<Read* const> reads) {
  if (reads.empty()) return;
  try {
    channel.submit(reads);
  } catch (...) {
    for (Read* const read : reads) read->finish(*read, kNoMemory);
  }
}

}  // namespace

// The reads of one call.
struct CacheChannel::Batch {
  std::vector<std::unique_ptr<Pending>> pending;
  std::vector<Read*> others;   // the caller's own reads, which no place has
  std::vector<Read*> present;  // these are answered already
  bool fills = false;          // one of them fills a place
};

CacheChannel::Pending::~Pending() {
  if (room > 0) channel->store_.keeper().return_room(room);
}

CacheChannel::CacheChannel(CacheStore& store, l3_reading reading)
    : store_(store), reading_(reading), behind_(store.behind_->make_channel(reading)), places_(store.places_.size()) {}

Channel& CacheChannel::channel_of(size_t place) {
  const std::lock_guard lock(mutex_);
  if (places_[place] == nullptr) places_[place] = store_.places_[place]->store().make_channel(reading_);
  return *places_[place];
}

void CacheChannel::cancel() {
  behind_->cancel();
  const std::lock_guard lock(mutex_);
  for (const auto& place : places_) {
    if (place != nullptr) place->cancel();
  }
}

// Decides where a read goes. Starts nothing.
void CacheChannel::prepare(Read& read, Batch& batch) {
  const CacheStore::Choice choice = store_.choose(read);
  if (choice.place == nullptr) return batch.others.push_back(&read);
  CacheKeeper& keeper = store_.keeper();
  // The next parts of a sample are often wanted before it is written.
  if (!read.again && keeper.copy(*choice.place, choice.sample, read.offset, {read.to, read.size})) {
    return batch.present.push_back(&read);
  }
  // A sample that a place does not have after all is written there then. At most one read of a call takes room, because
  // a second one could wait for the room of the first.
  const bool is_certain = choice.is_there && choice.place->knows_what_it_has();
  const bool may_fill = !batch.fills && choice.place->may_keep() && !is_certain;
  Pending& pending = *batch.pending.emplace_back(std::make_unique<Pending>());
  pending.channel = this;
  pending.wanted = &read;
  pending.choice = choice;
  if (may_fill) {
    keeper.take_room(read.sample_size);
    pending.room = read.sample_size;
    batch.fills = true;
  }
  if (!choice.is_there) return;
  pending.own = read;
  choice.place->direct(pending.own, *choice.shard, pending.object);
  pending.own.finish = &CacheChannel::finish_at_place;
  pending.own.context = &pending;
  (void)channel_of(choice.number);
}

void CacheChannel::submit(std::span<Read* const> reads) {
  Batch batch;
  batch.others.reserve(reads.size());
  batch.present.reserve(reads.size());
  batch.pending.reserve(reads.size());
  for (Read* const read : reads) prepare(*read, batch);
  // From here on nothing is thrown: each read finishes by itself.
  for (Read* const read : batch.others) {
    store_.count_other(read->size);
    read->object = &static_cast<const CachedObject*>(read->object)->behind();
  }
  start(*behind_, batch.others);
  for (std::unique_ptr<Pending>& pending : batch.pending) {
    if (!pending->choice.is_there) {
      read_behind(std::move(pending));
    } else {
      Pending* const own = pending.release();
      Read* const read = &own->own;
      start(channel_of(own->choice.number), {&read, 1});
    }
  }
  for (Read* const read : batch.present) {
    store_.count_hit(read->size);
    read->times.cached = true;
    read->finish(*read, {});
  }
}

// Reads from the data set's store: the whole sample if it fills a place.
void CacheChannel::read_behind(std::unique_ptr<Pending> pending) {
  Pending& own = *pending;
  try {
    if (own.room > 0) {
      own.own = store_.whole_of(*own.wanted, own.choice, own.bytes);
    } else {
      own.own = *own.wanted;
      own.own.object = &static_cast<const CachedObject*>(own.wanted->object)->behind();
    }
  } catch (const std::bad_alloc&) {
    return deliver(std::move(pending), kNoMemory);
  }
  own.own.finish = &CacheChannel::finish_behind;
  own.own.context = &own;
  Read* const read = &pending.release()->own;
  start(*behind_, {&read, 1});
}

void CacheChannel::finish_at_place(Read& read, const StoreFault& fault) {
  std::unique_ptr<Pending> pending(static_cast<Pending*>(read.context));
  CacheStore& store = pending->channel->store_;
  CachePlace& place = *pending->choice.place;
  if (!fault) {
    place.succeeded();
    store.count_hit(pending->wanted->size);
    read.times.cached = true;
    return deliver(std::move(pending), {});
  }
  if (fault.system_error == ECANCELED) return deliver(std::move(pending), fault);
  place.failed(pending->choice.sample, fault);
  if (fault.system_error != ENOENT) store.note_failure(place, fault);
  CacheChannel& channel = *pending->channel;
  channel.read_behind(std::move(pending));
}

void CacheChannel::finish_behind(Read& read, const StoreFault& fault) {
  std::unique_ptr<Pending> pending(static_cast<Pending*>(read.context));
  CacheStore& store = pending->channel->store_;
  const Read& wanted = *pending->wanted;
  store.count_miss(wanted.size);
  if (!fault && pending->bytes.data() != nullptr) {
    std::memcpy(wanted.to, pending->bytes.data() + (wanted.offset - wanted.sample_offset), wanted.size);
    // Before the read is finished, so that the next parts find the sample.
    try {
      store.keeper().add(store.keepsake_of(wanted, pending->choice, std::move(pending->bytes)));
      pending->room = 0;
    } catch (const std::bad_alloc&) {
      // Not kept.
    }
  }
  deliver(std::move(pending), fault);
}

void CacheChannel::deliver(std::unique_ptr<Pending> pending, const StoreFault& fault) {
  Read& wanted = *pending->wanted;
  const RequestTimes asked = wanted.times;
  wanted.times = pending->own.times;
  if (wanted.times.queued == 0) wanted.times.queued = asked.queued;
  pending.reset();
  wanted.finish(wanted, fault);
}

}  // namespace loader
