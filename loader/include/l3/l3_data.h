// libl3_data reads data sets of L3 images. spec/shard.md defines shards and data sets, and this header uses its terms.
//
// Thread safety: an open data set is immutable. Any number of threads may use it at once, until it is closed. The first
// read from a far store or a store of the caller starts a thread, and so do writes to a cache, at most four.
// l3_data_close ends them. No other function in this header starts a thread (a loader does: see l3_loader.h).
//
// Errors: functions return an l3_status and never throw or abort. If a call fails and the caller passed an
// l3_data_error, the call fills it in. `error` may always be null. On success its status is L3_OK.
//
// Ownership: l3_data_open allocates the data set, and l3_data_close frees it. All pointers that a data set returns
// belong to it. They are valid until it is closed.
//
// Hostile input: every byte of a shard or an index may be wrong on purpose. The limits in l3_data_options and the real
// size of the files bound all allocations.
//
// Versions: a caller sets `struct_size` of each structure that has one, by the function NAME_init. The library then
// reads and writes only the members that the caller's version of the structure has.
#ifndef L3_L3_DATA_H
#define L3_L3_DATA_H

#include "l3/l3.h"

#ifdef __cplusplus
extern "C" {
#define L3_ALL_ZERO \
  {}
#else
#define L3_ALL_ZERO \
  { 0 }
#endif

// Why a call failed. Both texts end with a zero byte and are cut if they are too long. The layout of this structure
// will never change.
typedef struct l3_data_error {
  l3_status status;  // L3_ERROR_FILE if the operating system reported an error
  int system_error;  // the errno of that error, else 0. Far stores use the same numbers, such as ENOENT and ETIMEDOUT
  uint64_t offset;   // the byte of the file at which the error was found; L3_DATA_NONE if there is no such byte
  char file[512];    // the path or URL of the file; empty if no file is at fault
  char reason[240];  // one line of English, without the file name
} l3_data_error;

#define L3_DATA_NONE UINT64_MAX

typedef struct l3_data_options {
  uint32_t struct_size;
  uint32_t max_open_files;   // how many shard files may stay open; 0: half of the files that the process may open
  uint64_t max_index_bytes;  // limit for all indexes together, which are kept in memory; 0: 2^33
  uint64_t max_json_bytes;   // limit for index.json; 0: 2^28
  // The others are for far stores. Environment variables replace zeros: L3_TIMEOUT (in seconds), L3_ATTEMPTS,
  // L3_CONNECTIONS, L3_HEDGE and L3_CERTIFICATES.
  uint32_t timeout_ms;       // how long a request may make no progress; 0: 30,000
  uint32_t attempts;         // how often a request is sent until it fails; 0: 6
  uint32_t connections;      // requests in progress at once; 0: 256
  uint32_t hedge;            // 1: send a second request if the first one takes much longer than others do
  const char* certificates;  // a PEM file with the authorities to trust; null: those of the system
  // Where to keep samples, so that each one is read from its store only once: "PLACE=SIZE", or several of them joined
  // by commas. A place is a folder, also one in memory (/dev/shm/l3), or the URL of a store such as Redis. A size is
  // written as 500GB or as 65%, which is a share of the data set. docs/cache.md describes it. Null: no cache.
  const char* cache;
} l3_data_options;

static inline l3_data_options l3_data_options_init(void) {
  l3_data_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

typedef struct l3_data_set l3_data_set;

// Opens a data set (a folder with index.json) or a single shard. Reads and verifies all indexes, but no sample.
// `path` may be a URL that begins with http, https, s3, redis or rediss; docs/stores.md describes these far stores. The
// URL of a shard ends with .l3s. `options` may be null: all defaults. On success *set is the data set, which the caller
// must close. On failure *set is null.
L3_API L3_MUST_USE l3_status l3_data_open(const char* path, const l3_data_options* options, l3_data_set** set,
                                          l3_data_error* error);
// Frees a data set. No other thread and no loader may still use it. Null is allowed and does nothing.
L3_API void l3_data_close(l3_data_set* set);

// ---------------------------------------------------------------------------------------------- stores of the caller

typedef struct l3_store_requests l3_store_requests;

// A request to a store of the caller. Copy it as you like. It is passed to l3_store_finish or l3_store_fail, once.
typedef struct l3_store_request {
  l3_store_requests* owner;
  uint64_t number;
} l3_store_request;

// Where a data set is, if the caller stores it: objects with keys such as "index.json" or "shard-00000.l3s", which are
// the files of the data set.
//
// `size` and `read` start a request and return soon, without waiting for its answer. The answer may come from any
// thread, also before they return. libl3_data sends each request once, has at most `connections` requests of
// l3_data_options in progress, and gives up those that are not finished after `timeout_ms`. The options `attempts`,
// `hedge` and `certificates` have no effect. The caller's duty is to repeat what is worth repeating.
//
// Threads: libl3_data calls `size`, `read` and `cancel` from any thread, and never two of the first two at once.
// After a fork, the child makes requests of its own.
typedef struct l3_store {
  uint32_t struct_size;
  uint32_t is_near;  // 1: a request takes microseconds, so it is not worth having many in progress
  void* context;     // the first argument of the functions
  // Answers with l3_store_finish(request, null, size of the object). `key` is valid until the function returns.
  void (*size)(void* context, const char* key, l3_store_request request);
  // Answers with l3_store_finish(request, the bytes, size): exactly the bytes of the object from `offset`.
  void (*read)(void* context, const char* key, uint64_t offset, uint64_t size, l3_store_request request);
  // Nobody waits for the request any more. Its answer is allowed and ignored. May be null.
  void (*cancel)(void* context, l3_store_request request);
  // Nothing uses the store any more. It is called once: by l3_data_close, or by l3_data_open_store if that fails. When
  // it has returned, no thread may be in l3_store_finish or l3_store_fail for this store, or call them. May be null.
  void (*release)(void* context);
} l3_store;

static inline l3_store l3_store_init(void) {
  l3_store empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Opens the data set in a store of the caller, as l3_data_open does. Copies *store. `name` is for messages: the files
// of the data set are called NAME/KEY. If `store` is null or its struct_size is not set, `release` is not called.
L3_API L3_MUST_USE l3_status l3_data_open_store(const l3_store* store, const char* name, const l3_data_options* options,
                                                l3_data_set** set, l3_data_error* error);

// Finishes a request, and copies the bytes. If their number is not the one that was asked for, the request fails. If
// the request is finished already, or was given up, this does nothing. Any thread may call it. It does not wait, but it
// may start other requests.
L3_API void l3_store_finish(l3_store_request request, const void* bytes, uint64_t size);
// Finishes a request with an error. `status` is L3_ERROR_FILE, or one of L3_ERROR_TRUNCATED, L3_ERROR_MEMORY,
// L3_ERROR_LIMIT and L3_ERROR_UNSUPPORTED. `system_error` is an errno such as ENOENT, or 0. `reason` is one line of
// English, without the key, and may be null. In it, URLs lose users, passwords and queries.
L3_API void l3_store_fail(l3_store_request request, l3_status status, int system_error, const char* reason);

// -------------------------------------------------------------------------------------------------- an open data set

typedef struct l3_data_info {
  uint32_t struct_size;
  uint32_t classes;  // the number of class names; 0 if labels have no names
  uint64_t shards, samples, groups;
  uint64_t bytes;         // the size of all shards
  uint64_t sample_bytes;  // the size of all samples, without padding, heads and indexes
  uint64_t index_bytes;   // the size of all indexes
} l3_data_info;

static inline l3_data_info l3_data_info_init(void) {
  l3_data_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Fills *info. Fails only if info->struct_size is 0 or an argument is null.
L3_API L3_MUST_USE l3_status l3_data_describe(const l3_data_set* set, l3_data_info* info);

typedef enum l3_data_kind { L3_DATA_IMAGE = 0, L3_DATA_BYTES = 1 } l3_data_kind;

#define L3_NO_LABEL UINT32_MAX

// The index entry of a sample. All pointers are valid until the data set is closed.
typedef struct l3_data_sample {
  uint32_t struct_size;
  uint32_t kind;     // an l3_data_kind. For L3_DATA_BYTES, width, height, channels, bits and colour are 0
  const char* name;  // `name_size` bytes, none of them zero, without a zero byte at the end
  size_t name_size;
  const char* role;
  size_t role_size;
  uint64_t size;  // of the sample, in bytes
  uint32_t width, height, channels, bits;
  uint32_t colour;  // an l3_colour
  uint32_t label;   // L3_NO_LABEL if it has none
  uint64_t group;   // the number of its group in the whole data set
  uint64_t shard;
  uint64_t offset;  // in the shard's file
  const uint8_t* metadata;
  size_t metadata_size;        // 0 if it has none
  const l3_model* model;       // the model that the file names; null if it names none, or if that model is not valid
  const uint8_t* model_bytes;  // the bytes of the same model; null if the file names none
  size_t model_size;
  uint32_t check;  // CRC-32 of the sample's bytes
  uint8_t digest[L3_DIGEST_BYTES];
} l3_data_sample;

static inline l3_data_sample l3_data_sample_init(void) {
  l3_data_sample empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Fills *sample with the entry of sample `index`; the first sample is 0. L3_ERROR_ARGUMENT if there is no such sample.
L3_API L3_MUST_USE l3_status l3_data_get(const l3_data_set* set, uint64_t index, l3_data_sample* sample);

// Returns the number of the sample with this name, or L3_DATA_NONE if there is none.
L3_API uint64_t l3_data_find(const l3_data_set* set, const char* name, size_t name_size);

// The samples of a group are `first` to `first + count - 1`. L3_ERROR_ARGUMENT if there is no such group.
L3_API L3_MUST_USE l3_status l3_data_group(const l3_data_set* set, uint64_t group, uint64_t* first, uint64_t* count);

// Returns the class name of a label, which ends with a zero byte, or null if it has none.
L3_API const char* l3_data_class(const l3_data_set* set, uint32_t label);
// Returns the path or URL of a shard, without passwords, or null if there is no such shard.
L3_API const char* l3_data_shard_name(const l3_data_set* set, uint64_t shard);

// Returns the models that the samples name, each once, in the form that l3_decode_options takes. Models that are not
// valid are left out. *count is set to how many there are.
L3_API const l3_model* const* l3_data_models(const l3_data_set* set, size_t* count);

// Reads all bytes of a sample into `out`, and verifies their check. For an image it also verifies that the head matches
// the index entry. `out_size` must be at least the `size` that l3_data_get reports. On failure the contents of `out`
// are unspecified.
L3_API L3_MUST_USE l3_status l3_data_read(const l3_data_set* set, uint64_t index, void* out, size_t out_size,
                                          l3_data_error* error);

// Reads `size` bytes of a sample, beginning at its byte `offset`. For an image it verifies that the head matches the
// index entry; if the part does not include the head, it reads the head too. The other parts of an L3 file contain
// their own checks, which decoding verifies. For samples that are no images it verifies nothing. On failure the
// contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_data_read_part(const l3_data_set* set, uint64_t index, uint64_t offset, void* out,
                                               size_t size, l3_data_error* error);

// -------------------------------------------------------------------------------------------------------- the cache

// What the cache of a data set is to hold, and what it did since the data set was opened. A crop of a large image may
// take several reads.
typedef struct l3_data_cache_info {
  uint32_t struct_size;
  uint32_t places;               // 0: the data set has no cache
  uint64_t samples, bytes;       // that it is to hold
  uint64_t hits, hit_bytes;      // reads of these that it answered
  uint64_t misses, miss_bytes;   // reads of these that the store answered
  uint64_t others, other_bytes;  // reads of samples that it is not to hold
  uint64_t kept;                 // samples that were written to it
  uint64_t damaged;              // samples that were damaged, in the cache or in the store, and were read once more
  uint64_t failures;             // how often a place could not be read or written
  l3_data_error last_failure;    // `file` is the place
} l3_data_cache_info;

static inline l3_data_cache_info l3_data_cache_info_init(void) {
  l3_data_cache_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Fills *info. Fails only if info->struct_size is 0 or an argument is null.
L3_API L3_MUST_USE l3_status l3_data_cache(const l3_data_set* set, l3_data_cache_info* info);

typedef enum l3_cached {
  L3_CACHED_NEVER = 0,    // the cache is not to hold it
  L3_CACHED_NOT_YET = 1,  // it is to hold it. Of a place that is no folder, only reading tells whether it does
  L3_CACHED = 2,          // it holds it
} l3_cached;

// Tells whether the cache holds a sample. Reading a sample that it is to hold and does not hold yet, puts it there.
L3_API l3_cached l3_data_is_cached(const l3_data_set* set, uint64_t index);

// Verifies what l3_data_open does not: the head of a shard, the zero bytes between its samples, its digest if
// index.json has one, and its models. It does not verify samples: l3_data_read does. The digest of a sample that is no
// image is verified only by l3_data_check_sample.
L3_API L3_MUST_USE l3_status l3_data_verify_shard(const l3_data_set* set, uint64_t shard, l3_data_error* error);

// Verifies that `data` matches the index entry of a sample. For an image it compares shape, digest and model name with
// the head; the first L3_HEAD_MAX_BYTES bytes are enough. For other samples it compares the digest of all bytes. It
// does not decode pixels: l3_verify does.
L3_API L3_MUST_USE l3_status l3_data_check_sample(const l3_data_set* set, uint64_t index, const void* data, size_t size,
                                                  l3_data_error* error);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
