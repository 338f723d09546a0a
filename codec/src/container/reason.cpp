// Implements reason.h: the English texts of all reasons.
#include "container/reason.h"

namespace l3 {

const char* text_of(Reason reason) {
  switch (reason) {
    case Reason::none: return "no error";
    case Reason::null_argument: return "a pointer that must not be null is null";
    case Reason::bad_struct_size: return "struct_size is not set: use the _init function";
    case Reason::bad_region: return "the region is empty or not inside the image";
    case Reason::bad_stride: return "the stride is smaller than a row, or the rows would exceed the address space";
    case Reason::buffer_too_small: return "the output buffer is too small";
    case Reason::unknown_method: return "unknown method";
    case Reason::bad_model_size: return "the size of a model must be 1 to 131072 bytes";
    case Reason::bad_model_origin: return "model_origin does not match the models that were supplied";
    case Reason::wrong_model: return "the model is for images with other channels or bits";
    case Reason::no_named_model: return "the file names no model";
    case Reason::unlike_images: return "the images of one model must have the same channels and bits";
    case Reason::no_images: return "there are no images to make a model from";
    case Reason::bad_effort: return "effort must be 1 to 9";
    case Reason::bad_tile_size:
      return "tile edges must be multiples of 32 from 32 to 1024, and the samples of a tile less than 1 MiB";
    case Reason::bad_image_size: return "width and height must be 1 to 1048576";
    case Reason::bad_image_type: return "bits, colour and alpha do not match";
    case Reason::bad_palette: return "a palette must have 1 to 2^bits entries, and only palette images may have one";
    case Reason::bad_transparency: return "the size of the transparency is wrong for this image";
    case Reason::bad_colour_space: return "the colour space has no part, or an unknown one";
    case Reason::bad_section_size: return "a section is empty or larger than 1 GiB";
    case Reason::bad_metadata_records: return "the records of the metadata are damaged";
    case Reason::sample_out_of_range: return "a sample is above 2^bits - 1";
    case Reason::file_too_large: return "the encoded image would exceed 64 GiB";
    case Reason::unknown_cpu_target: return "L3_CPU names a target that is unknown or that this processor lacks";
    case Reason::out_of_memory: return "out of memory";
    case Reason::pack_failed: return "the metadata could not be compressed";
    case Reason::over_pixel_limit: return "more pixels than the limit allows";
    case Reason::over_output_limit: return "more bytes of samples than the limit allows";
    case Reason::over_metadata_limit: return "more metadata than the limit allows";
    case Reason::not_l3: return "not an L3 file: the signature is missing";
    case Reason::head_truncated: return "the file ends within the head";
    case Reason::version_0:
      return "version 0 of the format, which was never fixed; l3 at commit 96825ae reads files of its last days";
    case Reason::bad_version: return "a later version of the format";
    case Reason::required_feature: return "the file needs a feature that this version does not support";
    case Reason::too_many_sections: return "more than 16 sections";
    case Reason::head_check: return "the check of the head does not match";
    case Reason::bad_dimensions: return "width or height is 0 or above 1048576";
    case Reason::bad_frames: return "the number of frames is not 1";
    case Reason::bad_channels: return "the number of channels does not match the colour";
    case Reason::bad_sample_type: return "unknown sample type";
    case Reason::bad_bits: return "the bits do not match the sample type";
    case Reason::bad_colour: return "unknown colour, or one that needs another sample type";
    case Reason::bad_alpha: return "the alpha does not match the colour";
    case Reason::bad_tile_edges: return "the tile edges are out of range";
    case Reason::section_type_order: return "the sections are not in the order of their types";
    case Reason::section_type_unknown: return "a section has a type that this version does not support";
    case Reason::section_flags: return "reserved flags of a section are set";
    case Reason::section_offset: return "a section does not begin where the part before it ends";
    case Reason::section_size: return "a section is empty or larger than 1 GiB";
    case Reason::section_truncated: return "the file ends within a section";
    case Reason::section_check: return "the check of a section does not match";
    case Reason::section_padding: return "bytes after a section are not zero";
    case Reason::palette_size: return "the size of the palette is wrong";
    case Reason::palette_rule: return "the palette has a rule that this version does not support";
    case Reason::palette_entries: return "the palette has more entries than the samples can index";
    case Reason::palette_missing: return "the palette of a palette image is missing";
    case Reason::palette_unexpected: return "an image that is not a palette image has a palette";
    case Reason::transparency_size: return "the size of the transparency is wrong";
    case Reason::transparency_unexpected: return "an image with alpha has a transparency";
    case Reason::model_unexpected: return "an image with samples of other than 8 bits has a model";
    case Reason::models_many: return "the file has more than one of a model, the name of a model and a default model";
    case Reason::default_model_unknown: return "the file needs a default model that this version does not have";
    case Reason::model_missing: return "the file needs a model that was not supplied";
    case Reason::model_kind: return "the model is of a kind that this version does not support";
    case Reason::model_head: return "the head of the model is truncated or has a value out of range";
    case Reason::model_offset: return "a part of the model begins at the wrong offset";
    case Reason::model_channel: return "a channel of the model has a value out of range";
    case Reason::model_table: return "a table of the model is invalid";
    case Reason::model_match: return "the match part of the model has a value out of range";
    case Reason::model_values: return "the values in the model are out of range";
    case Reason::channel_map: return "the channel map has a wrong size, or a field that is out of range";
    case Reason::colour_space_parts: return "the colour space has no part, or an unknown one";
    case Reason::colour_space_size: return "the size of the colour space is wrong";
    case Reason::metadata_size: return "the metadata section is too small";
    case Reason::metadata_contents:
      return "the metadata is not a valid Zstandard frame, or has another size than it states";
    case Reason::metadata_record: return "the records of the metadata are damaged";
    case Reason::digest: return "the digest does not match";
    case Reason::index_truncated: return "the file ends within the index";
    case Reason::index_check: return "the check of the index does not match";
    case Reason::index_padding: return "bytes after the index are not zero";
    case Reason::tile_needs_model: return "the file has a dense tile but no model";
    case Reason::tile_method: return "a tile has an unknown method";
    case Reason::tile_parameters: return "a tile has parameters that its method does not have";
    case Reason::tile_size: return "the size of a payload is wrong";
    case Reason::tile_offset: return "a payload does not begin where the one before it ends";
    case Reason::constant_value: return "the value of a constant tile is out of range";
    case Reason::payload_truncated: return "the file ends within the payloads";
    case Reason::trailing_bytes: return "there are bytes after the last payload";
    case Reason::tile_check: return "the check of a tile does not match";
    case Reason::raw_padding: return "bits after the last raw sample are not zero";
    case Reason::origin_range: return "the origin of a channel is out of range";
    case Reason::block_header: return "the header of a block is out of range";
    case Reason::block_truncated: return "a payload ends within a block";
    case Reason::dense_words: return "a dense tile ends before its last sample";
    case Reason::tile_shapes: return "the list of shapes of a dense tile is invalid";
    case Reason::dense_states: return "the final states of the coder are wrong";
    case Reason::block_width: return "the width of a group exceeds the bits of a sample";
    case Reason::tile_leftover: return "a payload is longer than its blocks";
    case Reason::tile_padding: return "bytes after the last block are not zero";
    case Reason::unaligned_file: return "the address of the file is not a multiple of 16";
    case Reason::wrong_shape: return "the image does not have the width and height of the call";
    case Reason::wrong_channels: return "the pixels do not have the number of channels of the call";
    case Reason::bad_output: return "the type, the layout or the address of the output is invalid";
    case Reason::over_tile_capacity: return "the batch has more tiles than the workspace allows";
    case Reason::over_model_capacity: return "the batch has more models than the workspace allows";
    case Reason::over_staging_capacity: return "the batch has more bytes to stage than the workspace allows";
    case Reason::over_payload_capacity: return "the batch has more bytes of pixels than the workspace allows";
    case Reason::over_follow_capacity:
      return "the pixels of the batch follow others in more tiles than the workspace allows";
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
