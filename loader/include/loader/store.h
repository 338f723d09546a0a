// Where the bytes of data sets are: local files, HTTP, S3, Redis, or a store of the caller.
//
// A store holds objects, which have keys such as "index.json" or "000017.l3s". A reader opens objects, which makes no
// request, and submits reads of their parts, many at once. The order in which reads finish is free.
//
// Three invariants. A read finishes exactly once, within the time that StoreOptions bounds, whatever the other side
// does. A read that finishes without a fault has exactly the bytes that were asked for. And no text that leaves a store
// contains a secret.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "l3/l3_loader.h"

namespace loader {

// Why a request failed.
struct StoreFault {
  // L3_ERROR_FILE: the system, the network or the server reported an error. L3_ERROR_TRUNCATED: the object ends before
  // the read does. L3_ERROR_MEMORY, L3_ERROR_LIMIT, L3_ERROR_ARGUMENT and L3_ERROR_UNSUPPORTED: as their names say.
  l3_status status = L3_OK;
  // An errno, also for far stores: ENOENT if there is no such object, EACCES if access is denied, ETIMEDOUT,
  // ECONNREFUSED, ECANCELED, EPROTO if the server breaks the protocol; 0 if none fits.
  int system_error = 0;
  uint64_t offset = L3_DATA_NONE;  // in the object
  std::string reason;              // one line of English without the object's name: "the server answered 403: ..."

  explicit operator bool() const { return status != L3_OK; }
};

// An object of a store. Immutable, so any number of threads may use it.
class Object {
 public:
  explicit Object(std::string name) : name_(std::move(name)) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // The path or URL, for messages; without user names, passwords and other secrets.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// When the steps of a request happened, in nanoseconds of std::chrono::steady_clock; 0 if a step did not happen.
struct RequestTimes {
  uint64_t queued = 0;    // it was submitted
  uint64_t sent = 0;      // the last attempt was sent
  uint64_t answered = 0;  // the first byte of its answer arrived
  uint64_t finished = 0;
  uint32_t attempts = 0;  // how often it was sent; 2 or more: it was repeated
  uint32_t shared = 0;    // how many other reads the same request served
  bool hedged = false;    // a second request was sent because the first one was slow
  bool cached = false;    // a cache answered
};

inline constexpr uint64_t kNoSample = UINT64_MAX;

// A read of a part of an object. The caller keeps it in place until it is finished.
struct Read {
  const Object* object = nullptr;
  uint64_t offset = 0, size = 0;  // at least one byte
  uint8_t* to = nullptr;
  // True: reads the last `size` bytes of the object, or all of it if it is shorter. `offset` is ignored. The store sets
  // `size` to how many bytes it read, from the start of `to`, and `object_size`.
  bool from_end = false;
  uint64_t object_size = 0;  // if not 0 and not from_end: the size that the object must have
  // The sample that the read is a part of, for stores that keep samples apart: its number in the shard, and its place
  // in the shard's file.
  uint64_t sample = kNoSample, sample_offset = 0, sample_size = 0;
  bool again = false;  // the sample was read before and was damaged, so that no cache may answer
  // A thread of the store calls this once, or submit() does. It must not wait for anything.
  void (*finish)(Read& read, const StoreFault& fault) = nullptr;
  void* context = nullptr;
  RequestTimes times;

  // Used by the store, which may also change the members above, except `size` of a read that is not from_end.
  Read* next = nullptr;
  int descriptor = -1;
  bool owns_descriptor = false;
};

// Reads asynchronously. Any thread may call both functions. When the destructor is called no read may be in progress.
class Channel {
 public:
  virtual ~Channel() = default;
  // Throws std::bad_alloc or std::system_error, and then starts none of the reads.
  virtual void submit(std::span<Read* const> reads) = 0;
  // Makes the reads in progress finish soon: those that have not finished get the fault ECANCELED. Local files ignore
  // it, because their reads are short.
  virtual void cancel() {}
};

// An object to write.
struct Upload {
  std::string key;
  uint64_t size = 0;
  // Gives the bytes from `offset`. Any thread may call it.
  std::function<StoreFault(uint64_t offset, std::span<uint8_t> to)> read;
  // The places of a shard's samples in its file, ascending; empty for other objects. What follows the last sample is
  // the shard's index and footer. Only stores that keep samples apart use this.
  std::span<const l3_range> samples;
  std::function<void(uint64_t bytes)> sent;  // reports progress; may be empty
};

class Store {
 public:
  virtual ~Store() = default;

  // The path or URL of the store, for messages, without secrets.
  virtual const std::string& name() const = 0;
  // True if a request takes milliseconds, so that many should be in progress at once.
  virtual bool is_far() const = 0;
  // True if samples are objects of their own, so that nothing exists between them and there is no head of the shard.
  virtual bool keeps_samples_apart() const { return false; }

  // Makes no request. The object must not outlive the store.
  virtual std::unique_ptr<Object> open(std::string_view key) const = 0;

  // `reading` matters only for local files. Throws std::bad_alloc or std::system_error.
  virtual std::unique_ptr<Channel> make_channel(l3_reading reading) = 0;
  // Reads all of these, and waits for them. Their `finish` must be null, and faults[i] is the fault of reads[i].
  virtual void read(std::span<Read> reads, std::span<StoreFault> faults) = 0;
  // True if read_cached() may find something.
  virtual bool has_cached_reads() const { return false; }
  // Reads what is in memory already, without waiting, from the front. Returns how many bytes it read.
  virtual uint64_t read_cached(const Read&) { return 0; }

  // Writes an object, and waits. Any number of threads may call it. If it returns without a fault, the whole object is
  // stored and the store has verified what it received.
  virtual StoreFault put(const Upload& upload) = 0;
};

struct StoreOptions {
  uint32_t timeout_ms = 0;   // how long a request may make no progress; 0: 30,000. Connecting: at most 10,000
  uint32_t attempts = 0;     // how often a request is sent until it fails; 0: 6
  uint32_t connections = 0;  // requests in progress at once; 0: 256
  bool hedge = false;        // send a second request if the first one takes much longer than others
  std::string certificates;  // a file with certificates of authorities (PEM); empty: those of the system
};

// Options that the caller leaves open come from the environment, and then from the defaults.
StoreOptions with_defaults(StoreOptions options);

// Whether a path names a far store: "SCHEME://...".
bool is_url(std::string_view path);

// The URL without user, password and query, for messages.
std::string url_without_secrets(std::string_view url);

// Makes no request. Fails if the scheme is unknown, the URL is wrong, or this build has no far stores.
std::unique_ptr<Store> open_store(const std::string& root, const StoreOptions& options, StoreFault& fault);

// The store of local files. `root` is a folder, or empty: keys are then paths. At most `max_open_files` files stay
// open; 0: half of the files that the process may open.
std::unique_ptr<Store> make_local_store(std::string root, uint32_t max_open_files);

// Opens the data set in a store, or a single shard if `shard` is its key.
l3_status open_data_set(std::shared_ptr<Store> store, const std::string& shard, const l3_data_options& options,
                        l3_data_set** set, l3_data_error* error);

// The type of the function that libl3_data_net.so exports under the name kNetEntry. It opens http, https, s3, redis and
// rediss. Both sides come from the same build.
using OpenNetStore = Store* (*)(uint32_t version, const char* url, const StoreOptions& options, StoreFault& fault);
inline constexpr const char* kNetEntry = "l3_data_open_net_store";
inline constexpr uint32_t kNetVersion = 1;

}  // namespace loader
