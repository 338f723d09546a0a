// Verifies whole files.
#include <cstring>

#include "container/metadata.h"
#include "decode/file.h"

namespace l3 {
namespace {

// Verifies what is left once the container and the model were: payloads, the sections from 0x8000 on, the digest.
Verdict verify(const l3_file& file) {
  const Head& head = file.head;
  Verdict verdict = decode_tiles(file, whole(head), nullptr, 0);
  for (uint32_t i = 0; i < head.section_count && verdict.ok(); ++i) {
    const Section& section = head.sections[i];
    if (section.type < kFirstAsideType) continue;
    if (!head.is_tiny()) verdict = check_section(file.data, file.size, *file.target, section);
    if (verdict.ok() && section.type == L3_SECTION_METADATA) {
      verdict = unpack_metadata(file.data, section, file.limits.max_metadata_bytes, nullptr, 0);
    }
  }
  if (!verdict.ok() || head.is_tiny()) return verdict;
  uint8_t digest[header::kDigestBytes];
  digest_of(file.data, head.payload_start, digest);
  const bool matches = std::memcmp(digest, file.data + header::kDigest, sizeof(digest)) == 0;
  return matches ? Verdict{} : Verdict{Reason::digest, header::kDigest};
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_verify(const void* data, size_t size, const l3_decode_options* options, l3_error* error) {
  l3_file file;
  Verdict verdict = file.read(data, size, options);
  if (verdict.ok()) verdict = file.check_limits();
  if (verdict.ok()) verdict = file.check_container(NamedModel::required);
  if (verdict.ok()) verdict = verify(file);
  return report(error, verdict);
}

l3_status l3_file_verify(const l3_file* file, l3_error* error) {
  if (file == nullptr) return fail(error, Reason::null_argument);
  Verdict verdict = file->check_limits();
  if (verdict.ok()) verdict = file->of_model;
  if (verdict.ok()) verdict = verify(*file);
  return report(error, verdict);
}
