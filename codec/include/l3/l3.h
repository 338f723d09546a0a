// libl3: encodes and decodes the L3 lossless image format. spec/format.md defines the format and the terms used here.
//
// Memory. The caller owns every buffer that it passes, and keeps it valid for the duration of the call. Buffers of
// bytes need no alignment. Decoding allocates no memory, with two exceptions. If a file has a model of its own, calls
// that need it allocate up to L3_WORKSPACE_BYTES. A tile whose pixels follow others (section 15.6 of the specification)
// takes up to 16 MiB while it is decoded, and up to 2.3 MiB if this library encoded it. Both are freed before the call
// returns. l3_open with a workspace allocates nothing. l3_unpack_metadata and l3_verify allocate if a file has
// metadata. l3_open, l3_open_model, l3_finish_training and l3_start_training create objects that the caller must close.
// Decoding takes up to 120 KiB of stack on each thread.
//
// Threads. All functions may be called from many threads at once. The library starts no threads. It keeps no state
// between calls, except for the tables of default models: it builds them when a file first needs them, 120 KiB each.
// When a default or a named model first encodes, up to 1 MiB more is built, and kept with that model.
// An l3_training is the one object that must not be used by two calls at a time.
//
// Errors. Functions return an l3_status and never throw, abort or print. If a call fails and `error` is not null,
// *error describes the failure. The contents of output buffers are then unspecified, except where a function says
// otherwise.
//
// Untrusted input. Every byte of a file may be hostile. Reading stays within the given buffers whatever they contain.
//
// Overlap. The input and output of a call must not overlap in memory. l3_decode, l3_decode_region, l3_unpack_metadata
// (and the same of opened files and of batches), l3_open, l3_embed_model and l3_encode (for the pixels) check this and
// return L3_ERROR_ARGUMENT.
//
// Concurrent writes. The input must not change during a call. If another thread changes a file while it is decoded, the
// call returns an error or wrong pixels. It still stays within its buffers.
//
// Structures that begin with `struct_size` must be initialised with their _init function, which sets everything else
// to zero. Programs then keep working when a later version adds members at the end. The other structures (l3_error,
// l3_limits, l3_parallel, l3_range, l3_batch_image) will never change.
#ifndef L3_L3_H
#define L3_L3_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define L3_API __attribute__((visibility("default")))
#define L3_MUST_USE __attribute__((warn_unused_result))
#else
#define L3_API
#define L3_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#define L3_ALL_ZERO \
  {}
#else
#define L3_ALL_ZERO \
  { 0 }
#endif

#define L3_VERSION_MAJOR 0
#define L3_VERSION_MINOR 1
#define L3_VERSION_PATCH 0

// The version of the library, as the number 10000 * major + 100 * minor + patch, and as text ("0.1.0").
L3_API uint32_t l3_version(void);
L3_API const char* l3_version_text(void);

// ------------------------------------------------------------------------------------------------- status and error

typedef enum l3_status {
  L3_OK = 0,
  L3_ERROR_ARGUMENT = 1,     // the call itself is wrong: a null pointer, an impossible size, an unknown option
  L3_ERROR_NOT_L3 = 2,       // the input does not begin with the signature of an L3 file
  L3_ERROR_UNSUPPORTED = 3,  // a version, feature, section or method that this library does not know
  L3_ERROR_CORRUPT = 4,      // the file violates the format or fails a check
  L3_ERROR_TRUNCATED = 5,    // the file ends before it should
  L3_ERROR_LIMIT = 6,        // above a limit that the caller set, or above a default limit
  L3_ERROR_BUFFER = 7,       // the output buffer is too small
  L3_ERROR_MEMORY = 8,       // an allocation failed
  L3_ERROR_DEVICE = 9,       // a CUDA device is missing or failed (libl3_cuda only)
  L3_ERROR_MODEL = 10,       // the file refers to a model by name, and the caller did not supply that model
  L3_ERROR_FILE = 11,        // the system could not open or read a file (libl3_data only)
} l3_status;

// Returns a short English description of a status, such as "the file is truncated". Never returns null.
L3_API const char* l3_status_text(l3_status status);

// Describes a failure. Every function with an `error` parameter fills it, unless the parameter is null. After a call
// that succeeds, the status is L3_OK.
typedef struct l3_error {
  l3_status status;
  uint64_t offset;     // the byte of the input file at which the offending field or part begins
  uint64_t tile;       // the index of the offending tile, or L3_NO_TILE
  const char* reason;  // what is wrong, a constant string that is never null: "the check of a tile does not match"
} l3_error;

