// libl3_data writes data sets of images in memory. spec/shard.md defines data sets, and this header uses its terms.
//
// Threads of the writer encode the images. The samples keep the order in which they were added, and the files depend
// neither on the number of threads nor on the machine. The shards grow in a hidden folder of the data set. Only
// l3_writer_finish makes the data set appear. Until then a data set that is to be replaced stays as it was.
//
// Thread safety: any number of threads may add samples to one writer; one at a time is served. To close it, no other
// thread may use it. A writer belongs to the process that opened it: after a fork, the child may only close it, which
// touches no file.
//
// Errors, versions: as in l3_data.h. If a sample is at fault, the reason begins with its number and name.
// L3_ERROR_ARGUMENT means that the call is wrong and changed nothing: the writer can go on, without this sample. After
// any other error close the writer. If a sample could not be encoded or written, all later calls return that error.
#ifndef L3_L3_WRITER_H
#define L3_L3_WRITER_H

#include "l3/l3_data.h"

#ifdef __cplusplus
extern "C" {
#define L3_ALL_ZERO \
  {}
#else
#define L3_ALL_ZERO \
  { 0 }
#endif

typedef struct l3_writer_options {
  uint32_t struct_size;
  uint32_t threads;      // that encode; 0: one for each processor
  uint64_t shard_bytes;  // the largest size of a shard; only a single group may exceed it. 0: 256,000,000
  uint32_t replace;      // 1: if the folder contains a data set, replace it at the end
  uint32_t unverified;   // 1: do not decode each image again to compare it
  // How images are encoded: as in l3_encode_options.
  uint32_t method, effort, tile_width, tile_height;
  const char* const* classes;  // the names of the labels, in UTF-8: the first is that of label 0
  size_t class_count;
  // Models that small images share, at most one for each number of channels and bits. The data set contains those that
  // samples name. They must stay valid until the writer is closed.
  const l3_model* const* models;
  size_t model_count;
} l3_writer_options;

static inline l3_writer_options l3_writer_options_init(void) {
  l3_writer_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// What a sample is beside its image or bytes. Texts end with a zero byte.
typedef struct l3_writer_sample {
  uint32_t struct_size;
  uint32_t label;          // L3_NO_LABEL: none, or in a group the label of its first sample
  const char* class_name;  // the label by its name in `classes`, if `label` is L3_NO_LABEL; or null
  const char* name;        // unique, such as the path of the source; null: the number of the sample, in eight digits
  const char* role;        // what the sample is in its group; null: "image". No two samples of a group have the same
  uint64_t group;          // samples in a row with an equal number make a group; L3_DATA_NONE: a group of its own
  const void* metadata;
  size_t metadata_size;  // 0: none
} l3_writer_sample;

static inline l3_writer_sample l3_writer_sample_init(void) {
  l3_writer_sample empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  empty.label = L3_NO_LABEL;
  empty.group = L3_DATA_NONE;
  return empty;
}

typedef struct l3_writer l3_writer;

// Begins a data set in a folder, which is made if it does not exist. `options` may be null: all defaults. If the folder
// contains a data set or other files and options.replace is 0, the call returns L3_ERROR_FILE with the system_error
// EEXIST. Replacing keeps other files. On success *writer is the writer, which the caller must close. On failure
// *writer is null.
L3_API L3_MUST_USE l3_status l3_writer_open(const char* path, const l3_writer_options* options, l3_writer** writer,
                                            l3_data_error* error);

// These three add a sample. They copy everything that they are given. Up to 192 MiB wait until they are encoded and
// written; then a call waits. `sample` may be null: no label, no metadata, a group of its own. An error may be that of
// an earlier sample.
//
// Adds an image.
L3_API L3_MUST_USE l3_status l3_writer_add_image(l3_writer* writer, const l3_image* image,
                                                 const l3_writer_sample* sample, l3_data_error* error);
// Adds an image that is an L3 file already. If it names a model, options.models must contain that model.
L3_API L3_MUST_USE l3_status l3_writer_add_file(l3_writer* writer, const void* data, size_t size,
                                                const l3_writer_sample* sample, l3_data_error* error);
// Adds bytes that are no image, such as a text. sample->role must be set.
L3_API L3_MUST_USE l3_status l3_writer_add_bytes(l3_writer* writer, const void* data, size_t size,
                                                 const l3_writer_sample* sample, l3_data_error* error);

// Waits until all samples are written, and makes the data set complete. After that the writer can only be closed. If it
// fails, nothing is left of the new data set.
L3_API L3_MUST_USE l3_status l3_writer_finish(l3_writer* writer, l3_data_error* error);
// Frees a writer. If it was not finished, removes what it has written. Null is allowed and does nothing.
L3_API void l3_writer_close(l3_writer* writer);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
