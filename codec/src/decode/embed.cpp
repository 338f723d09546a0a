// Turns a file that names its model into one that contains it.
#include <algorithm>
#include <cstring>

#include "container/sha256.h"
#include "decode/file.h"

namespace l3 {
namespace {

// The model section precedes the sections from 0x8000 on. Its section entry has the size of the name, which it
// replaces, so head and index keep their size. Everything from the new section on moves.
class Embedding {
 public:
  Embedding(const uint8_t* data, uint64_t size, const Head& head, const l3_model& model, const Target& target)
      : data_(data), size_(size), head_(head), model_(model), target_(target), added_(pad_to_unit(model.bytes.size())) {
    while (before_ < head.section_count && head.sections[before_].type < L3_SECTION_MODEL) ++before_;
    moved_ = before_ < head.section_count ? head.sections[before_].offset : head.payload_start;
  }

  uint64_t size() const { return size_ + added_; }

  void write(uint8_t* out) const {
    std::memcpy(out, data_, moved_);
    uint8_t* const section = out + moved_;
    std::memset(section, 0, added_);
    std::memcpy(section, model_.bytes.data(), model_.bytes.size());
    std::memcpy(section + added_, data_ + moved_, size_ - moved_);
    write_index(out);
    write_head(out, target_.check(section, added_ / 4));
  }

 private:
  void write_index(uint8_t* out) const {
    for (uint64_t tile = 0; tile < head_.tile_count; ++tile) {
      uint8_t* const entry = out + head_.head_bytes + tile * kIndexEntryBytes;
      if (!has_payload(static_cast<Method>(entry[0]))) continue;
      store_u32(entry + 4, load_u32(entry + 4) + static_cast<uint32_t>(added_ / kUnit));
    }
  }

  void write_head(uint8_t* out, uint32_t model_check) const {
    uint8_t* const entries = out + kHeaderBytes;
    const uint8_t* const old = data_ + head_.entries_at();
    for (uint32_t i = 0; i < head_.section_count; ++i) {
      uint8_t* const entry = entries + (i < before_ ? i : i + 1) * kSectionEntryBytes;
      std::memcpy(entry, old + i * kSectionEntryBytes, kSectionEntryBytes);
      if (i >= before_) {
        store_u32(entry + section_entry::kOffset, static_cast<uint32_t>((head_.sections[i].offset + added_) / kUnit));
      }
    }
    uint8_t* const entry = entries + before_ * kSectionEntryBytes;
    store_u16(entry + section_entry::kType, L3_SECTION_MODEL);
    store_u16(entry + section_entry::kFlags, 0);
    store_u32(entry + section_entry::kCheck, model_check);
    store_u32(entry + section_entry::kOffset, static_cast<uint32_t>(moved_ / kUnit));
    store_u32(entry + section_entry::kSize, static_cast<uint32_t>(model_.bytes.size()));

    store_u16(out + header::kSectionCount, head_.section_count + 1);
    store_u16(out + header::kRequired, head_.required_features & ~kNamedModel);
    store_u32(out + header::kIndexCheck,
              target_.check(out + head_.head_bytes, (head_.index_end - head_.head_bytes) / 4));
    digest_of(out, head_.payload_start + added_, out + header::kDigest);
    store_u32(out + header::kHeadCheck, 0);
    store_u32(out + header::kHeadCheck, target_.check(out, head_.head_bytes / 4));
  }

  static_assert(kModelNameBytes == kSectionEntryBytes);

