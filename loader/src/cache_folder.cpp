#include "cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/hex.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "loader/cache_sets.h"

namespace loader {
namespace {

constexpr const char* kAbout = "about.json";
constexpr const char* kPresent = "present";
constexpr std::string_view kExtension = ".l3cache";
constexpr uint64_t kVersion = 1;
// The store behind the cache has files, too.
constexpr uint32_t kMaxOpenFiles = 256;
constexpr uint64_t kFullPause = 30'000'000'000;  // after a failure to write, nanoseconds

StoreFault fault_of(int error, std::string_view what) {
  return {L3_ERROR_FILE, error, L3_DATA_NONE, std::string(what) + ": " + std::strerror(error)};
}

// What about.json says.
struct About {
  std::string data_set;
  uint64_t version = 0, size = 0, begin = 0, end = 0, samples = 0, bytes = 0, of_samples = 0, of_bytes = 0;
};

std::string to_json(const About& about) {
  base::Json json;
  json.open_object()
      .member("version", about.version)
      .member("data_set", std::string_view(about.data_set))
      .member("size", about.size)
      .member("begin", about.begin)
      .member("end", about.end)
      .member("samples", about.samples)
      .member("bytes", about.bytes)
      .member("of_samples", about.of_samples)
      .member("of_bytes", about.of_bytes)
      .close_object();
  return json.line() + "\n";
}

bool read_json(std::string_view text, About& about) {
  base::JsonReader json(text);
  std::string name;
  if (!json.open_object()) return false;
  while (json.next_member(name)) {
    const std::pair<const char*, uint64_t*> numbers[] = {
        {"version", &about.version},       {"size", &about.size},
        {"begin", &about.begin},           {"end", &about.end},
        {"samples", &about.samples},       {"bytes", &about.bytes},
        {"of_samples", &about.of_samples}, {"of_bytes", &about.of_bytes}};
    const auto found =
        std::find_if(std::begin(numbers), std::end(numbers), [&](const auto& one) { return name == one.first; });
    if (name == "data_set") {
      json.text(about.data_set);
    } else if (found != std::end(numbers)) {
      json.integer(*found->second);
    } else {
      json.skip();
    }
  }
  return json.end() && about.version != 0;
}

int write_all(int file, uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

// Closes a file at the end.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Writes a file of a folder under another name, and renames it, so that readers see all of it or nothing.
int replace_file(int folder, const char* name, const std::string& text) {
  const std::string temporary = std::string(name) + "." + std::to_string(getpid()) + ".tmp";
  const File file(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) return errno;
  int error = write_all(file.get(), 0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  if (error == 0 && renameat(folder, temporary.c_str(), folder, name) != 0) error = errno;
  if (error != 0) unlinkat(folder, temporary.c_str(), 0);
  return error;
}

}  // namespace

CacheFolder::~CacheFolder() {
  if (present_ >= 0) close(present_);
  if (descriptor_ >= 0) close(descriptor_);
}

std::unique_ptr<CacheFolder> CacheFolder::open(const std::string& folder, const CachePlan& plan, size_t number,
                                               const SetOfShards& set, StoreFault& fault) {
  std::unique_ptr<CacheFolder> opened(new CacheFolder);
  fault = opened->create(folder, plan, number, set);
  if (fault) return nullptr;
  return opened;
}

StoreFault CacheFolder::create(const std::string& place, const CachePlan& plan, size_t number, const SetOfShards& set) {
  name_ = place;
  folder_ = place + "/" + base::hexadecimal(plan.data_set()) + std::string(kExtension);
  std::error_code error;
  std::filesystem::create_directories(place, error);
  if (error) return fault_of(error.value(), "cannot make the folder of a cache");
  if (mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) return fault_of(errno, "cannot make a folder in a cache");
  descriptor_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor_ < 0) return fault_of(errno, "cannot open a folder of a cache");
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) return fault_of(errno, "cannot open a folder of a cache");
  // Others could have put links there, which lead to files of this user.
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return {L3_ERROR_FILE, EPERM, L3_DATA_NONE, "the cache of this data set belongs to another user"};
  }
  if (StoreFault fault = agree(plan, number, set)) return fault;

  present_ = openat(descriptor_, kPresent, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (present_ < 0) return fault_of(errno, "cannot open a file of a cache");
  if (fstat(present_, &status) != 0) return fault_of(errno, "cannot open a file of a cache");
  const uint64_t size = plan.samples();
  if (static_cast<uint64_t>(status.st_size) != size && ftruncate(present_, static_cast<off_t>(size)) != 0) {
    return fault_of(errno, "cannot write to a cache");
  }
  std::vector<uint8_t> present(static_cast<size_t>(size));
  for (uint64_t at = 0; at < size;) {
    const ssize_t count = pread(present_, present.data() + at, static_cast<size_t>(size - at), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fault_of(errno, "cannot read a cache");
    if (count == 0) break;  // it was cut meanwhile: the rest is absent
    at += static_cast<uint64_t>(count);
  }
  known_ = std::vector<std::atomic<uint8_t>>(present.size());
  for (size_t i = 0; i < present.size(); ++i) known_[i].store(present[i] == 1 ? 1 : 0, std::memory_order_relaxed);
  files_ = make_local_store(folder_, kMaxOpenFiles);
  for (const auto& shard : set.shards) objects_.push_back(files_->open(file_of(*shard)));
  return {};
}

// Writes about.json, or compares it with the plan.
StoreFault CacheFolder::agree(const CachePlan& plan, size_t number, const SetOfShards& set) {
  const CachePlan::Part& part = plan.part(number);
  About wanted{set.name, kVersion, part.size, part.begin, part.end, part.samples, part.bytes, plan.samples(), 0};
  for (const auto& shard : set.shards) wanted.of_bytes += shard->size;
  std::vector<uint8_t> bytes;
  const int error = base::read_file(folder_ + "/" + kAbout, bytes);
  if (error != 0 && error != ENOENT) return fault_of(error, "cannot read a cache");
  About found;
  if (error == 0 && read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, found)) {
    if (found.version != kVersion) {
      return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE,
              "the cache was made by another version of l3; l3 cache clear "
              "removes it"};
    }
    if (found.begin == wanted.begin && found.end == wanted.end) return {};
    if (found.begin != wanted.begin || found.end > wanted.end) {
      return {L3_ERROR_ARGUMENT, 0, L3_DATA_NONE,
              "the cache holds another part of this data set: it was made with the size " + std::to_string(found.size) +
                  ", and not " + std::to_string(wanted.size) + ", or after other places; l3 cache clear removes it"};
    }
  }
  const int failure = replace_file(descriptor_, kAbout, to_json(wanted));
  return failure != 0 ? fault_of(failure, "cannot write to a cache") : StoreFault{};
}

