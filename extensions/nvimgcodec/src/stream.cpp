#include "stream.h"

#include <cstdio>
#include <new>

namespace l3_nvimgcodec {

StreamBytes::StreamBytes(const nvimgcodecIoStreamDesc_t& stream) : stream_(stream) {
  size_t size = 0;
  if (stream.size(stream.instance, &size) != NVIMGCODEC_STATUS_SUCCESS) return;
  if (stream.map(stream.instance, &mapped_, 0, size) == NVIMGCODEC_STATUS_SUCCESS && mapped_ != nullptr) {
    data_ = static_cast<const uint8_t*>(mapped_);
    size_ = size;
    return;
  }
  mapped_ = nullptr;
  read_.reset(new (std::nothrow) uint8_t[size + 1]);  // an empty stream has data, too
  if (read_ == nullptr || read_start(stream, read_.get(), size) != size) return;
  data_ = read_.get();
  size_ = size;
}

StreamBytes::~StreamBytes() {
  if (mapped_ != nullptr) stream_.unmap(stream_.instance, mapped_, size_);
}

size_t read_start(const nvimgcodecIoStreamDesc_t& stream, void* to, size_t size) {
  size_t done = 0;
  if (stream.seek(stream.instance, 0, SEEK_SET) != NVIMGCODEC_STATUS_SUCCESS) return 0;
  if (stream.read(stream.instance, &done, to, size) != NVIMGCODEC_STATUS_SUCCESS) return 0;
  return done;
}

}  // namespace l3_nvimgcodec