  const uint8_t* data_;
  uint64_t size_;
  const Head& head_;
  const l3_model& model_;
  const Target& target_;
  uint64_t added_;
  uint32_t before_ = 0;  // sections before the model section; they do not move
  uint64_t moved_;       // everything from this offset on moves
};

// A tiny file in the usual form, which is larger by the head and by zeros after each part.
constexpr size_t kMaxEnlarged = kMaxTinyBytes + kMaxHeadBytes + kUnit * (kMaxSections + 2);

// Writes a tiny file that names its model in the usual form, with a payload of this size. Returns the size.
size_t enlarge(const uint8_t* data, const Head& tiny, uint64_t payload, CheckFunction check, uint8_t* out) {
  Head head = tiny;
  place_sections(head);
  std::memset(out, 0, kMaxEnlarged);
  for (uint32_t i = 0; i < head.section_count; ++i) {
    Section& section = head.sections[i];
    std::memcpy(out + section.offset, data + tiny.sections[i].offset, section.size);
    section.check = check(out + section.offset, pad_to_unit(section.size) / 4);
  }
  const TinyTile& tile = tiny.tiny;
  uint8_t* const entry = out + head.head_bytes;
  entry[0] = static_cast<uint8_t>(tile.method);
  entry[1] = tile.parameters;
  store_u16(entry + 2, static_cast<uint32_t>(payload / kUnit));
  std::memcpy(out + head.payload_start, data + tile.payload_at, std::min<uint64_t>(payload, tile.payload_bytes));
  if (payload == 0) {
    for (uint32_t c = 0; c < kMaxChannels; ++c) store_u16(entry + 4 + 2 * c, tile.value[c]);
  } else {
    store_u32(entry + 4, static_cast<uint32_t>(head.payload_start / kUnit));
    store_u32(entry + 8, check(out + head.payload_start, payload / 4));
  }
  write_head(head, check, data + tiny.name_at(), out);
  return head.payload_start + payload;
}

// The same, with the payload that the usual form needs. At most 15 zeros may be left over at the end of a payload, so
// where the tiny file has some, rounding its size up may give too many. Then it must be rounded down.
size_t enlarge(const uint8_t* data, const Head& tiny, const l3_decode_options& options, CheckFunction check,
               uint8_t* out) {
  const uint64_t bytes = tiny.tiny.payload_bytes, more = bytes % kUnit;
  const uint8_t* const end = data + tiny.tiny.payload_at + bytes;
  const size_t size = enlarge(data, tiny, pad_to_unit(bytes), check, out);
  if (more == 0 || bytes < kUnit || std::any_of(end - more, end, [](uint8_t byte) { return byte != 0; })) return size;
  if (l3_verify(out, size, &options, nullptr) == L3_OK) return size;
  return enlarge(data, tiny, bytes - more, check, out);
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_embed_model(const void* data, size_t size, const l3_model* model, void* out, size_t out_size,
                         size_t* written, l3_error* error) {
  if (data == nullptr || model == nullptr || written == nullptr) return fail(error, Reason::null_argument);
  l3_decode_options options = l3_decode_options_init();
  options.models = &model;
  options.model_count = 1;
  l3_file file;
  Verdict verdict = file.read(data, size, &options);
  if (verdict.ok()) verdict = file.check_container(NamedModel::required);
  if (!verdict.ok()) return report(error, verdict);
  const Head& head = file.head;
  if (!head.names_model()) return fail(error, Reason::no_named_model);
  if (head.is_tiny()) {
    uint8_t large[kMaxEnlarged];
    const size_t large_size = enlarge(file.data, head, options, file.target->check, large);
    return l3_embed_model(large, large_size, model, out, out_size, written, error);
  }
  if (head.section_count == kMaxSections) return fail(error, Reason::bad_section_size);
  const Embedding embedding(file.data, size, head, *model, *file.target);
  if (embedding.size() > kMaxFileBytes) return fail(error, Reason::file_too_large);
  *written = embedding.size();
  if (out == nullptr || out_size < *written) return fail(error, Reason::buffer_too_small);
  if (overlap(data, size, out, *written)) return fail(error, Reason::buffers_overlap);
  embedding.write(static_cast<uint8_t*>(out));
  return succeed(error);
}

void l3_digest(const void* data, size_t size, uint8_t* digest) {
  Sha256 sha;
  sha.update(static_cast<const uint8_t*>(data), size);
  uint8_t whole[Sha256::kBytes];
  sha.finish(whole);
  std::memcpy(digest, whole, L3_DIGEST_BYTES);
}
