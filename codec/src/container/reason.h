// Why a call failed. Decoders on processors and GPUs report a Reason; status_of() and text_of() explain it.
#pragma once

#include <cstdint>

#include "container/format.h"
#include "l3/l3.h"

namespace l3 {

enum class Reason : uint32_t {
  none,
  // the call
  null_argument,
  bad_struct_size,
  bad_region,
  bad_stride,
  buffer_too_small,
  unknown_method,
  bad_model_size,
  bad_model_origin,
  wrong_model,
  no_named_model,
  unlike_images,
  no_images,
  bad_effort,
  bad_tile_size,
  bad_image_size,
  bad_image_type,
  bad_palette,
  bad_transparency,
  bad_colour_space,
  bad_section_size,
  bad_metadata_records,
  sample_out_of_range,
  file_too_large,
  unknown_cpu_target,
  out_of_memory,
  pack_failed,
  // limits
  over_pixel_limit,
  over_output_limit,
  over_metadata_limit,
  // the head
  not_l3,
  head_truncated,
  version_0,
  bad_version,
  required_feature,
  too_many_sections,
  head_check,
  bad_dimensions,
  bad_frames,
  bad_channels,
  bad_sample_type,
  bad_bits,
  bad_colour,
  bad_alpha,
  bad_tile_edges,
  section_type_order,
  section_type_unknown,
  section_flags,
  section_offset,
  section_size,
  section_truncated,
  section_check,
  section_padding,
  palette_size,
  palette_rule,
  palette_entries,
  palette_missing,
  palette_unexpected,
  transparency_size,
  transparency_unexpected,
  channel_map,
  colour_space_parts,
  colour_space_size,
  models_many,
  default_model_unknown,
  model_unexpected,
  model_missing,
  model_kind,
  model_head,
  model_offset,
  model_channel,
  model_table,
  model_match,
  model_values,
  metadata_size,
  metadata_contents,
  metadata_record,
  digest,
  // the index
  index_truncated,
  index_check,
  index_padding,
  tile_method,
  tile_needs_model,
  tile_parameters,
  tile_size,
  tile_offset,
  constant_value,
  payload_truncated,
  trailing_bytes,
  // a payload
  tile_check,
  raw_padding,
  origin_range,
  block_header,
  block_truncated,
  block_width,
  dense_words,
  dense_states,
  tile_leftover,
  tile_shapes,
  tile_padding,
  // a decoder on a device
  unaligned_file,
  wrong_shape,
  wrong_channels,
  bad_output,
  over_tile_capacity,
  over_model_capacity,
  over_staging_capacity,
  // again about the call; added last, because the numbers of reasons must not change
  buffers_overlap,
  over_payload_capacity,
  over_follow_capacity,
};

// What is wrong in a tile or a model; `at` is in bytes from the start of its payload or bytes.
struct Fault {
  Reason reason = Reason::none;
  uint32_t at = 0;
};

// The status for a reason. Also used in GPU code.
L3_INLINE constexpr l3_status status_of(Reason reason) {
  switch (reason) {
    case Reason::none: return L3_OK;
    case Reason::null_argument:
    case Reason::bad_struct_size:
    case Reason::bad_region:
    case Reason::bad_stride:
    case Reason::unknown_method:
    case Reason::bad_model_size:
    case Reason::bad_model_origin:
    case Reason::wrong_model:
    case Reason::no_named_model:
    case Reason::unlike_images:
    case Reason::no_images:
    case Reason::bad_effort:
    case Reason::bad_tile_size:
    case Reason::bad_image_size:
    case Reason::bad_image_type:
    case Reason::bad_palette:
    case Reason::bad_transparency:
    case Reason::bad_colour_space:
    case Reason::bad_section_size:
    case Reason::bad_metadata_records:
    case Reason::sample_out_of_range:
    case Reason::file_too_large:
    case Reason::unknown_cpu_target:
    case Reason::unaligned_file:
    case Reason::wrong_shape:
    case Reason::wrong_channels:
    case Reason::bad_output:
    case Reason::buffers_overlap: return L3_ERROR_ARGUMENT;
    case Reason::not_l3: return L3_ERROR_NOT_L3;
    case Reason::version_0:
    case Reason::bad_version:
    case Reason::required_feature:
    case Reason::bad_frames:
    case Reason::bad_sample_type:
    case Reason::section_type_unknown:
    case Reason::palette_rule:
    case Reason::default_model_unknown:
    case Reason::model_kind:
    case Reason::tile_method: return L3_ERROR_UNSUPPORTED;
    case Reason::model_missing: return L3_ERROR_MODEL;
    case Reason::head_truncated:
    case Reason::section_truncated:
    case Reason::index_truncated:
    case Reason::payload_truncated: return L3_ERROR_TRUNCATED;
    case Reason::over_pixel_limit:
    case Reason::over_output_limit:
    case Reason::over_metadata_limit:
    case Reason::over_tile_capacity:
    case Reason::over_model_capacity:
    case Reason::over_staging_capacity:
    case Reason::over_payload_capacity:
    case Reason::over_follow_capacity: return L3_ERROR_LIMIT;
    case Reason::buffer_too_small: return L3_ERROR_BUFFER;
    case Reason::out_of_memory:
    case Reason::pack_failed: return L3_ERROR_MEMORY;
    default: return L3_ERROR_CORRUPT;
  }
}

// The English text for a reason.
const char* text_of(Reason reason);

// Whether two buffers share a byte. A buffer that would extend past the last address overlaps with everything.
bool overlap(const void* a, uint64_t a_size, const void* b, uint64_t b_size);

// Fills in *error, unless it is null, and returns the status for the reason.
l3_status fail(l3_error* error, Reason reason, uint64_t offset = 0, uint64_t tile = L3_NO_TILE);

// Sets *error, unless it is null, to success.
l3_status succeed(l3_error* error);

}  // namespace l3