bool CacheFolder::may_have(uint64_t sample) {
  std::atomic<uint8_t>& known = known_[static_cast<size_t>(sample)];
  if (known.load(std::memory_order_acquire) == 1) return true;
  uint8_t byte = 0;  // another process may have written it
  if (pread(present_, &byte, 1, static_cast<off_t>(sample)) != 1 || byte != 1) return false;
  known.store(1, std::memory_order_release);
  return true;
}

void CacheFolder::direct(Read& read, const Shard& shard, std::unique_ptr<Object>&) {
  read.object = objects_[shard.number].get();
  read.object_size = 0;
}

void CacheFolder::failed(uint64_t sample, const StoreFault&) { forget(sample); }

bool CacheFolder::may_keep() { return full_until_.load(std::memory_order_relaxed) <= steady_ns(); }

StoreFault CacheFolder::write(const Shard& shard, uint64_t offset, std::span<const uint8_t> bytes) const {
  const std::string file(file_of(shard));
  const File out(openat(descriptor_, file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  const int error = out.get() < 0 ? errno : write_all(out.get(), offset, bytes);
  return error != 0 ? fault_of(error, "cannot write to a cache") : StoreFault{};
}

StoreFault CacheFolder::keep(const Shard& shard, uint64_t sample, uint64_t offset, std::span<const uint8_t> bytes) {
  StoreFault fault = write(shard, offset, bytes);
  if (!fault) fault = mark(sample, 1);
  if (fault) full_until_.store(steady_ns() + kFullPause, std::memory_order_relaxed);
  return fault;
}

StoreFault CacheFolder::mark(uint64_t sample, uint8_t value) {
  const int error = write_all(present_, sample, {&value, 1});
  if (error != 0 && value == 1) return fault_of(error, "cannot write to a cache");
  known_[static_cast<size_t>(sample)].store(value, std::memory_order_release);
  return {};
}

void CacheFolder::forget(uint64_t sample) { (void)mark(sample, 0); }

// ------------------------------------------------------------------------------------------------- for the command

namespace {

// Adds up what the files of a folder take.
int measure(int folder, uint64_t& bytes) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = copy >= 0 ? fdopendir(copy) : nullptr;
  if (list == nullptr) return errno;
  while (const dirent* const one = readdir(list)) {
    struct stat status {};
    if (fstatat(folder, one->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
      bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    }
  }
  closedir(list);
  return 0;
}

void describe(CachedSet& set) {
  const File folder(open(set.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder.get() < 0) {
    set.problem = std::strerror(errno);
    return;
  }
  if (const int error = measure(folder.get(), set.disk_bytes); error != 0) set.problem = std::strerror(error);
  std::vector<uint8_t> bytes;
  About about;
  if (const int error = base::read_file(set.folder + "/" + kAbout, bytes); error != 0) {
    set.problem = std::string(kAbout) + ": " + std::strerror(error);
  } else if (!read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, about)) {
    set.problem = std::string(kAbout) + " is damaged";
  }
  set.data_set = about.data_set;
  set.size = about.size;
  set.samples = about.samples;
  set.bytes = about.bytes;
  set.of_samples = about.of_samples;
  set.of_bytes = about.of_bytes;
  if (base::read_file(set.folder + "/" + kPresent, bytes) == 0) {
    set.present = static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), uint8_t{1}));
  }
}

}  // namespace

int list_cached_sets(const std::string& place, std::vector<CachedSet>& sets) {
  sets.clear();
  std::error_code error;
  for (std::filesystem::directory_iterator at(place, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    if (!path.ends_with(kExtension)) continue;
    CachedSet& set = sets.emplace_back();
    set.folder = path;
    describe(set);
  }
  std::sort(sets.begin(), sets.end(), [](const CachedSet& a, const CachedSet& b) { return a.folder < b.folder; });
  return error.value();
}

int remove_cached_set(const CachedSet& set) {
  std::error_code error;
  // A link leads to a folder that is none of ours.
  if (std::filesystem::is_symlink(set.folder, error)) return ELOOP;
  // First what makes it a cache, so that an interrupted removal leaves nothing that looks complete.
  std::filesystem::remove(set.folder + "/" + kPresent, error);
  if (!error) std::filesystem::remove_all(set.folder, error);
  return error.value();
}

}  // namespace loader
