// Why a call failed. Decoders, on the processor or a GPU, say a Reason; reason.cpp turns it into a status and a text.
#pragma once

#include <cstdint>

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
  bad_effort,
  bad_tile_size,
  bad_image_size,
  bad_image_type,
  bad_palette,
  bad_transparency,
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
  palette_missing,
  palette_unexpected,
  transparency_size,
  transparency_unexpected,
  colour_space_size,
  model_unexpected,
  model_kind,
  model_head,
  model_offset,
  model_channel,
  model_table,
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
  tile_padding,
};

// Where a tile went wrong: `at` counts bytes from the start of its payload.
struct Fault {
  Reason reason = Reason::none;
  uint32_t at = 0;
};

struct ReasonText {
  l3_status status;
  const char* text;
};

ReasonText describe(Reason reason);

// Fills *error (when there is one) and gives the status that goes with the reason.
l3_status fail(l3_error* error, Reason reason, uint64_t offset = 0, uint64_t tile = L3_NO_TILE);

// Fills *error (when there is one) with success.
l3_status succeed(l3_error* error);

}  // namespace l3
