// The target that runs on every processor.
#include "target_body.h"
#include "warp_portable.h"

namespace l3 {

const Target kPortableTarget = TargetBody<PortableWarp>::as("portable");

}  // namespace l3
