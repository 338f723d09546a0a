// The target "portable", compiled without processor-specific options.
#include "dense_body.h"
#include "target_body.h"
#include "warp_portable.h"
#include "word_warp.h"

namespace l3 {

const Target kPortableTarget =
    TargetBody<PortableWarp, ShortVectors<16>>::as("portable", decode_dense<PortableWordWarp>, decode_tokens_portable);

}  // namespace l3
