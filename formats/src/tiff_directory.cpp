#include "tiff_directory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "adapters.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr uint32_t kNewSubfileType = 254, kOldSubfileType = 255, kOrientation = 274, kExifDirectory = 34665,
                   kGpsDirectory = 34853;
constexpr uint64_t kMaxPages = 65536;

// Tags that tell how pixels are stored, or that become separate chunks. The list is sorted.
constexpr std::array<uint32_t, 56> kStorageTags = {
    254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 273, 277, 278, 279, 280, 281, 282,  283,
    284, 288, 289, 290, 291, 292, 293, 296, 297, 317, 320, 321, 322, 323, 324, 325, 326, 327,  328,
    330, 332, 334, 338, 339, 340, 341, 347, 512, 513, 514, 519, 520, 521, 530, 531, 532, 34675};

struct Entry {
  uint32_t tag, type;
  uint64_t bytes;  // size of its values
  uint64_t at;     // their offset in the file; `bytes` and `at` are checked
  uint64_t count;
};

// The sizes of the types 0 to 18.
constexpr std::array<uint8_t, 19> kTypeBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
constexpr uint32_t kFirstLongType = 16;  // a classic TIFF does not have these types

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> file)
      : file_(file), little_(file[0] == 'I'), big_(file[little_ ? 2 : 3] == 43) {}

  bool little() const { return little_; }
  uint64_t first() const {
    const size_t bytes = big_ ? 16 : 8;
    return file_.size() < bytes ? 0 : number(big_ ? 8 : 4, big_ ? 8 : 4);
  }

  // The number of entries. Nothing if the directory is not inside the file.
  std::optional<uint64_t> count_at(uint64_t offset) const {
    if (offset < 8 || !inside(offset, count_bytes())) return std::nullopt;
    const uint64_t count = number(offset, count_bytes());
    if (count > file_.size() / entry_bytes() || !inside(offset + count_bytes(), count * entry_bytes() + link_bytes())) {
      return std::nullopt;
    }
    return count;
  }

  uint64_t next_of(uint64_t offset, uint64_t count) const {
    return number(offset + count_bytes() + count * entry_bytes(), link_bytes());
  }

  uint32_t tag_of(uint64_t offset, uint64_t index) const {
    return static_cast<uint32_t>(number(offset + count_bytes() + index * entry_bytes(), 2));
  }

  // Returns nothing if the type is unknown or the values are not inside the file.
  std::optional<Entry> entry_of(uint64_t offset, uint64_t index) const {
    const uint64_t at = offset + count_bytes() + index * entry_bytes();
    Entry entry{};
    entry.tag = static_cast<uint32_t>(number(at, 2));
    entry.type = static_cast<uint32_t>(number(at + 2, 2));
    entry.count = number(at + 4, link_bytes());
    const uint64_t each = entry.type < kTypeBytes.size() ? kTypeBytes[entry.type] : 0;
    if (each == 0 || entry.count > file_.size() / each) return std::nullopt;
    entry.bytes = entry.count * each;
    const uint64_t field = at + 4 + link_bytes();
    entry.at = entry.bytes <= link_bytes() ? field : number(field, link_bytes());
    if (!inside(entry.at, entry.bytes)) return std::nullopt;
    return entry;
  }

  // The first value if it has an integer type, else 0.
  uint64_t value_of(const Entry& entry) const {
    if (entry.count == 0 || entry.type == 5 || entry.type == 10 || entry.type == 11 || entry.type == 12) return 0;
    return number(entry.at, kTypeBytes[entry.type]);
  }

  std::span<const uint8_t> bytes_of(const Entry& entry) const {
    return file_.subspan(static_cast<size_t>(entry.at), static_cast<size_t>(entry.bytes));
  }

 private:
  uint64_t count_bytes() const { return big_ ? 8 : 2; }
  uint64_t entry_bytes() const { return big_ ? 20 : 12; }
  uint64_t link_bytes() const { return big_ ? 8 : 4; }
  bool inside(uint64_t at, uint64_t bytes) const { return at <= file_.size() && bytes <= file_.size() - at; }

  uint64_t number(uint64_t at, uint64_t bytes) const {
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes; ++i) {
      const uint64_t byte = file_[static_cast<size_t>(at + (little_ ? bytes - 1 - i : i))];
      value = value << 8 | byte;
    }
    return value;
  }

  std::span<const uint8_t> file_;
  bool little_, big_;
};

bool is_full_image(const Reader& reader, uint64_t offset, uint64_t count) {
  constexpr uint64_t kReduced = 1, kMask = 4, kOldReduced = 2;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t tag = reader.tag_of(offset, i);
    if (tag != kNewSubfileType && tag != kOldSubfileType) continue;
    const std::optional<Entry> entry = reader.entry_of(offset, i);
    if (!entry) continue;
    const uint64_t value = reader.value_of(*entry);
    if (tag == kNewSubfileType) return (value & (kReduced | kMask)) == 0;
    if (value == kOldReduced) return false;
  }
  return true;
}

// Writes a classic TIFF in the byte order of the file that it copies from.
class TagWriter {
 public:
  TagWriter(const Reader& reader, uint64_t max_bytes, const ReadOptions& options)
      : reader_(reader), max_bytes_(max_bytes), options_(options) {}

  // Returns false if all tags together are larger than the file, which can be so if they overlap.
  bool write(uint64_t offset) {
    const std::string_view head =
        reader_.little() ? std::string_view("II*\0\x08\0\0\0", 8) : std::string_view("MM\0*\0\0\0\x08", 8);
    out_.assign(head.begin(), head.end());
    if (!write_directory(offset, true)) return false;
    if (empty_) out_.clear();
    return true;
  }

