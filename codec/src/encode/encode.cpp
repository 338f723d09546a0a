// The functions of l3.h that encode an image.
#include <algorithm>
#include <new>

#include "encode/encode_search.h"
#include "encode/image_check.h"
#include "encode/tile_writer.h"

namespace l3 {
namespace {

uint64_t room_for_first_plan(const Request& request) {
  const Head head = lay_out_largest(request, first_plan(request));
  return head.payload_start + head.room();
}

// The size of buffer that is always sufficient.
uint64_t room_for(const Request& request) {
  const uint64_t room = room_for_first_plan(request);
  return may_do_without_name(request) ? std::max(room, room_for_first_plan(without_name(request))) : room;
}

}  // namespace
}  // namespace l3

using namespace l3;

uint64_t l3_encode_bound(const l3_image* image, const l3_encode_options* options) {
  Request request;
  return make_request(image, options, request) == Reason::none ? room_for(request) : 0;
}

l3_status l3_encode(const l3_image* image, const l3_encode_options* options, void* out, size_t out_size,
                    size_t* written, l3_error* error) {
  if (out == nullptr || written == nullptr) return fail(error, Reason::null_argument);
  Request request;
  const Reason reason = make_request(image, options, request);
  if (reason != Reason::none) return fail(error, reason);
  const EncodeTarget* chosen = encode_target();
  if (chosen == nullptr) return fail(error, Reason::unknown_cpu_target);
  if (out_size < room_for(request)) return fail(error, Reason::buffer_too_small);
  if (overlap(request.image.pixels, bytes_of(request.image), out, out_size)) {
    return fail(error, Reason::buffers_overlap);
  }
  try {
    const Written file = write_best(request, *chosen, static_cast<uint8_t*>(out));
    if (file.reason != Reason::none) return fail(error, file.reason);
    *written = file.size;
    return succeed(error);
  } catch (const std::bad_alloc&) {
    return fail(error, Reason::out_of_memory);
  }
}
