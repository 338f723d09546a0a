// What the stores of HTTP and S3 have in common: an engine for each process, and reads through it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "http_engine.h"

namespace loader::net {

class WebStore : public Store {
 public:
  ~WebStore() override;
  WebStore(const WebStore&) = delete;
  WebStore& operator=(const WebStore&) = delete;

  const std::string& name() const override { return name_; }
  bool is_far() const override { return true; }
  std::unique_ptr<Channel> make_channel(l3_reading reading) override;
  void read(std::span<Read> reads, std::span<StoreFault> faults) override;
  StoreFault put(const Upload& upload) override;

  // The engine of this process. Throws std::bad_alloc.
  HttpEngine& engine();

 protected:
  WebStore(std::string name, const StoreOptions& options) : name_(std::move(name)), options_(options) {}
  virtual std::unique_ptr<Site> make_site() const = 0;
  virtual StoreFault put_object(const Object& object, const Upload& upload) = 0;

  std::string name_;
  StoreOptions options_;

 private:
  StoreFault verify_size(const Object& object, uint64_t size);

  // After a fork the child has neither the thread nor the connections of its parent, so it begins anew.
  struct Started {
    pid_t process;
    HttpEngine engine;
  };
  std::atomic<Started*> started_ = nullptr;
  std::atomic<uint64_t> owners_ = kNoOwner;
};

}  // namespace loader::net
