// The C API of the writer of data sets: l3_writer.h, over DataSetWriter.
#include "l3/l3_writer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "loader/data_set_writer.h"
#include "loader/store.h"

using loader::DataSetWriter;
using loader::NewItem;
using loader::WriteFailure;

namespace {

constexpr std::chrono::hours kPatience{1};  // the loops around it wait as long as it takes
constexpr size_t kShownName = 80;           // bytes of a name in a message
constexpr uint32_t kMaxThreads = 1024;
constexpr const char* kNull = "an argument is null";
constexpr const char* kNoStructSize = "struct_size is not set: use the _init function";
constexpr const char* kForked = "a writer does not survive a fork: open it in the process that uses it";
constexpr const char* kFinished = "the writer is finished";

WriteFailure wrong(std::string reason) { return {L3_ERROR_ARGUMENT, 0, "", std::move(reason)}; }

// Copies the members that both versions of a structure have. Returns false if struct_size was not set.
template <class Struct>
bool copy_in(const Struct* given, Struct& own) {
  if (given == nullptr) return true;
  if (given->struct_size == 0) return false;
  std::memcpy(&own, given, std::min<size_t>(given->struct_size, sizeof own));
  own.struct_size = sizeof own;
  return true;
}

// A name as a part of one line.
std::string shown(std::string_view name) {
  std::string text;
  while (!name.empty() && text.size() < kShownName) {
    const size_t size = base::utf8_size(name);
    const bool is_plain = size > 0 && static_cast<unsigned char>(name[0]) >= 0x20 && name[0] != 0x7f;
    text += is_plain ? std::string(name.substr(0, size)) : "?";
    name.remove_prefix(std::max<size_t>(size, 1));
  }
  return name.empty() ? text : text + "...";
}

WriteFailure of_sample(WriteFailure failure, uint64_t number, std::string_view name) {
  failure.reason = "sample " + std::to_string(number) + " (" + shown(name) + "): " + failure.reason;
  return failure;
}

l3_status report(const std::optional<WriteFailure>& failure, l3_data_error* error) {
  if (error != nullptr) *error = failure ? error_of(*failure) : l3_data_error{};
  return failure ? failure->status : L3_OK;
}

// Calls a function that may run out of memory, and reports what it returns.
template <class Body>
l3_status report_of(l3_data_error* error, const Body& body) {
  try {
    return report(body(), error);
  } catch (const std::exception& why) {
    l3_data_error made{};
    const bool is_memory =
        dynamic_cast<const std::bad_alloc*>(&why) != nullptr || dynamic_cast<const std::length_error*>(&why) != nullptr;
    made.status = is_memory ? L3_ERROR_MEMORY : L3_ERROR_FILE;
    made.offset = L3_DATA_NONE;
    std::snprintf(made.reason, sizeof made.reason, "%s", is_memory ? "out of memory" : why.what());
    if (error != nullptr) *error = made;
    return made.status;
  }
}

// Whether libl3 can encode an image with these options. It looks at the pixels' address, and not at the pixels.
std::optional<WriteFailure> check(const l3_image& image, const l3_encode_options& options) {
  if (l3_encode_bound(&image, &options) != 0) return std::nullopt;
  l3_error error{};
  size_t size = 0;
  uint8_t none = 0;
  (void)!l3_encode(&image, &options, &none, 0, &size, &error);
  return WriteFailure{error.status, 0, "", error.reason};
}

// Copies an image, for which check() has found nothing, into an item.
std::optional<WriteFailure> take_image(const l3_image& image, NewItem& item) {
  const size_t sample_bytes = image.bits > 8 ? 2 : 1;
  const size_t row = size_t{image.width} * (image.colour == L3_COLOUR_PALETTE ? 1 : image.colour + 1) * sample_bytes;
  item.bytes.resize(row * image.height);
  uint32_t all = 0;
  for (size_t y = 0; y < image.height; ++y) {
    uint8_t* const to = item.bytes.data() + y * row;
    std::memcpy(to, static_cast<const uint8_t*>(image.pixels) + y * (image.stride != 0 ? image.stride : row), row);
    if (image.bits % 8 == 0) continue;
    for (size_t x = 0; x < row; x += sample_bytes) {
      uint16_t value = to[x];
      if (sample_bytes == 2) std::memcpy(&value, to + x, 2);
      all |= value;
    }
  }
  if (image.bits % 8 != 0 && all >> image.bits != 0) return wrong("a sample is above 2^bits - 1");

  l3_image own = image;
  own.pixels = nullptr;  // the writer sets it
  own.stride = 0;
  const auto take = [&](const uint8_t*& bytes, size_t size) {
    if (bytes != nullptr) bytes = item.sections.emplace_back(bytes, bytes + size).data();
  };
  take(own.palette, size_t{own.palette_entries} * 3);
  take(own.transparency, own.transparency_size);
  take(own.colour_space, own.colour_space != nullptr ? loader::colour_space_size(*own.colour_space) : 0);
  take(own.icc, own.icc_size);
  take(own.exif, own.exif_size);
  take(own.metadata, own.metadata_size);
  item.image = own;
  return std::nullopt;
}

}  // namespace

