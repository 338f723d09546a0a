// Batches of a data set as tensors; part of libl3_data. A loader reads ahead, decodes, and delivers batches. The caller
// takes each batch with l3_loader_next and returns it with l3_batch_release.
//
// Terms: a *unit* is what an epoch delivers once: a group of the data set, with one tensor for each requested role. A
// *position* is the number of units that all ranks together have taken since the epoch began.
//
// Order: the units that are delivered depend only on the options, the epoch and the position, never on threads, time or
// storage. Only the order of batches may, with L3_DELIVERY_ANY.
//
// Thread safety: a loader has one consumer. Calls for the same loader must not overlap, except l3_batch_release and
// l3_loader_interrupt, which any thread may call at any time. The loader starts its own threads at the first call of
// l3_loader_next.
//
// Ownership: the caller closes the loader and releases every batch, in any order. The data set must stay open until the
// loader is closed.
//
// Forks: a loader does not survive a fork. In the child, starting and taking batches fail with L3_ERROR_ARGUMENT.
// Closing and releasing do nothing there, because the threads and the memory belong to the parent.
//
// Errors are reported as in l3_data.h.
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
  L3_ORDER_STORED = 0,    // the order of the data set
  L3_ORDER_SHUFFLED = 1,  // a random order of all units
  // A random order of the shards, and a random order of the units within each `window` consecutive shards. Use it for
  // storage with slow random access.
  L3_ORDER_WINDOWS = 2,
} l3_order;

// How an epoch ends if the number of units is not a multiple of batch_size * world_size. A *repeat* is a unit from the
// beginning of the epoch's order that is delivered a second time. l3_batch_info counts the repeats, which come last.
typedef enum l3_last_batch {
  L3_LAST_BATCH_EVEN = 0,  // the last batch is smaller and has the same size on all ranks; at most one repeat per rank
  L3_LAST_BATCH_PAD = 1,   // every batch is full; repeats fill the last one
  L3_LAST_BATCH_DROP = 2,  // every batch is full; units that do not fill one are left out
  L3_LAST_BATCH_UNEVEN = 3,  // no repeats; ranks may differ by one unit, and therefore by one batch
} l3_last_batch;

// What to do with a unit that cannot be read or decoded. l3_loader_failures reports it in any case.
typedef enum l3_on_error {
  // l3_loader_next fails instead of delivering the batch. The next call delivers the batch after it.
  L3_ON_ERROR_FAIL = 0,
  // The unit is left out of its batch. A batch without units is not delivered. With several ranks, l3_loader_next fails
  // in its place, so that all ranks count the same number of batches.
  L3_ON_ERROR_SKIP = 1,
  L3_ON_ERROR_ZERO = 2,  // its values are zero, and its label is -1
} l3_on_error;

typedef enum l3_delivery {
  L3_DELIVERY_ORDERED = 0,
  // Each batch as soon as it is complete, so that one slow file delays only its own batch. The batches are the same as
  // with L3_DELIVERY_ORDERED, and each comes once. See l3_loader_resume for how to continue.
  L3_DELIVERY_ANY = 1,
} l3_delivery;

// What happens to each image, in this order:
//
//   1. `orient`: turn it upright, as its EXIF data says; a unit whose images disagree about that fails
//   2. `box`: take a box of it
//   3. `resize` (or L3_PAD_LETTERBOX): resize the box
//   4. `crop`: take a window of the result
//   5. `pad`: surround it
//   6. `flip`, `flip_vertical`, `turn`: mirror and turn it
//   7. change its colours, and convert them to values
//
// All tensors of a unit get the same. Only the tiles that the result needs are read and decoded. Random choices depend
// on the seed, the epoch and the group only; l3_loader_explain tells them.

typedef enum l3_crop {
  L3_CROP_NONE = 0,
  L3_CROP_CENTRE = 1,
  L3_CROP_RANDOM = 2,
} l3_crop;

typedef enum l3_box_kind {
  L3_BOX_WHOLE = 0,
  L3_BOX_GIVEN = 1,   // l3_loader_options.boxes
  L3_BOX_RANDOM = 2,  // of random area and shape, as torchvision's RandomResizedCrop draws it
} l3_box_kind;

