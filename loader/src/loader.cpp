// The functions of l3_loader.h: checks options, and hands out batches.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <set>
#include <system_error>
#include <thread>

#include "caller_structs.h"
#include "data_error.h"
#include "loader_options.h"
#include "pipeline.h"
#include "read_engine.h"
#include "share.h"
#include "trace.h"

using namespace loader;

struct l3_batch {
  std::shared_ptr<BatchPool> pool;
  uint8_t* memory = nullptr;
  pid_t process = 0;
  std::vector<l3_tensor> tensors;
  std::vector<UnitPlace> places;  // if images differ in size: unit by unit for each tensor
  std::vector<bool> are_planes;   // then for each tensor
  std::vector<int64_t> ids, labels;
  l3_batch_info info{};

  ~l3_batch() {
    if (pool != nullptr) pool->release(memory, nullptr, false);
  }
  l3_batch() = default;
  l3_batch(const l3_batch&) = delete;
  l3_batch& operator=(const l3_batch&) = delete;
};

struct l3_loader {
  l3_loader(const l3_data_set& set, const l3_loader_options& options, std::shared_ptr<Device> device)
      : pipeline(set, options, std::move(device)) {}

  Pipeline pipeline;
  std::unique_ptr<SharedSource> shared;  // instead of the pipeline, with l3_loader_options.share
  pid_t process = getpid();
  uint64_t position = 0;               // up to which all batches are delivered
  std::map<uint64_t, uint64_t> ahead;  // where batches that are delivered and not before that begin and end
  std::vector<l3_failure> failures;
  uint64_t failure_count = 0;
  std::deque<l3_batch_times> timeline;
  uint64_t asked = 0;

  bool is_forked() const { return getpid() != process; }
  size_t requests(l3_request* to, size_t capacity) const {
    return shared != nullptr ? shared->requests(to, capacity) : pipeline.requests(to, capacity);
  }
  void keep(const l3_failure& failure);
  void deliver(const Job& job);
};

namespace {

constexpr size_t kMaxFailures = 1000;
constexpr size_t kMaxTimes = 4096;
constexpr const char* kNull = "a pointer that must not be null is null";
constexpr const char* kForked = "this loader belongs to the parent process; open a new one after fork()";

l3_status wrong(l3_data_error* error, const char* reason) { return fail(error, L3_ERROR_ARGUMENT, "", reason); }

}  // namespace

void l3_loader::keep(const l3_failure& failure) {
  ++failure_count;
  if (failures.size() < kMaxFailures) failures.push_back(failure);
}

void l3_loader::deliver(const Job& job) {
  if (pipeline.options().delivery == L3_DELIVERY_ORDERED) {
    position = job.position;
    return;
  }
  ahead[job.begin] = job.position;
  while (!ahead.empty() && ahead.begin()->first == position) {
    position = ahead.begin()->second;
    ahead.erase(ahead.begin());
  }
}

l3_status l3_loader_open(const l3_data_set* set, const l3_loader_options* options, l3_loader** loader,
                         l3_data_error* error) {
  if (loader != nullptr) *loader = nullptr;
  if (set == nullptr || options == nullptr || loader == nullptr) return wrong(error, kNull);
  if (options->struct_size == 0) return wrong(error, "struct_size is not set: use the _init function");
  l3_loader_options own = l3_loader_options_init();
  std::memcpy(&own, options, std::min<size_t>(options->struct_size, sizeof own));
  if (const char* reason = complete_options(own); reason != nullptr) return wrong(error, reason);
  if (l3_cpu_target() == nullptr) return wrong(error, "L3_CPU names a processor target that this processor lacks");
  try {
    std::shared_ptr<Device> device;
    if (own.device == L3_DEVICE_CUDA) {
      l3_data_error why{};
      device = open_cuda_device(own.device_number, &why);
      if (device == nullptr) {
        if (error != nullptr) *error = why;
        return why.status;
      }
    }
    auto opened = std::make_unique<l3_loader>(*set, own, std::move(device));
    if (const l3_status status = opened->pipeline.open(error); status != L3_OK) return status;
    if (own.share != nullptr) opened->shared = share_batches(*set, own, opened->pipeline);
    opened->failures.reserve(kMaxFailures);
    *loader = opened.release();
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, "", "out of memory");
  } catch (const std::length_error&) {
    return fail(error, L3_ERROR_MEMORY, "", "out of memory");
  }
  return succeed(error);
}

void l3_loader_close(l3_loader* loader) {
  if (loader == nullptr || loader->is_forked()) return;  // its threads are in the parent
  delete loader;
}

