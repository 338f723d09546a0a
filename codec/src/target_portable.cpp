// The target that runs on every processor.
#include "target_body.h"
#include "vector_warp.h"

namespace l3 {

struct PortableWarp : VectorWarp<16> {};

const Target kPortableTarget = TargetBody<PortableWarp>::as("portable");

}  // namespace l3
