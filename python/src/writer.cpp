#include "writer.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data_set.h"
#include "encode.h"
#include "loader/data_set_writer.h"
#include "raise.h"
#include "tensor.h"
#include "unpack.h"

namespace l3_python {
namespace {

using namespace nb::literals;

constexpr std::chrono::milliseconds kPatience{100};  // between looks for Ctrl-C

[[noreturn]] void raise(const loader::WriteFailure& failure) {
  const l3_data_error error = loader::error_of(failure);
  if (failure.sample != L3_DATA_NONE && failure.status != L3_ERROR_MEMORY) {
    raise_sample_error(error, failure.sample, failure.name);
  }
  raise_error(error);
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Python calls it with a lock, so that one thread at a time uses it.
class Writer {
 public:
  Writer(const nb::bytes& folder, bool replace, uint64_t shard_bytes, uint32_t threads, bool verify, uint32_t method,
         uint32_t effort, uint32_t tile_width, uint32_t tile_height, const nb::list& models)
      : process_(getpid()) {
    loader::WriterOptions options;
    options.folder = {folder.c_str(), folder.size()};
    options.replace = replace;
    options.shard_bytes = shard_bytes;
    options.threads = threads;
    options.verify = verify;
    options.encode.method = method;
    options.encode.effort = effort;
    options.encode.tile_width = tile_width;
    options.encode.tile_height = tile_height;
    for (const nb::handle model : models) {
      kept_.push_back(nb::borrow(model));
      options.models.push_back(nb::cast<const Model&>(model).model.get());
    }
    writer_ = std::make_unique<loader::DataSetWriter>(std::move(options));
    std::optional<loader::WriteFailure> failure;
    {
      const nb::gil_scoped_release unlocked;
      failure = writer_->begin();
      if (failure) writer_->abandon();
    }
    if (failure) raise(*failure);
  }
  // A process that was forked has no threads of the writer, and its files belong to the other process.
  ~Writer() {
    if (!is_here()) (void)writer_.release();
    const nb::gil_scoped_release unlocked;
    writer_.reset();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool is_here() const { return getpid() == process_; }

  void add_image(const Tensor& array, const std::string& colour, uint32_t bits, bool premultiplied,
                 const std::map<std::string, nb::bytes>& sections, const nb::bytes& name, const std::string& role,
                 std::optional<uint32_t> label, const nb::bytes& metadata, bool opens_group) {
    loader::NewItem item;
    item.image = image_of(array, colour, bits, premultiplied);
    for (const auto& [section, bytes] : sections) {
      const auto* begin = reinterpret_cast<const uint8_t*>(bytes.c_str());
      item.sections.emplace_back(begin, begin + bytes.size());
      set_section(*item.image, section, item.sections.back());
    }
    describe(item, name, role, label, metadata, opens_group);
    add(item, array);
  }

  // `kind` is "l3" for an L3 file, "other" for an image file of another format, or "bytes".
  void add_file(nb::handle source, const std::string& kind, const nb::bytes& name, const std::string& role,
                std::optional<uint32_t> label, const nb::bytes& metadata, bool opens_group) {
    loader::NewItem item;
    item.sample.kind = kind == "bytes" ? L3_DATA_BYTES : L3_DATA_IMAGE;
    if (kind == "other") {
      item.unpack = [notices = notices_](loader::NewItem& packed) { return unpack(packed, *notices); };
    }
    describe(item, name, role, label, metadata, opens_group);
    add(item, tensor_of_buffer(source, false));
  }

  // Waits until all samples are written.
  void wait() {
    for (bool is_done = false; !is_done;) {
      {
        const nb::gil_scoped_release unlocked;
        is_done = writer_->wait(kPatience);
      }
      check_signals();
    }
  }

  // After wait().
  void finish(const std::vector<std::string>& classes) {
    std::optional<loader::WriteFailure> failure;
    {
      const nb::gil_scoped_release unlocked;
      failure = writer_->finish(classes);
    }
    if (failure) raise(*failure);
  }

  void abandon() {
    if (!is_here()) return;
    const nb::gil_scoped_release unlocked;
    writer_->abandon();
  }

  // Names of samples with notices.
  std::vector<std::pair<nb::bytes, std::string>> take_notices() {
    std::vector<std::pair<nb::bytes, std::string>> taken;
    for (const auto& [name, notice] : notices_->take()) {
      taken.emplace_back(nb::bytes(name.data(), name.size()), notice);
    }
    return taken;
  }

  uint64_t samples() const { return writer_->samples(); }
  uint64_t shards() const { return writer_->shards(); }
  uint64_t bytes() const { return writer_->bytes(); }

 private:
  static void describe(loader::NewItem& item, const nb::bytes& name, const std::string& role,
                       std::optional<uint32_t> label, const nb::bytes& metadata, bool opens_group) {
    item.sample.name = {name.c_str(), name.size()};
    item.sample.role = role;
    item.sample.label = label.value_or(L3_NO_LABEL);
    item.sample.metadata = {metadata.c_str(), metadata.size()};
    item.sample.opens_group = opens_group;
    if (const char* problem = loader::problem(item.sample)) throw nb::value_error(problem);
  }

  // Copies the bytes, because the caller may change them after the call.
  void add(loader::NewItem& item, const Tensor& bytes) {
    auto added = loader::DataSetWriter::Added::full;
    {
      const nb::gil_scoped_release unlocked;
      const auto* begin = static_cast<const uint8_t*>(bytes.data);
      item.bytes.assign(begin, begin + bytes.bytes());
    }
    while (added == loader::DataSetWriter::Added::full) {
      {
        const nb::gil_scoped_release unlocked;
        added = writer_->add(item, kPatience);
      }
      check_signals_unless(added == loader::DataSetWriter::Added::taken);
    }
    if (added == loader::DataSetWriter::Added::failed) raise(*writer_->failure());
  }

  // A signal must not make the caller believe that an item was not taken.
  static void check_signals_unless(bool taken) {
    if (!taken) check_signals();
  }

  const pid_t process_;
  std::vector<nb::object> kept_;  // the models
  const std::shared_ptr<Notices> notices_ = std::make_shared<Notices>();
  std::unique_ptr<loader::DataSetWriter> writer_;
};

}  // namespace

void bind_writer(nb::module_& module) {
  nb::class_<Writer>(module, "Writer", nb::is_final())
      .def(nb::init<const nb::bytes&, bool, uint64_t, uint32_t, bool, uint32_t, uint32_t, uint32_t, uint32_t,
                    const nb::list&>(),
           "folder"_a, "replace"_a, "shard_bytes"_a, "threads"_a, "verify"_a, "method"_a, "effort"_a, "tile_width"_a,
           "tile_height"_a, "models"_a)
      .def("add_image", &Writer::add_image, "array"_a, "colour"_a, "bits"_a, "premultiplied"_a, "sections"_a, "name"_a,
           "role"_a, "label"_a.none(), "metadata"_a, "opens_group"_a)
      .def("add_file", &Writer::add_file, "source"_a, "kind"_a, "name"_a, "role"_a, "label"_a.none(), "metadata"_a,
           "opens_group"_a)
      .def("take_notices", &Writer::take_notices)
      .def("wait", &Writer::wait)
      .def("finish", &Writer::finish, "classes"_a)
      .def("abandon", &Writer::abandon)
      .def_prop_ro("is_here", &Writer::is_here)
      .def_prop_ro("samples", &Writer::samples)
      .def_prop_ro("shards", &Writer::shards)
      .def_prop_ro("bytes", &Writer::bytes);
}

}  // namespace l3_python
