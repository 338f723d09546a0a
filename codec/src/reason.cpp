#include "reason.h"

namespace l3 {

ReasonText describe(Reason reason) {
  switch (reason) {
    case Reason::none: return {L3_OK, "no error"};
    case Reason::null_argument: return {L3_ERROR_ARGUMENT, "a pointer that must not be null is null"};
    case Reason::bad_struct_size: return {L3_ERROR_ARGUMENT, "struct_size is not set: use the _init function"};
    case Reason::bad_region: return {L3_ERROR_ARGUMENT, "the region is empty or not inside the image"};
    case Reason::bad_stride: return {L3_ERROR_ARGUMENT, "the stride is smaller than a row"};
    case Reason::buffer_too_small: return {L3_ERROR_BUFFER, "the output buffer is too small"};
    case Reason::unknown_method: return {L3_ERROR_ARGUMENT, "unknown method"};
    case Reason::bad_model_size: return {L3_ERROR_ARGUMENT, "a model is 1 to 65536 bytes long"};
    case Reason::bad_effort: return {L3_ERROR_ARGUMENT, "effort must be 1 to 9"};
    case Reason::bad_tile_size:
      return {L3_ERROR_ARGUMENT,
              "tile edges must be multiples of 32 from 32 to 1024, and a tile of samples below 1 MiB"};
    case Reason::bad_image_size: return {L3_ERROR_ARGUMENT, "width and height must be 1 to 1048576"};
    case Reason::bad_image_type: return {L3_ERROR_ARGUMENT, "bits, colour and alpha do not fit each other"};
    case Reason::bad_palette: return {L3_ERROR_ARGUMENT, "a palette needs 1 to 2^bits entries, other images have none"};
    case Reason::bad_transparency: return {L3_ERROR_ARGUMENT, "the size of the transparency does not fit the image"};
    case Reason::bad_section_size: return {L3_ERROR_ARGUMENT, "a section is empty or larger than 1 GiB"};
    case Reason::bad_metadata_records: return {L3_ERROR_ARGUMENT, "the metadata is not a sequence of records"};
    case Reason::sample_out_of_range: return {L3_ERROR_ARGUMENT, "a sample is above 2^bits - 1"};
    case Reason::file_too_large: return {L3_ERROR_ARGUMENT, "the encoded image would exceed 64 GiB"};
    case Reason::unknown_cpu_target:
      return {L3_ERROR_ARGUMENT, "L3_CPU names a target that is unknown or that this processor lacks"};
    case Reason::out_of_memory: return {L3_ERROR_MEMORY, "out of memory"};
    case Reason::pack_failed: return {L3_ERROR_MEMORY, "the metadata could not be packed"};
    case Reason::over_pixel_limit: return {L3_ERROR_LIMIT, "more pixels than the limit allows"};
    case Reason::over_output_limit: return {L3_ERROR_LIMIT, "more bytes of samples than the limit allows"};
    case Reason::over_metadata_limit: return {L3_ERROR_LIMIT, "more metadata than the limit allows"};
    case Reason::not_l3: return {L3_ERROR_NOT_L3, "not an L3 file: the signature is missing"};
    case Reason::head_truncated: return {L3_ERROR_TRUNCATED, "the file ends within its head"};
    case Reason::bad_version: return {L3_ERROR_UNSUPPORTED, "unknown version of the format"};
    case Reason::required_feature: return {L3_ERROR_UNSUPPORTED, "the file needs a feature that is unknown here"};
    case Reason::too_many_sections: return {L3_ERROR_CORRUPT, "more than 16 sections"};
    case Reason::head_check: return {L3_ERROR_CORRUPT, "the check of the head does not match"};
    case Reason::bad_dimensions: return {L3_ERROR_CORRUPT, "width or height is 0 or above 1048576"};
    case Reason::bad_frames: return {L3_ERROR_UNSUPPORTED, "more or fewer than one frame"};
    case Reason::bad_channels: return {L3_ERROR_CORRUPT, "the number of channels does not fit the colour"};
    case Reason::bad_sample_type: return {L3_ERROR_UNSUPPORTED, "unknown sample type"};
    case Reason::bad_bits: return {L3_ERROR_CORRUPT, "the bits do not fit the sample type"};
    case Reason::bad_colour: return {L3_ERROR_CORRUPT, "unknown colour, or one that needs another sample type"};
    case Reason::bad_alpha: return {L3_ERROR_CORRUPT, "alpha does not fit the colour"};
    case Reason::bad_tile_edges: return {L3_ERROR_CORRUPT, "tile edges out of range"};
    case Reason::section_type_order: return {L3_ERROR_CORRUPT, "section types do not rise"};
    case Reason::section_type_unknown: return {L3_ERROR_UNSUPPORTED, "a section that is unknown here"};
    case Reason::section_flags: return {L3_ERROR_CORRUPT, "reserved flags of a section are set"};
    case Reason::section_offset: return {L3_ERROR_CORRUPT, "a section does not begin where the part before it ends"};
    case Reason::section_size: return {L3_ERROR_CORRUPT, "a section is empty or larger than 1 GiB"};
    case Reason::section_truncated: return {L3_ERROR_TRUNCATED, "the file ends within a section"};
    case Reason::section_check: return {L3_ERROR_CORRUPT, "the check of a section does not match"};
    case Reason::section_padding: return {L3_ERROR_CORRUPT, "bytes after a section are not zero"};
    case Reason::palette_size: return {L3_ERROR_CORRUPT, "the size of the palette is wrong"};
    case Reason::palette_missing: return {L3_ERROR_CORRUPT, "a palette image without a palette"};
    case Reason::palette_unexpected: return {L3_ERROR_CORRUPT, "a palette in an image of another colour"};
    case Reason::transparency_size: return {L3_ERROR_CORRUPT, "the size of the transparency is wrong"};
    case Reason::transparency_unexpected: return {L3_ERROR_CORRUPT, "a transparency in an image that has alpha"};
    case Reason::model_unexpected: return {L3_ERROR_CORRUPT, "a model in an image whose samples have not 8 bits"};
    case Reason::model_kind: return {L3_ERROR_UNSUPPORTED, "a kind of model that is unknown here"};
    case Reason::model_head: return {L3_ERROR_CORRUPT, "the model's head is cut short, or has a number out of range"};
    case Reason::model_offset: return {L3_ERROR_CORRUPT, "a part of the model does not begin where it must"};
    case Reason::model_channel: return {L3_ERROR_CORRUPT, "a channel of the model has a number out of range"};
    case Reason::model_table: return {L3_ERROR_CORRUPT, "a table of the model is not one"};
    case Reason::colour_space_size: return {L3_ERROR_CORRUPT, "the size of the colour space is wrong"};
    case Reason::metadata_size: return {L3_ERROR_CORRUPT, "the metadata section is too small"};
    case Reason::metadata_contents:
      return {L3_ERROR_CORRUPT, "the metadata is no sound Zstandard frame of the size it states"};
    case Reason::metadata_record: return {L3_ERROR_CORRUPT, "the metadata is not a sequence of records"};
    case Reason::digest: return {L3_ERROR_CORRUPT, "the digest does not match"};
    case Reason::index_truncated: return {L3_ERROR_TRUNCATED, "the file ends within its index"};
    case Reason::index_check: return {L3_ERROR_CORRUPT, "the check of the index does not match"};
    case Reason::index_padding: return {L3_ERROR_CORRUPT, "bytes after the index are not zero"};
    case Reason::tile_needs_model: return {L3_ERROR_CORRUPT, "a dense tile in a file without a model"};
    case Reason::tile_method: return {L3_ERROR_UNSUPPORTED, "unknown method of a tile"};
    case Reason::tile_parameters: return {L3_ERROR_CORRUPT, "parameters that the method of a tile does not have"};
    case Reason::tile_size: return {L3_ERROR_CORRUPT, "the size of a payload is wrong"};
    case Reason::tile_offset: return {L3_ERROR_CORRUPT, "a payload does not begin where the one before it ends"};
    case Reason::constant_value: return {L3_ERROR_CORRUPT, "the value of a constant tile is out of range"};
    case Reason::payload_truncated: return {L3_ERROR_TRUNCATED, "the file ends within its payloads"};
    case Reason::trailing_bytes: return {L3_ERROR_CORRUPT, "bytes after the last payload"};
    case Reason::tile_check: return {L3_ERROR_CORRUPT, "the check of a tile does not match"};
    case Reason::raw_padding: return {L3_ERROR_CORRUPT, "bits after the last raw sample are not zero"};
    case Reason::origin_range: return {L3_ERROR_CORRUPT, "the origin of a channel is out of range"};
    case Reason::block_header: return {L3_ERROR_CORRUPT, "the header of a block is out of range"};
    case Reason::block_truncated: return {L3_ERROR_CORRUPT, "a payload ends within a block"};
    case Reason::dense_words: return {L3_ERROR_CORRUPT, "a dense tile ends before its last sample"};
    case Reason::dense_states: return {L3_ERROR_CORRUPT, "the coder's states are not those at the end of a tile"};
    case Reason::block_width: return {L3_ERROR_CORRUPT, "the width of a group is above the bits of a sample"};
    case Reason::tile_leftover: return {L3_ERROR_CORRUPT, "a payload is longer than its blocks"};
    case Reason::tile_padding: return {L3_ERROR_CORRUPT, "bytes after the last block are not zero"};
  }
  return {L3_ERROR_ARGUMENT, "unknown reason"};
}

l3_status fail(l3_error* error, Reason reason, uint64_t offset, uint64_t tile) {
  const ReasonText text = describe(reason);
  if (error != nullptr) *error = l3_error{text.status, offset, tile, text.text};
  return text.status;
}

l3_status succeed(l3_error* error) { return fail(error, Reason::none); }

}  // namespace l3
