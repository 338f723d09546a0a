// Uploads of S3: one request for small objects, otherwise parts.
#pragma once

#include <deque>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "aws_sign.h"
#include "http_engine.h"

namespace loader::net {

// Every body is signed with its SHA-256, so the server verifies what it gets.
class S3Upload {
 public:
  S3Upload(HttpEngine& engine, const Target& target, const Upload& upload)
      : engine_(engine), target_(target), upload_(upload) {}
  // Waits. If it fails, nothing of the object is left on the server, as far as the server can be reached.
  StoreFault run();

 private:
  // A request with bytes of the object.
  struct Part {
    ~Part() {
      if (done.valid()) done.wait();
    }
    Body body;
    Call call;
    std::future<void> done;
  };

  StoreFault put_whole();
  StoreFault put_parts();
  StoreFault begin();
  StoreFault send_parts();
  StoreFault complete();
  void abort();
  StoreFault start_part(uint64_t offset, uint64_t size);
  StoreFault take_part();
  StoreFault prepare(Part& part, uint64_t offset, uint64_t size) const;
  Call text_call(const char* method, const std::string& query) const;

  HttpEngine& engine_;
  const Target& target_;
  const Upload& upload_;
  std::string id_;
  std::deque<std::unique_ptr<Part>> in_progress_;
  uint32_t started_ = 0;
  std::vector<std::string> etags_;
};

}  // namespace loader::net
