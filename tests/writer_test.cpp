// Tests l3_writer.h, the C API that writes data sets, also under the sanitizers. data_set_writer_test.cpp and
// python/tests/test_writer.py test the class behind it.
#include "l3/l3_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "data_set_testing.h"
#include "l3/l3.hpp"
#include "l3/l3_data.hpp"
#include "loader/data_set_writer.h"
#include "write_set.h"

namespace {

// How many more allocations of this thread succeed until one fails; below 0: all.
thread_local int64_t allocations_left = -1;

void* allocate(size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;
using Failure = std::optional<l3_data_error>;

l3_image image_of(const Bytes& pixels, uint32_t width, uint32_t height) {
  l3_image image = l3_image_init();
  image.width = width;
  image.height = height;
  image.bits = 8;
  image.pixels = pixels.data();
  return image;
}

l3_writer_sample named(const char* name) {
  l3_writer_sample sample = l3_writer_sample_init();
  sample.name = name;
  return sample;
}

class Writers : public data_set_testing::DataSets {
 protected:
  std::string folder() const { return path("set"); }
  l3_writer_options options() const {
    l3_writer_options options = l3_writer_options_init();
    options.method = L3_METHOD_FAST;
    options.threads = 2;
    return options;
  }
  l3::DataSetWriter open(const l3_writer_options& wanted) const {
    auto writer = l3::DataSetWriter::open(folder(), wanted);
    EXPECT_TRUE(writer) << l3::message(writer.error());
    return std::move(*writer);
  }
  // All files of a folder, hidden ones too.
  std::map<std::string, std::string> files(const std::string& name) const {
    std::map<std::string, std::string> found;
    for (const auto& each : fs::recursive_directory_iterator(path(name))) {
      if (each.is_directory()) continue;
      std::ifstream file(each.path(), std::ios::binary);
      found[each.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
    }
    return found;
  }
  bool is_empty() const { return fs::is_empty(path("")); }

  const Bytes pixels_ = Bytes(64 * 48, 7);
  const l3_image image_ = image_of(pixels_, 64, 48);
};

// 256 x 256 samples that no method makes smaller.
Bytes noise() {
  Bytes pixels(256 * 256);
  uint32_t value = 1;
  for (uint8_t& each : pixels) each = static_cast<uint8_t>((value = value * 1664525 + 1013904223) >> 24);
  return pixels;
}

void expect_nothing(const Failure& failure) { EXPECT_FALSE(failure) << l3::message(*failure); }

void expect_wrong(const Failure& failure, const std::string& reason) {
  ASSERT_TRUE(failure) << reason;
  EXPECT_EQ(failure->status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(failure->offset, L3_DATA_NONE);
  EXPECT_NE(std::string(failure->reason).find(reason), std::string::npos) << failure->reason;
}

// The same as write_set.c writes, by the class.
void write_by_class(const std::string& folder) {
  loader::WriterOptions options;
  options.folder = folder;
  options.shard_bytes = 8000;
  options.encode.method = L3_METHOD_FAST;
  loader::DataSetWriter writer(options);
  ASSERT_FALSE(writer.begin());
  for (uint32_t i = 0; i < kImages + 3; ++i) {
    const bool is_text = i == kImages + 2;
    loader::NewItem item;
    item.sample.name = is_text ? "00000022" : (i < 10 ? "0" : "") + std::to_string(i) + ".png";
    item.sample.role = is_text ? "text" : i == kImages + 1 ? "mask" : "image";
    item.sample.label = is_text ? L3_NO_LABEL : i < kImages ? i % 2 : 1;
    item.sample.opens_group = i != kImages + 1;
    if (i < kImages) item.sample.metadata = std::to_string(i);
    if (is_text) {
      const std::string text("a text\0", 7);
      item.sample.kind = L3_DATA_BYTES;
      item.bytes.assign(text.begin(), text.end());
    } else {
      item.bytes.resize(size_t{kSide} * kSide * 3);
      write_set_pixels(i, item.bytes.data());
      item.image = image_of(item.bytes, kSide, kSide);
      item.image->colour = L3_COLOUR_RGB;
    }
    ASSERT_EQ(writer.add(item, std::chrono::minutes(5)), loader::DataSetWriter::Added::taken);
  }
  ASSERT_TRUE(writer.wait(std::chrono::minutes(5)));
  ASSERT_FALSE(writer.finish({"even", "odd"}));
}

TEST_F(Writers, WriteTheBytesOfTheClass) {
  write_by_class(path("by-class"));
  ASSERT_GT(files("by-class").size(), 2U);
  for (const unsigned threads : {0U, 1U, 3U}) {
    const std::string name = "from-c-" + std::to_string(threads);
    l3_data_error error{};
    ASSERT_EQ(write_set(path(name).c_str(), threads, &error), L3_OK) << l3::message(error);
    ASSERT_EQ(read_set(path(name).c_str(), &error), L3_OK) << l3::message(error);
    EXPECT_EQ(files(name), files("by-class"));
  }
}

TEST_F(Writers, CopyWhatTheyAreGiven) {
  l3::DataSetWriter writer = open(options());
  // Three images: rows with gaps and 16 bits; a palette with sections; an L3 file.
  std::vector<uint16_t> deep(5 * 3);
  for (size_t i = 0; i < deep.size(); ++i) deep[i] = static_cast<uint16_t>(i * 70);
  const std::vector<uint16_t> gaps = [&] {
    std::vector<uint16_t> rows(7 * 3, 0xffff);
    for (size_t i = 0; i < deep.size(); ++i) rows[i / 5 * 7 + i % 5] = deep[i];
    return rows;
  }();
  std::vector<uint16_t> given = gaps;
  l3_image image = l3_image_init();
  image.width = 5;
  image.height = 3;
  image.bits = 10;
  image.pixels = given.data();
  image.stride = 14;
  expect_nothing(writer.add(image, named("deep")));
  std::fill(given.begin(), given.end(), uint16_t{0});

  Bytes indices = {0, 1, 1, 0}, palette = {1, 2, 3, 4, 5, 6}, gamma = {2, 0, 0, 0, 9}, icc(40, 3);
  image = image_of(indices, 2, 2);
  image.colour = L3_COLOUR_PALETTE;
  image.palette = palette.data();
  image.palette_entries = 2;
  image.colour_space = gamma.data();
  image.icc = icc.data();
  image.icc_size = icc.size();
  expect_nothing(writer.add(image, named("palette")));
  for (Bytes* bytes : {&indices, &palette, &gamma, &icc}) std::fill(bytes->begin(), bytes->end(), uint8_t{0});

  Bytes file = data_set_testing::image_of(9, 9, 77);
  const Bytes kept = file;
  expect_nothing(writer.add_file(file, named("file")));
  std::fill(file.begin(), file.end(), uint8_t{0});
  expect_nothing(writer.finish());

  const auto set = l3::DataSet::open(folder());
  ASSERT_TRUE(set);
  ASSERT_EQ(set->count(), 3U);
  const auto first = l3::decode(*set->read(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, Bytes(reinterpret_cast<const uint8_t*>(deep.data()),
                                reinterpret_cast<const uint8_t*>(deep.data() + deep.size())));
  const auto second = set->read(1);
  const auto opened = l3::File::open(*second);
  ASSERT_TRUE(opened);
  const auto profile = opened->section(L3_SECTION_ICC), space = opened->section(L3_SECTION_COLOUR_SPACE);
  EXPECT_EQ(Bytes(profile->begin(), profile->end()), Bytes(40, 3));
  EXPECT_EQ(Bytes(space->begin(), space->end()), (Bytes{2, 0, 0, 0, 9}));
  EXPECT_EQ(*set->read(2), kept);
}

TEST_F(Writers, StoreTheModelsThatSamplesName) {
  Bytes pixels(28 * 28);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i % 28 * 5 + i / 28 * 3 + i * i % 7);
  const l3_image image = image_of(pixels, 28, 28);
  l3_training* training = nullptr;
  l3_model* model = nullptr;
  ASSERT_EQ(l3_start_training(nullptr, &training, nullptr), L3_OK);
  ASSERT_EQ(l3_add_to_training(training, &image, nullptr), L3_OK);
  ASSERT_EQ(l3_finish_training(training, &model, nullptr), L3_OK);
  l3_close_training(training);

  const std::array<const l3_model*, 1> models = {model};
  l3_writer_options wanted = options();
  wanted.method = L3_METHOD_DENSE;
  wanted.models = models.data();
  wanted.model_count = models.size();
  Bytes file;
  {
    l3::DataSetWriter writer = open(wanted);
    expect_nothing(writer.add(image));
    expect_nothing(writer.finish());
    const auto set = l3::DataSet::open(folder());
    ASSERT_TRUE(set);
    EXPECT_NE(set->sample(0).model, nullptr);
    file = *set->read(0);
    const auto decoded = l3::decode(file, set->decode_options());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->bytes, pixels);
  }
  wanted.replace = 1;
  for (const bool has_model : {true, false}) {
    wanted.model_count = has_model ? 1 : 0;
    l3::DataSetWriter writer = open(wanted);
    expect_nothing(writer.add_file(file));
    const Failure failure = writer.finish();
    EXPECT_EQ(failure ? failure->status : L3_OK, has_model ? L3_OK : L3_ERROR_MODEL);
  }
  l3_close_model(model);
}

TEST_F(Writers, RefuseWrongCallsAndGoOn) {
  l3_writer_options wanted = options();
  const std::array<const char*, 2> classes = {"cat", "dog"};
  wanted.classes = classes.data();
  wanted.class_count = classes.size();
  l3::DataSetWriter writer = open(wanted);
  l3_writer_sample sample = named("a\nb");
  sample.group = 5;
  sample.class_name = "dog";
  expect_nothing(writer.add(image_, sample));

  const auto refused = [&](const std::string& reason, const std::function<void(l3_writer_sample&)>& change) {
    l3_writer_sample changed = named("x");
    change(changed);
    expect_wrong(writer.add(image_, changed), reason);
  };
  refused("sample 1 (a?b): another sample has this name", [](auto& s) { s.name = "a\nb"; });
  refused("a name must have", [](auto& s) { s.name = "a/../b"; });
  refused("a role must have", [](auto& s) { s.role = "a/b"; });
  refused("the label is 2, but there are 2 classes", [](auto& s) { s.label = 2; });
  refused("there is no class cow", [](auto& s) { s.class_name = "cow"; });
  refused("label and class_name are both set", [](auto& s) { s.class_name = "cat", s.label = 0; });
  refused("has a sample of this role already", [](auto& s) { s.group = 5; });
  refused("the group has another label", [](auto& s) { s.group = 5, s.role = "mask", s.label = 0; });
  refused("an argument is null", [](auto& s) { s.metadata_size = 1; });
  refused("struct_size is not set", [](auto& s) { s.struct_size = 0; });
  expect_wrong(writer.add_bytes(pixels_, named("x")), "bytes need a role");
  l3_data_error error{};
  EXPECT_EQ(l3_writer_add_image(writer.get(), nullptr, nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_writer_add_file(writer.get(), nullptr, 0, nullptr, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_writer_add_image(nullptr, &image_, nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_writer_finish(nullptr, &error), L3_ERROR_ARGUMENT);
  l3_writer_close(nullptr);

  const auto refused_image = [&](const std::string& reason, const std::function<void(l3_image&)>& change) {
    l3_image changed = image_;
    change(changed);
    expect_wrong(writer.add(changed, named("x")), reason);
  };
  refused_image("struct_size is not set", [](l3_image& i) { i.struct_size = 0; });
  refused_image("sample 1 (x): ", [](l3_image& i) { i.width = 0; });
  refused_image("sample 1 (x): ", [](l3_image& i) { i.bits = 17; });
  refused_image("sample 1 (x): ", [](l3_image& i) { i.stride = 63; });
  refused_image("sample 1 (x): ", [](l3_image& i) { i.pixels = nullptr; });
  refused_image("a sample is above 2^bits - 1", [](l3_image& i) { i.bits = 2; });
  Failure failure = writer.add_file(pixels_, named("x"));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, L3_ERROR_NOT_L3);

  // The group goes on, since nothing came between.
  sample = named("second");
  sample.group = 5;
  sample.role = "mask";
  expect_nothing(writer.add(image_, sample));
  expect_nothing(writer.add(image_));
  sample.name = "late";
  sample.role = "other";
  expect_wrong(writer.add(image_, sample), "samples of other groups came after this group");
  expect_nothing(writer.finish());
  expect_wrong(writer.add(image_), "the writer is finished");
  expect_wrong(writer.finish(), "the writer is finished");

  const auto set = l3::DataSet::open(folder());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->info().groups, 2U);
  ASSERT_EQ(set->count(), 3U);
  EXPECT_EQ(set->sample(1).label, 1U);
  EXPECT_EQ(set->sample(2).name_text(), "00000002");
}

TEST_F(Writers, RefuseWrongOptions) {
  const auto refused = [&](const std::string& reason, const std::function<void(l3_writer_options&)>& change) {
    l3_writer_options wanted = options();
    change(wanted);
    l3_data_error error{};
    auto* writer = reinterpret_cast<l3_writer*>(&error);
    EXPECT_EQ(l3_writer_open(folder().c_str(), &wanted, &writer, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(writer, nullptr);
    expect_wrong(error, reason);
  };
  const std::array<const char*, 2> same = {"a", "a"}, bad = {"a", "\xff"};
  refused("struct_size is not set", [](auto& o) { o.struct_size = 0; });
  refused("threads", [](auto& o) { o.threads = 1025; });
  refused("replace", [](auto& o) { o.replace = 2; });
  refused("method", [](auto& o) { o.method = 9; });
  refused("tile", [](auto& o) { o.tile_width = 33; });
  refused("an argument is null", [](auto& o) { o.class_count = 1; });
  refused("an argument is null", [](auto& o) { o.model_count = 1; });
  refused("two classes are a", [&](auto& o) { o.classes = same.data(), o.class_count = 2; });
  refused("the class ? is not UTF-8", [&](auto& o) { o.classes = bad.data(), o.class_count = 2; });
  l3_writer* writer = nullptr;
  EXPECT_EQ(l3_writer_open(nullptr, nullptr, &writer, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_writer_open("", nullptr, &writer, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_writer_open("s3://bucket/set", nullptr, &writer, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_TRUE(is_empty());
}

TEST_F(Writers, ReplaceOnlyIfAskedAndAtTheEnd) {
  l3::DataSetWriter first = open(options());
  const auto other = l3::DataSetWriter::open(folder(), options());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().system_error, EEXIST);  // another writer is at work
  expect_nothing(first.add(image_));
  expect_nothing(first.finish());
  const auto before = files("set");

  const auto refused = l3::DataSetWriter::open(folder(), options());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, L3_ERROR_FILE);
  EXPECT_EQ(refused.error().system_error, EEXIST);
  EXPECT_EQ(refused.error().file, folder());
  EXPECT_STREQ(refused.error().reason, "contains a data set already; to replace it, use replace");
  EXPECT_EQ(files("set"), before);

  l3_writer_options replacing = options();
  replacing.replace = 1;
  expect_nothing(open(replacing).add(image_));  // closed without finish
  EXPECT_EQ(files("set"), before);
  l3::DataSetWriter second = open(replacing);
  expect_nothing(second.add(image_, named("new")));
  expect_nothing(second.finish());
  EXPECT_EQ(l3::DataSet::open(folder())->sample(0).name_text(), "new");
}

TEST_F(Writers, LeaveNothingWithoutFinish) {
  for (const int count : {0, 1, 300}) {
    l3::DataSetWriter writer = open(options());
    for (int i = 0; i < count; ++i) expect_nothing(writer.add(image_));
  }
  EXPECT_TRUE(is_empty());
}

TEST_F(Writers, NameTheSampleThatFailsLater) {
  {
    l3::DataSetWriter writer = open(options());
    expect_nothing(writer.add(image_));
    auto file = l3::encode(image_of(noise(), 256, 256));
    ASSERT_TRUE(file);
    file->back() ^= 1;
    expect_nothing(writer.add_file(*file, named("bad.l3")));
    Failure failure;
    for (int i = 0; i < 100000 && !failure; ++i) failure = writer.add(image_);
    ASSERT_TRUE(failure);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(failure->status, L3_ERROR_CORRUPT);
      EXPECT_EQ(std::string(failure->reason).find("sample 1 (bad.l3): "), 0U) << failure->reason;
      failure = writer.finish();
      ASSERT_TRUE(failure);
    }
  }
  EXPECT_TRUE(is_empty());
}

// Returns what the function returns in a process of its own. Limits are for all of a process.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Writers, SayThatTheDiskIsFull) {
  EXPECT_EQ(0, in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{100000, 100000};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
              auto writer = l3::DataSetWriter::open(folder(), options());
              if (!writer) return 11;
              const Bytes pixels = noise();
              Failure failure;
              for (int i = 0; i < 1000 && !failure; ++i) failure = writer->add(image_of(pixels, 256, 256));
              if (!failure || failure->status != L3_ERROR_FILE || failure->system_error != EFBIG) return 12;
              if (std::string(failure->file).find("shard-00000.l3s") == std::string::npos) return 13;
              failure = writer->add(image_);
              if (!failure || failure->system_error != EFBIG) return 14;
              failure = writer->finish();
              if (!failure || failure->system_error != EFBIG) return 15;
              return fs::exists(folder()) ? 16 : 0;
            }));
}

TEST_F(Writers, LeaveNothingIfTheyCannotOpenFiles) {
  // The undefined behaviour sanitizer needs files to verify `this`.
  EXPECT_EQ(0, in_child([folder = folder(), wanted = options()] {
              const rlimit limit{0, 0};
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 10;
              const auto writer = l3::DataSetWriter::open(folder, wanted);
              if (writer || writer.error().status != L3_ERROR_FILE || writer.error().system_error != EMFILE) return 11;
              return fs::exists(folder) ? 12 : 0;
            }));
}

TEST_F(Writers, BelongToOneProcess) {
  l3::DataSetWriter writer = open(options());
  expect_nothing(writer.add(image_));
  EXPECT_EQ(0, in_child([&] {
              const Failure failure = writer.add(image_);
              l3_writer_close(writer.get());
              return failure && failure->status == L3_ERROR_ARGUMENT ? 0 : 10;
            }));
  expect_nothing(writer.finish());
  EXPECT_EQ(l3::DataSet::open(folder())->count(), 1U);
}

TEST_F(Writers, ServeManyThreads) {
  l3::DataSetWriter writer = open(options());
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = std::to_string(t) + "/" + std::to_string(i);
        if (writer.add(image_, named(name.c_str()))) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  expect_nothing(writer.finish());
  const auto set = l3::DataSet::open(folder());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->count(), 800U);
  EXPECT_TRUE(set->find("3/199"));
}

// Each allocation of adding fails once, and adding can be repeated. Opening and finishing list folders, which libstdc++
// cannot do without memory.
TEST_F(Writers, GoOnAfterAddingHadNoMemory) {
  const std::array<const char*, 1> classes = {"a class with a name that needs memory"};
  l3_writer_options wanted = options();
  wanted.classes = classes.data();
  wanted.class_count = 1;
  l3::DataSetWriter writer = open(wanted);
  l3_writer_sample sample = named("a sample with a name that needs memory");
  sample.role = "a role with a name that needs memory";
  sample.class_name = classes[0];
  sample.group = 3;
  sample.metadata = sample.name;
  sample.metadata_size = 30;
  for (int i = 0; i < 2; ++i) {
    l3_data_error error{};
    int64_t failed = 0;
    for (l3_status status = L3_ERROR_MEMORY; status != L3_OK; ++failed) {
      allocations_left = failed;
      status = l3_writer_add_image(writer.get(), &image_, &sample, &error);
      allocations_left = -1;
      ASSERT_TRUE(status == L3_OK || status == L3_ERROR_MEMORY) << l3::message(error);
    }
    EXPECT_GT(failed, 10);
    sample.name = "another sample with a name that needs memory";
    sample.role = "another role with a name that needs memory";
  }
  expect_nothing(writer.finish());
  const auto set = l3::DataSet::open(folder());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->count(), 2U);
  EXPECT_EQ(set->info().groups, 1U);
  EXPECT_EQ(set->sample(1).name_text(), sample.name);
}

}  // namespace
