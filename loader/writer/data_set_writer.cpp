#include "loader/data_set_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "base/hex.h"

namespace loader {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kItemsAheadOfThread = 64;
// Small items wait until there are so many, or so many bytes: to wake a thread for each takes longer than to encode it.
constexpr uint64_t kItemsTogether = 16, kBytesTogether = uint64_t{1} << 18;
constexpr size_t kMaxKeptBytes = size_t{1} << 26;  // of memory for the next image of a thread
constexpr const char* kPrefix = "shard-";
constexpr const char* kLock = "lock";
constexpr const char* kState = "state";  // of l3 convert
constexpr const char* kNewIndex = "new-index.json";

WriteFailure system_failure(std::string file, const std::string& doing, int error) {
  return {L3_ERROR_FILE, error, std::move(file), doing + ": " + std::strerror(error)};
}

WriteFailure failure_of(const l3_error& error) {
  std::string reason = error.reason;
  if (error.tile != L3_NO_TILE) reason += " (tile " + std::to_string(error.tile) + ")";
  return {error.status, 0, "", std::move(reason)};
}

WriteFailure caught() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {L3_ERROR_MEMORY, 0, "", "not enough memory"};
  } catch (const std::exception& error) {
    return {L3_ERROR_CORRUPT, 0, "", error.what()};
  }
}

// Memory of a thread. Fresh memory would take longer than small images: the system clears it, page by page.
std::vector<uint8_t>& scratch(size_t size) {
  thread_local std::vector<uint8_t> bytes;
  if (bytes.size() > std::max(size, kMaxKeptBytes)) std::vector<uint8_t>().swap(bytes);
  if (bytes.size() < size) bytes.resize(size);
  return bytes;
}

template <size_t kSize>
void copy_text(char (&to)[kSize], const std::string& text) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

uint32_t channels_of(uint32_t colour) {
  switch (colour) {
    case L3_COLOUR_GRAY_ALPHA: return 2;
    case L3_COLOUR_RGB: return 3;
    case L3_COLOUR_RGB_ALPHA: return 4;
    default: return 1;
  }
}

void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);  // not every file system can do this
  ::close(descriptor);
}

}  // namespace

l3_data_error error_of(const WriteFailure& failure) {
  l3_data_error error{};
  error.status = failure.status;
  error.system_error = failure.system_error;
  error.offset = failure.offset;
  copy_text(error.file, failure.file);
  copy_text(error.reason, failure.reason);
  return error;
}

size_t colour_space_size(uint8_t parts) {
  constexpr std::array<size_t, 4> kPartBytes = {4, 4, 1, 32};
  size_t size = 1;
  for (size_t i = 0; i < kPartBytes.size(); ++i) size += (parts >> i & 1) != 0 ? kPartBytes[i] : 0;
  return size;
}

DataSetWriter::DataSetWriter(WriterOptions options) : options_(std::move(options)) {
  work_folder_ = in_folder(kWorkFolder);
  for (const l3_model* model : options_.models) {
    l3_model_info info = l3_model_info_init();
    (void)!l3_describe_model(model, &info, nullptr);
    models_.push_back(info);
  }
}

DataSetWriter::~DataSetWriter() { abandon(); }

std::string DataSetWriter::in_folder(std::string_view name) const {
  return (fs::path(options_.folder) / name).string();
}
std::string DataSetWriter::in_work_folder(std::string_view name) const {
  return (fs::path(work_folder_) / name).string();
}

// ------------------------------------------------------------------------------------------------- beginning and end