l3_status l3_loader_describe(const l3_loader* loader, l3_loader_info* info) {
  if (loader == nullptr || info == nullptr) return L3_ERROR_ARGUMENT;
  const Pipeline& pipeline = loader->pipeline;
  l3_loader_info own = l3_loader_info_init();
  own.tensors = static_cast<uint32_t>(pipeline.units().tensors().size());
  own.units = pipeline.units().count();
  own.batches = steps_from(pipeline.sharing(), 0);
  own.threads = pipeline.options().threads;
  own.reading = pipeline.options().reading != L3_READING_THREADS && has_uring() ? L3_READING_URING : L3_READING_THREADS;
  if (loader->shared != nullptr && !loader->is_forked()) loader->shared->describe(own);
  return copy_out(own, info);
}

l3_status l3_loader_tensor(const l3_loader* loader, uint32_t number, l3_tensor* tensor) {
  if (loader == nullptr || tensor == nullptr) return L3_ERROR_ARGUMENT;
  const Pipeline& pipeline = loader->pipeline;
  if (number >= pipeline.units().tensors().size()) return L3_ERROR_ARGUMENT;
  *tensor = pipeline.units().tensors()[number].describe(pipeline.options().batch_size, nullptr);
  return L3_OK;
}

l3_status l3_loader_start(l3_loader* loader, uint64_t epoch, uint64_t position, l3_data_error* error) {
  return l3_loader_resume(loader, epoch, position, nullptr, 0, error);
}

l3_status l3_loader_resume(l3_loader* loader, uint64_t epoch, uint64_t position, const uint64_t* ahead, size_t count,
                           l3_data_error* error) {
  if (loader == nullptr || (ahead == nullptr && count > 0)) return wrong(error, kNull);
  if (loader->is_forked()) return wrong(error, kForked);
  try {
    const std::set<uint64_t> left_out(ahead, ahead + count);
    const l3_status status = loader->shared != nullptr ? loader->shared->start(epoch, position, error)
                                                       : loader->pipeline.start(epoch, position, left_out, error);
    if (status != L3_OK) return status;
    loader->ahead.clear();
    for (const uint64_t begin : left_out) {
      loader->ahead[begin] = share_at(loader->pipeline.sharing(), begin).next;
    }
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, "", "out of memory");
  }
  loader->position = position;
  return succeed(error);
}

l3_status l3_loader_ahead(const l3_loader* loader, uint64_t* ahead, size_t capacity, size_t* count) {
  if (loader == nullptr || count == nullptr || (ahead == nullptr && capacity > 0)) return L3_ERROR_ARGUMENT;
  *count = 0;
  for (const auto& [begin, end] : loader->ahead) {
    if (*count < capacity) ahead[*count] = begin;
    ++*count;
  }
  return L3_OK;
}

uint64_t l3_loader_batches_from(const l3_loader* loader, uint64_t position) {
  return loader != nullptr ? steps_from(loader->pipeline.sharing(), position) : 0;
}

namespace {

l3_status fail_next(l3_failure* failure, const l3_failure& why) {
  if (failure != nullptr) *failure = why;
  return why.error.status;
}

l3_failure failure_of(uint64_t epoch, const l3_data_error& error) { return {epoch, L3_DATA_NONE, error}; }

void set_size(l3_tensor& told, bool planes, Size size) {
  told.shape[planes ? 2 : 1] = size.height;
  told.shape[planes ? 3 : 2] = size.width;
}

std::unique_ptr<l3_batch> make_batch(const Pipeline& pipeline, Job& job) {
  auto batch = std::make_unique<l3_batch>();
  batch->process = getpid();
  batch->ids = std::move(job.ids);
  batch->labels = std::move(job.labels);
  batch->places = std::move(job.places);
  for (size_t i = 0; i < pipeline.units().tensors().size(); ++i) {
    const Tensor& tensor = pipeline.units().tensors()[i];
    batch->tensors.push_back(tensor.describe(job.units, job.memory));
    if (!pipeline.units().is_ragged()) continue;
    l3_tensor& told = batch->tensors.back();
    set_size(told, tensor.wanted.layout == L3_LAYOUT_CHW, job.rooms[i]);
    batch->are_planes.push_back(tensor.wanted.layout == L3_LAYOUT_CHW);
    told.data = job.units > 0 ? job.memory + batch->places[i * job.units].at : nullptr;
  }
  l3_batch_info& info = batch->info;
  info = l3_batch_info_init();
  info.units = job.units;
  info.repeats = job.repeats;
  info.failed = job.failed;
  info.epoch = job.epoch;
  info.number = job.number;
  info.tensors = batch->tensors.data();
  info.ids = batch->ids.data();
  info.labels = batch->labels.data();
  if (pipeline.batches()->device() != nullptr) {
    info.device_labels.data = job.memory + pipeline.label_place(job);
    info.device_labels.type = L3_VALUE_I64;
    info.device_labels.dimensions = 1;
    info.device_labels.shape[0] = job.units;
  }
  // From here on the batch owns the memory.
  batch->pool = pipeline.batches();
  batch->memory = std::exchange(job.memory, nullptr);
  return batch;
}

}  // namespace

