// A request whose answer is kept in memory: uploads, and the calls around them.
#pragma once

#include <future>

#include "http_job.h"

namespace loader::net {

struct Call {
  Request request;
  uint64_t answer_limit = uint64_t{1} << 20;

  // The result.
  StoreFault fault;
  uint32_t attempts = 0;
  Answer answer;
  std::string body;
};

// The caller keeps the call in place until `done` is set.
class CallJob final : public Job {
 public:
  CallJob(Call& call, std::promise<void> done) : call_(call), done_(std::move(done)) {}

  Part wanted() const override { return {0, call_.answer_limit, false, 0}; }
  Request request(const Part&) const override { return call_.request; }
  Verdict judge(const Part& asked, const Answer& answer) const override;
  bool begin(const Part&, const Answer& answer) override;
  void take(std::span<const uint8_t> bytes) override;
  void succeed() override { fail({}); }
  void fail(const StoreFault& fault) override;

 private:
  Call& call_;
  std::promise<void> done_;
};

}  // namespace loader::net
