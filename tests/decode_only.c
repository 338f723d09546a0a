// A program that takes every function of l3.h except those of the encoder, or with WITH_ENCODER those too.
// decode_only_test.py looks at what a static libl3 adds to it.
#include <stdio.h>

#include "l3/l3.h"

typedef void (*function)(void);

static const function functions[] = {
    (function)l3_check,           (function)l3_close_model,    (function)l3_count_tiles,   (function)l3_cpu_target,
    (function)l3_decode,          (function)l3_decode_region,  (function)l3_default_model, (function)l3_describe_model,
    (function)l3_describe_reason, (function)l3_digest,         (function)l3_embed_model,   (function)l3_find_payloads,
    (function)l3_find_section,    (function)l3_measure,        (function)l3_open_model,    (function)l3_pixel_bytes,
    (function)l3_read_info,       (function)l3_read_palette,   (function)l3_status_text,   (function)l3_unpack_metadata,
    (function)l3_verify,          (function)l3_version,        (function)l3_version_text,
#if defined(WITH_ENCODER)
    (function)l3_add_to_training, (function)l3_close_training, (function)l3_encode,        (function)l3_encode_bound,
    (function)l3_finish_training, (function)l3_start_training,
#endif
};

int main(void) {
  size_t taken = 0;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) taken += functions[i] != 0;
  printf("%zu functions\n", taken);
  return 0;
}
