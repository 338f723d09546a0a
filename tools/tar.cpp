#include "tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/json_reader.h"
#include "file_io.h"
#include "sources.h"

namespace tools {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxLongName = uint64_t{1} << 20;
constexpr uint64_t kMaxClasses = uint64_t{1} << 26;  // bytes

using Block = std::array<uint8_t, kBlock>;

struct Field {
  size_t offset, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kLink{157, 100}, kMagic{257, 5}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string text_of(const Block& block, Field field) {
  const char* begin = reinterpret_cast<const char*>(block.data() + field.offset);
  return {begin, strnlen(begin, field.size)};
}

// Reads a number in octal digits, or in base 256 if the first bit is set.
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

// Whether a file has the signature of gzip, bzip2, xz, zstd or zip.
bool is_compressed(const Block& begin_of_file) {
  using namespace std::string_view_literals;
  const std::string_view begin(reinterpret_cast<const char*>(begin_of_file.data()), begin_of_file.size());
  constexpr std::array kMagics = {"\x1F\x8B"sv, "BZh"sv, "\xFD\x37zXZ"sv, "\x28\xB5\x2F\xFD"sv, "PK\x03\x04"sv};
  return std::any_of(kMagics.begin(), kMagics.end(), [&](std::string_view magic) { return begin.starts_with(magic); });
}

// Removes ./ at the beginning.
std::string plain(std::string name) {
  while (name.starts_with("./")) name.erase(0, name.find_first_not_of('/', 1));
  return name;
}

// The name of the member that a symbolic link leads to.
std::string target_path(const std::string& link, const std::string& target) {
  return (std::filesystem::path(link).parent_path() / target).lexically_normal().string();
}

// The contents of a pax header, which describe the member after it.
struct Extended {
  std::optional<std::string> path, link;
  std::optional<uint64_t> size;
  bool sparse = false;
};

// Reads records "LENGTH KEY=VALUE\n". Returns false if they are damaged.
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
    if (key == "linkpath") extended.link = std::string(value);
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

  std::optional<Failure> read() {
    Block block;
    for (; at_ < file_.size(); at_ += kBlock) {
      if (file_.size() - at_ < kBlock) return at_ == 0 ? no_tar() : at("the tar ends within a header");
      if (auto failure = file_.read(at_, block)) return failure;
      if (is_zero(block)) {
        if (auto failure = skip_zeros()) return failure;
        if (at_ == file_.size()) return follow_links();
        // Only another tar may follow the end mark.
        if (file_.size() - at_ < kBlock) return at("the bytes after the end mark are not another tar");
        if (auto failure = file_.read(at_, block)) return failure;
        if (!has_right_checksum(block)) return at("the bytes after the end mark are not another tar");
      }
      if (!has_right_checksum(block)) {
        return at_ == 0 ? no_tar() : at("the checksum of the tar header does not match");
      }
      if (auto failure = take(block)) return failure;
    }
    // Without zero blocks at the end the tar may be incomplete.
    return at("the tar has no end mark; it may be truncated");
  }

  TarContents contents() && { return std::move(contents_); }

 private:
  Failure at(const std::string& reason) const { return {path_, at_, reason}; }

  Failure no_tar() const {
    Block block{};
    const auto size = static_cast<size_t>(std::min(kBlock, file_.size()));
    if (auto failure = file_.read(0, std::span(block).first(size))) return *failure;
    if (is_compressed(block)) return {path_, std::nullopt, "is not a tar but a compressed file; unpack it first"};
    return at(size < kBlock ? "not a tar: the file is shorter than a header"
                            : "not a tar: the checksum of the first header does not match");
  }

  // Moves to the first block that is not zero, or to the end.
  std::optional<Failure> skip_zeros() {
    constexpr uint64_t kStep = 128 * kBlock;
    std::vector<uint8_t> bytes(kStep);
    while (at_ < file_.size()) {
      const std::span<uint8_t> step(bytes.data(), static_cast<size_t>(std::min(kStep, file_.size() - at_)));
      if (auto failure = file_.read(at_, step)) return failure;
      const auto other = std::find_if(step.begin(), step.end(), [](uint8_t byte) { return byte != 0; });
      const auto zeros = static_cast<uint64_t>(other - step.begin());
      if (other != step.end()) {
        at_ += zeros / kBlock * kBlock;
        return std::nullopt;
      }
      at_ += zeros;
    }
    return std::nullopt;
  }

  std::optional<Failure> take(const Block& block) {
    std::optional<uint64_t> size = number_of(block, kSize);
    const char type = static_cast<char>(block[kType]);
    const bool describes_next = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!describes_next && next_.size) size = next_.size;
    if (!size) return at("the size of a tar member is not a number");
    const uint64_t bytes = at_ + kBlock;
    // The size of links, devices and folders has no meaning.
    const bool has_bytes = describes_next || type == '0' || type == '\0' || type == '7' || type == 'S';
    if (!has_bytes) size = 0;
    if (*size > file_.size() - bytes) return at("a tar member extends beyond the end of the file");
    if (describes_next) {
      if (auto failure = take_description(type, bytes, *size)) return failure;
    } else {
      if (auto failure = take_member(block, type, bytes, *size)) return failure;
      next_ = {};
    }
    at_ += (*size + kBlock - 1) / kBlock * kBlock;
    return std::nullopt;
  }

