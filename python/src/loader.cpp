#include "loader.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "data_set.h"
#include "l3/l3_loader.h"
#include "loader/device.h"
#include "raise.h"
#include "tensor.h"
#include "turns.h"

namespace l3_python {
namespace {

using namespace nb::literals;

// How long to wait without the interpreter's lock before checking for signals.
constexpr uint32_t kMilliseconds = 100;
constexpr size_t kMaxFailures = 1000;

// Returns a batch to its loader when its last tensor is gone.
class BatchMemory : public Memory {
 public:
  BatchMemory(l3_batch* batch, void* data, std::shared_ptr<loader::Device> device, void* usual_stream)
      : batch_(batch), data_(data), device_(std::move(device)), usual_stream_(usual_stream) {}
  ~BatchMemory() override {
    // Releasing a batch takes one stream. The device learns of the others; the memory begins with the first tensor.
    for (size_t i = 1; i < streams_.size() && device_ != nullptr; ++i) device_->use_until(data_, streams_[i]);
    l3_batch_release(batch_, streams_.empty() ? usual_stream_ : streams_[0]);
  }

  void used_by(void* stream) override {
    const std::lock_guard lock(mutex_);
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  }

 private:
  l3_batch* batch_;
  void* data_;
  std::shared_ptr<loader::Device> device_;
  void* usual_stream_;
  std::mutex mutex_;
  std::vector<void*> streams_;
};

struct Batch {
  std::shared_ptr<BatchMemory> memory;
  l3_batch_info info;
  DLDevice device;
  void* usual_stream;
  l3_batch* batch;  // alive as long as `memory` is

