// Batches that jobs share: loaders of one machine that read the same data set with the same options. One of them, the
// leader, prepares each batch once; all copy it to memory of their own.
//
// Jobs meet at a Unix socket whose name the kernel removes when the leader ends, and the leader passes its memory
// through that socket. So nothing is left behind, whoever ends and however. Correctness never depends on sharing: what
// a batch contains is known by epoch and position, and a job that gets none in time prepares it on its own.
#pragma once

#include <memory>

#include "pipeline.h"

namespace loader {

// Takes the place of a job's own pipeline. Its members do what those of Pipeline do.
class SharedSource {
 public:
  virtual ~SharedSource() = default;
  virtual l3_status start(uint64_t epoch, uint64_t position, l3_data_error* error) = 0;
  virtual std::unique_ptr<Job> wait_for_job(uint32_t milliseconds, bool& ended, l3_data_error* error) = 0;
  virtual void interrupt() = 0;
  virtual size_t requests(l3_request* requests, size_t capacity) const = 0;
  // Sets the members of `info` that are about sharing.
  virtual void describe(l3_loader_info& info) const = 0;
};

// Returns why these options cannot be shared, or null. Replaces zeros by defaults.
const char* complete_share(l3_loader_options& options);

// `options` are those of `own`, before it was opened: they are copied. `own` is open, and provides the memory of
// delivered batches. It prepares batches only while this job is alone. `set` and `own` must outlive the source.
std::unique_ptr<SharedSource> share_batches(const l3_data_set& set, const l3_loader_options& options, Pipeline& own);

}  // namespace loader