struct l3_writer {
  // Where a sample belongs, until it is certain that it was taken.
  struct Place {
    bool opens_group = true;
    uint32_t label = L3_NO_LABEL;
  };

  std::optional<WriteFailure> open(const char* path, const l3_writer_options& options);
  // Adds what `take` puts into an item.
  template <class Take>
  std::optional<WriteFailure> add(const l3_writer_sample& sample, uint32_t kind, const Take& take);
  std::optional<WriteFailure> finish();
  bool is_here() const { return getpid() == process_; }

  l3_encode_options encode = l3_encode_options_init();
  std::unique_ptr<DataSetWriter> writer;

 private:
  std::optional<WriteFailure> take_classes(const l3_writer_options& options);
  std::optional<WriteFailure> find_label(const l3_writer_sample& sample, uint32_t& label) const;
  std::optional<WriteFailure> find_place(const l3_writer_sample& sample, const std::string& role, Place& place) const;
  std::optional<WriteFailure> later_failure();

  const pid_t process_ = getpid();
  std::mutex mutex_;
  bool is_finished_ = false;
  std::vector<std::string> classes_;
  std::map<std::string, uint32_t, std::less<>> labels_;
  std::set<std::string, std::less<>> names_;
  std::set<uint64_t> groups_;
  // Of the last sample.
  uint64_t group_ = L3_DATA_NONE;
  uint32_t label_ = L3_NO_LABEL;
  std::set<std::string, std::less<>> roles_;
};

std::optional<WriteFailure> l3_writer::open(const char* path, const l3_writer_options& options) {
  if (loader::is_url(path)) return wrong("the path is a URL: write to a folder, and copy it with l3 upload");
  if (*path == 0) return wrong("the path is empty");
  if (options.threads > kMaxThreads) return wrong("threads is above 1024");
  if (options.replace > 1 || options.unverified > 1) return wrong("replace and unverified must be 0 or 1");
  if (options.models == nullptr && options.model_count > 0) return wrong(kNull);
  if (auto failure = take_classes(options)) return failure;
  encode.method = options.method;
  encode.effort = options.effort;
  encode.tile_width = options.tile_width;
  encode.tile_height = options.tile_height;
  const uint8_t pixel = 0;
  l3_image smallest = l3_image_init();
  smallest.width = smallest.height = 1;
  smallest.bits = 8;
  smallest.pixels = &pixel;
  if (auto failure = check(smallest, encode)) return failure;

  loader::WriterOptions wanted;
  wanted.folder = std::filesystem::absolute(path).string();
  wanted.replace = options.replace == 1;
  wanted.replace_option = "replace";
  if (options.shard_bytes > 0) wanted.shard_bytes = options.shard_bytes;
  wanted.threads = options.threads;
  wanted.verify = options.unverified == 0;
  wanted.encode = encode;
  for (size_t i = 0; i < options.model_count; ++i) {
    if (options.models[i] == nullptr) return wrong(kNull);
    wanted.models.push_back(options.models[i]);
  }
  writer = std::make_unique<DataSetWriter>(std::move(wanted));
  return writer->begin();
}

