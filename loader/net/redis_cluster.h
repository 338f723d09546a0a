// What a cluster says of itself: which slot a key is in, and which node has a slot.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "redis_protocol.h"
#include "redis_url.h"

namespace loader::redis {

inline constexpr uint32_t kSlots = 16384;

// CRC-16 of XMODEM: polynomial 0x1021, from 0.
uint16_t crc16(std::string_view bytes);
// If the key has a part in braces, that part alone decides.
uint32_t slot_of(std::string_view key);

// Where MOVED and ASK lead: "MOVED 3999 127.0.0.1:6381". An empty host means the host of the node that answered,
// `from`.
bool parse_redirection(std::string_view text, const Address& from, uint32_t& slot, Address& to);

// The reply to CLUSTER SLOTS: ranges of slots and their masters. False if the reply has another form.
struct SlotRange {
  uint32_t first = 0, last = 0;
  Address master;
};
bool parse_slots(const Reply& reply, const Address& from, std::vector<SlotRange>& ranges);

}  // namespace loader::redis
