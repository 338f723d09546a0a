// Writes a file that follows a plan: fits the model, writes sections, tiles and head.
#pragma once

#include "encode/bit_encode.h"
#include "encode/dense_encode.h"
#include "encode/encode_plan.h"
#include "targets/encode_target.h"

namespace l3 {

struct Written {
  Reason reason = Reason::none;
  size_t size = 0;          // of the file
  Head head{};              // of the file; if it is tiny, as it was before
  uint64_t payloads = 0;    // the size of all payloads
  bool has_others = false;  // it has tiles that are neither dense nor constant
  bool model_pays = true;   // false: the model takes more bytes than it saves, so the file is better without it
};

// What is known of a plan's model before its file is written: at most one of these.
struct Fitted {
  std::unique_ptr<DenseEncoder> dense;  // fitted to a sample as planned
  std::unique_ptr<BitEncoder> bits;     // fitted as planned
};

// Writes to a buffer that is large enough for the plan. May throw std::bad_alloc.
Written write_file(const Request& request, const Plan& plan, const EncodeTarget& target, uint8_t* out,
                   Fitted fitted = {});

}  // namespace l3
