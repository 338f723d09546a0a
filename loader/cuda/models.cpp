#include "models.h"

namespace loader::cuda {

l3::Result<Models::Kept> Models::upload(const l3_model_info& model, cudaStream_t stream) {
  const uint64_t size = (model.size + 15) / 16 * 16;
  auto source = l3::cuda::PinnedBuffer::make(size);
  if (!source) return source.error();
  auto copy = l3::cuda::DeviceBuffer::make(size);
  if (!copy) return copy.error();
  auto arrived = l3::cuda::make_event();
  if (!arrived) return arrived.error();
  std::memset(source->data(), 0, size);
  std::memcpy(source->data(), model.bytes, model.size);
  cudaError_t code = cudaMemcpyAsync(copy->data(), source->data(), size, cudaMemcpyHostToDevice, stream);
  if (code == cudaSuccess) code = cudaEventRecord(arrived->get(), stream);
  if (code != cudaSuccess) {
    (void)cudaStreamSynchronize(stream);  // before its memory is freed
    return from_cuda(code);
  }
  return Kept{std::move(*source), std::move(*copy), std::move(*arrived)};
}

l3_error Models::get(const l3_model_info& model, cudaStream_t stream, l3_cuda_model& supplied) {
  const std::lock_guard lock(mutex_);
  auto known = kept_.find(name_of(model.name));
  if (known == kept_.end()) {
    known = kept_.try_emplace(name_of(model.name)).first;
    auto brought = upload(model, stream);
    if (!brought) {
      kept_.erase(known);
      return brought.error();
    }
    known->second = std::move(*brought);
  } else if (const cudaError_t code = cudaStreamWaitEvent(stream, known->second.arrived.get(), 0);
             code != cudaSuccess) {
    return from_cuda(code);
  }
  supplied.data = known->second.copy.data();
  supplied.size = model.size;
  std::copy_n(model.name, sizeof(supplied.name), supplied.name);
  return no_error();
}

}  // namespace loader::cuda