// Part of an upright image. The layout of this structure will never change.
typedef struct l3_box {
  uint32_t x, y, width, height;
} l3_box;

typedef enum l3_resize {
  L3_RESIZE_NONE = 0,
  L3_RESIZE_EXACT = 1,    // to resize_width x resize_height
  L3_RESIZE_SHORTER = 2,  // the shorter side becomes resize_width
  L3_RESIZE_LONGEST = 3,  // the longer side becomes resize_width
} l3_resize;

// As torchvision.transforms.v2 with antialias=True defines them.
typedef enum l3_interpolation {
  // NEAREST for tensors after the first, for palette indices and for I16, I32 and I64; else BILINEAR.
  L3_INTERPOLATION_AUTO = 0,
  L3_INTERPOLATION_NEAREST = 1,
  L3_INTERPOLATION_NEAREST_EXACT = 2,
  L3_INTERPOLATION_BILINEAR = 3,
  L3_INTERPOLATION_BICUBIC = 4,
  L3_INTERPOLATION_AREA = 5,  // the mean of the area, as Pillow's BOX
} l3_interpolation;

typedef enum l3_pad {
  L3_PAD_NONE = 0,
  L3_PAD_CENTRE = 1,     // surround the image, which must not be larger than pad_width x pad_height
  L3_PAD_LETTERBOX = 2,  // resize it first, so that it just fits
} l3_pad;

typedef enum l3_pad_mode {
  L3_PAD_VALUE = 0,    // l3_tensor_options.pad_value
  L3_PAD_EDGE = 1,     // the nearest pixel of the image
  L3_PAD_REFLECT = 2,  // the image mirrored at its edge, which is not repeated
} l3_pad_mode;

typedef enum l3_turn {  // counterclockwise
  L3_TURN_NONE = 0,
  L3_TURN_90 = 1,
  L3_TURN_180 = 2,
  L3_TURN_270 = 3,
  L3_TURN_RANDOM = 4,  // by 0, 90, 180 or 270 degrees
} l3_turn;

typedef enum l3_batching {
  L3_BATCHING_STACK = 0,  // one array for each tensor: all images must have the same size
  L3_BATCHING_LIST = 1,   // images of any size, one after the other: see l3_batch_unit
  // Images of any size, each in the upper left corner of its place. All places have the size of the largest one of the
  // batch. pad_value fills the rest. l3_batch_unit tells each size.
  L3_BATCHING_PAD = 2,
} l3_batching;

typedef enum l3_bucket {
  L3_BUCKET_NONE = 0,
  // Batches of images with similar ratios of width to height, so that L3_BATCHING_PAD adds little. Epochs consist of
  // the same units in an order that depends on the batch size and the number of ranks.
  L3_BUCKET_ASPECT = 1,
} l3_bucket;

typedef enum l3_value_type {
  L3_VALUE_STORED = 0,  // U8 for samples of at most 8 bits, else U16
  L3_VALUE_U8 = 1,
  L3_VALUE_U16 = 2,
  L3_VALUE_F16 = 3,
  L3_VALUE_BF16 = 4,
  L3_VALUE_F32 = 5,
  L3_VALUE_I16 = 6,
  L3_VALUE_I32 = 7,
  L3_VALUE_I64 = 8,
} l3_value_type;

typedef enum l3_layout {
  L3_LAYOUT_CHW = 0,  // one plane per channel
  L3_LAYOUT_HWC = 1,  // the channels of a pixel are adjacent
} l3_layout;

typedef enum l3_channels {
  L3_CHANNELS_STORED = 0,
  L3_CHANNELS_GRAY = 1,  // 0.299 red + 0.587 green + 0.114 blue
  L3_CHANNELS_RGB = 2,   // gray becomes red, green and blue of the same value
} l3_channels;

typedef enum l3_transparency {
  L3_TRANSPARENCY_KEEP = 0,
  L3_TRANSPARENCY_DROP = 1,
  L3_TRANSPARENCY_BLEND = 2,  // colour * alpha + background * (1 - alpha)
} l3_transparency;

