// The bytes of a stream of nvImageCodec.
#pragma once

#include <nvimgcodec.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace l3_nvimgcodec {

// All bytes of a stream: mapped if the stream can do that, otherwise read. The stream must outlive it.
class StreamBytes {
 public:
  explicit StreamBytes(const nvimgcodecIoStreamDesc_t& stream);
  ~StreamBytes();
  StreamBytes(const StreamBytes&) = delete;
  StreamBytes& operator=(const StreamBytes&) = delete;

  // Null if the stream failed, or if memory is short.
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const nvimgcodecIoStreamDesc_t& stream_;
  void* mapped_ = nullptr;
  std::unique_ptr<uint8_t[]> read_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Reads up to `size` bytes from the beginning. Returns how many there were.
size_t read_start(const nvimgcodecIoStreamDesc_t& stream, void* to, size_t size);

}  // namespace l3_nvimgcodec