#define L3_NO_TILE UINT64_MAX

// Returns the status, and in *text (unless `text` is null) the description, that belong to a reason number. Decoders
// that run elsewhere, such as on a GPU, report such numbers.
L3_API l3_status l3_describe_reason(uint32_t reason, const char** text);

// --------------------------------------------------------------------------------------------------------- limits

#define L3_DEFAULT_MAX_PIXELS ((uint64_t)1 << 28)
#define L3_DEFAULT_MAX_OUTPUT_BYTES ((uint64_t)1 << 30)
#define L3_DEFAULT_MAX_METADATA_BYTES ((uint64_t)1 << 26)

// Limits that are checked before anything is decoded or allocated. Zero means the default above.
typedef struct l3_limits {
  uint64_t max_pixels;
  uint64_t max_output_bytes;    // the decoded samples
  uint64_t max_metadata_bytes;  // the unpacked metadata
} l3_limits;

// ------------------------------------------------------------------------------------------------- images and info

typedef enum l3_sample_type { L3_SAMPLE_U8 = 0, L3_SAMPLE_U16 = 1 } l3_sample_type;

typedef enum l3_colour {
  L3_COLOUR_GRAY = 0,
  L3_COLOUR_GRAY_ALPHA = 1,
  L3_COLOUR_RGB = 2,
  L3_COLOUR_RGB_ALPHA = 3,
  L3_COLOUR_PALETTE = 4,
} l3_colour;

typedef enum l3_alpha { L3_ALPHA_NONE = 0, L3_ALPHA_STRAIGHT = 1, L3_ALPHA_PREMULTIPLIED = 2 } l3_alpha;

// Where the model for a file's dense tiles comes from.
typedef enum l3_model_origin {
  L3_MODEL_NONE = 0,     // the file has no model
  L3_MODEL_OWN = 1,      // in the file, in its section L3_SECTION_MODEL
  L3_MODEL_NAMED = 2,    // elsewhere: the file contains only the model's name, and the caller must supply the model
  L3_MODEL_DEFAULT = 3,  // one of the default models, which the format defines
} l3_model_origin;

#define L3_MODEL_NAME_BYTES 16

// What the head of a file says. Filled by l3_read_info.
typedef struct l3_info {
  uint32_t struct_size;
  uint32_t version;  // of the format
  uint32_t required_features, optional_features;
  uint32_t width, height, frames;
  uint32_t channels;
  uint32_t sample_type;              // an l3_sample_type
  uint32_t bits;                     // significant bits of a sample: 1 to 16
  uint32_t colour;                   // an l3_colour
  uint32_t alpha;                    // an l3_alpha
  uint32_t tile_width, tile_height;  // in pixels
  uint64_t tile_count;
  uint64_t head_bytes;     // size of the header and the section entries; 16 for tiny files
  uint64_t payload_start;  // offset of the first payload; the size of the file for tiny files
  uint64_t image_bytes;    // width * height * channels * bytes per sample: the pixels without padding
  uint8_t digest[16];      // spec, section 9. Of a tiny file it is computed only if struct_size reaches beyond it
  uint32_t model_origin;   // an l3_model_origin
  uint32_t default_model;  // the number of the default model, or 0
  uint8_t model_name[L3_MODEL_NAME_BYTES];  // the name of a named or default model, otherwise zeros
} l3_info;