  std::optional<Failure> take_description(char type, uint64_t offset, uint64_t size) {
    if (size > kMaxLongName) return at("a name in the tar is longer than 1 MiB");
    std::string bytes(static_cast<size_t>(size), '\0');
    if (auto failure = file_.read(offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()})) return failure;
    if (type == 'x' && !read_pax(bytes, next_)) return at("a pax header of the tar is damaged");
    if (type == 'L') next_.path = bytes.substr(0, bytes.find('\0'));
    if (type == 'K') next_.link = bytes.substr(0, bytes.find('\0'));
    return std::nullopt;
  }

  std::optional<Failure> take_member(const Block& block, char type, uint64_t offset, uint64_t size) {
    std::string name = text_of(block, kName);
    if (std::memcmp(block.data() + kMagic.offset, "ustar", kMagic.size) == 0) {
      // The old format of GNU has other fields in place of the prefix.
      const bool is_gnu = block[kMagic.offset + 5] == ' ';
      if (const std::string prefix = is_gnu ? "" : text_of(block, kPrefix); !prefix.empty()) name = prefix + "/" + name;
    }
    name = plain(next_.path ? *next_.path : std::move(name));
    if (type == '5' || name.empty() || name == ".") return std::nullopt;
    switch (type) {
      case '0':
      case '\0':
      case '7': break;
      case '1':
      case '2': return take_link(std::move(name), next_.link ? *next_.link : text_of(block, kLink), type == '1');
      case '3':
      case '4':
      case '6':
      case 'V':  // the name of the tar itself
        contents_.skipped.push_back(path_ + ": " + name);
        return std::nullopt;
      case 'S': next_.sparse = true; break;
      default: return at(std::string("a tar member has the unknown type ") + type + ": " + name);
    }
    if (next_.sparse) return at("cannot read sparse tar members: " + name);
    if (name.back() == '/') return std::nullopt;  // a folder, in the oldest format
    return add({std::move(name), offset, size});
  }

  // A symbolic link may come before the member that it leads to, so links are resolved at the end.
  std::optional<Failure> take_link(std::string name, const std::string& target, bool hard) {
    links_.emplace(contents_.members.size(), Link{hard ? plain(target) : target_path(name, target), hard, at_});
    return add({std::move(name), 0, 0});
  }

  std::optional<Failure> add(TarMember member) {
    if (const std::string problem = name_problem(member.name); !problem.empty()) {
      constexpr size_t kMaxShown = 200;
      return at("the name of a tar member " + problem + ": " + member.name.substr(0, kMaxShown));
    }
    number_of_[member.name] = contents_.members.size();
    contents_.members.push_back(std::move(member));
    return std::nullopt;
  }

  // Gives links the bytes of the members that they lead to, and removes broken links.
  std::optional<Failure> follow_links() {
    constexpr uint64_t kBroken = UINT64_MAX;
    for (const auto& [number, link] : links_) {
      TarMember& member = contents_.members[number];
      if (const TarMember* target = target_of(number)) {
        member.offset = target->offset;
        member.size = target->size;
        continue;
      }
      if (link.hard) return Failure{path_, link.at, "a hard link in the tar leads to no member: " + member.name};
      contents_.broken_links.push_back(
          {path_ + ": " + member.name, std::nullopt, "broken link: it leads to no member of the tar"});
      member.size = kBroken;
    }
    std::erase_if(contents_.members, [](const TarMember& member) { return member.size == kBroken; });
    return std::nullopt;
  }

  // The member that has the bytes of a link. Null if there is none.
  const TarMember* target_of(uint64_t number) const {
    constexpr int kMaxLinks = 40;  // in a chain; the limit of Linux
    for (int i = 0; i < kMaxLinks; ++i) {
      const auto link = links_.find(number);
      if (link == links_.end()) return &contents_.members[number];
      const auto target = number_of_.find(link->second.target);
      if (target == number_of_.end()) return nullptr;
      number = target->second;
    }
    return nullptr;
  }

  struct Link {
    std::string target;
    bool hard;
    uint64_t at;  // the offset of its header
  };

  const std::string& path_;
  const RandomFile& file_;
  uint64_t at_ = 0;
  Extended next_;  // of the member that follows
  TarContents contents_;
  std::unordered_map<std::string, uint64_t> number_of_;  // of the members, by name
  std::map<uint64_t, Link> links_;                       // by the number of the member
};

}  // namespace

Outcome<TarContents> list_tar(const std::string& path) {
  RandomFile file;
  if (auto failure = file.open(path)) return *failure;
  TarReader reader(path, file);
  if (auto failure = reader.read()) return *failure;
  return std::move(reader).contents();
}

Outcome<std::vector<std::string>> classes_in(const std::string& path, const TarMember& member) {
  const auto wrong = [&](size_t at, const std::string& reason) {
    return Failure{path, member.offset + at, "__classes__ is not a JSON list of names: " + reason};
  };
  if (member.size > kMaxClasses) return wrong(0, "it is too large");
  const Outcome<bridge::Buffer> bytes = read_part(path, member.offset, member.size);
  if (!bytes) return bytes.failure();
  base::JsonReader json({reinterpret_cast<const char*>(bytes->bytes().data()), bytes->size()});
  std::vector<std::string> names;
  for (json.open_array(); json.next_element();) {
    if (!json.text(names.emplace_back())) break;
    if (names.back().find('\0') != std::string::npos) json.fail("a zero character");
  }
  if (json.failed() || !json.end()) return wrong(json.place(), json.reason());
  return names;
}

}  // namespace tools
