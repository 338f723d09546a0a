// libl3_data: data sets of L3 images, read. spec/shard.md defines shards and data sets; words here are its words.
//
// A data set that is open never changes: any number of threads may use it at once, without locks, until it is closed.
// What is here starts no threads (a loader does: l3_loader.h) and never throws or aborts. Every byte of a shard or an
// index may be hostile: what is allocated is bounded by limits, and by what the files really hold.
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

// Filled by a function that fails, when the caller gave one. Texts end with a zero byte, and are cut where they are
// too long. Fixed for ever.
typedef struct l3_data_error {
  l3_status status;  // L3_ERROR_FILE where the system failed
  int system_error;  // an errno where the system failed, else 0
  uint64_t offset;   // of the byte of the file where it went wrong; L3_DATA_NONE where that means nothing
  char file[512];
  char reason[240];
} l3_data_error;

#define L3_DATA_NONE UINT64_MAX

typedef struct l3_data_options {
  uint32_t struct_size;
  uint32_t max_open_files;   // shards that are kept open; 0: half of what the process may open
  uint64_t max_index_bytes;  // of all indexes together, which are kept in memory; 0: 2^33
  uint64_t max_json_bytes;   // of index.json; 0: 2^28
} l3_data_options;

static inline l3_data_options l3_data_options_init(void) {
  l3_data_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

typedef struct l3_data_set l3_data_set;

// Opens a data set (a folder with index.json), or a single shard. Reads and verifies all indexes, and no sample.
L3_API L3_MUST_USE l3_status l3_data_open(const char* path, const l3_data_options* options, l3_data_set** set,
                                          l3_data_error* error);
// Nothing may be using it; null is one that needs no closing.
L3_API void l3_data_close(l3_data_set* set);

typedef struct l3_data_info {
  uint32_t struct_size;
  uint32_t classes;  // names of labels; 0 where they have none
  uint64_t shards, samples, groups;
  uint64_t bytes;         // of all shards
  uint64_t sample_bytes;  // of all samples, without what lies between them and around them
  uint64_t index_bytes;   // of all indexes
} l3_data_info;

static inline l3_data_info l3_data_info_init(void) {
  l3_data_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

L3_API L3_MUST_USE l3_status l3_data_describe(const l3_data_set* set, l3_data_info* info);

typedef enum l3_data_kind { L3_DATA_IMAGE = 0, L3_DATA_BYTES = 1 } l3_data_kind;

#define L3_NO_LABEL UINT32_MAX

// What the index says of a sample. All pointers are valid until the data set is closed.
typedef struct l3_data_sample {
  uint32_t struct_size;
  uint32_t kind;     // an l3_data_kind; of bytes, width to colour are 0
  const char* name;  // `name_size` bytes, none of them zero; not ended by one
  size_t name_size;
  const char* role;
  size_t role_size;
  uint64_t size;  // in bytes
  uint32_t width, height, channels, bits;
  uint32_t colour;  // an l3_colour
  uint32_t label;   // L3_NO_LABEL where there is none
  uint64_t group;   // counted through the data set
  uint64_t shard;
  uint64_t offset;  // in the shard's file
  const uint8_t* metadata;
  size_t metadata_size;        // 0 where there is none
  const l3_model* model;       // the one that the file names; null where it names none, or one that is not valid
  const uint8_t* model_bytes;  // of the same; null where it names none
  size_t model_size;
  uint32_t check;  // CRC-32 of the sample's bytes
  uint8_t digest[L3_DIGEST_BYTES];
} l3_data_sample;

static inline l3_data_sample l3_data_sample_init(void) {
  l3_data_sample empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// The sample of that number, from 0; L3_ERROR_ARGUMENT where there is none.
L3_API L3_MUST_USE l3_status l3_data_get(const l3_data_set* set, uint64_t index, l3_data_sample* sample);

// The number of the sample of that name; L3_DATA_NONE where there is none.
L3_API uint64_t l3_data_find(const l3_data_set* set, const char* name, size_t name_size);

// The samples of a group: `count` of them from number `first` on; L3_ERROR_ARGUMENT where there is no such group.
L3_API L3_MUST_USE l3_status l3_data_group(const l3_data_set* set, uint64_t group, uint64_t* first, uint64_t* count);

// The name of a label; null where it has none.
L3_API const char* l3_data_class(const l3_data_set* set, uint32_t label);
// The path of a shard's file; null where there is no such shard.
L3_API const char* l3_data_shard_path(const l3_data_set* set, uint64_t shard);

// The models that samples name, each once, as l3_decode_options takes them. Those that are not valid are left out.
L3_API const l3_model* const* l3_data_models(const l3_data_set* set, size_t* count);

// Reads a sample's bytes, `size` of l3_data_get of them, and verifies their check; of an image also that its head is
// what its entry says. On failure the contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_data_read(const l3_data_set* set, uint64_t index, void* out, size_t out_size,
                                          l3_data_error* error);

// Reads `size` bytes of a sample from its byte `offset` on. Of an image it verifies that the head is what its entry
// says (and reads it for that where the part has it not); the other parts of an L3 file have checks of their own, which
// decoding verifies. Of other bytes it verifies nothing. On failure the contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_data_read_part(const l3_data_set* set, uint64_t index, uint64_t offset, void* out,
                                               size_t size, l3_data_error* error);

// Verifies what opening does not: the head of a shard, zero bytes between samples, its digest where index.json has one,
// and its models. Samples are verified by reading them, but for the digests of other bytes than images, which
// l3_data_check_sample verifies.
L3_API L3_MUST_USE l3_status l3_data_verify_shard(const l3_data_set* set, uint64_t shard, l3_data_error* error);

// Whether the bytes of a sample are what its entry says: shape, digest and model in the head of an image, and the
// digest of others. Of an image the first L3_HEAD_MAX_BYTES are enough. Pixels are not looked at: l3_verify does.
L3_API L3_MUST_USE l3_status l3_data_check_sample(const l3_data_set* set, uint64_t index, const void* data, size_t size,
                                                  l3_data_error* error);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