l3_status l3_loader_next(l3_loader* loader, uint32_t milliseconds, l3_next* next, l3_batch** batch, uint64_t* position,
                         l3_failure* failure) {
  if (next != nullptr) *next = L3_NEXT_WAITING;
  if (batch != nullptr) *batch = nullptr;
  l3_data_error error{};
  if (loader == nullptr || next == nullptr || batch == nullptr) {
    (void)!wrong(&error, kNull);
    return fail_next(failure, failure_of(0, error));
  }
  if (loader->is_forked()) {
    (void)!wrong(&error, kForked);
    return fail_next(failure, failure_of(0, error));
  }
  Pipeline& pipeline = loader->pipeline;
  if (position != nullptr) *position = loader->position;
  if (loader->asked == 0) loader->asked = pipeline.now();
  std::unique_ptr<Job> job;
  try {
    for (;;) {
      bool ended = false;
      job = loader->shared != nullptr ? loader->shared->wait_for_job(milliseconds, ended, &error)
                                      : pipeline.wait_for_job(milliseconds, ended, &error);
      if (job == nullptr) {
        if (error.status != L3_OK) return fail_next(failure, failure_of(0, error));
        if (ended) {
          *next = L3_NEXT_END;
          loader->asked = 0;
        }
        return L3_OK;
      }
      loader->deliver(*job);
      if (position != nullptr) *position = loader->position;
      for (const l3_failure& one : job->failures) loader->keep(one);
      std::optional<l3_failure> why;
      if (job->fault) {
        why = failure_of(job->epoch, *job->fault);
        loader->keep(*why);
      } else if (!job->failures.empty() && (pipeline.options().on_error == L3_ON_ERROR_FAIL ||
                                            (job->units == 0 && pipeline.sharing().world_size > 1))) {
        why = job->failures.front();
      }
      if (why) {
        pipeline.discard(*job);
        loader->asked = 0;
        return fail_next(failure, *why);
      }
      if (job->units > 0) break;
      pipeline.discard(*job);  // it has no units left: take the next one
    }
    std::unique_ptr<l3_batch> made = make_batch(pipeline, *job);
    job->times.asked = loader->asked;
    job->times.given = pipeline.now();
    loader->asked = 0;
    made->info.position = loader->position;
    made->info.times = job->times;
    loader->timeline.push_back(job->times);
    if (loader->timeline.size() > kMaxTimes) loader->timeline.pop_front();
    *batch = made.release();
    *next = L3_NEXT_BATCH;
  } catch (const std::bad_alloc&) {
    if (job != nullptr) pipeline.discard(*job);
    (void)!fail(&error, L3_ERROR_MEMORY, "", "out of memory");
    return fail_next(failure, failure_of(0, error));
  }
  return L3_OK;
}

void l3_loader_interrupt(l3_loader* loader) {
  if (loader == nullptr || loader->is_forked()) return;
  loader->shared != nullptr ? loader->shared->interrupt() : loader->pipeline.interrupt();
}

l3_status l3_loader_failures(const l3_loader* loader, l3_failure* failures, size_t capacity, uint64_t* count) {
  if (loader == nullptr || count == nullptr || (failures == nullptr && capacity > 0)) return L3_ERROR_ARGUMENT;
  *count = loader->failure_count;
  std::copy_n(loader->failures.begin(), std::min(capacity, loader->failures.size()), failures);
  return L3_OK;
}