// A tensor to make of each unit. The layout of this structure will never change.
typedef struct l3_tensor_options {
  const char* role;  // `role_size` bytes. Null: the only image of each group
  size_t role_size;
  uint32_t type;        // an l3_value_type
  uint32_t layout;      // an l3_layout
  uint32_t as_colours;  // 1: palette images become red, green, blue (and alpha if they have transparency)
  uint32_t reserved;
  // F16, BF16 and F32 values are sample * scale + bias, per channel. The result is rounded once to a float, and then to
  // F16 or BF16, to nearest with ties to even. If all scales are zero, they count as one.
  float scale[4];
  float bias[4];
  uint32_t interpolation;  // an l3_interpolation
  uint32_t channels;       // an l3_channels
  uint32_t alpha;          // an l3_transparency
  // 8: samples of more bits become sample * 255 / (2^bits - 1), those of fewer bits too. 0: as stored
  uint32_t bits;
  uint32_t jitter;  // 1: change brightness, contrast, saturation and hue (l3_loader_options)
  uint32_t has_pad_value;
  // For each channel, in samples of the output, before scale and bias. For integers any whole number of their type, of
  // I32 and I64 from -2^24 to 2^24.
  float pad_value[4];
  float background[4];  // for L3_TRANSPARENCY_BLEND, in samples of the file; images with gray and alpha need equal ones
  uint32_t spare[4];    // 0
} l3_tensor_options;

typedef enum l3_reading {
  L3_READING_AUTO = 0,  // io_uring if the system allows it, else threads
  L3_READING_URING = 1,
  L3_READING_THREADS = 2,
} l3_reading;

typedef enum l3_device_kind { L3_DEVICE_CPU = 0, L3_DEVICE_CUDA = 1 } l3_device_kind;

typedef struct l3_loader_options {
  uint32_t struct_size;
  uint32_t batch_size;  // units per batch on each rank; at least 1
  uint64_t seed;        // of order, crops and mirroring
  uint32_t rank;        // the number of this process, below world_size
  uint32_t world_size;  // how many processes share each epoch; 0: 1
  uint32_t order;       // an l3_order
  uint32_t window;      // shards per window, for L3_ORDER_WINDOWS; 0: 8
  uint32_t last_batch;  // an l3_last_batch
  uint32_t on_error;    // an l3_on_error
  uint32_t crop;        // an l3_crop; the same for all tensors of a unit
  uint32_t crop_width, crop_height;
  uint32_t flip;                     // 1: mirror half of the units, left to right; the same for all tensors of a unit
  const l3_tensor_options* tensors;  // at most 16. Null: one tensor per unit, as stored, CHW
  uint32_t tensor_count;
  uint32_t device;               // an l3_device_kind
  uint32_t device_number;        // which GPU; the first is 0
  uint32_t threads;              // threads that read and decode; 0: one per processor, with a GPU at most 8
  uint32_t prefetch;             // batches to prepare ahead; 0: 3. A far store reads more ahead while batches come late
  uint32_t reading;              // an l3_reading
  uint64_t max_bytes_in_flight;  // bytes of files requested and not yet decoded; 0: 2^28. A single file may exceed it
  const uint64_t* groups;        // the groups of the data set to use as units, each at most once; null: all
  uint64_t group_count;
  l3_limits limits;   // for each image
  uint32_t delivery;  // an l3_delivery
  // Loaders of this machine with the same name share batches: each batch is prepared once, and each loader gets it. See
  // docs/loader.md. 1 to 64 bytes; null: the loader prepares its own. Only on a CPU, on Linux, in order of delivery.
  const char* share;
  uint32_t jobs;              // how many loaders will share; 0: 2
  uint32_t share_timeout_ms;  // how long loaders wait for one that does not start or takes nothing; 0: 60,000

  uint32_t orient;      // 1: turn images upright, as their EXIF data says
  uint32_t box;         // an l3_box_kind
  const l3_box* boxes;  // for L3_BOX_GIVEN: one for each unit, in the order of `groups`, or of the data set
  uint64_t box_count;
  float scale[2], ratio[2];  // for L3_BOX_RANDOM: part of the area, width / height. All zero: 0.08 to 1, 3/4 to 4/3
  uint32_t resize;           // an l3_resize
  uint32_t resize_width, resize_height;
  uint32_t pad;  // an l3_pad
  uint32_t pad_width, pad_height;
  uint32_t pad_mode;       // an l3_pad_mode
  uint32_t flip_vertical;  // 1: mirror half of the units, top to bottom
  uint32_t turn;           // an l3_turn
  uint32_t batching;       // an l3_batching
  uint32_t pad_multiple;   // for L3_BATCHING_PAD: places have multiples of this as width and height; 0: 1
  uint32_t bucket_by;      // an l3_bucket
  // The colours of tensors with `jitter` change at random. Brightness, contrast and saturation are multiplied by a
  // number from 1 - x (at least 0) to 1 + x; the hue turns by -x to x of a circle, at most 0.5. It is one affine map:
  // brightness first, then contrast around the middle of the range, saturation, and the hue in YIQ; then values are
  // limited to those of samples.
  float brightness, contrast, saturation, hue;
} l3_loader_options;

