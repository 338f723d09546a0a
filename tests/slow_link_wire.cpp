#include "slow_link_wire.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace slow_link {
namespace {

constexpr uint64_t kStall = 200 * kMillisecond;  // the shortest time after which Linux sends a segment again
constexpr uint64_t kEarly = 20'000;              // chunks that leave this much later leave now, for fewer wake-ups
constexpr size_t kSpareBlocks = 512;
constexpr size_t kPiecesPerWrite = 16;

}  // namespace

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

std::unique_ptr<uint8_t[]> Link::take_block() {
  if (spare.empty()) return std::make_unique_for_overwrite<uint8_t[]>(kBlockBytes);
  std::unique_ptr<uint8_t[]> block = std::move(spare.back());
  spare.pop_back();
  return block;
}

void Link::give_back(std::unique_ptr<uint8_t[]> block) {
  if (spare.size() < kSpareBlocks) spare.push_back(std::move(block));
}

void Wire::push(Link& link, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity) {
  const Options& options = link.options;
  uint64_t due = now();
  if (options.rate != 0) {
    uint64_t& free_at = link.free_at[is_up ? 0 : 1];
    free_at = std::max(free_at, due) + size * 1'000'000'000 / options.rate;
    due = free_at;
  }
  due += options.delay / 2;
  if (options.lose > 0 && std::uniform_real_distribution<double>(0, 1)(link.random) < options.lose) {
    due += kStall + options.delay;
    ++link.counters.stalls;
  }
  last_due = std::max({due, earliest, last_due});
  bytes += size;
  chunks.push_back({last_due, std::move(block), size, capacity});
}

void Wire::push(Link& link, const std::string& text) {
  auto copy = std::make_unique_for_overwrite<uint8_t[]>(text.size());
  std::memcpy(copy.get(), text.data(), text.size());
  push(link, std::move(copy), text.size(), text.size());
}

void Wire::drop() {
  chunks.clear();
  bytes = sent = 0;
}

void Wire::end(Link& link, Ending ending) {
  if (ended) return;
  ended = true;
  last_due = std::max({now() + link.options.delay / 2, earliest, last_due});
  chunks.push_back({last_due, nullptr, 0, 0, ending});
}

Ending Wire::deliver(Link& link, uint64_t time) {
  while (!chunks.empty() && chunks.front().due <= time + kEarly) {
    if (chunks.front().ending != Ending::kNone) {
      const Ending ending = chunks.front().ending;
      chunks.pop_front();
      closed = true;
      if (ending == Ending::kClose) shutdown(to, SHUT_WR);
      return ending;
    }
    if (!writable) break;
    iovec pieces[kPiecesPerWrite];
    size_t count = 0, wanted = 0;
    for (const Chunk& chunk : chunks) {
      if (count == kPiecesPerWrite || chunk.ending != Ending::kNone || chunk.due > time + kEarly) break;
      const size_t skipped = count == 0 ? sent : 0;
      pieces[count++] = {chunk.bytes.get() + skipped, chunk.size - skipped};
      wanted += chunk.size - skipped;
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t written = sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      if (errno == EINTR) continue;
      writable = false;
      return errno == EAGAIN || errno == EWOULDBLOCK ? Ending::kNone : Ending::kReset;
    }
    size_t left = static_cast<size_t>(written);
    if (left < wanted) writable = false;
    bytes -= left;
    (is_up ? link.counters.bytes_up : link.counters.bytes_down) += left;
    while (left != 0) {
      Chunk& front = chunks.front();
      const size_t part = std::min(left, front.size - sent);
      sent += part;
      left -= part;
      if (sent == front.size) {
        if (front.capacity == kBlockBytes) link.give_back(std::move(front.bytes));
        chunks.pop_front();
        sent = 0;
      }
    }
  }
  return Ending::kNone;
}

}  // namespace slow_link
