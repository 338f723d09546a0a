// The leader's part: prepares batches, once for all jobs that are attached.
//
// Each job asks for one batch at a time, by epoch and position, and has as many ready as its options say. The leader
// keeps a *window* of prepared batches, a part of the order. The first batch of the window leaves it when no job is
// there any more. A job that takes nothing for the timeout, while others wait for room, is *left behind*: it holds
// nothing until it asks again. A job whose batch will not come is told so, and prepares batches alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "share_memory.h"
#include "share_socket.h"

namespace loader {

// What the jobs knew of the group when the leader before this one ended.
struct SharedGroup {
  size_t attached = 0;       // how many will come
  bool is_complete = false;  // all jobs had come once
};

class ShareServer {
 public:
  // `options` have all that `own` was opened with. `set`, `own` and what `options` point to must outlive the server.
  ShareServer(const l3_data_set& set, const l3_loader_options& options, const Pipeline& own, std::string terms,
              Descriptor listening, SharedGroup before);
  // Gives the jobs a moment to take what is prepared already.
  ~ShareServer();
  ShareServer(const ShareServer&) = delete;
  ShareServer& operator=(const ShareServer&) = delete;

  // From now on prepares nothing more, and tells no job how many there are. The destructor does the same.
  void end();

  // Must be called first. Starts the threads.
  l3_status open(l3_data_error* error);

  uint64_t prepared() const { return prepared_; }
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  struct Member {
    Descriptor socket;
    bool is_attached = false;  // its terms are ours
    bool wants = false;        // a batch, and it has not been answered
    bool is_left = false;      // behind
    uint64_t request = 0;
    Place place;                   // of the batch that it takes next
    uint32_t uses = 0;             // the number of the buffer that it copies
    std::set<uint32_t> knows;      // the buffers whose files it has
    uint64_t came = 0, moved = 0;  // when it connected, and when its place changed
  };
  struct Entry {
    std::unique_ptr<Job> job;
    Place at;
    uint32_t buffer;  // 0: there was no memory for it
  };

  void prepare();
  void add(std::unique_ptr<Job> job);
  void serve();
  void wait_for_events();
  void accept();
  bool read(Member& member);
  bool greet(Member& member, const Greeting& hello);
  void choose();
  void go_to(Place place);
  void answer();
  void remove_closed();
  bool send(Member& member, const Entry& entry);
  bool evict();
  void leave_behind();
  void tell_news();
  void drop_first();
  const Entry* find(Place place) const;
  bool reaches(Place from, Place to, size_t most) const;
  bool is_on_stream(const Member& member) const;
  bool is_coming(Place place) const;
  bool is_held(const Entry& entry) const;
  bool is_parked() const { return has_begun_ && steps_from(sharing_, next_.position) == 0; }
  size_t attached() const;
  Message news() const;

  const std::string terms_;
  const uint64_t timeout_;
  const size_t jobs_;
  const size_t room_;   // batches in the window
  const size_t reach_;  // a batch that so many steps ahead is waited for
  const Sharing sharing_;
  const SharedLayout layout_;
  const std::shared_ptr<SharedMemory> memory_;
  Pipeline pipeline_;

  std::atomic<uint64_t> prepared_{0};
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable work_;
  std::deque<Entry> window_;
  std::optional<Place> target_;  // where the pipeline shall go
  Place next_;                   // behind the window
  bool has_begun_ = false;
  bool runs_ = false;       // the pipeline has not ended its epoch
  bool is_broken_ = false;  // it cannot start threads
  bool ends_ = false;

  // Of the serving thread only.
  Descriptor listening_;
  std::vector<std::unique_ptr<Member>> members_;
  AwakeClock clock_;
  uint64_t now_ = 0, stuck_since_ = 0, told_at_ = 0, ends_at_ = 0;
  size_t told_jobs_ = 0, expected_;
  bool is_complete_, gathers_;
  Wake wake_;
  std::thread preparer_, server_;
};

}  // namespace loader
