// Prepares batches: threads open them, read and decode, and one consumer takes them in order.
//
// Batches are opened further ahead than they are decoded if the store is far: the files of many batches may be on their
// way, but only the next `prefetch` batches have memory for tensors. How far ahead grows while batches come late. Once
// a consumer has gone from one epoch to the next, files of the next one are read before an epoch ends.
//
// Two invariants. Images are begun in the order of delivery, so the consumer never waits for work that is queued after
// other work. And the resources of a job (its memory, its place in `jobs_`) are returned exactly once, by the code that
// removes it from `jobs_`.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "buckets.h"
#include "image_reads.h"
#include "loader/device.h"
#include "loader/resample.h"

namespace loader {

class Pipeline;

// Where a unit is in a tensor of images of different sizes.
struct UnitPlace {
  uint64_t at = 0;  // in the batch's memory
  Size size;
};

// A batch that is being prepared.
struct Job {
  Pipeline* pipeline = nullptr;
  uint64_t epoch = 0, number = 0;
  uint64_t begin = 0, position = 0;  // the positions before and after this batch
  uint32_t units = 0, repeats = 0;
  std::vector<int64_t> ids, labels;
  std::deque<Image> images;  // unit by unit; within a unit, tensor by tensor
  size_t next = 0;           // the next image to begin
  size_t left = 0;           // how many images are not finished
  bool is_open = false;      // `images` is complete
  bool is_decoding = false;  // it is one of the next batches, so its images may be decoded
  Image* fetched = nullptr;  // images that are present and not yet decoded, a stack
  bool is_ready = false;
  uint8_t* memory = nullptr;
  // If images differ in size: the bytes of all tensors, and for each tensor the size that its places have in common and
  // the place and size of each unit.
  uint64_t bytes = 0;
  std::vector<Size> rooms;
  std::vector<UnitPlace> places;
  DeviceSlot* slot = nullptr;
  std::vector<l3_failure> failures;    // at most one per unit
  std::optional<l3_data_error> fault;  // a failure of the whole batch
  uint32_t failed = 0;
  uint64_t arrived = 0;  // when the last file came that had to be waited for
  l3_batch_times times{};
};

class Pipeline {
 public:
  // Batches are prepared in `memory`, if it is not null.
  Pipeline(const l3_data_set& set, const l3_loader_options& options, std::shared_ptr<Device> device,
           std::shared_ptr<BatchMemory> memory = nullptr);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Must be called first.
  l3_status open(l3_data_error* error);

  const l3_loader_options& options() const { return options_; }
  // The random number of a unit, and the box that the options give it.
  uint64_t random_of(uint64_t unit, uint64_t epoch) const;
  const l3_box* box_of(uint64_t unit) const { return boxes_.empty() ? nullptr : &boxes_[unit]; }
  const l3_data_set& set() const { return set_; }
  const Units& units() const { return units_; }
  const Sharing& sharing() const { return sharing_; }
  const std::shared_ptr<BatchPool>& batches() const { return batches_; }

  // Where a batch has its labels on a device.
  uint64_t label_place(const Job& job) const { return units_.is_ragged() ? job.bytes : units_.batch_bytes(); }

  uint64_t label_bytes() const { return device_ != nullptr ? options_.batch_size * sizeof(int64_t) : 0; }

  // Discards prepared batches and moves to a position. Leaves out the batches that begin at the positions in `ahead`.
  l3_status start(uint64_t epoch, uint64_t position, std::set<uint64_t> ahead, l3_data_error* error);
  // Returns the next job that is ready. Returns null at the end of the epoch (`ended`), if none was ready in time, or
  // if the threads cannot be started (`error`).
  std::unique_ptr<Job> wait_for_job(uint32_t milliseconds, bool& ended, l3_data_error* error);
  void interrupt();
  // Returns the resources of a job that was not delivered.
  void discard(Job& job);

  // Nanoseconds since the pipeline began, and when it began on the monotonic clock, which other processes share.
  uint64_t now() const;
  uint64_t begun() const { return begun_ns_; }
  // Copies the last requests, oldest first, at most `capacity`. Returns how many there are.
  size_t requests(l3_request* requests, size_t capacity) const;

 private:
  static constexpr size_t kMaxClaimed = 32;
  // What a thread keeps for the images that it decodes.
  struct Scratch {
    std::vector<uint8_t> pixels;
    std::unique_ptr<uint8_t[]> workspace;  // of L3_WORKSPACE_BYTES
    Resampler resampler;
  };
  // Images that one thread begins in turn.
  struct Claim {
    std::array<Image*, kMaxClaimed> images{};
    size_t count = 0;
  };

