// Any bytes as what follows the first 4096 of a shard, with its checks made anew or not; and any bytes as index.json.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/crc32.h"
#include "harness.h"
#include "l3/l3_data.h"
#include "loader/data_set_index.h"
#include "loader/data_writer.h"

namespace {

using fuzz::Bytes;

constexpr size_t kFooterBytes = 64, kIndexCheck = 44, kFooterCheck = 60;

void store(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> 8 * i);
}

uint64_t load(const uint8_t* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint64_t{at[i]} << 8 * i;
  return value;
}

// So that what lies behind the checks is reached.
void seal(Bytes& file) {
  if (file.size() < 4096 + kFooterBytes) return;
  uint8_t* const footer = file.data() + file.size() - kFooterBytes;
  const uint64_t begin = load(footer + 16, 8), size = load(footer + 24, 8);
  if (begin <= file.size() && size <= file.size() - begin) {
    store(footer + kIndexCheck, base::crc32({file.data() + begin, static_cast<size_t>(size)}));
  }
  store(footer + kFooterCheck, base::crc32({footer, kFooterCheck}));
}

void read_all(const l3_data_set* set) {
  l3_data_info info = l3_data_info_init();
  FUZZ_EXPECT(l3_data_describe(set, &info) == L3_OK);
  FUZZ_EXPECT(l3_data_verify_shard(set, 0, nullptr) != L3_ERROR_ARGUMENT);
  uint64_t bytes_read = 0;
  for (uint64_t i = 0; i < info.samples; ++i) {
    l3_data_sample sample = l3_data_sample_init();
    FUZZ_EXPECT(l3_data_get(set, i, &sample) == L3_OK);
    FUZZ_EXPECT(l3_data_find(set, sample.name, sample.name_size) == i);
    FUZZ_EXPECT(sample.group < info.groups && sample.shard == 0);
    uint64_t first = 0, count = 0;
    FUZZ_EXPECT(l3_data_group(set, sample.group, &first, &count) == L3_OK);
    FUZZ_EXPECT(first <= i && i < first + count);
    const std::string touched(reinterpret_cast<const char*>(sample.metadata), sample.metadata_size);
    FUZZ_EXPECT(touched.size() + sample.role_size > 0);
    if ((bytes_read += sample.size) > 1 << 20) return;
    Bytes bytes(sample.size);
    if (l3_data_read(set, i, bytes.data(), bytes.size(), nullptr) != L3_OK) continue;
    (void)!l3_data_check_sample(set, i, bytes.data(), bytes.size(), nullptr);
  }
  l3_data_sample none = l3_data_sample_init();
  FUZZ_EXPECT(l3_data_get(set, info.samples, &none) == L3_ERROR_ARGUMENT);
}

void open_shard(Bytes file) {
  const int descriptor = memfd_create("shard", 0);
  FUZZ_EXPECT(descriptor >= 0);
  FUZZ_EXPECT(write(descriptor, file.data(), file.size()) == static_cast<ssize_t>(file.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  l3_data_set* set = nullptr;
  l3_data_error error{};
  const l3_status status = l3_data_open(path.c_str(), nullptr, &set, &error);
  FUZZ_EXPECT((status == L3_OK) == (set != nullptr));
  FUZZ_EXPECT(status == L3_OK || error.status == status);
  FUZZ_EXPECT(status != L3_ERROR_FILE && status != L3_ERROR_ARGUMENT);
  if (set != nullptr) read_all(set);
  l3_data_close(set);
  close(descriptor);
}

// What is read is written as it was.
void read_index(std::string_view text) {
  loader::DataSetIndex index, again;
  const auto fault = loader::read_json(text, index);
  if (fault) {
    FUZZ_EXPECT(fault->offset <= text.size() && !fault->reason.empty());
    return;
  }
  FUZZ_EXPECT(!loader::read_json(loader::to_json(index), again));
  FUZZ_EXPECT(again.classes == index.classes && again.shards.size() == index.shards.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];
  if (how == 'j') {
    read_index({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
  }
  Bytes file = loader::ShardBuilder::head();
  file.insert(file.end(), data + 1, data + size);
  if (how != 'r') seal(file);
  open_shard(std::move(file));
  return 0;
}
