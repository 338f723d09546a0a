#include "range_job.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace loader::net {
namespace {

std::string bytes_text(uint64_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

StoreFault truncated(uint64_t total) {
  return {L3_ERROR_TRUNCATED, 0, total, "the object ends after " + bytes_text(total)};
}

}  // namespace

StoreFault cancelled() { return make_fault(L3_ERROR_FILE, ECANCELED, "the read was cancelled"); }

void RangeJob::fill(std::vector<Piece> pieces) {
  pieces_ = std::move(pieces);
  const Read& first = *pieces_.front().read;
  object_ = static_cast<const WebObject*>(first.object);
  is_from_end_ = from_end_ = first.from_end;
  asked_size_ = first.size;
  times.shared = static_cast<uint32_t>(pieces_.size() - 1);
}

bool RangeJob::is_wanted() const {
  return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return !piece.is_done; });
}

uint64_t RangeJob::first_wanted() const {
  uint64_t first = UINT64_MAX;
  for (const Piece& piece : pieces_) first = piece.is_done ? first : std::min(first, piece.first);
  return first;
}

Part RangeJob::wanted() const {
  if (from_end_) return {0, asked_size_, true, 0};
  uint64_t end = 0;
  for (const Piece& piece : pieces_) end = piece.is_done ? end : std::max(end, piece.end);
  const uint64_t first = std::max(at_, first_wanted());
  return {first, end - first, false, total_};
}

Request RangeJob::request(const Part& part) const {
  Request request;
  request.target = object_->target();
  std::string range = "Range: bytes=";
  if (!part.from_end) range += std::to_string(part.first);
  range += '-';
  range += std::to_string(part.from_end ? part.size : part.first + part.size - 1);
  request.headers.push_back(std::move(range));
  return request;
}

// Whether bytes that were received before cannot be from the same object.
bool RangeJob::has_changed(const Part& asked, const Answer& answer) const {
  const bool continues = !asked.from_end && asked.first > first_wanted();
  return continues && !etag_.empty() && !answer.etag.empty() && etag_ != answer.etag;
}

Verdict RangeJob::judge(const Part& asked, const Answer& answer) const {
  if (answer.status == 416) {
    // A range from the end always fits, unless the object is empty.
    if (!asked.from_end) return failed(truncated(answer.has_total ? answer.total : asked.first));
    if (answer.has_total && answer.total > 0) return {.next = Next::kAgain, .got = {0, 0, false, answer.total}};
    return {.next = Next::kTake, .got = {0, 0, true, 0}};
  }
  if (answer.is_malformed) return failed(protocol_fault("the head of the answer contradicts itself"));
  if (answer.is_encoded) return failed(protocol_fault("the server compresses the object although nobody asked it to"));
  if (answer.status == 206) return judge_range(asked, answer);
  if (answer.status == 200) return judge_whole(asked, answer);
  return failed(protocol_fault("the server answered " + std::to_string(answer.status) + " instead of 206"));
}

Verdict RangeJob::judge_range(const Part& asked, const Answer& answer) const {
  if (!answer.has_range) return failed(protocol_fault("the server does not say which bytes it sends"));
  const Part got{answer.first, answer.last - answer.first + 1, asked.from_end, answer.has_total ? answer.total : 0};
  if (answer.length && *answer.length != got.size) {
    return failed(protocol_fault("the server announces " + bytes_text(*answer.length) + " for a range of " +
                                 bytes_text(got.size)));
  }
  const bool ends = answer.has_total && answer.last == answer.total - 1;
  const bool fits = asked.from_end
                        ? ends && got.size == std::min(asked.size, got.total)
                        : got.first == asked.first && (got.size == asked.size || (got.size < asked.size && ends));
  if (!fits) return failed(protocol_fault("the server sends other bytes than those that were asked for"));
  const bool other_size = asked.total != 0 && answer.has_total && asked.total != answer.total;
  if (other_size || has_changed(asked, answer)) {
    return {.next = Next::kRetry, .fault = protocol_fault("the object changed while it was read"), .has_changed = true};
  }
  return {.next = Next::kTake, .got = got};
}

