// The target compiled without processor-specific options.
#include "engine/dense_body.h"
#include "engine/word_warp.h"
#include "targets/target_body.h"
#include "targets/warp_portable.h"

namespace l3 {

const Target kPortableTarget = TargetBody<PortableWarp>::with(decode_dense<PortableWordWarp>, decode_tokens_portable);

}  // namespace l3