  std::vector<uint8_t> take() { return std::move(out_); }

 private:
  bool is_kept(const Entry& entry, bool is_first) const {
    if (!is_first) return entry.tag != 0xA005;  // the interoperability directory
    if (entry.tag == kOrientation) return reader_.value_of(entry) != 1;
    return !std::binary_search(kStorageTags.begin(), kStorageTags.end(), entry.tag);
  }

  std::vector<Entry> kept_entries(uint64_t offset, bool is_first) {
    std::vector<Entry> kept;
    const uint64_t count = reader_.count_at(offset).value_or(0);
    for (uint64_t i = 0; i < count && kept.size() < 0xFFFF; ++i) {
      const std::optional<Entry> entry = reader_.entry_of(offset, i);
      const uint32_t tag = reader_.tag_of(offset, i);
      if (entry && !is_kept(*entry, is_first)) continue;
      if (!entry && is_first && std::binary_search(kStorageTags.begin(), kStorageTags.end(), tag)) continue;
      if (entry && (entry->type < kFirstLongType || is_directory(*entry))) {
        kept.push_back(*entry);
      } else {
        notice(options_.notices, "tag " + std::to_string(tag) + " is left out: " +
                                     (entry ? "EXIF cannot hold its 64-bit numbers" : "it is damaged"));
      }
    }
    return kept;
  }

  static bool is_directory(const Entry& entry) { return entry.tag == kExifDirectory || entry.tag == kGpsDirectory; }

  bool write_directory(uint64_t offset, bool is_first) {
    const std::vector<Entry> entries = kept_entries(offset, is_first);
    empty_ = empty_ && entries.empty();
    size_t field = out_.size() + 2;
    out_.resize(out_.size() + 2 + 12 * entries.size() + 4);
    store(field - 2, entries.size(), 2);
    for (const Entry& entry : entries) {
      const bool nested = is_first && is_directory(entry);
      store(field, entry.tag, 2);
      store(field + 2, nested ? 4 : entry.type, 2);
      store(field + 4, nested ? 1 : entry.count, 4);
      if (!nested && entry.bytes <= 4) {
        std::ranges::copy(reader_.bytes_of(entry), out_.begin() + static_cast<ptrdiff_t>(field) + 8);
      } else {
        out_.resize(out_.size() + out_.size() % 2);
        store(field + 8, out_.size(), 4);
        if (nested) {
          if (!write_directory(reader_.value_of(entry), false)) return false;
        } else {
          const std::span<const uint8_t> bytes = reader_.bytes_of(entry);
          if (bytes.size() > max_bytes_ - std::min<uint64_t>(out_.size(), max_bytes_)) return false;
          out_.insert(out_.end(), bytes.begin(), bytes.end());
        }
      }
      field += 12;
    }
    return true;
  }

  void store(size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      out_[at + (reader_.little() ? i : bytes - 1 - i)] = static_cast<uint8_t>(value >> (8 * i));
    }
  }

  const Reader& reader_;
  uint64_t max_bytes_;
  const ReadOptions& options_;
  std::vector<uint8_t> out_;
  bool empty_ = true;
};

}  // namespace

bool is_tiff(std::span<const uint8_t> file) {
  if (file.size() < 8) return false;
  return std::memcmp(file.data(), "II*\0", 4) == 0 || std::memcmp(file.data(), "MM\0*", 4) == 0 ||
         std::memcmp(file.data(), "II+\0", 4) == 0 || std::memcmp(file.data(), "MM\0+", 4) == 0;
}

Result<TiffPages> find_tiff_pages(std::span<const uint8_t> file) {
  const Reader reader(file);
  TiffPages pages;
  std::set<uint64_t> seen;
  uint64_t entries = 0;
  for (uint64_t offset = reader.first(), from = 4; offset != 0;) {
    const std::optional<uint64_t> count = reader.count_at(offset);
    if (!count) return Error{from, "a directory lies outside the file"};
    if (!seen.insert(offset).second) return Error{offset, "the directories form a circle"};
    entries += *count + 1;
    // Limits the time for directories that overlap.
    if (entries > file.size() || seen.size() > kMaxPages) return Error{offset, "too many directories"};
    if (is_full_image(reader, offset, *count)) {
      pages.offsets.push_back(offset);
    } else {
      ++pages.left_out;
    }
    from = offset;
    offset = reader.next_of(offset, *count);
  }
  if (pages.offsets.empty()) {
    return Error{4, pages.left_out == 0 ? "the file has no directory" : "the file has only reduced images or masks"};
  }
  return pages;
}

Result<std::vector<uint8_t>> kept_tiff_tags(std::span<const uint8_t> file, uint64_t offset,
                                            const ReadOptions& options) {
  const Reader reader(file);
  // A page with all its tags is not larger than the file, except for the offsets of numbers.
  TagWriter writer(reader, std::min<uint64_t>(file.size() + 1024, UINT32_MAX), options);
  if (!writer.write(offset)) return Error{offset, "the tags are larger than the file"};
  return writer.take();
}

bool has_tiff_tag(std::span<const uint8_t> file, uint64_t offset, uint32_t tag) {
  const Reader reader(file);
  const uint64_t count = reader.count_at(offset).value_or(0);
  for (uint64_t i = 0; i < count; ++i) {
    if (reader.tag_of(offset, i) == tag) return true;
  }
  return false;
}

}  // namespace formats