std::optional<WriteFailure> l3_writer::take_classes(const l3_writer_options& options) {
  if (options.class_count > L3_NO_LABEL) return wrong("too many classes");
  if (options.classes == nullptr && options.class_count > 0) return wrong(kNull);
  for (size_t i = 0; i < options.class_count; ++i) {
    if (options.classes[i] == nullptr) return wrong(kNull);
    const std::string& name = classes_.emplace_back(options.classes[i]);
    if (!base::is_utf8(name)) return wrong("the class " + shown(name) + " is not UTF-8");
    if (!labels_.emplace(name, static_cast<uint32_t>(i)).second) return wrong("two classes are " + shown(name));
  }
  return std::nullopt;
}

std::optional<WriteFailure> l3_writer::find_label(const l3_writer_sample& sample, uint32_t& label) const {
  label = sample.label;
  if (sample.class_name != nullptr) {
    if (label != L3_NO_LABEL) return wrong("label and class_name are both set");
    const auto found = labels_.find(std::string_view(sample.class_name));
    if (found == labels_.end()) return wrong("there is no class " + shown(sample.class_name));
    label = found->second;
  }
  if (label != L3_NO_LABEL && !classes_.empty() && label >= classes_.size()) {
    return wrong("the label is " + std::to_string(label) + ", but there are " + std::to_string(classes_.size()) +
                 " classes");
  }
  return std::nullopt;
}

std::optional<WriteFailure> l3_writer::find_place(const l3_writer_sample& sample, const std::string& role,
                                                  Place& place) const {
  if (auto failure = find_label(sample, place.label)) return failure;
  place.opens_group = sample.group == L3_DATA_NONE || sample.group != group_;
  if (place.opens_group) {
    if (groups_.contains(sample.group)) return wrong("samples of other groups came after this group");
    return std::nullopt;
  }
  if (roles_.contains(role)) return wrong("the group has a sample of this role already");
  if (place.label != L3_NO_LABEL && place.label != label_) return wrong("the group has another label");
  place.label = label_;
  return std::nullopt;
}

std::optional<WriteFailure> l3_writer::later_failure() {
  auto failure = writer->failure();
  if (failure && failure->sample != L3_DATA_NONE) {
    const uint64_t number = failure->sample;
    const std::string name = failure->name;
    failure = of_sample(*std::move(failure), number, name);
  }
  return failure;
}

template <class Take>
std::optional<WriteFailure> l3_writer::add(const l3_writer_sample& sample, uint32_t kind, const Take& take) {
  if (!is_here()) return wrong(kForked);
  const std::lock_guard lock(mutex_);
  if (is_finished_) return wrong(kFinished);
  if (auto failure = later_failure()) return failure;
  const uint64_t number = writer->samples();
  char default_name[32];
  std::snprintf(default_name, sizeof default_name, "%08llu", static_cast<unsigned long long>(number));
  const std::string name = sample.name != nullptr ? sample.name : default_name;
  const auto wrong_sample = [&](WriteFailure failure) { return of_sample(std::move(failure), number, name); };

  if (sample.role == nullptr && kind == L3_DATA_BYTES) return wrong_sample(wrong("bytes need a role"));
  if (sample.metadata == nullptr && sample.metadata_size > 0) return wrong_sample(wrong(kNull));
  const std::string role = sample.role != nullptr ? sample.role : "image";
  Place place;
  if (auto failure = find_place(sample, role, place)) return wrong_sample(*failure);
  NewItem item;
  item.sample.kind = kind;
  item.sample.name = name;
  item.sample.role = role;
  item.sample.label = place.label;
  item.sample.opens_group = place.opens_group;
  if (sample.metadata_size > 0) {
    item.sample.metadata.assign(static_cast<const char*>(sample.metadata), sample.metadata_size);
  }
  if (const char* reason = loader::problem(item.sample)) return wrong_sample(wrong(reason));
  if (std::optional<WriteFailure> failure = take(item)) return wrong_sample(*failure);

  // If memory runs out, nothing has changed.
  std::set<std::string, std::less<>> roles = place.opens_group ? decltype(roles_){} : roles_;
  roles.insert(role);
  const bool is_new_group = place.opens_group && sample.group != L3_DATA_NONE;
  const auto [own_name, is_new] = names_.insert(name);
  if (!is_new) return wrong_sample(wrong("another sample has this name"));
  auto added = DataSetWriter::Added::full;
  try {
    if (is_new_group) groups_.insert(sample.group);
    while (added == DataSetWriter::Added::full) added = writer->add(item, kPatience);
  } catch (const std::bad_alloc&) {
    names_.erase(own_name);
    if (is_new_group) groups_.erase(sample.group);
    throw;
  }
  if (added == DataSetWriter::Added::failed) return later_failure();
  if (place.opens_group) group_ = sample.group;
  label_ = place.label;
  roles_.swap(roles);
  return std::nullopt;
}

