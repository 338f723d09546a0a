#include "files.h"

#include <fcntl.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/files.h"
#include "base/parallel.h"
#include "l3/l3.hpp"
#include "loader/tensor_writer.h"
#include "raise.h"

namespace l3_python {

// The writers of image values, by bits and channels.
class Writers {
 public:
  Writers(const std::vector<File>& files, const Output& output) : flip_(output.flip) {
    for (const File& file : files) {
      const auto key = std::pair(file.bits, file.channels);
      if (writers_.count(key) != 0) continue;
      writers_.emplace(key,
                       loader::TensorWriter(wanted_of(output, file.bits, file.channels), file.bits, file.channels));
    }
  }
  const loader::TensorWriter& of(const File& file) const { return writers_.at({file.bits, file.channels}); }
  bool flip() const { return flip_; }

 private:
  std::map<std::pair<uint32_t, uint32_t>, loader::TensorWriter> writers_;
  bool flip_;
};

namespace {

using namespace nb::literals;

constexpr l3_error kNoMemory{L3_ERROR_MEMORY, 0, L3_NO_TILE, "out of memory"};
// Smaller images are decoded before threads have started.
constexpr uint64_t kPixelsForThreads = uint64_t{1} << 19;

Region region_of(const nb::object& object) {
  if (object.is_none()) return {};
  const auto numbers = nb::cast<std::vector<uint32_t>>(object);
  return {numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(3), false};
}

// Runs a parallel loop of libl3 on so many threads. 0: one for each processor.
l3_parallel on_threads(uint32_t& threads) {
  const auto run = [](void* context, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
    base::for_each_of(count, *static_cast<const uint32_t*>(context), [&](uint64_t i) { body(argument, i); });
  };
  return {run, &threads};
}

// Decodes several images, tile by tile.
void decode_as_stored(File* files, uint8_t* const* to, size_t count, uint32_t threads) {
  if (count == 1 && uint64_t{files->region.width} * files->region.height < kPixelsForThreads) threads = 1;
  std::vector<l3_batch_image> images;
  for (size_t i = 0; i < count; ++i) {
    const Region& part = files[i].region;
    const size_t size = size_t{part.width} * part.height * files[i].opened->pixel_bytes();
    images.push_back({files[i].opened->get(), part.x, part.y, part.width, part.height, to[i], size, 0, {}});
  }
  const l3_parallel parallel = on_threads(threads);
  (void)!l3_decode_batch(images.data(), count, &parallel, nullptr);
  for (size_t i = 0; i < count; ++i) files[i].error = images[i].error;
}

// Decodes an image and converts its values.
void decode_one(File& file, uint8_t* to, const Writers& writers, uint32_t threads) {
  const Region& part = file.region;
  const size_t size = size_t{part.width} * part.height * file.opened->pixel_bytes();
  const std::unique_ptr<uint8_t[]> pixels(new (std::nothrow) uint8_t[size]);
  if (pixels == nullptr) {
    file.error = kNoMemory;
    return;
  }
  uint8_t* const place = pixels.get();
  decode_as_stored(&file, &place, 1, threads);
  if (file.error.status == L3_OK) {
    writers.of(file).write(place, part.width, part.height, writers.flip(), to);
  }
}

}  // namespace

l3_tensor_options wanted_of(const Output& output, uint32_t bits, uint32_t channels) {
  l3_tensor_options wanted{};
  const uint32_t stored = bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
  wanted.type = output.type != L3_VALUE_STORED ? output.type : stored;
  wanted.layout = output.layout;
  const double maximum = (1u << bits) - 1;
  for (uint32_t c = 0; c < channels; ++c) {
    const double mean = output.mean.empty() ? 0 : output.mean[output.mean.size() > 1 ? c : 0];
    const double deviation = output.deviation.empty() ? 1 : output.deviation[output.deviation.size() > 1 ? c : 0];
    wanted.scale[c] = static_cast<float>(1 / (maximum * deviation));
    wanted.bias[c] = static_cast<float>(-mean / deviation);
  }
  return wanted;
}

uint64_t output_bytes(const File& file, const Output& output) {
  const l3_tensor_options wanted = wanted_of(output, file.bits, file.channels);
  return uint64_t{file.region.width} * file.region.height * file.channels * loader::value_bytes(wanted.type);
}

Files::Files(const nb::list& sources, const nb::list& models, bool as_colours, const nb::object& region,
             const l3_limits& limits, uint32_t threads)
    : files_(nb::len(sources)), options_(l3_decode_options_init()) {
  for (nb::handle item : models) {
    if (nb::isinstance<Model>(item)) {
      models_.push_back(nb::cast<const Model&>(item).model.get());
    } else {
      size_t count = 0;
      const l3_model* const* all = l3_data_models(nb::cast<const DataSet&>(item).set.get(), &count);
      models_.insert(models_.end(), all, all + count);
    }
    kept_.push_back(nb::borrow(item));
  }
  options_.as_colours = as_colours ? 1 : 0;
  options_.limits = limits;
  options_.models = models_.data();
  options_.model_count = models_.size();
  const Region wanted = region_of(region);
  try {
    for (size_t i = 0; i < files_.size(); ++i) {
      nb::object source = nb::borrow(sources[i]);
      bool is_path = false;
      if (PyTuple_Check(source.ptr())) {
        const auto path = nb::cast<nb::bytes>(source[0]);
        files_[i].name.assign(path.c_str(), path.size());
        is_path = nb::len(source) == 1;
        if (!is_path) source = source[1];
      }
      if (!is_path) {
        if (PyObject_GetBuffer(source.ptr(), &files_[i].buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
        files_[i].bytes = {static_cast<const uint8_t*>(files_[i].buffer.buf),
                           static_cast<size_t>(files_[i].buffer.len)};
      }
    }
    {
      const nb::gil_scoped_release unlocked;
      base::for_each_of(files_.size(), threads, [&](uint64_t i) { open(files_[i], wanted); });
    }
    raise_first_error();
  } catch (...) {
    for (File& file : files_) PyBuffer_Release(&file.buffer);
    throw;
  }
}

Files::~Files() {
  for (File& file : files_) PyBuffer_Release(&file.buffer);
}

void Files::raise_first_error() const {
  for (const File& file : files_) {
    if (file.system_error != 0) {
      l3_data_error error{L3_ERROR_FILE, file.system_error, L3_DATA_NONE, "", ""};
      file.name.copy(error.file, sizeof(error.file) - 1);
      raise_error(error);
    }
    if (file.error.status != L3_OK) raise_error(file.error, file.name);
  }
}

void Files::open(File& file, const Region& region) const try {
  if (file.buffer.obj == nullptr) {
    file.system_error = base::read_file(file.name, file.read);
    if (file.system_error != 0) return;
    file.bytes = file.read;
  }
  l3::Result<l3::File> opened = l3::File::open(file.bytes, options_);
  if (!opened) {
    file.error = opened.error();
    return;
  }
  file.opened.emplace(std::move(*opened));
  const l3_info& info = file.opened->info();
  file.region = region.is_whole ? Region{0, 0, info.width, info.height, true} : region;
  const Region& part = file.region;
  // Without room for pixels the call verifies the region and the limits.
  uint8_t none = 0;
  if (l3_file_decode_region(file.opened->get(), part.x, part.y, part.width, part.height, &none, 0, 0, &file.error) !=
      L3_ERROR_BUFFER) {
    return;
  }
  file.error = {};
  const uint32_t pixel_bytes = file.opened->pixel_bytes();
  const bool are_colours = info.colour == L3_COLOUR_PALETTE && pixel_bytes > 1;
  file.bits = are_colours ? 8 : info.bits;
  file.channels = are_colours ? pixel_bytes : info.channels;
} catch (const std::bad_alloc&) {
  file.error = kNoMemory;
}

std::vector<uint8_t*> Files::places(const std::vector<const Tensor*>& to, const Output& output) const {
  uint64_t needed = 0;
  std::vector<uint8_t*> places;
  const bool is_batch = to.size() == 1 && files_.size() != 1;
  for (size_t i = 0; i < files_.size(); ++i) {
    const Tensor& tensor = *to.at(is_batch ? 0 : i);
    if (!is_batch) needed = 0;
    places.push_back(static_cast<uint8_t*>(tensor.data) + needed);
    needed += output_bytes(files_[i], output);
    if (needed > tensor.bytes()) throw std::runtime_error("l3: an output is too small");
  }
  return places;
}

void Files::decode(const std::vector<const Tensor*>& to, const Output& output, uint32_t threads) {
  const std::vector<uint8_t*> out = places(to, output);
  for (const File& file : files_) {
    // The caller's memory is a single tensor. Memory that was allocated for this call overlaps nothing.
    if (to.size() != 1 || file.buffer.obj == nullptr) continue;
    const auto begin = reinterpret_cast<uintptr_t>(to[0]->data),
               source = reinterpret_cast<uintptr_t>(file.bytes.data());
    if (begin < source + file.bytes.size() && source < begin + to[0]->bytes()) {
      throw nb::value_error("out shares memory with a source");
    }
  }
  {
    const nb::gil_scoped_release unlocked;
    const Writers writers(files_, output);
    const bool are_stored = !writers.flip() && std::all_of(files_.begin(), files_.end(), [&](const File& file) {
      return writers.of(file).is_same();
    });
    if (are_stored) {
      decode_as_stored(files_.data(), out.data(), files_.size(), threads);
    } else if (files_.size() == 1) {
      decode_one(files_[0], out[0], writers, threads);
    } else {
      base::for_each_of(files_.size(), threads, [&](uint64_t i) { decode_one(files_[i], out[i], writers, 1); });
    }
  }
  raise_first_error();
}

namespace {

Output output_of(const std::string& dtype, bool planes, bool flip, std::vector<double> mean,
                 std::vector<double> deviation) {
  return {dtype.empty() ? uint32_t{L3_VALUE_STORED} : type_named(dtype),
          planes ? uint32_t{L3_LAYOUT_CHW} : uint32_t{L3_LAYOUT_HWC}, flip, std::move(mean), std::move(deviation)};
}

}  // namespace

void bind_files(nb::module_& module) {
  nb::class_<Files>(module, "Files", nb::is_final())
      .def(
          "__init__",
          [](Files* self, const nb::list& sources, const nb::list& models, bool as_colours, const nb::object& region,
             uint64_t max_pixels, uint64_t max_bytes, uint32_t threads) {
            new (self) Files(sources, models, as_colours, region, {max_pixels, max_bytes, 0}, threads);
          },
          "sources"_a, "models"_a, "as_colours"_a, "region"_a.none(), "max_pixels"_a, "max_bytes"_a, "threads"_a)
      .def("shapes",
           [](const Files& self) {
             nb::list shapes;
             for (const File& file : self.files()) {
               shapes.append(nb::make_tuple(file.region.height, file.region.width, file.channels, file.bits));
             }
             return shapes;
           })
      .def("before_pixels",
           [](const Files& self, size_t index) {
             const File& file = self.files().at(index);
             const size_t size = std::min<uint64_t>(file.opened->info().payload_start, file.bytes.size());
             return nb::make_tuple(nb::bytes(file.bytes.data(), size), file.bytes.size());
           })
      .def(
          "decode",
          [](Files& self, const std::vector<const Tensor*>& to, const std::string& dtype, bool planes, bool flip,
             std::vector<double> mean, std::vector<double> deviation, uint32_t threads) {
            self.decode(to, output_of(dtype, planes, flip, std::move(mean), std::move(deviation)), threads);
          },
          "to"_a, "dtype"_a, "planes"_a, "flip"_a, "mean"_a, "std"_a, "threads"_a)
      .def(
          "decode_on_gpu",
          [](Files& self, const std::vector<const Tensor*>& to, const std::string& dtype, bool planes, bool flip,
             std::vector<double> mean, std::vector<double> deviation, uint32_t device, uintptr_t stream) {
            return self.decode_on_gpu(to, output_of(dtype, planes, flip, std::move(mean), std::move(deviation)), device,
                                      reinterpret_cast<void*>(stream));
          },
          "to"_a, "dtype"_a, "planes"_a, "flip"_a, "mean"_a, "std"_a, "device"_a, "stream"_a);
}

}  // namespace l3_python
