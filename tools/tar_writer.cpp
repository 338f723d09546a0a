#include "tar_writer.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace tools {
namespace {

constexpr uint64_t kBlock = 512;
constexpr size_t kMaxName = 100;
constexpr uint64_t kMaxSize = (uint64_t{1} << 33) - 1;  // 11 octal digits

void put(std::vector<uint8_t>& block, size_t offset, std::string_view text) {
  std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(offset));
}

// `digits` octal digits and a zero byte.
void put_number(std::vector<uint8_t>& block, size_t offset, int digits, uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(number));
  put(block, offset, text);
}

std::vector<uint8_t> header(const std::string& name, uint64_t size, char type) {
  std::vector<uint8_t> block(kBlock);
  put(block, 0, std::string_view(name).substr(0, kMaxName));
  put_number(block, 100, 7, 0644);
  put_number(block, 108, 7, 0);  // user
  put_number(block, 116, 7, 0);  // group
  put_number(block, 124, 11, std::min(size, kMaxSize));
  put_number(block, 136, 11, 0);  // time
  put(block, 148, "        ");
  block[156] = static_cast<uint8_t>(type);
  put(block, 257, std::string_view("ustar\00000", 8));
  uint64_t sum = 0;
  for (const uint8_t byte : block) sum += byte;
  put_number(block, 148, 6, sum);
  block[154] = 0;
  return block;
}

// "LENGTH KEY=VALUE\n", where LENGTH counts its own digits too.
std::string record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace

uint64_t tar_padding(uint64_t size) { return (kBlock - size % kBlock) % kBlock; }

std::vector<uint8_t> tar_header(const std::string& name, uint64_t size) {
  std::string records;
  if (name.size() > kMaxName) records += record("path", name);
  if (size > kMaxSize) records += record("size", std::to_string(size));
  std::vector<uint8_t> bytes;
  if (!records.empty()) {
    bytes = header("pax", records.size(), 'x');
    bytes.insert(bytes.end(), records.begin(), records.end());
    bytes.resize(bytes.size() + tar_padding(records.size()));
  }
  const std::vector<uint8_t> own = header(name, size, '0');
  bytes.insert(bytes.end(), own.begin(), own.end());
  return bytes;
}

std::vector<uint8_t> tar_end(uint64_t size) {
  constexpr uint64_t kRecord = 20 * kBlock;
  const uint64_t whole = (size + 2 * kBlock + kRecord - 1) / kRecord * kRecord;
  return std::vector<uint8_t>(whole - size);
}

}  // namespace tools
