// The target compiled without processor-specific options.
#include "engine/dense_body.h"
#include "engine/word_warp.h"
#if defined(__SSE2__)
#include "targets/word_warp_sse.h"
#endif
#include "targets/target_body.h"
#include "targets/warp_portable.h"

namespace l3 {
namespace {

#if defined(__SSE2__)
struct DenseWarp : SseWordWarp<DenseWarp> {};
#else
using DenseWarp = PortableWordWarp;
#endif

}  // namespace

const Target kPortableTarget = TargetBody<PortableWarp>::with(decode_dense<DenseWarp>, decode_tokens_portable);

}  // namespace l3
