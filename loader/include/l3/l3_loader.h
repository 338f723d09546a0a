// Batches of a data set, as tensors: part of libl3_data. A loader reads ahead, decodes and delivers; whoever trains
// takes batches, and gives them back.
//
// What is delivered is a pure function of the options, the epoch and the position: never of threads, time or stores. A
// *unit* is what an epoch has once: a group of the data set, with a tensor for each role that is wanted.
//
// A loader has threads of its own, which begin with the first batch that is asked for. It belongs to one consumer:
// calls for one loader come one at a time, but for l3_batch_release and l3_loader_interrupt, which any thread may call
// at any time. It does not survive a fork: in the child every call fails (L3_ERROR_ARGUMENT) but closing and releasing,
// which leave alone what is the parent's.
#ifndef L3_L3_LOADER_H
#define L3_L3_LOADER_H

#include "l3/l3_data.h"

#ifdef __cplusplus
extern "C" {
#define L3_ALL_ZERO \
  {}
#else
#define L3_ALL_ZERO \
  { 0 }
#endif

// -------------------------------------------------------------------------------------------------------- options

typedef enum l3_order {
  L3_ORDER_STORED = 0,    // as in the data set
  L3_ORDER_SHUFFLED = 1,  // any unit anywhere
  // Shards in any order, and the units of so many shards in a row (`window`) in any order among them: for stores in
  // which reading here and there is slow.
  L3_ORDER_WINDOWS = 2,
} l3_order;

// How an epoch ends where the number of units is no multiple of batch_size * world_size. A *repeat* is a unit from the
// beginning of the epoch's order, given once more; a batch says how many of its last units are repeats.
typedef enum l3_last_batch {
  L3_LAST_BATCH_EVEN =
      0,  // the last batch is shared evenly, with at most a repeat for each rank: same sizes on all ranks
  L3_LAST_BATCH_PAD = 1,     // every batch is full: the last one with as many repeats as it takes
  L3_LAST_BATCH_DROP = 2,    // every batch is full: what is left over is left out
  L3_LAST_BATCH_UNEVEN = 3,  // no repeats: ranks may differ by a unit, and so by a batch
} l3_last_batch;

// What becomes of a unit that cannot be read or decoded. It is reported in any case (l3_loader_failures).
typedef enum l3_on_error {
  L3_ON_ERROR_FAIL = 0,  // l3_loader_next fails in place of its batch, and goes on with the next one when called again
  // It is left out of its batch. A batch that has none left is not delivered; with more than one rank, whose batches
  // must stay as many as the others', l3_loader_next fails in its place.
  L3_ON_ERROR_SKIP = 1,
  L3_ON_ERROR_ZERO = 2,  // its place is zero, and its label is -1
} l3_on_error;

typedef enum l3_crop {
  L3_CROP_NONE = 0,  // whole images, which must all have one size
  L3_CROP_CENTRE = 1,
  L3_CROP_RANDOM = 2,
} l3_crop;

typedef enum l3_value_type {
  L3_VALUE_STORED = 0,  // U8 for samples of up to 8 bits, else U16
  L3_VALUE_U8 = 1,
  L3_VALUE_U16 = 2,
  L3_VALUE_F16 = 3,
  L3_VALUE_BF16 = 4,
  L3_VALUE_F32 = 5,
} l3_value_type;

typedef enum l3_layout {
  L3_LAYOUT_CHW = 0,  // a plane for each channel
  L3_LAYOUT_HWC = 1,  // the channels of a pixel side by side
} l3_layout;

// A tensor that is wanted of each unit. Fixed for ever.
typedef struct l3_tensor_options {
  const char* role;  // of `role_size` bytes. Null: the one image that each group has
  size_t role_size;
  uint32_t type;        // an l3_value_type
  uint32_t layout;      // an l3_layout
  uint32_t as_colours;  // palette images: 1 gives red, green, blue (and alpha where there is transparency)
  uint32_t reserved;
  // F16, BF16 and F32 are sample * scale + bias, by channel, with one rounding to a float and another to nearest (ties
  // to even) to F16 or BF16. All scales zero stand for ones.
  float scale[4];
  float bias[4];
} l3_tensor_options;

typedef enum l3_reading {
  L3_READING_AUTO = 0,  // io_uring where there is one, else threads
  L3_READING_URING = 1,
  L3_READING_THREADS = 2,
} l3_reading;

typedef enum l3_device_kind { L3_DEVICE_CPU = 0, L3_DEVICE_CUDA = 1 } l3_device_kind;

typedef struct l3_loader_options {
  uint32_t struct_size;
  uint32_t batch_size;  // of each rank; at least 1
  uint64_t seed;        // of order, crops and mirroring
  uint32_t rank;
  uint32_t world_size;  // 0: 1
  uint32_t order;       // an l3_order
  uint32_t window;      // shards of a window; 0: 8
  uint32_t last_batch;  // an l3_last_batch
  uint32_t on_error;    // an l3_on_error
  uint32_t crop;        // an l3_crop; alike for all tensors of a unit
  uint32_t crop_width, crop_height;
  uint32_t flip;  // 1: half of the units are mirrored, left to right; alike for all tensors of a unit
  const l3_tensor_options* tensors;  // at most 16; none: one, as stored, CHW
  uint32_t tensor_count;
  uint32_t device;               // an l3_device_kind
  uint32_t device_number;        // of several
  uint32_t threads;              // that read and decode; 0: as many as processors, for a GPU at most 8
  uint32_t prefetch;             // batches that are prepared ahead; 0: 3
  uint32_t reading;              // an l3_reading
  uint64_t max_bytes_in_flight;  // of files that are asked for and not yet decoded; 0: 2^28. One file may have more
  const uint64_t* groups;        // those groups of the data set that are units, each at most once; null: all of them
  uint64_t group_count;
  l3_limits limits;  // of each image
} l3_loader_options;

static inline l3_loader_options l3_loader_options_init(void) {
  l3_loader_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// ----------------------------------------------------------------------------------------------------- the loader

typedef struct l3_loader l3_loader;

// Makes a loader. Tells by the index alone whether all units can be in one batch: each group has one sample of each
// role that is wanted, which is an image; tensors have one shape; the images of a group have one size. Otherwise it
// fails, and the reason names the first group that is in the way. `set` stays open until the loader is closed. Of the
// options nothing is needed afterwards.
L3_API L3_MUST_USE l3_status l3_loader_open(const l3_data_set* set, const l3_loader_options* options,
                                            l3_loader** loader, l3_data_error* error);

// Waits for what is being read or decoded, ends the threads and frees all but the batches that are not given back,
// which stay as they are until they are. Null is one that needs no closing.
L3_API void l3_loader_close(l3_loader* loader);

// A tensor in memory without gaps: what it says of a unit is behind what it says of the one before.
typedef struct l3_tensor {
  void* data;     // of the batch: in the device's memory. Null where the shape alone is described
  uint32_t type;  // an l3_value_type, not L3_VALUE_STORED
  uint32_t dimensions;
  uint64_t shape[4];  // units, then channels, height, width or height, width, channels
} l3_tensor;

typedef struct l3_loader_info {
  uint32_t struct_size;
  uint32_t tensors;
  uint64_t units;    // of an epoch, on all ranks together
  uint64_t batches;  // of an epoch from position 0 on, on this rank
  uint32_t threads;
  uint32_t reading;  // L3_READING_URING or L3_READING_THREADS
} l3_loader_info;

static inline l3_loader_info l3_loader_info_init(void) {
  l3_loader_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

L3_API L3_MUST_USE l3_status l3_loader_describe(const l3_loader* loader, l3_loader_info* info);

// A tensor of a full batch, by the place of its l3_tensor_options, without data.
L3_API L3_MUST_USE l3_status l3_loader_tensor(const l3_loader* loader, uint32_t number, l3_tensor* tensor);

// Goes to a position of an epoch: units that all ranks together have taken since the epoch began, as l3_batch_info
// says it. What was prepared is thrown away. A loader begins at position 0 of epoch 0. Position and epoch are all the
// state that there is: with the same data set, seed, order, window and groups the units that follow are the same, in
// the same order, whatever the batch size and the number of ranks.
L3_API L3_MUST_USE l3_status l3_loader_start(l3_loader* loader, uint64_t epoch, uint64_t position,
                                             l3_data_error* error);

// How many batches follow on this rank from a position on.
L3_API uint64_t l3_loader_batches_from(const l3_loader* loader, uint64_t position);

typedef struct l3_batch l3_batch;

typedef enum l3_next {
  L3_NEXT_BATCH = 0,
  L3_NEXT_END = 1,      // of the epoch; l3_loader_start begins another one
  L3_NEXT_WAITING = 2,  // nothing came in time: call again
} l3_next;

// A unit that failed. Fixed for ever.
typedef struct l3_failure {
  uint64_t epoch;
  uint64_t sample;  // of the data set; L3_DATA_NONE where no single one failed
  l3_data_error error;
} l3_failure;

// The next batch, in *batch where *next is L3_NEXT_BATCH; otherwise *batch is null. Waits up to so many milliseconds
// (UINT32_MAX: as long as it takes). All of the batch is decoded then: any stream may use it at once. It is the
// caller's until l3_batch_release. Any number of batches may be held: there is memory for `prefetch` of them and two
// more, and what else is needed is allocated.
// Fails where a unit failed and the options say so: *failure, which may be null, says which. *position, which may be
// null, is set to where the epoch goes on in any case.
L3_API L3_MUST_USE l3_status l3_loader_next(l3_loader* loader, uint32_t milliseconds, l3_next* next, l3_batch** batch,
                                            uint64_t* position, l3_failure* failure);

// Makes a call of l3_loader_next that waits, or else the next one, come back with L3_NEXT_WAITING.
L3_API void l3_loader_interrupt(l3_loader* loader);

// The first failures since the loader was opened, up to `capacity`, which is 0 where `failures` is null. *count is how
// many there were in all; of these the first 1000 are kept.
L3_API L3_MUST_USE l3_status l3_loader_failures(const l3_loader* loader, l3_failure* failures, size_t capacity,
                                                uint64_t* count);

// ---------------------------------------------------------------------------------------------------------- batches

// When things happened to a batch, in nanoseconds since the loader was opened; 0 where they did not.
typedef struct l3_batch_times {
  uint64_t begun;                  // it was opened, and its files were asked for
  uint64_t fetched;                // the last file was there
  uint64_t copy_begun, copied;     // to a GPU
  uint64_t decode_begun, decoded;  // the first image, the last one
  uint64_t asked, given;           // by the consumer, to the consumer
  uint64_t reading, decoding;      // how long each image took, added up; decoding on a CPU alone
  uint64_t bytes_read, bytes_out;
} l3_batch_times;

typedef struct l3_batch_info {
  uint32_t struct_size;
  uint32_t units;
  uint32_t repeats;  // of the units, those at the end that the epoch had before
  uint32_t failed;   // that were skipped, or are zero
  uint64_t epoch;
  uint64_t number;    // counted on this rank since l3_loader_start
  uint64_t position;  // of the epoch behind this batch
  const l3_tensor* tensors;
  const int64_t* ids;       // for each unit the number of the sample that its first tensor is made of
  const int64_t* labels;    // of the same samples; -1 where there is none
  l3_tensor device_labels;  // the same in the device's memory, of 64 bits (its type is L3_VALUE_STORED)
  l3_batch_times times;
} l3_batch_info;

static inline l3_batch_info l3_batch_info_init(void) {
  l3_batch_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// What pointers in *info point to is the batch's.
L3_API L3_MUST_USE l3_status l3_batch_describe(const l3_batch* batch, l3_batch_info* info);

// Gives a batch back. Its memory is written again once the work has passed that is in `stream` now (a cudaStream_t, of
// which null is the default stream; not looked at on a CPU). Also after the loader was closed. Null needs no release.
L3_API void l3_batch_release(l3_batch* batch, void* stream);

// --------------------------------------------------------------------------------------------------------- timeline

// The times of the last batches that were delivered, oldest first, up to `capacity`; *count is set to how many there
// are, at most 4096.
L3_API L3_MUST_USE l3_status l3_loader_timeline(const l3_loader* loader, l3_batch_times* times, size_t capacity,
                                                size_t* count);

// The same as a file for chrome://tracing and ui.perfetto.dev.
L3_API L3_MUST_USE l3_status l3_loader_write_trace(const l3_loader* loader, const char* path, l3_data_error* error);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