std::optional<WriteFailure> DataSetWriter::begin() {
  std::set<std::pair<uint32_t, uint32_t>> kinds;
  for (const l3_model_info& model : models_) {
    if (kinds.emplace(model.channels, model.bits).second) continue;
    return WriteFailure{L3_ERROR_ARGUMENT, 0, "",
                        "two models are for images of " + std::to_string(model.channels) + " channels and " +
                            std::to_string(model.bits) + " bits: it is not clear which one to use"};
  }
  std::error_code error;
  made_folder_ = !path_exists(options_.folder);
  fs::create_directories(work_folder_, error);
  if (error) return system_failure(work_folder_, "cannot create", error.value());
  const int taking = lock_file_.take(in_work_folder(kLock));
  if (taking == EWOULDBLOCK) return WriteFailure{L3_ERROR_FILE, EEXIST, options_.folder, kBusy};
  if (taking != 0) return system_failure(in_work_folder(kLock), "cannot write", taking);
  is_locked_ = true;
  if (auto failure = inspect_existing()) return failure;
  for (const std::string& name : shards_in(work_folder_, kPrefix)) fs::remove(in_work_folder(name), error);
  if (auto failure = open_shard()) return failure;
  const uint32_t processors = std::max(1U, std::thread::hardware_concurrency());
  try {
    for (uint32_t i = 0; i < (options_.threads != 0 ? options_.threads : processors); ++i) {
      threads_.emplace_back([this] { work(); });
    }
  } catch (const std::system_error&) {
    if (threads_.empty()) return WriteFailure{L3_ERROR_MEMORY, 0, "", "cannot start a thread"};
  }
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::inspect_existing() const {
  if (options_.replace) return std::nullopt;
  const std::string& option = options_.replace_option;
  const auto refuse = [](const std::string& file, const std::string& reason) {
    return WriteFailure{L3_ERROR_FILE, EEXIST, file, reason};
  };
  if (path_exists(in_folder(kIndexFile))) {
    return refuse(options_.folder, "contains a data set already; to replace it, use " + option);
  }
  if (path_exists(in_work_folder(kState))) {
    return refuse(options_.folder, "contains an unfinished data set of l3 convert; to replace it, use " + option);
  }
  if (const auto shards = shards_in(options_.folder, kPrefix); !shards.empty()) {
    return refuse(in_folder(shards.front()), "exists already, without an index; to replace it, use " + option);
  }
  if (const std::string other = file_of_others(options_.folder); !other.empty()) {
    return refuse(options_.folder, "contains other files, such as " + other + "; use a new folder, or " + option +
                                       " to write here and keep these files");
  }
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::finish(const std::vector<std::string>& classes) {
  stop();
  if (auto failure = this->failure()) return failure;
  auto failure = write_group();
  if (!failure) failure = end_shard();
  if (!failure) failure = move_into_place(classes);
  if (failure) {
    fail(*failure);
  } else {
    std::error_code ignored;  // what an interrupted l3 convert has left
    for (const char* name : {kState, "journal", "growing.l3s"}) fs::remove(in_work_folder(name), ignored);
    clear_work_folder();
  }
  return failure;
}

std::optional<WriteFailure> DataSetWriter::move_into_place(const std::vector<std::string>& classes) {
  index_.classes = classes;
  const std::string json = to_json(index_);
  GrowingFile file;
  int error = file.open(in_work_folder(kNewIndex), false);
  file.append({reinterpret_cast<const uint8_t*>(json.data()), json.size()});
  if (error == 0) error = file.put();
  if (error == 0) error = file.flush();
  if (error != 0) return system_failure(file.path(), "cannot write", error);

  // From here on the old data set is gone. Without index.json a folder is no data set.
  std::error_code ignored;
  if (::unlink(in_folder(kIndexFile).c_str()) != 0 && errno != ENOENT) {
    return system_failure(in_folder(kIndexFile), "cannot remove", errno);
  }
  for (const std::string& name : shards_in(options_.folder, kPrefix)) fs::remove(in_folder(name), ignored);
  fs::remove(in_folder("errors.tsv"), ignored);  // of an earlier l3 convert
  for (const ShardSummary& shard : index_.shards) {
    if (std::rename(in_work_folder(shard.file).c_str(), in_folder(shard.file).c_str()) != 0) {
      return system_failure(in_folder(shard.file), "cannot write", errno);
    }
  }
  flush_folder(options_.folder);
  if (std::rename(file.path().c_str(), in_folder(kIndexFile).c_str()) != 0) {
    return system_failure(in_folder(kIndexFile), "cannot write", errno);
  }
  flush_folder(options_.folder);
  return std::nullopt;
}

void DataSetWriter::abandon() {
  stop();
  clear_work_folder();
}

void DataSetWriter::clear_work_folder() {
  shard_.reset();
  if (is_locked_) {
    is_locked_ = false;
    std::error_code ignored;
    for (const std::string& name : shards_in(work_folder_, kPrefix)) fs::remove(in_work_folder(name), ignored);
    for (const char* name : {kNewIndex, kLock}) fs::remove(in_work_folder(name), ignored);
    fs::remove(work_folder_, ignored);
  }
  if (!made_folder_) return;
  made_folder_ = false;
  // Only empty folders are removed. Without the lock, the work folder may belong to another writer.
  ::rmdir(work_folder_.c_str());
  ::rmdir(options_.folder.c_str());
}

uint64_t DataSetWriter::bytes() const {
  uint64_t sum = 0;
  for (const ShardSummary& shard : index_.shards) sum += shard.bytes;
  return sum;
}

// ---------------------------------------------------------------------------------------------------------- the queue

DataSetWriter::Added DataSetWriter::add(NewItem& item, std::chrono::milliseconds patience) {
  auto job = std::make_unique<Job>();
  job->cost = item.bytes.size() + item.sample.metadata.size();
  for (const std::vector<uint8_t>& section : item.sections) job->cost += section.size();
  {
    std::unique_lock lock(mutex_);
    const auto has_room = [&] {
      return failure_ || jobs_.empty() ||
             (jobs_.size() < kItemsAheadOfThread * threads_.size() && cost_ + job->cost <= options_.bytes_ahead);
    };
    if (!has_room()) {
      ready_.notify_all();
      if (!room_.wait_for(lock, patience, has_room)) return Added::full;
    }
    if (failure_) return Added::failed;
    jobs_.emplace_back();
    job->item = std::move(item);
    job->number = taken_++;
    cost_ += job->cost;
    idle_bytes_ += job->cost;
    jobs_.back() = std::move(job);
    if (taken_ - started_ < kItemsTogether && idle_bytes_ < kBytesTogether) return Added::taken;
  }
  ready_.notify_one();
  return Added::taken;
}

bool DataSetWriter::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ready_.notify_all();
  return room_.wait_for(lock, patience, [&] { return failure_ || (jobs_.empty() && !is_writing_); });
}

std::optional<WriteFailure> DataSetWriter::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

uint64_t DataSetWriter::samples() {
  const std::lock_guard lock(mutex_);
  return taken_;
}

void DataSetWriter::fail(WriteFailure failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    is_stopped_ = true;
  }
  room_.notify_all();
  ready_.notify_all();
}

void DataSetWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void DataSetWriter::work() {
  for (;;) {
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return is_stopped_ || started_ < taken_; });
      if (is_stopped_) return;
      job = jobs_[started_++ - written_].get();
      idle_bytes_ -= job->cost;
    }
    std::optional<WriteFailure> failure;
    try {
      failure = convert(job->item);
    } catch (...) {
      failure = caught();
    }
    if (failure) {
      failure->sample = job->number;
      failure->name = job->item.sample.name;
      fail(*std::move(failure));
      return;
    }
    std::unique_lock lock(mutex_);
    job->is_done = true;
    if (!is_writing_) write_done(lock);
  }
}

// Writes the items that are next and done. Only one thread does this at a time.
void DataSetWriter::write_done(std::unique_lock<std::mutex>& lock) {
  is_writing_ = true;
  while (!is_stopped_ && !jobs_.empty() && jobs_.front()->is_done) {
    const std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    ++written_;
    lock.unlock();
    std::optional<WriteFailure> failure;
    try {
      failure = write(std::move(job->item));
    } catch (...) {
      failure = caught();
    }
    if (failure) fail(*std::move(failure));
    lock.lock();
    cost_ -= job->cost;
    // The caller fills the queue in one go, and not item by item.
    if (jobs_.size() <= kItemsAheadOfThread * threads_.size() / 2) room_.notify_all();
  }
  is_writing_ = false;
  if (jobs_.empty()) room_.notify_all();
}

// --------------------------------------------------------------------------------------------------------- converting

const l3_model* DataSetWriter::model_for(uint32_t channels, uint32_t bits) const {
  for (size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].channels == channels && models_[i].bits == bits) return options_.models[i];
  }
  return nullptr;
}

std::span<const uint8_t> DataSetWriter::model_of(const NewSample& sample) const {
  if (!sample.model) return {};
  for (const l3_model_info& model : models_) {
    if (std::equal(sample.model->begin(), sample.model->end(), std::begin(model.name))) {
      return {model.bytes, model.size};
    }
  }
  return {};
}

