#include "disk_limit.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlkio = "/sys/fs/cgroup/blkio";
constexpr const char* kUnified = "/sys/fs/cgroup";
constexpr const char* kPrefix = "l3-stalls-";

// Writes a control file. Returns 0 or an errno.
int write_control(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return errno;
  const bool is_written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && is_written ? 0 : errno;
}

// Moves this process to a group.
void join(const std::string& group) { (void)write_control(group + "/cgroup.procs", std::to_string(getpid())); }

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number of the disk that a file is on, such as "254:0"; empty if it is on none.
std::string disk_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  const std::string number = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::error_code error;
  const fs::path device = fs::canonical("/sys/dev/block/" + number, error);
  if (error) return "";
  return fs::exists(device / "partition", error) ? line_of(device.parent_path() / "dev") : number;
}

// The group of this process in the hierarchy of a controller; empty name: that of version 2.
std::string own_group(const std::string& controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names == ",," : names.find("," + controller + ",") != names.npos) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

}  // namespace

std::unique_ptr<DiskLimit> DiskLimit::make(const std::string& path, double bytes_per_second, Unfinished& unfinished,
                                           std::string& reason) {
  const std::string disk = disk_of(path);
  if (disk.empty()) return reason = "the folder is on no disk", nullptr;
  std::error_code error;
  const bool is_old = fs::exists(std::string(kBlkio) + "/blkio.throttle.read_bps_device", error);
  const std::string root = is_old ? kBlkio : kUnified;
  // Groups that an interrupted run left behind. Those that are in use stay.
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(kPrefix)) rmdir(at->path().c_str());
  }
  std::unique_ptr<DiskLimit> limit(new DiskLimit(unfinished));
  limit->group_ = root + "/" + kPrefix + std::to_string(getpid());
  limit->parent_ = root + own_group(is_old ? "blkio" : "");
  // Before the group is there: an interruption may come at any time.
  limit->cleanup_ = unfinished.add_cleanup([group = limit->group_, parent = limit->parent_] {
    join(parent);
    rmdir(group.c_str());
  });
  if (mkdir(limit->group_.c_str(), 0755) != 0) return reason = std::generic_category().message(errno), nullptr;
  const std::string rate = std::to_string(static_cast<unsigned long long>(bytes_per_second));
  if (!is_old) (void)write_control(root + "/cgroup.subtree_control", "+io");
  const int failure = is_old ? write_control(limit->group_ + "/blkio.throttle.read_bps_device", disk + " " + rate)
                             : write_control(limit->group_ + "/io.max", disk + " rbps=" + rate);
  if (failure != 0) return reason = std::generic_category().message(failure), nullptr;
  return limit;
}

DiskLimit::~DiskLimit() { unfinished_.clean_up(cleanup_); }

DiskLimit::Use::Use(const DiskLimit* limit) : limit_(limit) {
  if (limit_ != nullptr) join(limit_->group_);
}

DiskLimit::Use::~Use() {
  if (limit_ != nullptr) join(limit_->parent_);
}

}  // namespace tools