// An answer with the whole object fits only a read from the end that wants all of it.
Verdict RangeJob::judge_whole(const Part& asked, const Answer& answer) const {
  if (!asked.from_end) return failed(protocol_fault("the server does not support ranges"));
  if (!answer.length) return failed(protocol_fault("the server does not say how large the object is"));
  if (*answer.length > asked.size) return {.next = Next::kAgain, .got = {0, 0, false, *answer.length}};
  return {.next = Next::kTake, .got = {0, *answer.length, true, *answer.length}};
}

void RangeJob::learn(const Verdict& verdict) {
  if (verdict.has_changed) {
    at_ = total_ = 0;
    etag_.clear();
    from_end_ = is_from_end_;
  }
  // The server takes no range from the end, but said where the end is.
  if (verdict.next == Next::kAgain && !verdict.moved && from_end_) {
    total_ = verdict.got.total;
    Piece& only = pieces_.front();
    only.first = total_ - std::min(total_, asked_size_);
    only.end = total_;
    from_end_ = false;
  }
}

bool RangeJob::begin(const Part& got, const Answer& answer) {
  at_ = got.first;
  last_ = got.first + got.size;
  total_ = got.total;
  etag_ = answer.etag;
  if (got.from_end) {
    pieces_.front().first = got.first;
    pieces_.front().end = last_;
    // An interrupted answer with the whole object is asked for once more, because this server may have no ranges.
    from_end_ = answer.status != 206;
  }
  for (Piece& piece : pieces_) {
    if (piece.is_done || is_from_end_) continue;
    const uint64_t size = piece.read->object_size;
    if (size != 0 && total_ != size) {
      std::string found = total_ == 0 ? "an unknown number of bytes" : bytes_text(total_);
      const bool shorter = total_ != 0 && total_ < size;
      finish(piece, {shorter ? L3_ERROR_TRUNCATED : L3_ERROR_FILE, 0, shorter ? total_ : L3_DATA_NONE,
                     "the object has " + found + " instead of " + std::to_string(size)});
    } else if (piece.end > last_) {
      finish(piece, truncated(last_));
    }
  }
  return is_wanted();
}

void RangeJob::take(std::span<const uint8_t> bytes) {
  const uint64_t first = at_, end = at_ + bytes.size();
  at_ = end;
  for (Piece& piece : pieces_) {
    if (piece.first >= end) break;
    if (piece.is_done || piece.end <= first) continue;
    const uint64_t from = std::max(first, piece.first), to = std::min(end, piece.end);
    std::memcpy(piece.read->to + (from - piece.first), bytes.data() + (from - first), to - from);
    // The last ones wait for the end of the answer, because more bytes than were promised are a fault.
    if (piece.end <= end && piece.end < last_) finish(piece, {});
  }
}

void RangeJob::succeed() {
  for (Piece& piece : pieces_) {
    if (piece.is_done) continue;
    if (is_from_end_) {
      piece.read->size = piece.end - piece.first;
      piece.read->object_size = piece.end;
    }
    finish(piece, {});
  }
}

void RangeJob::fail(const StoreFault& fault) {
  for (Piece& piece : pieces_) {
    if (piece.is_done) continue;
    StoreFault own = fault;
    if (own.offset == L3_DATA_NONE && !is_from_end_) own.offset = std::clamp(at_, piece.first, piece.end);
    finish(piece, own);
  }
}

bool RangeJob::cancel(uint64_t owner) {
  for (Piece& piece : pieces_) {
    if (!piece.is_done && piece.owner == owner) finish(piece, cancelled());
  }
  return is_wanted();
}

// The read may be gone when its function returns.
void RangeJob::finish(Piece& piece, const StoreFault& fault) {
  piece.is_done = true;
  Read& read = *piece.read;
  times.queued = read.times.queued;
  times.finished = stamp(Clock::now());
  read.times = times;
  read.finish(read, fault);
}

}  // namespace loader::net
