#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace base {

int read_file(const std::string& path, std::vector<uint8_t>& bytes) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat status {};
  int error = fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  // A file that is not regular, such as a pipe, has no size, so it is read to its end. One extra byte detects the end.
  size_t size = 0;
  if (error == 0) bytes.resize(static_cast<size_t>(std::max<off_t>(status.st_size, 0)) + 1);
  while (error == 0) {
    if (size == bytes.size()) bytes.resize(2 * size);
    const ssize_t count = read(descriptor, bytes.data() + size, std::min(bytes.size() - size, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  close(descriptor);
  bytes.resize(error == 0 ? size : 0);
  return error;
}

}  // namespace base
