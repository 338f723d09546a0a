#include "redis_cluster.h"

#include <array>
#include <charconv>

namespace loader::redis {
namespace {

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000) != 0 ? value << 1 ^ 0x1021 : value << 1;
    table[i] = static_cast<uint16_t>(value);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kTable = make_table();

bool is_slot(int64_t number) { return number >= 0 && number < int64_t{kSlots}; }

// Redis says "" or nil for the host that the caller knows already.
bool read_master(const Reply& node, const Address& from, Address& master) {
  if (node.type != Reply::kArray || node.items.size() < 2) return false;
  const Reply& host = node.items[0];
  const Reply& port = node.items[1];
  if (host.type != Reply::kBulk && host.type != Reply::kNil) return false;
  if (port.type != Reply::kInteger || port.integer < 1 || port.integer > UINT16_MAX) return false;
  master = {host.text.empty() ? from.host : host.text, static_cast<uint16_t>(port.integer)};
  return is_host(master.host);
}

}  // namespace

uint16_t crc16(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes) value = (value << 8 ^ kTable[(value >> 8 ^ static_cast<uint8_t>(c)) & 255]) & 0xFFFF;
  return static_cast<uint16_t>(value);
}

uint32_t slot_of(std::string_view key) {
  const size_t open = key.find('{');
  const size_t close = open == key.npos ? key.npos : key.find('}', open + 1);
  if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  return crc16(key) % kSlots;
}

bool parse_redirection(std::string_view text, const Address& from, uint32_t& slot, Address& to) {
  const size_t first = text.find(' ');
  if (first == text.npos) return false;
  const size_t second = text.find(' ', first + 1);
  if (second == text.npos) return false;
  const std::string_view number = text.substr(first + 1, second - first - 1), place = text.substr(second + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), slot);
  if (error != std::errc() || end != number.data() + number.size() || slot >= kSlots) return false;
  const size_t colon = place.rfind(':');
  if (colon == place.npos || !parse_port(place.substr(colon + 1), to.port)) return false;
  to.host = colon == 0 ? from.host : std::string(place.substr(0, colon));
  return is_host(to.host);
}

bool parse_slots(const Reply& reply, const Address& from, std::vector<SlotRange>& ranges) {
  ranges.clear();
  if (reply.type != Reply::kArray) return false;
  for (const Reply& item : reply.items) {
    if (item.type != Reply::kArray || item.items.size() < 2) return false;
    const Reply& first = item.items[0];
    const Reply& last = item.items[1];
    if (first.type != Reply::kInteger || last.type != Reply::kInteger) return false;
    if (!is_slot(first.integer) || !is_slot(last.integer) || first.integer > last.integer) return false;
    SlotRange range{static_cast<uint32_t>(first.integer), static_cast<uint32_t>(last.integer), {}};
    // A master whose host is not known ("?") is found by MOVED later.
    if (item.items.size() < 3 || !read_master(item.items[2], from, range.master)) continue;
    ranges.push_back(std::move(range));
  }
  return true;
}

}  // namespace loader::redis
