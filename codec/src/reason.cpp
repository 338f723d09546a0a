// Implements reason.h: the English texts of all reasons.
#include "reason.h"

namespace l3 {

const char* text_of(Reason reason) {
  switch (reason) {
    case Reason::none: return "no error";
    case Reason::null_argument: return "a pointer that must not be null is null";
    case Reason::bad_struct_size: return "struct_size is not set: use the _init function";
    case Reason::bad_region: return "the region is empty or not inside the image";
    case Reason::bad_stride: return "the stride is smaller than a row, or rows would end behind all memory";
    case Reason::buffer_too_small: return "the output buffer is too small";
    case Reason::unknown_method: return "unknown method";
    case Reason::bad_model_size: return "a model is 1 to 131072 bytes long";
    case Reason::bad_model_origin: return "which model is to be used does not fit what was supplied";
    case Reason::wrong_model: return "the model is for images of other channels or bits";
    case Reason::no_named_model: return "the file names no model";
    case Reason::unlike_images: return "the images of one model must have the same channels and bits";
    case Reason::no_images: return "there is no image to make a model of";
    case Reason::bad_effort: return "effort must be 1 to 9";
    case Reason::bad_tile_size:
      return "tile edges must be multiples of 32 from 32 to 1024, and a tile of samples below 1 MiB";
    case Reason::bad_image_size: return "width and height must be 1 to 1048576";
    case Reason::bad_image_type: return "bits, colour and alpha do not fit each other";
    case Reason::bad_palette: return "a palette needs 1 to 2^bits entries, other images have none";
    case Reason::bad_transparency: return "the size of the transparency does not fit the image";
    case Reason::bad_colour_space: return "the colour space names no part, or one that there is not";
    case Reason::bad_section_size: return "a section is empty or larger than 1 GiB";
    case Reason::bad_metadata_records: return "the metadata is not a sequence of records";
    case Reason::sample_out_of_range: return "a sample is above 2^bits - 1";
    case Reason::file_too_large: return "the encoded image would exceed 64 GiB";
    case Reason::unknown_cpu_target: return "L3_CPU names a target that is unknown or that this processor lacks";
    case Reason::out_of_memory: return "out of memory";
    case Reason::pack_failed: return "the metadata could not be packed";
    case Reason::over_pixel_limit: return "more pixels than the limit allows";
    case Reason::over_output_limit: return "more bytes of samples than the limit allows";
    case Reason::over_metadata_limit: return "more metadata than the limit allows";
    case Reason::not_l3: return "not an L3 file: the signature is missing";
    case Reason::head_truncated: return "the file ends within its head";
    case Reason::bad_version: return "unknown version of the format";
    case Reason::required_feature: return "the file needs a feature that is unknown here";
    case Reason::too_many_sections: return "more than 16 sections";
    case Reason::head_check: return "the check of the head does not match";
    case Reason::bad_dimensions: return "width or height is 0 or above 1048576";
    case Reason::bad_frames: return "more or fewer than one frame";
    case Reason::bad_channels: return "the number of channels does not fit the colour";
    case Reason::bad_sample_type: return "unknown sample type";
    case Reason::bad_bits: return "the bits do not fit the sample type";
    case Reason::bad_colour: return "unknown colour, or one that needs another sample type";
    case Reason::bad_alpha: return "alpha does not fit the colour";
    case Reason::bad_tile_edges: return "tile edges out of range";
    case Reason::section_type_order: return "section types do not rise";
    case Reason::section_type_unknown: return "a section that is unknown here";
    case Reason::section_flags: return "reserved flags of a section are set";
    case Reason::section_offset: return "a section does not begin where the part before it ends";
    case Reason::section_size: return "a section is empty or larger than 1 GiB";
    case Reason::section_truncated: return "the file ends within a section";
    case Reason::section_check: return "the check of a section does not match";
    case Reason::section_padding: return "bytes after a section are not zero";
    case Reason::palette_size: return "the size of the palette is wrong";
    case Reason::palette_rule: return "a palette by a rule that is unknown here";
    case Reason::palette_entries: return "a palette of more entries than there are samples";
    case Reason::palette_missing: return "a palette image without a palette";
    case Reason::palette_unexpected: return "a palette in an image of another colour";
    case Reason::transparency_size: return "the size of the transparency is wrong";
    case Reason::transparency_unexpected: return "a transparency in an image that has alpha";
    case Reason::model_unexpected: return "a model in an image whose samples have not 8 bits";
    case Reason::models_many: return "more than one model: of a section, a name and a default model";
    case Reason::default_model_unknown: return "a default model that is unknown here";
    case Reason::model_missing: return "the model that the file names was not supplied";
    case Reason::model_kind: return "a kind of model that is unknown here";
    case Reason::model_head: return "the model's head is cut short, or has a number out of range";
    case Reason::model_offset: return "a part of the model does not begin where it must";
    case Reason::model_channel: return "a channel of the model has a number out of range";
    case Reason::model_table: return "a table of the model is not one";
    case Reason::model_match: return "the part of the model about matches has a number out of range";
    case Reason::model_values: return "the values that the model lists are out of range";
    case Reason::colour_space_parts: return "a colour space without parts, or with one that there is not";
    case Reason::colour_space_size: return "the size of the colour space is wrong";
    case Reason::metadata_size: return "the metadata section is too small";
    case Reason::metadata_contents: return "the metadata is no sound Zstandard frame of the size it states";
    case Reason::metadata_record: return "the metadata is not a sequence of records";
    case Reason::digest: return "the digest does not match";
    case Reason::index_truncated: return "the file ends within its index";
    case Reason::index_check: return "the check of the index does not match";
    case Reason::index_padding: return "bytes after the index are not zero";
    case Reason::tile_needs_model: return "a dense tile in a file without a model";
    case Reason::tile_method: return "unknown method of a tile";
    case Reason::tile_parameters: return "parameters that the method of a tile does not have";
    case Reason::tile_size: return "the size of a payload is wrong";
    case Reason::tile_offset: return "a payload does not begin where the one before it ends";
    case Reason::constant_value: return "the value of a constant tile is out of range";
    case Reason::payload_truncated: return "the file ends within its payloads";
    case Reason::trailing_bytes: return "bytes after the last payload";
    case Reason::tile_check: return "the check of a tile does not match";
    case Reason::raw_padding: return "bits after the last raw sample are not zero";
    case Reason::origin_range: return "the origin of a channel is out of range";
    case Reason::block_header: return "the header of a block is out of range";
    case Reason::block_truncated: return "a payload ends within a block";
    case Reason::dense_words: return "a dense tile ends before its last sample";
    case Reason::dense_states: return "the coder's states are not those at the end of a tile";
    case Reason::block_width: return "the width of a group is above the bits of a sample";
    case Reason::tile_leftover: return "a payload is longer than its blocks";
    case Reason::tile_padding: return "bytes after the last block are not zero";
    case Reason::unaligned_file: return "the file does not begin at a multiple of 16 in memory";
    case Reason::wrong_shape: return "the image has not the width and height that the call says";
    case Reason::wrong_channels: return "the pixels have not the number of channels that the call says";
    case Reason::bad_output: return "the type, the layout or the place of the output is not a possible one";
    case Reason::over_tile_capacity: return "the batch has more tiles than its workspace is for";
    case Reason::over_model_capacity: return "the batch has more models than its workspace is for";
    case Reason::over_staging_capacity: return "the batch has more bytes to stage than its workspace is for";
    case Reason::buffers_overlap: return "input and output overlap in memory";
  }
  return "unknown reason";
}

bool overlap(const void* a, uint64_t a_size, const void* b, uint64_t b_size) {
  const uint64_t a_begin = reinterpret_cast<uintptr_t>(a), b_begin = reinterpret_cast<uintptr_t>(b);
  if (a_size > UINTPTR_MAX - a_begin || b_size > UINTPTR_MAX - b_begin) return true;
  return a_begin < b_begin + b_size && b_begin < a_begin + a_size;
}

l3_status fail(l3_error* error, Reason reason, uint64_t offset, uint64_t tile) {
  const l3_status status = status_of(reason);
  if (error != nullptr) *error = l3_error{status, offset, tile, text_of(reason)};
  return status;
}

l3_status succeed(l3_error* error) { return fail(error, Reason::none); }

}  // namespace l3
