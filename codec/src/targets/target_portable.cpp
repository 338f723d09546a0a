// The target compiled without processor-specific options.
#include "engine/dense_body.h"
#include "engine/dense_warp.h"
#if defined(__SSE2__)
#include "targets/dense_warp_sse.h"
#endif
#include "targets/target_body.h"
#include "targets/warp_portable.h"

namespace l3 {
namespace {

#if defined(__SSE2__)
struct TargetDenseWarp : SseDenseWarp<TargetDenseWarp> {};
#else
using TargetDenseWarp = PortableDenseWarp;
#endif

}  // namespace

const Target kPortableTarget =
    TargetBody<PortableWarp>::with(decode_dense<TargetDenseWarp>, decode_tokens_portable, decode_bits_portable);

}  // namespace l3
