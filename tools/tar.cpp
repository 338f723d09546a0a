#include "tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "file_io.h"
#include "loader/names.h"

namespace tools {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMostLongName = uint64_t{1} << 20;

using Block = std::array<uint8_t, kBlock>;

struct Field {
  size_t offset, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 5}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string text_of(const Block& block, Field field) {
  const char* begin = reinterpret_cast<const char*>(block.data() + field.offset);
  return {begin, strnlen(begin, field.size)};
}

// A number in octal digits, or in base 256 where the first bit is set.
std::optional<uint64_t> number_of(const Block& block, Field field) {
  const uint8_t* at = block.data() + field.offset;
  uint64_t value = 0;
  if ((at[0] & 0x80) != 0) {
    if (at[0] != 0x80) return std::nullopt;  // negative, or above 2^88
    for (size_t i = 1; i < field.size; ++i) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | at[i];
    }
    return value;
  }
  size_t i = 0;
  while (i < field.size && at[i] == ' ') ++i;
  const size_t begin = i;
  for (; i < field.size && at[i] >= '0' && at[i] <= '7'; ++i) value = value << 3 | (at[i] - '0');
  for (size_t rest = i; rest < field.size; ++rest) {
    if (at[rest] != ' ' && at[rest] != 0) return std::nullopt;
  }
  return i > begin ? std::optional(value) : std::nullopt;
}

bool has_right_checksum(const Block& block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    sum += own ? uint64_t{' '} : block[i];
  }
  return number_of(block, kChecksum) == sum;
}

bool is_zero(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t byte) { return byte == 0; });
}

// What pax headers say of the members after them.
struct Extended {
  std::optional<std::string> path;
  std::optional<uint64_t> size;
  bool sparse = false;
};

// Records "LENGTH KEY=VALUE\n". False where they are not such.
bool read_pax(std::string_view records, Extended& extended) {
  while (!records.empty()) {
    uint64_t length = 0;
    size_t at = 0;
    for (; at < records.size() && at < 10 && records[at] >= '0' && records[at] <= '9'; ++at) {
      length = length * 10 + static_cast<uint64_t>(records[at] - '0');
    }
    if (at == 0 || at >= records.size() || records[at] != ' ' || length > records.size() || length < at + 3)
      return false;
    if (records[length - 1] != '\n') return false;
    const std::string_view record = records.substr(at + 1, length - at - 2);
    const size_t equals = record.find('=');
    if (equals == record.npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extended.path = std::string(value);
    if (key == "size") {
      uint64_t size = 0;
      for (const char digit : value) {
        if (digit < '0' || digit > '9' || size > (UINT64_MAX >> 8)) return false;
        size = size * 10 + static_cast<uint64_t>(digit - '0');
      }
      extended.size = size;
    }
    if (key.starts_with("GNU.sparse")) extended.sparse = true;
    records.remove_prefix(length);
  }
  return true;
}

class TarReader {
 public:
  TarReader(const std::string& path, const RandomFile& file) : path_(path), file_(file) {}

  std::optional<Failure> read(TarContents& contents) {
    Block block;
    for (; at_ < file_.size(); at_ += kBlock) {
      if (file_.size() - at_ < kBlock) return at("a tar ends in the middle of a header");
      if (auto failure = file_.read(at_, block)) return failure;
      if (is_zero(block)) return std::nullopt;
      if (!has_right_checksum(block)) {
        return at(at_ == 0 ? "no tar: the checksum of the first header does not match"
                           : "the checksum of a tar's header does not match");
      }
      if (auto failure = take(block, contents)) return failure;
    }
    // Without zero blocks at the end nobody knows whether it is whole.
    return at("a tar ends without its end mark: it may be cut");
  }

 private:
  Failure at(const std::string& reason) const { return {path_, at_, reason}; }

  std::optional<Failure> take(const Block& block, TarContents& contents) {
    std::optional<uint64_t> size = number_of(block, kSize);
    const char type = static_cast<char>(block[kType]);
    const bool describes_next = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!describes_next && next_.size) size = next_.size;
    if (!size) return at("the size of a tar's member is no number");
    const uint64_t bytes = at_ + kBlock;
    // Of links, devices and folders the size means nothing.
    const bool has_bytes = describes_next || type == '0' || type == '\0' || type == '7' || type == 'S';
    if (!has_bytes) size = 0;
    if (*size > file_.size() - bytes) return at("a tar's member reaches past the end of the file");
    if (describes_next) {
      if (auto failure = take_description(type, bytes, *size)) return failure;
    } else {
      if (auto failure = take_member(block, type, bytes, *size, contents)) return failure;
      next_ = {};
    }
    at_ += (*size + kBlock - 1) / kBlock * kBlock;
    return std::nullopt;
  }

  std::optional<Failure> take_description(char type, uint64_t offset, uint64_t size) {
    if (size > kMostLongName) return at("more than 1 MiB of a tar's names");
    std::string bytes(static_cast<size_t>(size), '\0');
    if (auto failure = file_.read(offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()})) return failure;
    if (type == 'x' && !read_pax(bytes, next_)) return at("a tar's pax header is damaged");
    if (type == 'L') next_.path = bytes.substr(0, bytes.find('\0'));
    return std::nullopt;
  }

  std::optional<Failure> take_member(const Block& block, char type, uint64_t offset, uint64_t size,
                                     TarContents& contents) {
    std::string name = text_of(block, kName);
    if (std::memcmp(block.data() + kMagic.offset, "ustar", kMagic.size) == 0) {
      // GNU's old format keeps other things where the prefix is.
      const bool is_gnu = block[kMagic.offset + 5] == ' ';
      if (const std::string prefix = is_gnu ? "" : text_of(block, kPrefix); !prefix.empty()) name = prefix + "/" + name;
    }
    if (next_.path) name = *next_.path;
    while (name.starts_with("./")) name.erase(0, name.find_first_not_of('/', 1));
    if (type == '5' || name.empty() || name == ".") return std::nullopt;
    if (type != '0' && type != '\0' && type != '7') {
      contents.skipped.push_back(path_ + ": " + name);
      return std::nullopt;
    }
    if (next_.sparse) return at("sparse members of a tar cannot be read: " + name);
    if (name.back() == '/') return std::nullopt;  // a folder, in the oldest format
    if (!loader::is_name(name)) return at("the name of a tar's member leads elsewhere: " + name);
    contents.members.push_back({std::move(name), offset, size});
    return std::nullopt;
  }

  const std::string& path_;
  const RandomFile& file_;
  uint64_t at_ = 0;
  Extended next_;  // of the member that follows
};

}  // namespace

Outcome<TarContents> list_tar(const std::string& path) {
  RandomFile file;
  if (auto failure = file.open(path)) return *failure;
  TarContents contents;
  if (auto failure = TarReader(path, file).read(contents)) return *failure;
  return contents;
}

}  // namespace tools
