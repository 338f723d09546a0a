#include "call_job.h"

namespace loader::net {

Verdict CallJob::judge(const Part& asked, const Answer& answer) const {
  if (answer.status == 416) return failed(status_fault(answer));
  if (answer.is_malformed) return failed(protocol_fault("the head of the answer contradicts itself"));
  if (answer.is_encoded) return failed(protocol_fault("the server compresses its answer although nobody asked it to"));
  if (answer.length && *answer.length > asked.size) return failed(protocol_fault("the answer is too large"));
  return {.next = Next::kTake, .got = {0, answer.length.value_or(asked.size), false, 0, true}};
}

bool CallJob::begin(const Part&, const Answer& answer) {
  call_.answer = answer;
  call_.body.clear();
  return true;
}

void CallJob::take(std::span<const uint8_t> bytes) {
  call_.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void CallJob::fail(const StoreFault& fault) {
  call_.fault = fault;
  call_.attempts = times.attempts;
  done_.set_value();
}

}  // namespace loader::net