  Tensor tensor_of(const l3_tensor& from) const {
    Tensor tensor;
    tensor.memory = memory;
    tensor.data = from.data;
    tensor.type = from.type;
    tensor.shape.assign(from.shape, from.shape + from.dimensions);
    tensor.device = device;
    tensor.usual_stream = usual_stream;
    return tensor;
  }
  l3_tensor unit(uint32_t number, uint32_t place) const {
    l3_tensor told{};
    (void)!l3_batch_unit(batch, number, place, &told);
    return told;
  }
  // Numbers in host memory. They are few, so they are copied: a copy does not keep the batch alive.
  Tensor numbers(const int64_t* from) const {
    Tensor tensor = allocate_tensor({static_cast<int64_t>(info.units)}, kInt64);
    if (info.units != 0) std::memcpy(tensor.data, from, info.units * sizeof(int64_t));
    return tensor;
  }
};

nb::dict dict_of(const l3_batch_times& times) {
  nb::dict shown;
  shown["begun"] = times.begun;
  shown["fetched"] = times.fetched;
  shown["copy_begun"] = times.copy_begun;
  shown["copied"] = times.copied;
  shown["decode_begun"] = times.decode_begun;
  shown["decoded"] = times.decoded;
  shown["asked"] = times.asked;
  shown["given"] = times.given;
  shown["reading"] = times.reading;
  shown["decoding"] = times.decoding;
  shown["converting"] = times.converting;
  shown["bytes_read"] = times.bytes_read;
  shown["bytes_out"] = times.bytes_out;
  return shown;
}

nb::dict dict_of(const l3_request& request) {
  nb::dict shown;
  shown["batch"] = request.batch;
  shown["sample"] = request.sample;
  shown["offset"] = request.offset;
  shown["bytes"] = request.bytes;
  shown["queued"] = request.queued;
  shown["sent"] = request.sent;
  shown["answered"] = request.answered;
  shown["finished"] = request.finished;
  shown["attempts"] = request.attempts;
  shown["shared"] = request.shared;
  shown["hedged"] = request.hedged != 0;
  shown["failed"] = request.failed != 0;
  shown["cached"] = request.cached != 0;
  return shown;
}

uint64_t number_in(const nb::dict& options, const char* name) { return nb::cast<uint64_t>(options[name]); }
uint32_t small_number_in(const nb::dict& options, const char* name) { return nb::cast<uint32_t>(options[name]); }

template <size_t kCount>
void copy_floats(const nb::object& from, float (&to)[kCount]) {
  const auto numbers = nb::cast<std::vector<float>>(from);
  std::copy_n(numbers.begin(), std::min(numbers.size(), kCount), to);
}

struct Failures {
  std::vector<l3_failure> all;
  std::vector<std::string> names;
  uint64_t count = 0;
};

class Loader {
 public:
  Loader(const DataSet& set, const nb::dict& options, const nb::list& wanted, const nb::object& groups);
  ~Loader() {
    const nb::gil_scoped_release unlocked;
    close();
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Any thread may close a loader in which another thread waits.
  void close() {
    is_closed_ = true;
    // In a forked child everything belongs to the parent, and its locks may stay locked forever.
    if (is_forked()) return;
    {
      // `closing_` keeps the loader alive while it is interrupted.
      const std::lock_guard lock(closing_);
      if (loader_ != nullptr) l3_loader_interrupt(loader_);
    }
    const std::lock_guard in_use(turns_);
    try {
      last_failures_ = failures_of(loader_);
    } catch (const std::bad_alloc&) {  // they are lost
    }
    const std::lock_guard lock(closing_);
    l3_loader_close(std::exchange(loader_, nullptr));
    set_.reset();
  }
  void close_at_end() {
    is_ending_ = true;
    close();
  }
  bool is_closed() const { return is_closed_; }

  void start(uint64_t epoch, uint64_t position, const std::vector<uint64_t>& ahead);
  std::vector<uint64_t> ahead() const;
  // Returns None at the end of the epoch.
  nb::object next();
  uint64_t position() const { return position_; }

  nb::dict explain(uint64_t epoch, uint64_t sample) const;
  nb::dict describe() const;
  nb::list tensors() const;
  uint64_t batches_from(uint64_t position) const;
  nb::tuple failures() const;
  nb::list timeline() const;
  nb::list requests() const;
  void write_trace(const nb::bytes& path) const;

 private:
  template <typename Item, typename Copy>
  nb::list list_of(size_t most, Copy copy) const;
  Failures failures_of(const l3_loader* loader) const;
  // Calls the library from one thread at a time, without the interpreter's lock.
  template <class Body>
  auto with_loader(const Body& body) const {
    const nb::gil_scoped_release unlocked;
    if (is_forked()) return body(is_closed_ ? nullptr : loader_);
    const auto call = [&] {
      const std::lock_guard in_use(turns_);
      return body(loader_);
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      wait_for_end();
    } else {
      const auto result = call();
      wait_for_end();
      return result;
    }
  }
  // When the interpreter ends, a thread that asks for its lock is unwound, which C++ does not survive. Such threads
  // wait here for the end of the process instead.
  void wait_for_end() const {
    while (is_ending_ && getpid() != static_cast<pid_t>(gettid())) pause();
  }
  bool is_forked() const { return getpid() != process_; }
  [[noreturn]] static void raise_closed() { throw nb::value_error("the loader is closed"); }
  // In a forked child the library refuses all calls.
  void raise_if_forked(const char* reason) const {
    if (!is_forked()) return;
    const std::string text = std::string(reason[0] != 0 ? reason : "a loader does not survive a fork") +
                             ": make the loader in the process that uses it, or start processes with 'spawn'";
    PyErr_SetString(PyExc_RuntimeError, text.c_str());
    throw nb::python_error();
  }

  std::shared_ptr<const l3_data_set> set_;
  l3_loader* loader_ = nullptr;
  mutable Turns turns_;
  std::mutex closing_;
  Failures last_failures_;  // of a loader that is closed
  std::atomic<bool> is_closed_{false}, is_ending_{false};
  std::atomic<uint64_t> position_{0};
  DLDevice device_{kDLCPU, 0};
  std::shared_ptr<loader::Device> opened_;  // on a GPU
  void* usual_stream_ = nullptr;
  pid_t process_ = getpid();
};

Loader::Loader(const DataSet& set, const nb::dict& options, const nb::list& wanted, const nb::object& groups)
    : set_(set.set) {
  l3_loader_options all = l3_loader_options_init();
  all.batch_size = small_number_in(options, "batch_size");
  all.seed = number_in(options, "seed");
  all.rank = small_number_in(options, "rank");
  all.world_size = small_number_in(options, "world_size");
  all.order = small_number_in(options, "order");
  all.window = small_number_in(options, "window");
  all.last_batch = small_number_in(options, "ending");
  all.on_error = small_number_in(options, "on_error");
  all.crop = small_number_in(options, "crop");
  all.crop_width = small_number_in(options, "crop_width");
  all.crop_height = small_number_in(options, "crop_height");
  all.flip = small_number_in(options, "flip");
  all.device = small_number_in(options, "device");
  all.device_number = small_number_in(options, "device_number");
  all.threads = small_number_in(options, "threads");
  all.prefetch = small_number_in(options, "prefetch");
  all.reading = small_number_in(options, "reading");
  all.delivery = small_number_in(options, "delivery");
  all.max_bytes_in_flight = number_in(options, "max_bytes_in_flight");
  // The library copies the name while it opens the loader.
  const auto share = options.contains("share") ? nb::cast<std::string>(options["share"]) : std::string();
  if (options.contains("share")) {
    all.share = share.c_str();
    all.jobs = small_number_in(options, "jobs");
    all.share_timeout_ms = small_number_in(options, "share_timeout_ms");
  }
  all.orient = small_number_in(options, "orient");
  all.box = small_number_in(options, "box");
  all.resize = small_number_in(options, "resize");
  all.resize_width = small_number_in(options, "resize_width");
  all.resize_height = small_number_in(options, "resize_height");
  all.pad = small_number_in(options, "pad");
  all.pad_width = small_number_in(options, "pad_width");
  all.pad_height = small_number_in(options, "pad_height");
  all.pad_mode = small_number_in(options, "pad_mode");
  all.flip_vertical = small_number_in(options, "flip_vertical");
  all.turn = small_number_in(options, "turn");
  all.batching = small_number_in(options, "batching");
  all.pad_multiple = small_number_in(options, "pad_multiple");
  all.bucket_by = small_number_in(options, "bucket_by");
  all.brightness = nb::cast<float>(options["brightness"]);
  all.contrast = nb::cast<float>(options["contrast"]);
  all.saturation = nb::cast<float>(options["saturation"]);
  all.hue = nb::cast<float>(options["hue"]);
  copy_floats(options["scale"], all.scale);
  copy_floats(options["ratio"], all.ratio);
  // Four numbers for each box.
  const auto edges = nb::cast<std::vector<uint32_t>>(options["boxes"]);
  std::vector<l3_box> boxes(edges.size() / 4);
  for (size_t i = 0; i < boxes.size(); ++i) {
    boxes[i] = {edges[4 * i], edges[4 * i + 1], edges[4 * i + 2], edges[4 * i + 3]};
  }
  boxes.reserve(1);  // an empty list must not be a null pointer
  all.boxes = boxes.data();
  all.box_count = boxes.size();
  all.limits = {number_in(options, "max_pixels"), number_in(options, "max_bytes"), 0};
  usual_stream_ = reinterpret_cast<void*>(number_in(options, "stream"));
  if (all.device == L3_DEVICE_CUDA) device_ = {kDLCUDA, static_cast<int32_t>(all.device_number)};

  // Each row is (role or None, type or "", planes, as_colours, scales, biases, options).
  std::vector<l3_tensor_options> tensors(nb::len(wanted));
  std::vector<std::string> roles(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const nb::handle row = wanted[i];
    l3_tensor_options& tensor = tensors[i];
    tensor = l3_tensor_options{};
    if (const nb::object role = row[0]; !role.is_none()) {
      roles[i] = nb::cast<std::string>(role);
      tensor.role = roles[i].data();
      tensor.role_size = roles[i].size();
    }
    const auto type = nb::cast<std::string>(nb::object(row[1]));
    tensor.type = type.empty() ? uint32_t{L3_VALUE_STORED} : type_named(type);
    tensor.layout = nb::cast<bool>(nb::object(row[2])) ? L3_LAYOUT_CHW : L3_LAYOUT_HWC;
    tensor.as_colours = nb::cast<bool>(nb::object(row[3])) ? 1 : 0;
    copy_floats(row[4], tensor.scale);
    copy_floats(row[5], tensor.bias);
    const auto more = nb::cast<nb::dict>(nb::object(row[6]));
    tensor.interpolation = small_number_in(more, "interpolation");
    tensor.channels = small_number_in(more, "channels");
    tensor.alpha = small_number_in(more, "alpha");
    tensor.bits = small_number_in(more, "bits");
    tensor.jitter = small_number_in(more, "jitter");
    copy_floats(more["background"], tensor.background);
    if (const nb::object value = more["pad_value"]; !value.is_none()) {
      tensor.has_pad_value = 1;
      copy_floats(value, tensor.pad_value);
    }
  }
  all.tensors = tensors.data();
  all.tensor_count = static_cast<uint32_t>(tensors.size());
  std::vector<uint64_t> units;
  if (!groups.is_none()) {
    units = nb::cast<std::vector<uint64_t>>(groups);
    units.reserve(1);  // an empty list must not be a null pointer, which means all groups
    all.groups = units.data();
    all.group_count = units.size();
  }

  l3_data_error error{};
  l3_status status = L3_OK;
  {
    const nb::gil_scoped_release unlocked;
    status = l3_loader_open(set_.get(), &all, &loader_, &error);
    if (status == L3_OK && all.device == L3_DEVICE_CUDA) opened_ = loader::open_cuda_device(all.device_number, &error);
  }
  if (status != L3_OK) raise_error(error);
}

void Loader::start(uint64_t epoch, uint64_t position, const std::vector<uint64_t>& ahead) {
  l3_data_error error{};
  const l3_status status = with_loader([&](l3_loader* loader) {
    return loader == nullptr ? L3_OK : l3_loader_resume(loader, epoch, position, ahead.data(), ahead.size(), &error);
  });
  if (is_closed()) raise_closed();
  if (status != L3_OK) {
    raise_if_forked(error.reason);
    raise_error(error);
  }
  position_ = position;
}

std::vector<uint64_t> Loader::ahead() const {
  std::vector<uint64_t> all;
  with_loader([&](l3_loader* loader) {
    size_t count = 0;
    if (loader == nullptr || l3_loader_ahead(loader, nullptr, 0, &count) != L3_OK) return;
    all.resize(count);
    (void)!l3_loader_ahead(loader, all.data(), all.size(), &count);
  });
  return all;
}

nb::object Loader::next() {
  for (;;) {
    l3_next what = L3_NEXT_END;
    l3_batch* batch = nullptr;
    l3_failure failure{};
    uint64_t position = position_;
    std::string name;
    const l3_status status = with_loader([&](l3_loader* loader) {
      if (loader == nullptr) return L3_OK;
      const l3_status got = l3_loader_next(loader, kMilliseconds, &what, &batch, &position, &failure);
      if (got != L3_OK) name = sample_name(set_.get(), failure.sample);
      return got;
    });
    if (status != L3_OK) {
      raise_if_forked(failure.error.reason);
      position_ = position;
      // Loaders with the same `share` have other options.
      if (failure.error.status == L3_ERROR_ARGUMENT && failure.sample == L3_DATA_NONE) raise_error(failure.error);
      raise_sample_error(failure.error, failure.sample, name);
    }
    if (what == L3_NEXT_BATCH) {
      Batch made{nullptr, l3_batch_info_init(), device_, usual_stream_, batch};
      (void)!l3_batch_describe(batch, &made.info);
      made.memory = std::make_shared<BatchMemory>(batch, made.info.tensors[0].data, opened_, usual_stream_);
      position_ = made.info.position;
      return nb::cast(std::move(made));
    }
    if (is_closed()) raise_closed();
    if (what == L3_NEXT_END) return nb::none();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::dict Loader::explain(uint64_t epoch, uint64_t sample) const {
  l3_explanation told = l3_explanation_init();
  l3_data_error error{};
  const l3_status status = with_loader([&](l3_loader* loader) {
    return loader == nullptr ? L3_OK : l3_loader_explain(loader, epoch, sample, &told, &error);
  });
  if (is_closed()) raise_closed();
  if (status != L3_OK) raise_error(error);
  const auto box_of = [](const l3_box& box) { return nb::make_tuple(box.x, box.y, box.width, box.height); };
  nb::dict shown;
  shown["orientation"] = told.orientation;
  shown["box"] = box_of(told.box);
  shown["resized"] = nb::make_tuple(told.resized_height, told.resized_width);
  shown["crop"] = box_of(told.crop);
  shown["padding"] = nb::make_tuple(told.left, told.top);
  shown["size"] = nb::make_tuple(told.height, told.width);
  shown["flip"] = told.flip != 0;
  shown["flip_vertical"] = told.flip_vertical != 0;
  shown["turns"] = told.turns;
  shown["brightness"] = told.brightness;
  shown["contrast"] = told.contrast;
  shown["saturation"] = told.saturation;
  shown["hue"] = told.hue;
  return shown;
}

nb::dict Loader::describe() const {
  l3_loader_info info = l3_loader_info_init();
  with_loader([&](l3_loader* loader) {
    if (loader != nullptr) (void)!l3_loader_describe(loader, &info);
  });
  if (is_closed()) raise_closed();
  nb::dict shown;
  shown["tensors"] = info.tensors;
  shown["units"] = info.units;
  shown["batches"] = info.batches;
  shown["threads"] = info.threads;
  shown["reading"] = info.reading == L3_READING_URING ? "uring" : "threads";
  shown["jobs"] = info.jobs;
  shown["from_other_jobs"] = info.from_other_jobs;
  shown["prepared_for_all"] = info.prepared_for_all;
  shown["prepared_alone"] = info.prepared_alone;
  return shown;
}

nb::list Loader::tensors() const {
  std::vector<l3_tensor> all;
  with_loader([&](l3_loader* loader) {
    l3_tensor tensor{};
    while (loader != nullptr && l3_loader_tensor(loader, static_cast<uint32_t>(all.size()), &tensor) == L3_OK) {
      all.push_back(tensor);
    }
  });
  nb::list shown;
  for (const l3_tensor& tensor : all) {
    const std::vector<uint64_t> shape(tensor.shape, tensor.shape + tensor.dimensions);
    shown.append(nb::make_tuple(nb::tuple(nb::cast(shape)), type_name(tensor.type)));
  }
  return shown;
}

uint64_t Loader::batches_from(uint64_t position) const {
  return with_loader(
      [&](l3_loader* loader) { return loader != nullptr ? l3_loader_batches_from(loader, position) : uint64_t{0}; });
}

Failures Loader::failures_of(const l3_loader* loader) const {
  if (loader == nullptr) return last_failures_;
  Failures found;
  found.all.resize(kMaxFailures);
  if (l3_loader_failures(loader, found.all.data(), found.all.size(), &found.count) != L3_OK) return {};
  found.all.resize(static_cast<size_t>(std::min<uint64_t>(found.count, kMaxFailures)));
  for (const l3_failure& failure : found.all) found.names.push_back(sample_name(set_.get(), failure.sample));
  return found;
}

nb::tuple Loader::failures() const {
  const auto [all, names, count] = with_loader([&](l3_loader* loader) { return failures_of(loader); });
  const auto text_of = [](const char* text) { return nb::steal<nb::object>(PyUnicode_DecodeFSDefault(text)); };
  const auto number_of = [](uint64_t number) { return number == UINT64_MAX ? nb::none() : nb::cast(number); };
  nb::list shown;
  for (size_t i = 0; i < all.size(); ++i) {
    shown.append(nb::make_tuple(all[i].epoch, number_of(all[i].sample), text_of(names[i].c_str()),
                                text_of(all[i].error.reason), text_of(all[i].error.file),
                                number_of(all[i].error.offset)));
  }
  return nb::make_tuple(shown, count);
}

// Copies a list of the loader that `copy` fills, as l3_loader_timeline does.
template <typename Item, typename Copy>
nb::list Loader::list_of(size_t most, Copy copy) const {
  if (is_closed()) raise_closed();
  std::vector<Item> all(most);
  size_t count = 0;
  with_loader([&](l3_loader* loader) {
    if (loader != nullptr) (void)!copy(loader, all.data(), all.size(), &count);
  });
  all.resize(std::min(count, most));
  nb::list shown;
  for (const Item& one : all) shown.append(dict_of(one));
  return shown;
}

nb::list Loader::timeline() const { return list_of<l3_batch_times>(4096, &l3_loader_timeline); }
nb::list Loader::requests() const { return list_of<l3_request>(65536, &l3_loader_requests); }

void Loader::write_trace(const nb::bytes& path) const {
  const std::string name(path.c_str(), path.size());
  l3_data_error error{};
  const l3_status status = with_loader([&](l3_loader* loader) {
    return loader == nullptr ? L3_OK : l3_loader_write_trace(loader, name.c_str(), &error);
  });
  if (is_closed()) raise_closed();
  if (status != L3_OK) raise_error(error);
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<Batch>(module, "Batch", nb::is_final())
      .def("tensors",
           [](const Batch& self, uint32_t count) {
             nb::list tensors;
             for (uint32_t i = 0; i < count; ++i) tensors.append(self.tensor_of(self.info.tensors[i]));
             return tensors;
           })
      .def("units",
           [](const Batch& self, uint32_t number) {
             nb::list units;
             for (uint32_t i = 0; i < self.info.units; ++i) units.append(self.tensor_of(self.unit(number, i)));
             return units;
           })
      .def("sizes",
           [](const Batch& self, uint32_t number, bool planes) {
             Tensor sizes = allocate_tensor({static_cast<int64_t>(self.info.units), 2}, kInt64);
             auto* to = static_cast<int64_t*>(sizes.data);
             for (uint32_t i = 0; i < self.info.units; ++i) {
               const l3_tensor unit = self.unit(number, i);
               *to++ = static_cast<int64_t>(unit.shape[planes ? 1 : 0]);
               *to++ = static_cast<int64_t>(unit.shape[planes ? 2 : 1]);
             }
             return sizes;
           })
      .def("ids", [](const Batch& self) { return self.numbers(self.info.ids); })
      .def("labels",
           [](const Batch& self) {
             return self.device.device_type == kDLCPU ? self.numbers(self.info.labels)
                                                      : self.tensor_of(self.info.device_labels);
           })
      .def("times", [](const Batch& self) { return dict_of(self.info.times); })
      .def_prop_ro("repeats", [](const Batch& self) { return self.info.repeats; })
      .def_prop_ro("failed", [](const Batch& self) { return self.info.failed; })
      .def_prop_ro("epoch", [](const Batch& self) { return self.info.epoch; })
      .def_prop_ro("number", [](const Batch& self) { return self.info.number; })
      .def_prop_ro("position", [](const Batch& self) { return self.info.position; });
  nb::class_<Loader>(module, "Loader", nb::is_final())
      .def(nb::init<const DataSet&, const nb::dict&, const nb::list&, const nb::object&>(), "data_set"_a, "options"_a,
           "wanted"_a, "groups"_a.none())
      .def("close",
           [](Loader& self) {
             const nb::gil_scoped_release unlocked;
             self.close();
           })
      .def("close_at_end",
           [](Loader& self) {
             const nb::gil_scoped_release unlocked;
             self.close_at_end();
           })
      .def_prop_ro("closed", &Loader::is_closed)
      .def("start", &Loader::start, "epoch"_a, "position"_a, "ahead"_a)
      .def("ahead", &Loader::ahead)
      .def("next", &Loader::next)
      .def_prop_ro("position", &Loader::position)
      .def("explain", &Loader::explain, "epoch"_a, "sample"_a)
      .def("describe", &Loader::describe)
      .def("tensors", &Loader::tensors)
      .def("batches_from", &Loader::batches_from)
      .def("failures", &Loader::failures)
      .def("timeline", &Loader::timeline)
      .def("requests", &Loader::requests)
      .def("write_trace", &Loader::write_trace);
}

}  // namespace l3_python