l3_status l3_loader_explain(const l3_loader* loader, uint64_t epoch, uint64_t sample, l3_explanation* explanation,
                            l3_data_error* error) {
  if (loader == nullptr || explanation == nullptr) return wrong(error, kNull);
  const l3_data_set& set = loader->pipeline.set();
  l3_data_sample told = l3_data_sample_init();
  if (l3_data_get(&set, sample, &told) != L3_OK) return wrong(error, "the data set has no sample of this number");
  const uint64_t unit = loader->pipeline.units().unit_of(told.group);
  if (told.kind != L3_DATA_IMAGE || unit == L3_DATA_NONE)
    return wrong(error, "the loader does not deliver this sample");
  const l3_loader_options& options = loader->pipeline.options();
  uint32_t orientation = 1;
  if (options.orient != 0) {
    std::unique_ptr<uint8_t[]> file(new (std::nothrow) uint8_t[told.size]);
    if (file == nullptr) return fail(error, L3_ERROR_MEMORY, "", "out of memory");
    if (const l3_status status = l3_data_read(&set, sample, file.get(), told.size, error); status != L3_OK) {
      return status;
    }
    orientation = orientation_in(file.get(), told.size);
  }
  const uint64_t random = loader->pipeline.random_of(unit, epoch);
  Steps steps;
  if (const char* reason =
          draw_steps(options, {told.width, told.height}, orientation, random, loader->pipeline.box_of(unit), steps)) {
    return wrong(error, reason);
  }
  const Jitter jitter = draw_jitter(options, random);
  const auto box_of = [](const Box& box) { return l3_box{box.x, box.y, box.width, box.height}; };
  l3_explanation own = l3_explanation_init();
  own.orientation = steps.orientation;
  own.box = box_of(steps.box);
  own.resized_width = steps.resized.width;
  own.resized_height = steps.resized.height;
  own.crop = box_of(steps.window);
  own.left = steps.left;
  own.top = steps.top;
  own.width = steps.output().width;
  own.height = steps.output().height;
  own.flip = steps.mirrored_x ? 1 : 0;
  own.flip_vertical = steps.mirrored_y ? 1 : 0;
  own.turns = steps.turns;
  own.brightness = jitter.brightness;
  own.contrast = jitter.contrast;
  own.saturation = jitter.saturation;
  own.hue = jitter.hue;
  (void)!succeed(error);
  return copy_out(own, explanation);
}

l3_status l3_batch_unit(const l3_batch* batch, uint32_t number, uint32_t unit, l3_tensor* tensor) {
  if (batch == nullptr || tensor == nullptr) return L3_ERROR_ARGUMENT;
  if (number >= batch->tensors.size() || unit >= batch->info.units) return L3_ERROR_ARGUMENT;
  l3_tensor told = batch->tensors[number];
  const uint64_t value = value_bytes(told.type);
  uint64_t bytes = value;
  for (uint32_t i = 1; i < 4; ++i) bytes *= told.shape[i];
  if (batch->places.empty()) {
    told.data = static_cast<uint8_t*>(told.data) + unit * bytes;
  } else {
    const UnitPlace& place = batch->places[size_t{number} * batch->info.units + unit];
    told.data = batch->memory + place.at;
    set_size(told, batch->are_planes[number], place.size);
  }
  told.dimensions = 3;
  std::copy(told.shape + 1, told.shape + 4, told.shape);
  told.shape[3] = 0;
  *tensor = told;
  return L3_OK;
}

l3_status l3_batch_describe(const l3_batch* batch, l3_batch_info* info) {
  if (batch == nullptr || info == nullptr) return L3_ERROR_ARGUMENT;
  return copy_out(batch->info, info);
}

void l3_batch_release(l3_batch* batch, void* stream) {
  if (batch == nullptr || batch->process != getpid()) return;  // it belongs to the parent
  batch->pool->release(std::exchange(batch->memory, nullptr), stream, true);
  delete batch;
}

l3_status l3_loader_timeline(const l3_loader* loader, l3_batch_times* times, size_t capacity, size_t* count) {
  if (loader == nullptr || count == nullptr || (times == nullptr && capacity > 0)) return L3_ERROR_ARGUMENT;
  *count = loader->timeline.size();
  std::copy_n(loader->timeline.begin(), std::min(capacity, loader->timeline.size()), times);
  return L3_OK;
}

l3_status l3_loader_requests(const l3_loader* loader, l3_request* requests, size_t capacity, size_t* count) {
  if (loader == nullptr || count == nullptr || (requests == nullptr && capacity > 0)) return L3_ERROR_ARGUMENT;
  *count = loader->requests(requests, capacity);
  return L3_OK;
}

l3_status l3_loader_write_trace(const l3_loader* loader, const char* path, l3_data_error* error) {
  if (loader == nullptr || path == nullptr) return wrong(error, kNull);
  try {
    std::vector<l3_request> requests(loader->requests(nullptr, 0));
    requests.resize(std::min(requests.size(), loader->requests(requests.data(), requests.size())));
    return write_trace({loader->timeline.begin(), loader->timeline.end()}, requests, path, error);
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, "", "out of memory");
  }
}
