// The target that runs on every processor.
#include "target_body.h"
#include "warp_portable.h"
#include "word_warp.h"

namespace l3 {

const Target kPortableTarget = TargetBody<PortableWarp, WordWarp<16>, ShortVectors<16>>::as("portable");

}  // namespace l3
