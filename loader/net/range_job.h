// Reads of one object that one request serves.
#pragma once

#include <vector>

#include "http_job.h"

namespace loader::net {

// An object at a web address.
class WebObject final : public Object {
 public:
  WebObject(std::string name, Target target) : Object(std::move(name)), target_(std::move(target)) {}
  const Target& target() const { return target_; }

 private:
  Target target_;
};

class RangeJob final : public Job {
 public:
  // What is not finished by then, because memory is short, fails.
  ~RangeJob() override { RangeJob::fail(out_of_memory()); }

  struct Piece {
    Read* read = nullptr;  // may be gone once the piece is done
    uint64_t owner = kNoOwner;
    uint64_t first = 0, end = 0;
    bool is_done = false;
  };

  // Before anything else. By ascending place; they may overlap. A read from the end is alone.
  void fill(std::vector<Piece> pieces);

  Part wanted() const override;
  Request request(const Part& part) const override;
  Verdict judge(const Part& asked, const Answer& answer) const override;
  void learn(const Verdict& verdict) override;
  bool begin(const Part& got, const Answer& answer) override;
  void take(std::span<const uint8_t> bytes) override;
  void succeed() override;
  void fail(const StoreFault& fault) override;
  bool cancel(uint64_t owner) override;
  bool may_hedge() const override { return true; }

 private:
  Verdict judge_range(const Part& asked, const Answer& answer) const;
  Verdict judge_whole(const Part& asked, const Answer& answer) const;
  bool has_changed(const Part& asked, const Answer& answer) const;
  void finish(Piece& piece, const StoreFault& fault);
  bool is_wanted() const;
  uint64_t first_wanted() const;

  std::vector<Piece> pieces_;
  const WebObject* object_ = nullptr;
  bool is_from_end_ = false;  // the only read is
  bool from_end_ = false;     // where the object ends is not known yet
  uint64_t asked_size_ = 0;   // of a read from the end
  uint64_t at_ = 0;           // the place of the next byte
  uint64_t last_ = 0;         // where the body ends
  uint64_t total_ = 0;
  std::string etag_;
};

}  // namespace loader::net
