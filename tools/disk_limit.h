// A limit of the system for how fast this process may read from a disk: the controller blkio of cgroups (version 1), or
// io of version 2. It takes privileges, and a folder on a disk.
#pragma once

#include <memory>
#include <string>

#include "unfinished.h"

namespace tools {

class DiskLimit {
 public:
  // Returns null if the system does not allow it, and then `reason` says why.
  static std::unique_ptr<DiskLimit> make(const std::string& path, double bytes_per_second, Unfinished& unfinished,
                                         std::string& reason);
  ~DiskLimit();
  DiskLimit(const DiskLimit&) = delete;
  DiskLimit& operator=(const DiskLimit&) = delete;

  // This process, with all threads that exist or are started meanwhile, is limited as long as this exists.
  class Use {
   public:
    explicit Use(const DiskLimit* limit);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const DiskLimit* limit_;
  };

 private:
  explicit DiskLimit(Unfinished& unfinished) : unfinished_(unfinished) {}

  std::string group_;   // the folder of the group
  std::string parent_;  // the folder of the group that the process came from
  Unfinished& unfinished_;
  uint64_t cleanup_ = 0;
};

}  // namespace tools
