// A job's part in sharing: asks the leader for one batch after the other, and copies them. Becomes the leader if there
// is none.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "share.h"
#include "share_server.h"

namespace loader {

// Options with all they point to.
class OwnedOptions {
 public:
  explicit OwnedOptions(const l3_loader_options& options);
  OwnedOptions(const OwnedOptions&) = delete;
  OwnedOptions& operator=(const OwnedOptions&) = delete;

  const l3_loader_options& get() const { return options_; }
  const std::string& share() const { return share_; }

 private:
  l3_loader_options options_;
  std::vector<l3_tensor_options> tensors_;
  std::vector<std::string> roles_;
  std::vector<uint64_t> groups_;
  std::vector<l3_box> boxes_;
  std::string share_;
};

class SharedBatches final : public SharedSource {
 public:
  SharedBatches(const l3_data_set& set, const l3_loader_options& options, Pipeline& own);
  ~SharedBatches() override;
  SharedBatches(const SharedBatches&) = delete;
  SharedBatches& operator=(const SharedBatches&) = delete;

  l3_status start(uint64_t epoch, uint64_t position, l3_data_error* error) override;
  std::unique_ptr<Job> wait_for_job(uint32_t milliseconds, bool& ended, l3_data_error* error) override;
  void interrupt() override;
  size_t requests(l3_request* requests, size_t capacity) const override;
  void describe(l3_loader_info& info) const override;

 private:
  bool is_end(Place place) const { return steps_from(own_.sharing(), place.position) == 0; }
  std::unique_ptr<Job> wait_alone(uint32_t milliseconds, bool& ended, l3_data_error* error);
  void run();
  void wait_for_events();
  void attach();
  void lead(Descriptor listening);
  void greet();
  void leave();
  bool read();
  bool accept(const Greeting& said, size_t size, Descriptor passed);
  void take(const SharedView& view, Place place);
  bool tell();
  void judge();
  void go_alone();
  Message state() const;

  const l3_data_set& set_;
  const OwnedOptions options_;
  Pipeline& own_;
  const std::string terms_, name_;
  const SharedLayout layout_;
  const uint64_t timeout_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable ready_;
  std::deque<std::unique_ptr<Job>> jobs_;  // ready
  Place given_;                            // behind the last one that the consumer took
  Place next_;                             // behind the last one that is ready
  uint64_t start_ = 0;                     // how often the consumer went elsewhere
  uint64_t number_ = 0;                    // of the next batch since then
  bool is_alone_ = false;                  // until the epoch ends, the own pipeline prepares batches from next_ on
  bool own_begun_ = false;                 // it does
  bool interrupted_ = false, ends_ = false;
  std::string refusal_;
  uint32_t attached_ = 0;
  uint64_t from_others_ = 0, alone_ = 0;
  std::unique_ptr<ShareServer> server_;  // of the leader

  // Of the thread only.
  Descriptor socket_;
  bool is_welcome_ = false;
  bool is_silent_ = false;  // the leader said nothing for too long, or nonsense, and nothing since
  std::map<uint32_t, SharedView> views_;
  SharedGroup group_;
  Message told_;  // the last state
  uint64_t told_start_ = 0;
  bool is_asked_ = false;  // for a batch, without an answer yet
  AwakeClock clock_;
  uint64_t now_ = 0, heard_at_ = 0, asked_at_ = 0, attach_at_ = 0, pause_ = 0;
  Wake wake_;
  std::thread thread_;
};

}  // namespace loader
