#include "outputs.h"

#include <algorithm>

namespace loader::cuda {
namespace {

// Records this point of a stream in one of the events.
bool record(std::vector<l3::cuda::Event>& events, cudaStream_t stream) {
  const auto is_through = [](const l3::cuda::Event& event) {
    const cudaError_t code = cudaEventQuery(event.get());
    if (code != cudaSuccess) (void)cudaGetLastError();
    return code == cudaSuccess;
  };
  auto free = std::find_if(events.begin(), events.end(), is_through);
  if (free == events.end()) {
    auto made = l3::cuda::make_event();
    if (!made) return false;
    free = events.insert(free, std::move(*made));
  }
  return cudaEventRecord(free->get(), stream) == cudaSuccess;
}

}  // namespace

void* Outputs::allocate(uint64_t size) {
  auto memory = l3::cuda::DeviceBuffer::make(std::max<uint64_t>(size, 1));
  if (!memory) return nullptr;
  void* const place = memory->data();
  const std::lock_guard lock(mutex_);
  outputs_[place].memory = std::move(*memory);
  return place;
}

void Outputs::Output::wait() const {
  for (const l3::cuda::Event& user : users) (void)cudaEventSynchronize(user.get());
}

Outputs::~Outputs() {
  for (const auto& [place, output] : outputs_) output.wait();
}

void Outputs::free(void* output) {
  std::unordered_map<void*, Output>::node_type gone;
  {
    const std::lock_guard lock(mutex_);
    gone = outputs_.extract(output);
  }
  if (!gone.empty()) gone.mapped().wait();
}

void Outputs::use_until(void* output, cudaStream_t stream) {
  if (is_captured(stream)) return;  // work of a graph runs later, whenever the graph is launched
  {
    const std::lock_guard lock(mutex_);
    const auto known = outputs_.find(output);
    if (known == outputs_.end() || record(known->second.users, stream)) return;
  }
  (void)cudaGetLastError();  // no event could be recorded: the host waits
  if (cudaStreamSynchronize(stream) == cudaSuccess) return;
  (void)cudaDeviceSynchronize();
  (void)cudaGetLastError();
}

l3_error Outputs::wait_for_users(void* output, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const auto known = outputs_.find(output);
  if (known == outputs_.end()) return make_error(L3_ERROR_ARGUMENT, "the output does not belong to this device");
  for (const l3::cuda::Event& user : known->second.users) {
    if (const cudaError_t code = cudaStreamWaitEvent(stream, user.get(), 0); code != cudaSuccess) {
      return from_cuda(code);
    }
  }
  return no_error();
}

}  // namespace loader::cuda
