// libl3: the L3 lossless image format. spec/format.md defines the format; words here are its words.
//
// All functions are safe to call from many threads at once: the library keeps no state, starts no threads and never
// throws or aborts. Memory belongs to the caller. Decoding allocates nothing (l3_unpack_metadata is the one exception
// and says so); l3_open_model and training make objects that the caller closes. Every byte of an input file may be
// hostile.
//
// A call refuses input and output that overlap in memory (L3_ERROR_ARGUMENT). The bytes of an input must not change
// during a call: if another thread writes them, the call gives an error, or pixels that are not the file's. What
// decoding takes from head and index is checked again as it is used, so that it stays within its buffers.
//
// A structure whose first member is `struct_size` begins as what its _init function returns: all zero but for its size,
// which keeps programs working when later versions add members at its end. The other structures (l3_error, l3_limits,
// l3_parallel) are fixed for ever: what is new goes into structures that have their size.
#ifndef L3_L3_H
#define L3_L3_H

#include <stddef.h>
#include <stdint.h>

#define L3_API __attribute__((visibility("default")))
#define L3_MUST_USE __attribute__((warn_unused_result))

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

// The version of the library as 10000 * major + 100 * minor + patch, and as text ("0.1.0").
L3_API uint32_t l3_version(void);
L3_API const char* l3_version_text(void);

// ------------------------------------------------------------------------------------------------- status and error

typedef enum l3_status {
  L3_OK = 0,
  L3_ERROR_ARGUMENT = 1,     // the call itself is wrong: null pointer, impossible size, unknown option
  L3_ERROR_NOT_L3 = 2,       // the input does not begin with the signature of an L3 file
  L3_ERROR_UNSUPPORTED = 3,  // a version, feature, section or method that this library does not know
  L3_ERROR_CORRUPT = 4,      // the file violates the format or fails a check
  L3_ERROR_TRUNCATED = 5,    // the file ends before it should
  L3_ERROR_LIMIT = 6,        // over a limit that the caller set (or the default one)
  L3_ERROR_BUFFER = 7,       // the output buffer is too small
  L3_ERROR_MEMORY = 8,       // an allocation failed
  L3_ERROR_DEVICE = 9,       // a CUDA device is missing, or failed (libl3_cuda)
  L3_ERROR_MODEL = 10,       // the file names its model, and the caller did not supply that one
  L3_ERROR_FILE = 11,        // the system could not open or read a file (libl3_data)
} l3_status;

// A short English text for a status, never null: "the file is truncated".
L3_API const char* l3_status_text(l3_status status);

// Filled by a function that fails, when the caller gave one. `reason` is a constant string, never null. Fixed for ever.
typedef struct l3_error {
  l3_status status;
  uint64_t offset;     // of the byte in the input file at which the field or part in question begins
  uint64_t tile;       // its index, or L3_NO_TILE
  const char* reason;  // what is wrong: "the check of a tile does not match"
} l3_error;

#define L3_NO_TILE UINT64_MAX

// For decoders on other machines, which say by number why they refuse a file: the status and the text of that number.
L3_API l3_status l3_describe_reason(uint32_t reason, const char** text);

// --------------------------------------------------------------------------------------------------------- limits

#define L3_DEFAULT_MAX_PIXELS ((uint64_t)1 << 28)
#define L3_DEFAULT_MAX_OUTPUT_BYTES ((uint64_t)1 << 30)
#define L3_DEFAULT_MAX_METADATA_BYTES ((uint64_t)1 << 26)