static inline l3_loader_options l3_loader_options_init(void) {
  l3_loader_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// ----------------------------------------------------------------------------------------------------- the loader

typedef struct l3_loader l3_loader;

// Makes a loader. `set` must stay open until the loader is closed. The loader copies the options, so that the caller
// may free them and what they point to. With `share` it meets the others at the first call of l3_loader_next, which
// fails if their options differ; the reason names the first one that does.
//
// The call checks, from the index only, that all units fit into one batch: each group has exactly one sample of each
// requested role, and it is an image; all tensors of a role have the same shape; the images of a group have the same
// size. Otherwise it fails, and the reason names the first group that does not fit. On failure *loader is null.
L3_API L3_MUST_USE l3_status l3_loader_open(const l3_data_set* set, const l3_loader_options* options,
                                            l3_loader** loader, l3_data_error* error);

// Waits for reads and decodes in progress, ends the threads, and frees the loader. Batches that the caller still holds
// stay valid until they are released. If other loaders wait for batches that this one has ready, it gives them up to
// two seconds to take them. Null is allowed and does nothing.
L3_API void l3_loader_close(l3_loader* loader);

// A tensor without padding: the values of one unit follow those of the unit before.
typedef struct l3_tensor {
  void* data;     // owned by the batch, in the device's memory. Null if only the shape is described
  uint32_t type;  // an l3_value_type, not L3_VALUE_STORED
  uint32_t dimensions;
  // Units, then channels, height, width or height, width, channels. With L3_BATCHING_LIST height and width are 0, and
  // l3_batch_unit describes each unit.
  uint64_t shape[4];
} l3_tensor;

typedef struct l3_loader_info {
  uint32_t struct_size;
  uint32_t tensors;  // tensors per batch
  uint64_t units;    // units per epoch, on all ranks together
  uint64_t batches;  // batches per whole epoch, on this rank
  uint32_t threads;
  uint32_t reading;  // L3_READING_URING or L3_READING_THREADS
  // With `share`, since the loader was opened:
  uint64_t from_other_jobs;   // batches that came from another loader
  uint64_t prepared_for_all;  // batches that this loader prepared for all
  uint64_t prepared_alone;    // batches that this loader prepared for itself, because they did not come
  uint32_t jobs;              // how many loaders are attached now, with this one
} l3_loader_info;

static inline l3_loader_info l3_loader_info_init(void) {
  l3_loader_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Fills *info. Fails only if info->struct_size is 0 or an argument is null.
L3_API L3_MUST_USE l3_status l3_loader_describe(const l3_loader* loader, l3_loader_info* info);

// Describes one tensor of a full batch: `number` is the index of its l3_tensor_options. `data` is null.
L3_API L3_MUST_USE l3_status l3_loader_tensor(const l3_loader* loader, uint32_t number, l3_tensor* tensor);

// Moves the loader to a position of an epoch, and discards prepared batches. A new loader is at position 0 of epoch 0.
// After a loader of a far store has gone from the end of one epoch to the next, it reads files of the next epoch before
// an epoch ends. These are kept if the next call goes there.
//
// Epoch and position are the whole state of a loader. With the same data set, seed, order, window and groups, the units
// that follow are the same and in the same order, whatever the batch size and the number of ranks. To continue a run,
// save the `epoch` and `position` of the last l3_batch_info, and pass them here.
L3_API L3_MUST_USE l3_status l3_loader_start(l3_loader* loader, uint64_t epoch, uint64_t position,
                                             l3_data_error* error);

// With L3_DELIVERY_ANY: copies where the batches begin that came although one before them has not come yet, at most
// `capacity`. *count is set to how many there are. They and the position are the state of such a loader.
L3_API L3_MUST_USE l3_status l3_loader_ahead(const l3_loader* loader, uint64_t* ahead, size_t capacity, size_t* count);

// Does the same as l3_loader_start, and leaves out the batches that l3_loader_ahead told. Batch size, rank and number
// of ranks must be as before.
L3_API L3_MUST_USE l3_status l3_loader_resume(l3_loader* loader, uint64_t epoch, uint64_t position,
                                              const uint64_t* ahead, size_t count, l3_data_error* error);

// Returns how many batches this rank receives from a position to the end of the epoch, if none of them came already.
L3_API uint64_t l3_loader_batches_from(const l3_loader* loader, uint64_t position);

// What happens to a sample in an epoch.
typedef struct l3_explanation {
  uint32_t struct_size;
  uint32_t orientation;  // of EXIF, 1 to 8; 1 without `orient`
  l3_box box;            // of the upright image
  uint32_t resized_width, resized_height;
  l3_box crop;                             // of the resized box
  uint32_t left, top;                      // padding before it
  uint32_t width, height;                  // of the output
  uint32_t flip, flip_vertical;            // 1: mirrored
  uint32_t turns;                          // by 90 degrees, counterclockwise
  float brightness, contrast, saturation;  // factors
  float hue;                               // a part of a circle
} l3_explanation;

static inline l3_explanation l3_explanation_init(void) {
  l3_explanation empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Tells what happens to a sample in an epoch, whether or not it was delivered already. With `orient` the call reads
// the sample.
L3_API L3_MUST_USE l3_status l3_loader_explain(const l3_loader* loader, uint64_t epoch, uint64_t sample,
                                               l3_explanation* explanation, l3_data_error* error);

typedef struct l3_batch l3_batch;

typedef enum l3_next {
  L3_NEXT_BATCH = 0,
  L3_NEXT_END = 1,      // the epoch has ended; l3_loader_start begins another one
  L3_NEXT_WAITING = 2,  // no batch was ready in time: call again
} l3_next;

// A unit that failed. The layout of this structure will never change.
typedef struct l3_failure {
  uint64_t epoch;
  uint64_t sample;  // its number in the data set; L3_DATA_NONE if no single sample failed
  l3_data_error error;
} l3_failure;

// Takes the next batch. Waits at most `milliseconds` (UINT32_MAX: without a limit). If *next is L3_NEXT_BATCH, *batch
// is the batch; otherwise *batch is null.
//
// A delivered batch is fully decoded, and any stream may use it at once. The caller owns it until l3_batch_release. The
// caller may hold any number of batches: the loader keeps memory for `prefetch` + 2 of them and allocates more on
// demand.
//
// The call fails if a unit failed and the options demand it. *failure, which may be null, then describes the unit.
// *position, which may be null, is always set to the position at which the epoch continues, so the caller may call
// again.
L3_API L3_MUST_USE l3_status l3_loader_next(l3_loader* loader, uint32_t milliseconds, l3_next* next, l3_batch** batch,
                                            uint64_t* position, l3_failure* failure);

// Makes a waiting call of l3_loader_next return L3_NEXT_WAITING. If none waits, the next call returns it. Any thread
// may call this.
L3_API void l3_loader_interrupt(l3_loader* loader);

// Copies the first failures since the loader was opened, at most `capacity`. `failures` may be null if `capacity` is 0.
// *count is set to the number of all failures. The loader keeps the first 1000.
L3_API L3_MUST_USE l3_status l3_loader_failures(const l3_loader* loader, l3_failure* failures, size_t capacity,
                                                uint64_t* count);

// ---------------------------------------------------------------------------------------------------------- batches

// When the steps of a batch happened, in nanoseconds since the loader was opened; 0 if a step did not happen.
typedef struct l3_batch_times {
  uint64_t begun;                  // its files were requested
  uint64_t fetched;                // the last file had arrived
  uint64_t copy_begun, copied;     // the copy to a GPU began and ended
  uint64_t decode_begun, decoded;  // the first image began, the last one ended
  uint64_t asked, given;           // the consumer asked for it, and received it
  uint64_t reading, decoding;      // durations, summed over all images; `decoding` only on a CPU
  uint64_t bytes_read, bytes_out;  // bytes of files, bytes of tensors
  uint64_t converting;             // the part of `decoding` that made values of the wanted type of the samples
} l3_batch_times;

// A read from a store. Times are in nanoseconds since the loader was opened; 0 if a step did not happen. The layout of
// this structure will never change.
typedef struct l3_request {
  uint64_t batch;   // l3_batch_info.number
  uint64_t sample;  // its number in the data set
  uint64_t offset;  // in the sample
  uint64_t bytes;
  uint64_t queued;    // the loader asked for it
  uint64_t sent;      // it was sent; the last time if it was repeated
  uint64_t answered;  // the first byte arrived
  uint64_t finished;
  uint32_t attempts;  // how often it was sent
  uint32_t shared;    // how many other reads the same request served
  uint32_t hedged;    // 1: it was slow, so a second one was sent
  uint32_t failed;    // 1
  uint32_t cached;    // 1: a cache answered it
  uint32_t reserved;
} l3_request;

typedef struct l3_batch_info {
  uint32_t struct_size;
  uint32_t units;
  uint32_t repeats;  // how many of the last units are repeats (l3_last_batch)
  uint32_t failed;   // how many units were skipped or are zero (l3_on_error)
  uint64_t epoch;
  uint64_t number;    // batches before this one on this rank since l3_loader_start, in the order of the epoch
  uint64_t position;  // the position after this batch, or with L3_DELIVERY_ANY that up to which all batches came
  const l3_tensor* tensors;
  const int64_t* ids;       // for each unit, the number of the sample of its first tensor
  const int64_t* labels;    // the labels of these samples, in host memory; -1 if a sample has none
  l3_tensor device_labels;  // on a GPU: the labels in device memory, as L3_VALUE_I64
  l3_batch_times times;
} l3_batch_info;

static inline l3_batch_info l3_batch_info_init(void) {
  l3_batch_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Describes one unit of a tensor: three dimensions, as the tensor's without units. In a padded batch
// (L3_BATCHING_PAD) these are the size of the unit, whose rows lie as far apart as those of the tensor.
L3_API L3_MUST_USE l3_status l3_batch_unit(const l3_batch* batch, uint32_t number, uint32_t unit, l3_tensor* tensor);

// Fills *info. All pointers in it belong to the batch and are valid until l3_batch_release.
L3_API L3_MUST_USE l3_status l3_batch_describe(const l3_batch* batch, l3_batch_info* info);

// Returns a batch to its loader, also after the loader was closed. Any thread may call this. On a GPU, `stream` is the
// cudaStream_t that still uses the batch (null: the default stream): the loader reuses the memory only after the work
// that is in that stream now. On a CPU `stream` is ignored. A null batch is allowed and does nothing.
L3_API void l3_batch_release(l3_batch* batch, void* stream);

// --------------------------------------------------------------------------------------------------------- timeline

// Copies the times of delivered batches, oldest first, at most `capacity`. The loader keeps the times of the last 4096
// batches. *count is set to how many it has.
L3_API L3_MUST_USE l3_status l3_loader_timeline(const l3_loader* loader, l3_batch_times* times, size_t capacity,
                                                size_t* count);

// Copies the last requests, oldest first, at most `capacity`. The loader keeps the last 65,536. *count is set to how
// many it has. Local files that the system has in memory need no request.
L3_API L3_MUST_USE l3_status l3_loader_requests(const l3_loader* loader, l3_request* requests, size_t capacity,
                                                size_t* count);

// Writes the same times and requests to a file for chrome://tracing and ui.perfetto.dev.
L3_API L3_MUST_USE l3_status l3_loader_write_trace(const l3_loader* loader, const char* path, l3_data_error* error);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