std::optional<WriteFailure> l3_writer::finish() {
  if (!is_here()) return wrong(kForked);
  const std::lock_guard lock(mutex_);
  if (is_finished_) return wrong(kFinished);
  is_finished_ = true;
  struct Abandon {
    ~Abandon() { of->abandon(); }  // removes what is not finished
    DataSetWriter* of;
  } const at_the_end{writer.get()};
  while (!writer->wait(kPatience)) {
  }
  if (auto failure = later_failure()) return failure;
  return writer->finish(classes_);
}

l3_status l3_writer_open(const char* path, const l3_writer_options* options, l3_writer** writer, l3_data_error* error) {
  if (writer != nullptr) *writer = nullptr;
  return report_of(error, [&]() -> std::optional<WriteFailure> {
    if (path == nullptr || writer == nullptr) return wrong(kNull);
    l3_writer_options wanted = l3_writer_options_init();
    if (!copy_in(options, wanted)) return wrong(kNoStructSize);
    auto made = std::make_unique<l3_writer>();
    if (auto failure = made->open(path, wanted)) return failure;
    *writer = made.release();
    return std::nullopt;
  });
}

namespace {

template <class Take>
l3_status add(l3_writer* writer, const void* given, const l3_writer_sample* sample, uint32_t kind, l3_data_error* error,
              const Take& take) {
  return report_of(error, [&]() -> std::optional<WriteFailure> {
    if (writer == nullptr || given == nullptr) return wrong(kNull);
    l3_writer_sample wanted = l3_writer_sample_init();
    if (!copy_in(sample, wanted)) return wrong(kNoStructSize);
    return writer->add(wanted, kind, take);
  });
}

void take_bytes(const void* data, size_t size, NewItem& item) {
  const auto* const begin = static_cast<const uint8_t*>(data);
  item.bytes.assign(begin, begin + size);
}

}  // namespace

l3_status l3_writer_add_image(l3_writer* writer, const l3_image* image, const l3_writer_sample* sample,
                              l3_data_error* error) {
  return add(writer, image, sample, L3_DATA_IMAGE, error, [&](NewItem& item) -> std::optional<WriteFailure> {
    l3_image own = l3_image_init();
    if (!copy_in(image, own)) return wrong(kNoStructSize);
    if (auto failure = check(own, writer->encode)) return failure;
    return take_image(own, item);
  });
}

l3_status l3_writer_add_file(l3_writer* writer, const void* data, size_t size, const l3_writer_sample* sample,
                             l3_data_error* error) {
  return add(writer, data, sample, L3_DATA_IMAGE, error, [&](NewItem& item) -> std::optional<WriteFailure> {
    const l3_limits none = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    l3_error why{};
    if (l3_check(data, size, &none, &why) != L3_OK) return WriteFailure{why.status, 0, "", why.reason};
    take_bytes(data, size, item);
    return std::nullopt;
  });
}

l3_status l3_writer_add_bytes(l3_writer* writer, const void* data, size_t size, const l3_writer_sample* sample,
                              l3_data_error* error) {
  const void* const given = size > 0 ? data : "";
  return add(writer, given, sample, L3_DATA_BYTES, error, [&](NewItem& item) -> std::optional<WriteFailure> {
    take_bytes(given, size, item);
    return std::nullopt;
  });
}

l3_status l3_writer_finish(l3_writer* writer, l3_data_error* error) {
  return report_of(error, [&]() -> std::optional<WriteFailure> {
    if (writer == nullptr) return wrong(kNull);
    return writer->finish();
  });
}

void l3_writer_close(l3_writer* writer) {
  // A process that was forked has no threads of the writer, and its files belong to the other process.
  if (writer != nullptr && !writer->is_here()) return;
  delete writer;
}