static inline l3_info l3_info_init(void) {
  l3_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Reads and verifies the head of a file, and fills *info, which l3_info_init must have initialised. Only the head is
// verified. `data` may be a prefix of the file, as long as it contains the head: 64 bytes, 16 more if the file names
// its model, and 16 for each section; or all of a tiny file (section 18 of the spec). A prefix of L3_HEAD_MAX_BYTES is
// always enough. `limits` may be null. If the call fails, *info is unchanged.
#define L3_HEAD_MAX_BYTES 4096
L3_API L3_MUST_USE l3_status l3_read_info(const void* data, size_t size, const l3_limits* limits, l3_info* info,
                                          l3_error* error);

#define L3_DIGEST_BYTES 16
// Writes the first 16 bytes of the SHA-256 of `data` to `digest`, which must have room for L3_DIGEST_BYTES. The l3
// formats use this for digests and for the names of models. The digest in l3_info is computed differently (spec,
// section 9).
L3_API void l3_digest(const void* data, size_t size, uint8_t* digest);

// ------------------------------------------------------------------------------------------------------- sections

typedef enum l3_section_type {
  L3_SECTION_PALETTE = 1,
  L3_SECTION_TRANSPARENCY = 2,
  L3_SECTION_COLOUR_SPACE = 3,
  L3_SECTION_ICC = 4,
  L3_SECTION_EXIF = 5,
  L3_SECTION_MODEL = 6,        // the model for dense tiles
  L3_SECTION_CHANNEL_MAP = 7,  // which channels are coded, and what the others are
  L3_SECTION_METADATA = 0x8001,
} l3_section_type;

// Finds a section and verifies its check. Sets *bytes to the section's contents within `data` (nothing is copied, so
// the pointer is valid as long as `data` is) and *bytes_size to their size. If the file has no such section, the call
// succeeds and sets *bytes to null and *bytes_size to 0. Metadata is still packed; see l3_unpack_metadata.
L3_API L3_MUST_USE l3_status l3_find_section(const void* data, size_t size, uint32_t type, const uint8_t** bytes,
                                             size_t* bytes_size, l3_error* error);

// Reads the colours of a palette image: red, green and blue of each entry, 3 bytes per entry, including entries that
// the section leaves to its rule. Sets *entries to the number of entries, which is at most 256, or 0 if the file has
// no palette. If `colours` is null, that is all the call does. If `colours_size` is too small, it still sets *entries
// and returns L3_ERROR_BUFFER. Verifies the head and the palette only.
L3_API L3_MUST_USE l3_status l3_read_palette(const void* data, size_t size, uint8_t* colours, size_t colours_size,
                                             uint32_t* entries, l3_error* error);

// Unpacks the metadata section into the records that section 4 of the spec describes. Sets *needed to their size in
// bytes, or to 0 if the file has no metadata. If `out` is null, that is all the call does. If `out_size` is too small,
// it still sets *needed and returns L3_ERROR_BUFFER. Allocates about 100 KiB for libzstd and frees it before it
// returns.
L3_API L3_MUST_USE l3_status l3_unpack_metadata(const void* data, size_t size, const l3_limits* limits, void* out,
                                                size_t out_size, size_t* needed, l3_error* error);

// Verifies the head, the index, the length of the file and all sections below 0x8000. `data` must be the whole file.
// Reads no payload and needs no named model, so it is cheap. Call it before you allocate memory for the pixels: a
// hostile header can claim a huge image, and this call proves that the rest of the file matches the claim.
L3_API L3_MUST_USE l3_status l3_check(const void* data, size_t size, const l3_limits* limits, l3_error* error);

// --------------------------------------------------------------------------------------------------------- models

// A verified model for dense tiles. It is read-only: any number of threads may use it until it is closed.
typedef struct l3_model l3_model;

// Opens a model from the contents of a model section, which are also the contents of a model file. Copies `bytes`.
// Allocates about 120 KiB. On success the caller owns *model and must pass it to l3_close_model. In an error, `offset`
// counts from the start of `bytes`.
L3_API L3_MUST_USE l3_status l3_open_model(const void* bytes, size_t size, l3_model** model, l3_error* error);

// Frees a model. No call may be using it. Does nothing if `model` is null.
L3_API void l3_close_model(l3_model* model);

typedef struct l3_model_info {
  uint32_t struct_size;
  uint32_t kind;            // 0, 1 or 2, as the spec numbers them
  uint32_t channels, bits;  // of the images that the model fits
  uint8_t name[L3_MODEL_NAME_BYTES];
  const uint8_t* bytes;  // valid until the model is closed
  size_t size;
} l3_model_info;

static inline l3_model_info l3_model_info_init(void) {
  l3_model_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Fills *info, which l3_model_info_init must have initialised.
L3_API L3_MUST_USE l3_status l3_describe_model(const l3_model* model, l3_model_info* info, l3_error* error);

// Makes a file self-contained: copies a file that refers to `model` by name, and stores the model in the copy. Nothing
// is encoded again; everything else stays the same. Sets *written to the size of the new file. If `out` is null or too
// small, the call still sets *written, and returns L3_ERROR_BUFFER. The new file is larger by the model's size,
// rounded up to a multiple of 16. Verifies what l3_check verifies. Returns L3_ERROR_ARGUMENT if the file names
// no model, and L3_ERROR_MODEL if it names another model.
L3_API L3_MUST_USE l3_status l3_embed_model(const void* data, size_t size, const l3_model* model, void* out,
                                            size_t out_size, size_t* written, l3_error* error);

// Sets *bytes and *size to the default model with this number; the first one is number 1. The bytes stay valid until
// the program ends. Returns L3_ERROR_ARGUMENT if no default model has this number.
L3_API L3_MUST_USE l3_status l3_default_model(uint32_t number, const uint8_t** bytes, size_t* size);

// ---------------------------------------------------------------------------------------------------------- tiles

typedef enum l3_tile_method {
  L3_TILE_CONSTANT = 0,
  L3_TILE_RAW = 1,
  L3_TILE_FAST = 2,
  L3_TILE_DENSE = 3,
} l3_tile_method;

// Returns the name of a method (an l3_tile_method) in one word: "dense". Returns null for other numbers. Methods are
// numbered from 0.
L3_API const char* l3_tile_method_text(uint32_t method);

// Counts the tiles that use a method (an l3_tile_method; the count is 0 for unknown ones). `data` must be the whole
// file. Verifies what l3_check verifies; reads no payload.
L3_API L3_MUST_USE l3_status l3_count_tiles(const void* data, size_t size, uint32_t method, uint64_t* count,
                                            l3_error* error);

struct l3_decode_options;

// How many bytes each part of a file takes. head, index, model, sections and payloads add up to the size of the file.
typedef struct l3_sizes {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t head, index, model, sections, payloads;  // padding included; `sections` excludes the model
  uint64_t dense_payloads;                          // the part of `payloads` that belongs to dense tiles
  uint64_t dense_states;  // the part of `dense_payloads` that stores the coder's initial states
  // The ideal size of the classes and samples of dense tiles, given the model's probabilities. Each state carries up
  // to 32 bits of this information, so a payload is smaller than states, classes, samples and padding together.
  uint64_t dense_classes, dense_samples;
} l3_sizes;

static inline l3_sizes l3_sizes_init(void) {
  l3_sizes empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Measures the parts of a file. Verifies the file and decodes its dense tiles, slowly. `options` may be null; only its
// models are used. *sizes must have been initialised by l3_sizes_init.
L3_API L3_MUST_USE l3_status l3_measure(const void* data, size_t size, const struct l3_decode_options* options,
                                        l3_sizes* sizes, l3_error* error);

// ------------------------------------------------------------------------------------------------------- parallel

// A parallel loop that the caller provides. `run` must call body(argument, i) exactly once for each i < count, in any
// order and on any threads, and must return only after all these calls have returned. If `run` is null, the library
// does everything on the calling thread. The results are the same either way.
typedef struct l3_parallel {
  void (*run)(void* context, uint64_t count, void (*body)(void* argument, uint64_t index), void* argument);
  void* context;
} l3_parallel;

// --------------------------------------------------------------------------------------------------------- decode

typedef struct l3_decode_options {
  uint32_t struct_size;
  uint32_t as_colours;  // palette images: 0 decodes to indices, 1 to 8-bit RGB (RGBA if there is transparency)
  l3_limits limits;
  l3_parallel parallel;
  const l3_model* const* models;  // models that files may name
  size_t model_count;
} l3_decode_options;

static inline l3_decode_options l3_decode_options_init(void) {
  l3_decode_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Returns how many bytes l3_decode writes per pixel with these options: channels times 1 or 2, or 3 or 4 if a palette
// image is decoded to colours. `options` may be null. `data` may be a prefix of the file that contains at least the
// head. Returns 0 if `info` is null or a structure has no size.
L3_API uint32_t l3_pixel_bytes(const l3_info* info, const void* data, size_t size, const l3_decode_options* options);

// Decodes a whole file. Writes interleaved samples, row after row. A sample is a uint8_t, or a uint16_t in native byte
// order if the file has more than 8 bits. Rows begin `stride` bytes apart; 0 means without padding. Padding is not
// written. `out_size` must be at least stride * (height - 1) plus the bytes of one row. `options` may be null.
//
// Verifies everything except the digest and the sections from 0x8000 on. If the call fails, the contents of `out` are
// unspecified.
L3_API L3_MUST_USE l3_status l3_decode(const void* data, size_t size, const l3_decode_options* options, void* out,
                                       size_t out_size, size_t stride, l3_error* error);

// Decodes `width` by `height` pixels from column `x` and row `y` on, otherwise like l3_decode. The region must be
// inside the image, and the limits apply to the region. Verifies the head, the index and the sections below 0x8000,
// and of the payloads only those of the tiles that the region touches. Other payloads are not read.
L3_API L3_MUST_USE l3_status l3_decode_region(const void* data, size_t size, uint32_t x, uint32_t y, uint32_t width,
                                              uint32_t height, const l3_decode_options* options, void* out,
                                              size_t out_size, size_t stride, l3_error* error);

// A range of bytes in a file.
typedef struct l3_range {
  uint64_t offset, size;
} l3_range;

// Finds the bytes that l3_decode_region needs to decode a region, for callers that fetch parts of a file. `data` is
// the start of the file, `size` bytes that contain at least the head, the index and, if the file has one, the section
// L3_SECTION_CHANNEL_MAP: the first `payload_start` bytes do. `file_size` is the size of the whole file.
//
// Writes up to `capacity` ranges to `ranges`, in rising order: the payloads of the tiles that the region touches.
// Ranges that are at most `gap` bytes apart are merged. Sets *count to the number of ranges. `ranges` may be null. If
// it is not and there are more than `capacity` ranges, the call returns L3_ERROR_BUFFER and still sets *count.
// Verifies the head, the index and that section.
//
// To decode the region, make a buffer of `file_size` bytes, fill in these ranges and the first `payload_start` bytes
// (see l3_info), and call l3_decode_region. The other bytes are not read.
L3_API L3_MUST_USE l3_status l3_find_payloads(const void* data, size_t size, uint64_t file_size, uint32_t x, uint32_t y,
                                              uint32_t width, uint32_t height, uint64_t gap, l3_range* ranges,
                                              size_t capacity, size_t* count, l3_error* error);

// Verifies a whole file: everything that l3_decode verifies, the digest and the sections from 0x8000 on. Writes no
// pixels. If the file has metadata, allocates up to 9 MiB and frees it before it returns.
L3_API L3_MUST_USE l3_status l3_verify(const void* data, size_t size, const l3_decode_options* options,
                                       l3_error* error);

// ---------------------------------------------------------------------------------------------------- opened files

// A file whose head, index, sections below 0x8000 and model were read and verified, once for any number of calls. The
// functions above verify them in each call. It is read-only: any number of threads may use it until it is closed.
typedef struct l3_file l3_file;

// Enough workspace for every file, and for every file that has no model of its own (see l3_info.model_origin).
#define L3_WORKSPACE_BYTES 131072
#define L3_WORKSPACE_MIN_BYTES 2048

// Opens a file. `data` and what `options` points to are used, not copied: they must stay valid and unchanged until the
// file is closed. `options` may be null. Its limits apply to what is decoded from the file, so a file of any size
// opens. A file opens without the model that it names; decoding, measuring and verifying it then report what is wrong.
//
// The file lives in `workspace`, which needs no alignment and must not overlap with `data`. If it is too small, the
// call returns L3_ERROR_BUFFER. If `workspace` is null, the library allocates what is needed.
//
// `data` may have the length of the file but only some of its payloads, as l3_find_payloads describes.
L3_API L3_MUST_USE l3_status l3_open(const void* data, size_t size, const l3_decode_options* options, void* workspace,
                                     size_t workspace_size, l3_file** file, l3_error* error);

// Closes a file. No call may be using it. Frees what l3_open allocated; a file in a workspace may also just be
// forgotten. Does nothing if `file` is null.
L3_API void l3_close(l3_file* file);

// These functions do what those without a file in front do, with the options of l3_open. Output must not overlap with
// the workspace either.
L3_API L3_MUST_USE l3_status l3_file_info(const l3_file* file, l3_info* info, l3_error* error);
L3_API uint32_t l3_file_pixel_bytes(const l3_file* file);
L3_API L3_MUST_USE l3_status l3_file_section(const l3_file* file, uint32_t type, const uint8_t** bytes,
                                             size_t* bytes_size, l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_palette(const l3_file* file, uint8_t* colours, size_t colours_size,
                                             uint32_t* entries, l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_metadata(const l3_file* file, void* out, size_t out_size, size_t* needed,
                                              l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_count_tiles(const l3_file* file, uint32_t method, uint64_t* count,
                                                 l3_error* error);
// Returns the method of a tile (an l3_tile_method). Tiles are numbered from 0, row after row. Returns UINT32_MAX if
// there is no such tile.
L3_API uint32_t l3_file_tile_method(const l3_file* file, uint64_t tile);
L3_API L3_MUST_USE l3_status l3_file_measure(const l3_file* file, l3_sizes* sizes, l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_decode(const l3_file* file, void* out, size_t out_size, size_t stride,
                                            l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_decode_region(const l3_file* file, uint32_t x, uint32_t y, uint32_t width,
                                                   uint32_t height, void* out, size_t out_size, size_t stride,
                                                   l3_error* error);
L3_API L3_MUST_USE l3_status l3_file_verify(const l3_file* file, l3_error* error);

// An image of a batch: a region of an opened file, where its pixels go, and what happened. `x` to `stride` are as in
// l3_decode_region. Where `width` and `height` are both 0, the region is the whole image.
typedef struct l3_batch_image {
  const l3_file* file;
  uint32_t x, y, width, height;
  void* out;
  size_t out_size;
  size_t stride;
  l3_error error;  // set by the call
} l3_batch_image;

// Decodes several images in one parallel loop over all their tiles: no thread waits for another one's image. Each image
// is decoded as l3_file_decode_region does it, with the limits and models of its own l3_open; its `parallel` is not
// used. `parallel` may be null. Outputs must not overlap with each other.
//
// Allocates about 300 bytes for each image and frees them before it returns.
//
// A failure does not end the call. The other images are decoded, and each one's `error` says what happened to it.
// Returns the status of the first image that failed, and describes it in *error.
L3_API L3_MUST_USE l3_status l3_decode_batch(l3_batch_image* images, size_t count, const l3_parallel* parallel,
                                             l3_error* error);

// --------------------------------------------------------------------------------------------------------- encode

// An image to encode. Everything that it points to must stay valid and unchanged during the call.
typedef struct l3_image {
  uint32_t struct_size;
  uint32_t width, height;
  uint32_t bits;    // of a sample: 1 to 8 in uint8_t, 9 to 16 in uint16_t (native byte order)
  uint32_t colour;  // an l3_colour
  uint32_t alpha;   // an l3_alpha; L3_ALPHA_NONE unless the colour has alpha
  const void* pixels;
  size_t stride;           // bytes from one row to the next; 0: rows have no padding
  const uint8_t* palette;  // red, green, blue of each entry
  uint32_t palette_entries;
  const uint8_t* transparency;  // contents of the spec's transparency section, or null
  uint32_t transparency_size;
  const uint8_t* colour_space;  // contents of the spec's section (its first byte implies its size), or null
  const uint8_t* icc;           // contents of the spec's ICC section, or null
  size_t icc_size;
  const uint8_t* exif;
  size_t exif_size;
  const uint8_t* metadata;  // the spec's metadata records, or null; the encoder packs them
  size_t metadata_size;
} l3_image;

static inline l3_image l3_image_init(void) {
  l3_image empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// auto: the method that takes the fewest bytes, for each tile. fast: for fast encoding and decoding. dense: for small
// files. With every method, some tiles may be constant or raw.
//
// Dense tiles need a model. Without other options the encoder chooses whichever makes the smallest file: a model that
// it fits to the image and stores in the file, of the kind that suits the image, or for 8-bit images a default model.
typedef enum l3_method { L3_METHOD_AUTO = 0, L3_METHOD_FAST = 1, L3_METHOD_DENSE = 2 } l3_method;

typedef struct l3_encode_options {
  uint32_t struct_size;
  uint32_t method;      // an l3_method
  uint32_t effort;      // dense method: 1 to 9, or 0 for the default (5)
  uint32_t tile_width;  // 32 to 1024, a multiple of 32; 0: the encoder chooses, usually 128
  uint32_t tile_height;
  l3_parallel parallel;
  const uint8_t* model;  // contents of a model section to use instead of fitting a model; or null
  size_t model_size;
  const l3_model* named_model;  // model to use by name: it is not stored, so decoders must be given it; or null
  // Where the model may come from, an l3_model_origin.
  // L3_MODEL_NONE: from `model` or `named_model` if one is set, otherwise whichever makes the smaller file. If the
  // named model has no code for some samples, the encoder uses another one if that makes the file smaller. Efforts up
  // to 3 fit none to an image of at most 2^20 samples.
  // L3_MODEL_NAMED: `named_model`, always.
  // L3_MODEL_OWN: stored in the file, either `model` or one that is fitted to the image.
  // L3_MODEL_DEFAULT: the default model for such images, if the format has one. Encoding is then much faster, since no
  // model is fitted.
  uint32_t model_origin;
  uint32_t reserved;
} l3_encode_options;

static inline l3_encode_options l3_encode_options_init(void) {
  l3_encode_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Returns the size of buffer that l3_encode needs for this image and these options. Returns 0 if the image or the
// options are invalid; l3_encode then reports the reason. `options` may be null.
L3_API uint64_t l3_encode_bound(const l3_image* image, const l3_encode_options* options);

// Encodes an image and sets *written to the size of the file. `out_size` must be at least l3_encode_bound(), otherwise
// the call returns L3_ERROR_BUFFER, even if the file would have fitted. A sample above 2^bits - 1 is
// L3_ERROR_ARGUMENT. 16-bit samples must be aligned like uint16_t, in every row. `options` may be null.
//
// The bytes depend only on the image, the options and the version of the library (and, if there is metadata, of
// libzstd). They do not depend on threads or on the processor. L3_METHOD_FAST allocates nothing except up to 8 MiB to
// pack metadata. The other methods allocate up to 26 bytes per sample of a small image. For an image of 100 million
// pixels it is less than a tenth of a byte per sample up to effort 7, and one byte at effort 8. An image of 2^14 pixels
// and more with a channel that equals another one or has one sample throughout is copied first, without such channels.
// If the call fails, the contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_encode(const l3_image* image, const l3_encode_options* options, void* out,
                                       size_t out_size, size_t* written, l3_error* error);

// -------------------------------------------------------------------------------------------------------- training

// Training makes one model for many images that have the same channels and bits. It keeps a pseudo-random sample of
// the images' tiles, whose size the options limit, and fits a model of the kind that suits them.
typedef struct l3_training l3_training;

typedef struct l3_train_options {
  uint32_t struct_size;
  uint32_t effort;      // 1 to 9, 0 for the default (5)
  uint32_t tile_width;  // use what the images will be encoded with; 0 for the default (128)
  uint32_t tile_height;
  uint64_t max_pixels;  // pixels to keep, 0 for the default (2^23); takes up to 30 bytes per channel of each
  l3_parallel parallel;
  // 1: the model can encode every image of this type, however different, at the cost of a few percent. 0: an image may
  // contain a sample that the model has no code for; its file then needs another model. (Token models always encode
  // all.)
  uint32_t complete;
  uint32_t reserved;
} l3_train_options;

static inline l3_train_options l3_train_options_init(void) {
  l3_train_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Starts training. `options` may be null. The caller owns *training and must pass it to l3_close_training.
L3_API L3_MUST_USE l3_status l3_start_training(const l3_train_options* options, l3_training** training,
                                               l3_error* error);

// Adds an image. The image is not used after the call. The first image decides which channels and bits the model is
// for. An image with others is L3_ERROR_ARGUMENT, and training can continue without it. Only one thread may call this
// at a time.
L3_API L3_MUST_USE l3_status l3_add_to_training(l3_training* training, const l3_image* image, l3_error* error);

// Fits the model. The caller owns *model and must close it; training must still be closed too. The model depends on
// the options, the images and their order, and never on threads or the processor.
L3_API L3_MUST_USE l3_status l3_finish_training(l3_training* training, l3_model** model, l3_error* error);

// Frees the training. Call it after success and after failure. Does nothing if `training` is null.
L3_API void l3_close_training(l3_training* training);

// Returns the processor target in use: "portable", "neon", "sse4", "avx2", "vnni" (avx2, except that dense tiles are
// decoded with AVX-512) or "avx512". The processor's features decide, unless the environment variable L3_CPU names a
// target when the library is first used. Returns null if it names a target that is unknown or that this processor does
// not support; encoding and decoding then fail.
L3_API const char* l3_cpu_target(void);

// Changes the processor target of all later calls, as L3_CPU would. For tests and measurements. If `name` is null or
// empty, the processor's features decide.
L3_API void l3_force_cpu_target(const char* name);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