// Checked before anything is decoded or allocated. Zero means the default. Fixed for ever: it lies inside
// l3_decode_options, which further limits would join as members of their own.
typedef struct l3_limits {
  uint64_t max_pixels;
  uint64_t max_output_bytes;    // samples as decoded
  uint64_t max_metadata_bytes;  // metadata unpacked
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

// Where a file has the model of its dense tiles.
typedef enum l3_model_origin {
  L3_MODEL_NONE = 0,     // there is none
  L3_MODEL_OWN = 1,      // in the file: its section L3_SECTION_MODEL
  L3_MODEL_NAMED = 2,    // elsewhere: the file has its name, and who decodes supplies it
  L3_MODEL_DEFAULT = 3,  // one of those that the format defines
} l3_model_origin;

#define L3_MODEL_NAME_BYTES 16

// What a file says of itself. Filled by l3_read_info.
typedef struct l3_info {
  uint32_t struct_size;
  uint32_t version;  // of the format
  uint32_t required_features, optional_features;
  uint32_t width, height, frames;
  uint32_t channels;
  uint32_t sample_type;              // an l3_sample_type
  uint32_t bits;                     // of a sample: 1 to 16
  uint32_t colour;                   // an l3_colour
  uint32_t alpha;                    // an l3_alpha
  uint32_t tile_width, tile_height;  // in pixels
  uint64_t tile_count;
  uint64_t head_bytes;     // header and section entries
  uint64_t payload_start;  // where the first payload begins
  uint64_t image_bytes;    // width * height * channels * bytes per sample: what l3_decode writes without padding
  uint8_t digest[16];
  uint32_t model_origin;                    // an l3_model_origin
  uint32_t default_model;                   // its number, or 0
  uint8_t model_name[L3_MODEL_NAME_BYTES];  // of a named model and of a default one; else zero
} l3_info;

static inline l3_info l3_info_init(void) {
  l3_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Reads the head of a file. `data` may be a prefix of the file that holds at least the head: 64 bytes, 16 for the name
// of a model, and 16 for each section (at most L3_HEAD_MAX_BYTES). Only the head is verified.
#define L3_HEAD_MAX_BYTES 336
L3_API L3_MUST_USE l3_status l3_read_info(const void* data, size_t size, const l3_limits* limits, l3_info* info,
                                          l3_error* error);

#define L3_DIGEST_BYTES 16
// What the formats of l3 take for digests and names: the first 16 bytes of the SHA-256 of `data`. `digest` has room for
// them. (A file's own digest leaves two fields out; it is what l3_read_info gives.)
L3_API void l3_digest(const void* data, size_t size, uint8_t* digest);

// ------------------------------------------------------------------------------------------------------- sections

typedef enum l3_section_type {
  L3_SECTION_PALETTE = 1,
  L3_SECTION_TRANSPARENCY = 2,
  L3_SECTION_COLOUR_SPACE = 3,
  L3_SECTION_ICC = 4,
  L3_SECTION_EXIF = 5,
  L3_SECTION_MODEL = 6,  // of dense tiles
  L3_SECTION_METADATA = 0x8001,
} l3_section_type;

// Finds a section, verifies its check and gives its place in `data` (no copy; valid as long as `data` is). A section
// that is not there is no error: *bytes is null and *bytes_size 0. Metadata is given packed; see l3_unpack_metadata.
L3_API L3_MUST_USE l3_status l3_find_section(const void* data, size_t size, uint32_t type, const uint8_t** bytes,
                                             size_t* bytes_size, l3_error* error);

// The colours of a palette image: fills `colours` with red, green, blue of each entry, those too that the section
// leaves to its rule. *entries is set to how many there are (0 where there is no palette; at most 256), also where
// `colours_size` is too small for 3 bytes of each; with `colours` null nothing else happens. Verifies head and palette.
L3_API L3_MUST_USE l3_status l3_read_palette(const void* data, size_t size, uint8_t* colours, size_t colours_size,
                                             uint32_t* entries, l3_error* error);

// Unpacks the metadata section to the records that the spec describes. *needed is set to their size (0 where there is
// no metadata), also where `out_size` is too small; with `out` null nothing else happens. Allocates and frees libzstd's
// working memory, some 100 KiB, within the call.
L3_API L3_MUST_USE l3_status l3_unpack_metadata(const void* data, size_t size, const l3_limits* limits, void* out,
                                                size_t out_size, size_t* needed, l3_error* error);

// Verifies head, index and sections (but for those aside) of a whole file, and that it is as long as it must be. Reads
// no payload and needs no named model: a cheap way to know, before making room for the pixels, that there is a file
// behind the header.
L3_API L3_MUST_USE l3_status l3_check(const void* data, size_t size, const l3_limits* limits, l3_error* error);

// --------------------------------------------------------------------------------------------------------- models

// A model of dense tiles, verified and ready for use: read-only, for any number of threads at once, until it is closed.
typedef struct l3_model l3_model;

// Opens a model: the bytes of a model section, which are what a model file holds. They are copied. Allocates
// about 120 KiB. An error's offset counts from the first of the bytes.
L3_API L3_MUST_USE l3_status l3_open_model(const void* bytes, size_t size, l3_model** model, l3_error* error);

// Frees a model, which nothing may be using; null is one that needs no closing.
L3_API void l3_close_model(l3_model* model);

typedef struct l3_model_info {
  uint32_t struct_size;
  uint32_t kind;            // as the spec numbers them
  uint32_t channels, bits;  // of the images that it is for
  uint8_t name[L3_MODEL_NAME_BYTES];
  const uint8_t* bytes;  // valid until the model is closed
  size_t size;
} l3_model_info;

static inline l3_model_info l3_model_info_init(void) {
  l3_model_info empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

L3_API L3_MUST_USE l3_status l3_describe_model(const l3_model* model, l3_model_info* info, l3_error* error);

// Writes a file that has its model: what a file that names `model` becomes, byte for byte the same but for that, and
// nothing is encoded anew. *written is set to the size of the new file, also where `out` is null or too small, which is
// L3_ERROR_BUFFER. Verifies what l3_check verifies. A file that names no model is an argument error, and one that names
// another is L3_ERROR_MODEL. `out` must not overlap `data`; it gets at most pad(size of the model) bytes more than
// those.
L3_API L3_MUST_USE l3_status l3_embed_model(const void* data, size_t size, const l3_model* model, void* out,
                                            size_t out_size, size_t* written, l3_error* error);

// The bytes of the default model of that number, for ever; L3_ERROR_ARGUMENT where there is none. They start at 1.
L3_API L3_MUST_USE l3_status l3_default_model(uint32_t number, const uint8_t** bytes, size_t* size);

// ---------------------------------------------------------------------------------------------------------- tiles

typedef enum l3_tile_method {
  L3_TILE_CONSTANT = 0,
  L3_TILE_RAW = 1,
  L3_TILE_FAST = 2,
  L3_TILE_DENSE = 3,
} l3_tile_method;

// How many tiles of a file are of a method, 0 for methods that this version does not know. Verifies head, index and
// sections as l3_check does; reads no payload.
L3_API L3_MUST_USE l3_status l3_count_tiles(const void* data, size_t size, uint32_t method, uint64_t* count,
                                            l3_error* error);

struct l3_decode_options;

// What the parts of a file take, in bytes; the first five add up to the file.
typedef struct l3_sizes {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t head, index, model, sections, payloads;  // padding included; the model is not among the sections
  uint64_t dense_payloads;                          // of the payloads, those of dense tiles
  uint64_t dense_states;                            // of these, the coder's states
  // What classes and samples of dense tiles are worth by the model's probabilities. A state holds up to 32 bits of it,
  // so a payload is less than the sum of the three and its padding.
  uint64_t dense_classes, dense_samples;
} l3_sizes;

static inline l3_sizes l3_sizes_init(void) {
  l3_sizes empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Measures a file. Verifies and decodes its dense tiles to do so, slowly. Of the options, which may be null, it takes
// the models.
L3_API L3_MUST_USE l3_status l3_measure(const void* data, size_t size, const struct l3_decode_options* options,
                                        l3_sizes* sizes, l3_error* error);

// ------------------------------------------------------------------------------------------------------- parallel

// A caller's parallel-for. Must call body(argument, i) exactly once for each i < count, in any order and on any
// threads, and return when all calls have returned. Passing none runs everything on the calling thread; results never
// depend on it. Fixed for ever: it lies inside the options.
typedef struct l3_parallel {
  void (*run)(void* context, uint64_t count, void (*body)(void* argument, uint64_t index), void* argument);
  void* context;
} l3_parallel;

// --------------------------------------------------------------------------------------------------------- decode

typedef struct l3_decode_options {
  uint32_t struct_size;
  uint32_t as_colours;  // palette images: 0 gives indices, 1 gives RGB (or RGBA where there is transparency), u8
  l3_limits limits;
  l3_parallel parallel;
  const l3_model* const* models;  // that files may name; those with the name of a default one spare building it
  size_t model_count;
} l3_decode_options;

static inline l3_decode_options l3_decode_options_init(void) {
  l3_decode_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Bytes of a pixel as l3_decode writes it with these options: channels times 1 or 2. `options` may be null. `data` may
// be a prefix of the file that holds at least the head.
L3_API uint32_t l3_pixel_bytes(const l3_info* info, const void* data, size_t size, const l3_decode_options* options);

// Decodes a whole file to interleaved samples, u8 or u16 in the machine's byte order, row after row; `stride` bytes
// from one row to the next (0: no padding; padding is left as it is). Verifies everything but the sections that are
// aside and the digest. On failure the contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_decode(const void* data, size_t size, const l3_decode_options* options, void* out,
                                       size_t out_size, size_t stride, l3_error* error);

// The same for the pixels from column `x`, row `y` on, `width` by `height` of them, all inside the image. Reads and
// verifies head, index and sections, and the payloads of the tiles that the region touches.
L3_API L3_MUST_USE l3_status l3_decode_region(const void* data, size_t size, uint32_t x, uint32_t y, uint32_t width,
                                              uint32_t height, const l3_decode_options* options, void* out,
                                              size_t out_size, size_t stride, l3_error* error);

// A stretch of a file, in bytes. Fixed for ever.
typedef struct l3_range {
  uint64_t offset, size;
} l3_range;

// For those who read parts of files: what l3_decode_region needs beyond the first `payload_start` bytes (l3_info says
// how many these are), which are the payloads of the tiles that the region touches. They come as stretches in rising
// order; those that are at most `gap` bytes apart come as one. `data` are the first `size` bytes of the file, at least
// its head and its index, and `file_size` is the size of all of it. Of `ranges`, which may be null, `capacity` are
// filled; *count is set to how many there are, also where they are more (L3_ERROR_BUFFER). Verifies head and index.
// l3_decode_region then takes memory of the file's size in which these bytes alone were filled.
L3_API L3_MUST_USE l3_status l3_find_payloads(const void* data, size_t size, uint64_t file_size, uint32_t x, uint32_t y,
                                              uint32_t width, uint32_t height, uint64_t gap, l3_range* ranges,
                                              size_t capacity, size_t* count, l3_error* error);

// Verifies a whole file: all that l3_decode verifies, the sections that are aside, and the digest. Writes no pixels.
// Where there is metadata, works with up to 9 MiB of its own within the call.
L3_API L3_MUST_USE l3_status l3_verify(const void* data, size_t size, const l3_decode_options* options,
                                       l3_error* error);

// --------------------------------------------------------------------------------------------------------- encode

// An image to encode. Everything it points to must stay valid during the call.
typedef struct l3_image {
  uint32_t struct_size;
  uint32_t width, height;
  uint32_t bits;  // of a sample, 1 to 16: up to 8 in a byte each, above that in a uint16_t of the machine's byte order
  uint32_t colour;  // an l3_colour
  uint32_t alpha;   // an l3_alpha where colour has alpha; otherwise L3_ALPHA_NONE
  const void* pixels;
  size_t stride;           // bytes from one row to the next; 0: no padding
  const uint8_t* palette;  // red, green, blue of each entry
  uint32_t palette_entries;
  const uint8_t* transparency;  // as the spec's section, or null
  uint32_t transparency_size;
  const uint8_t* colour_space;  // as the spec's section, whose size follows from its first byte, or null
  const uint8_t* icc;           // as the spec's section, or null
  size_t icc_size;
  const uint8_t* exif;
  size_t exif_size;
  const uint8_t* metadata;  // records as the spec's metadata unpacked, or null; packed by the encoder
  size_t metadata_size;
} l3_image;

static inline l3_image l3_image_init(void) {
  l3_image empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// auto: for each tile what takes the fewest bytes. fast: for speed of encoding and decoding. dense: for small files.
// Dense tiles need a model: one that is supplied, or whichever makes the smallest file: one that is fitted to the image
// and stored in the file, of the kind that suits it, or, of 8 bits, the default one.
typedef enum l3_method { L3_METHOD_AUTO = 0, L3_METHOD_FAST = 1, L3_METHOD_DENSE = 2 } l3_method;

typedef struct l3_encode_options {
  uint32_t struct_size;
  uint32_t method;      // an l3_method
  uint32_t effort;      // of the dense method: 1 to 9, 0 for the default (5). Decoding takes the same time for all
  uint32_t tile_width;  // 32 to 1024, a multiple of 32; 0 for the default (128)
  uint32_t tile_height;
  l3_parallel parallel;
  const uint8_t* model;  // a model section of another file, to be used instead of fitting one; or null
  size_t model_size;
  const l3_model* named_model;  // to be used by name: the file does not have it, who decodes needs it; or null
  // An l3_model_origin. L3_MODEL_NONE: what was supplied (but if the named one has no code for some samples, and
  // another one makes a smaller file, that), else whichever makes the smaller file. L3_MODEL_NAMED: `named_model` in
  // any case. L3_MODEL_OWN: fitted or supplied as `model`. L3_MODEL_DEFAULT: the default one of such images, where
  // there is one; nothing is fitted, which takes a fraction of the time.
  uint32_t model_origin;
  uint32_t reserved;
} l3_encode_options;

static inline l3_encode_options l3_encode_options_init(void) {
  l3_encode_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// The size of buffer that is certain to hold the encoded image; 0 where the image or the options are not valid
// (l3_encode, with any buffer, then says why).
L3_API uint64_t l3_encode_bound(const l3_image* image, const l3_encode_options* options);

// Encodes an image. *written is the size of the file. A sample above 2^bits - 1 is an argument error. The bytes depend
// on image, options and library version (of metadata, libzstd's too), never on threads or processor. `options` may be
// null. Takes no memory but `out` with L3_METHOD_FAST; otherwise up to 26 bytes for each sample (5 to 7 of large
// images, at efforts up to 5), and up to 8 MiB to pack metadata. On failure the contents of `out` are unspecified.
L3_API L3_MUST_USE l3_status l3_encode(const l3_image* image, const l3_encode_options* options, void* out,
                                       size_t out_size, size_t* written, l3_error* error);

// -------------------------------------------------------------------------------------------------------- training

// A model made of many images, of the same channels and bits; of whichever kind suits them. It sees tiles of them, and
// keeps a sample that does not grow beyond what the options allow.
typedef struct l3_training l3_training;

typedef struct l3_train_options {
  uint32_t struct_size;
  uint32_t effort;      // 1 to 9, 0 for the default (5)
  uint32_t tile_width;  // as the images will be encoded; 0 for the default
  uint32_t tile_height;
  uint64_t max_pixels;  // of the sample; 0 for the default (2^23). Memory: up to 30 bytes for each of its samples
  l3_parallel parallel;
  // 1: every sample of every image has a code, however unlike the images are, at the price of some percent. 0: where an
  // image has a sample without a code, its file needs another model. (With token models every sample always has one.)
  uint32_t complete;
  uint32_t reserved;
} l3_train_options;

static inline l3_train_options l3_train_options_init(void) {
  l3_train_options empty = L3_ALL_ZERO;
  empty.struct_size = (uint32_t)sizeof(empty);
  return empty;
}

// Begins. `options` may be null.
L3_API L3_MUST_USE l3_status l3_start_training(const l3_train_options* options, l3_training** training,
                                               l3_error* error);
// Looks at an image, whose pixels are not needed afterwards. The first one says what the model is for; an image of
// other channels or bits is an argument error, and training goes on without it. One call at a time.
L3_API L3_MUST_USE l3_status l3_add_to_training(l3_training* training, const l3_image* image, l3_error* error);
// Makes the model, which the caller closes. It depends on the options and on images and their order, never on threads
// or processor.
L3_API L3_MUST_USE l3_status l3_finish_training(l3_training* training, l3_model** model, l3_error* error);
// Frees what training took; to be called in any case, null aside.
L3_API void l3_close_training(l3_training* training);

// The processor target in use: "portable", "avx2", "vnni" (avx2, but AVX-512 for decoding of dense tiles) or "avx512".
// Chosen by what the processor has; the environment variable L3_CPU forces one. Null where L3_CPU names one that is
// unknown or that this processor lacks: encode and decode then fail.
L3_API const char* l3_cpu_target(void);

#undef L3_ALL_ZERO
#ifdef __cplusplus
}
#endif
#endif