  void start_threads();
  void stop_work();  // until start(); when it returns, no work is in progress
  void work();
  bool can_open() const;
  bool is_epoch_open() const;
  void go_to(uint64_t epoch, uint64_t position, std::set<uint64_t> ahead);
  bool may_open_ahead() const;
  void move_window();
  void skip_steps();
  std::deque<std::unique_ptr<Job>>::iterator job_to_deliver();
  Job* job_to_decode() const;
  void open_next(std::unique_lock<std::mutex>& lock);
  Job* job_to_begin();
  Claim claim(Job& job);
  void open_job(Job& job, const Share& share);
  bool place_units(Job& job) const;
  uint8_t* unit_memory(const Job& job, const Tensor& tensor, uint32_t place) const;
  uint64_t unit_bytes(const Job& job, const Tensor& tensor, uint32_t place) const;
  bool settle(Image& image, size_t known) const;
  void check_orientations(Job& job) const;
  bool take_memory(Job& job);
  l3_status place_images(Job& job);
  void begin(const Claim& claimed, Scratch& scratch, Claim& finished);
  void advance(Image& image, Scratch& scratch, Claim& finished);
  void decode_or_put_aside(Image& image, Scratch& scratch, Claim& finished);
  bool is_next(Image& image);
  bool fetch(Image& image);
  void submit(Image& image);
  static void finish_read(Read& read, const StoreFault& fault);
  void arrived(Image& image);
  bool decode_or_fetch_again(Image& image, Scratch& scratch);
  void decode(Image& image, Scratch& scratch);
  void keep_requests(const Image& image);
  l3_status check_head(Image& image, l3_info& info);
  l3_status check_channels(Image& image, uint32_t pixel_bytes);
  DeviceChange change_of(const Image& image, const l3_info& info, uint32_t channels) const;
  void done(const Claim& images);
  void finish(Job& job);
  l3_status decode_on_device(Job& job, std::span<Image* const> images, std::span<const uint32_t> places);
  l3_status decode_again_on_device(Job& job);
  l3_status zero_on_device(Job& job, const std::vector<bool>& failed);
  l3_status run(Job& job, const DeviceWork& work, std::span<l3_error> verdicts);
  void finish_on_cpu(Job& job);
  void finish_on_device(Job& job);
  l3_status take_slot(Job& job);
  static std::vector<bool> gather_failures(Job& job);
  void drop_units(Job& job, const std::vector<bool>& failed) const;
  Channel& channel();

  const l3_data_set& set_;
  l3_loader_options options_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<BatchMemory> memory_;
  Units units_;
  std::vector<l3_box> boxes_;
  Sharing sharing_;
  uint64_t epoch_ = 0;               // that the consumer is in
  uint64_t open_epoch_ = 0;          // whose batches are opened: the same, or the one after
  bool takes_all_epochs_ = false;    // the consumer went from one epoch to the next
  std::optional<EpochOrder> order_;  // of open_epoch_
  std::optional<Buckets> buckets_;   // likewise
  std::vector<const l3_model*> models_;
  std::vector<std::unique_ptr<l3_model, CloseModel>> own_models_;
  std::shared_ptr<BatchPool> batches_;
  FilePool files_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;
  const bool is_far_;
  const bool reads_cached_;  // try cached reads first
  std::mutex memory_mutex_;  // of Job::memory
  std::mutex channel_mutex_;
  std::unique_ptr<Channel> channel_;
  uint64_t begun_ns_;

  mutable std::mutex mutex_;
  std::condition_variable work_, ready_, idle_, slot_;
  std::deque<std::unique_ptr<Job>> jobs_;  // in the order of delivery
  Image* first_arrived_ = nullptr;
  Image* last_arrived_ = nullptr;
  std::vector<DeviceSlot*> free_slots_;
  uint64_t next_position_ = 0, next_number_ = 0;
  std::set<uint64_t> left_out_;      // where steps begin that were delivered before
  uint64_t in_flight_ = 0;           // bytes
  size_t ahead_ = 0;                 // how many batches may be open; at least `prefetch`
  size_t beginning_ = 0;             // threads that have claimed images and not submitted all of their reads
  size_t busy_ = 0;                  // threads at work, and images that wait for reads
  std::deque<l3_request> requests_;  // the last ones
  bool out_of_memory_ = false;       // a thread found no memory for a job
  bool opening_ = false, stopped_ = false, ends_ = false, interrupted_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace loader