// Turns an image into the bytes of a file, and completes the description of the sample.
std::optional<WriteFailure> DataSetWriter::convert(NewItem& item) const {
  if (item.unpack) {
    if (auto failure = item.unpack(item)) return failure;
  }
  if (item.image) {
    if (auto failure = encode(item)) return failure;
    item.kept.reset();
  }
  if (!describe(item.bytes, item.sample.kind, item.sample)) {
    return WriteFailure{L3_ERROR_NOT_L3, 0, "", "not an L3 file"};
  }
  if (item.sample.model && model_of(item.sample).empty()) {
    return WriteFailure{
        L3_ERROR_MODEL, 0, "",
        "the file names the model " + base::hexadecimal(*item.sample.model) + ", which is not one of the models"};
  }
  if (!item.image && item.sample.kind == L3_DATA_IMAGE && options_.verify) {
    l3_decode_options decode = l3_decode_options_init();
    decode.models = options_.models.data();
    decode.model_count = options_.models.size();
    decode.limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    l3_error error{};
    if (l3_verify(item.bytes.data(), item.bytes.size(), &decode, &error) != L3_OK) return failure_of(error);
  }
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::encode(NewItem& item) const {
  l3_image& image = *item.image;
  image.pixels = item.bytes.data();
  l3_encode_options encode = options_.encode;
  encode.named_model = model_for(channels_of(image.colour), image.bits);
  const uint64_t bound = l3_encode_bound(&image, &encode);
  std::vector<uint8_t>& memory = scratch(std::max(static_cast<size_t>(bound), item.bytes.size()));
  size_t size = 0;
  l3_error error{};
  if (l3_encode(&image, &encode, memory.data(), static_cast<size_t>(bound), &size, &error) != L3_OK) {
    return failure_of(error);
  }
  std::vector<uint8_t> file(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(size));
  if (options_.verify) {
    l3_decode_options decode = l3_decode_options_init();
    decode.models = options_.models.data();
    decode.model_count = options_.models.size();
    decode.limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    if (l3_decode(file.data(), file.size(), &decode, memory.data(), item.bytes.size(), 0, &error) != L3_OK) {
      return failure_of(error);
    }
    if (std::memcmp(memory.data(), item.bytes.data(), item.bytes.size()) != 0) {
      return WriteFailure{L3_ERROR_CORRUPT, 0, "", "not written, because decoding the result gave other pixels"};
    }
  }
  item.bytes = std::move(file);
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------------------------ writing

std::optional<WriteFailure> DataSetWriter::write(NewItem item) {
  if (item.sample.opens_group) {
    if (auto failure = write_group()) return failure;
  }
  group_.push_back({std::move(item.sample), std::move(item.bytes)});
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::write_group() {
  GroupSize size;
  for (const Part& part : group_) size.add(part.sample, model_of(part.sample).size());
  if (!takes(*builder_, size, options_.shard_bytes)) {
    if (auto failure = end_shard()) return failure;
    if (auto failure = open_shard()) return failure;
  }
  for (const Part& part : group_) append_sample(*builder_, *shard_, part.sample, part.bytes, model_of(part.sample));
  group_.clear();
  if (!shard_->has_much_to_put()) return std::nullopt;
  if (const int error = shard_->put()) return system_failure(shard_->path(), "cannot write", error);
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::open_shard() {
  builder_.emplace();
  shard_ = std::make_unique<GrowingFile>();
  const std::string path = in_work_folder(shard_file_name(kPrefix, index_.shards.size()));
  if (const int error = shard_->open(path, false)) return system_failure(path, "cannot write", error);
  shard_->append(ShardBuilder::head());
  return std::nullopt;
}

std::optional<WriteFailure> DataSetWriter::end_shard() {
  if (builder_->samples() == 0) return std::nullopt;
  ShardSummary summary;
  shard_->append(builder_->finish(summary));
  int error = shard_->put();
  if (error == 0) error = shard_->flush();
  if (error != 0) return system_failure(shard_->path(), "cannot write", error);
  summary.file = shard_file_name(kPrefix, index_.shards.size());
  index_.shards.push_back(std::move(summary));
  return std::nullopt;
}

}  // namespace loader
