#include "redis_protocol.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace loader::redis {
namespace {

constexpr size_t kMaxLine = size_t{1} << 16;  // errors and states
constexpr size_t kMaxNumber = 24;             // all other lines, with type and line end
constexpr size_t kMaxNesting = 4;
constexpr uint64_t kMaxItems = uint64_t{1} << 18;
constexpr int64_t kMaxItemBytes = 1024;  // of a bulk within an array

constexpr const char* kNoReply = "it sent what is no reply to the command";
constexpr const char* kTooLarge = "it sent more than the command asks for";

void append_head(std::string& to, char type, uint64_t number) {
  to += type;
  to += std::to_string(number);
  to += kLineEnd;
}

void append_argument(std::string& to, std::string_view argument) {
  append_head(to, '$', argument.size());
  to += argument;
  to += kLineEnd;
}

}  // namespace

void append_command(std::string& to, std::initializer_list<std::string_view> arguments) {
  append_head(to, '*', arguments.size());
  for (const std::string_view argument : arguments) append_argument(to, argument);
}

void append_set(std::string& to, std::string_view key, uint64_t size) {
  append_head(to, '*', 3);
  append_argument(to, "SET");
  append_argument(to, key);
  append_head(to, '$', size);
}

void ReplyParser::expect(uint8_t* to, uint64_t most, bool takes_array) {
  state_ = State::kMore;
  part_ = Part::kLine;
  takes_array_ = takes_array;
  has_begun_ = false;
  to_ = to;
  most_ = most;
  line_.clear();
  reply_ = {};
  levels_.clear();
  items_ = 0;
}

size_t ReplyParser::take(const uint8_t* bytes, size_t size) {
  size_t used = 0;
  while (used < size && state_ == State::kMore) {
    has_begun_ = true;
    const uint8_t* const at = bytes + used;
    if (part_ == Part::kLine) {
      const void* const end = std::memchr(at, '\n', size - used);
      const size_t count =
          end == nullptr ? size - used : static_cast<size_t>(static_cast<const uint8_t*>(end) - at) + 1;
      const char type = line_.empty() ? static_cast<char>(*at) : line_[0];
      const size_t most = type == '+' || type == '-' ? kMaxLine : kMaxNumber;
      const size_t taken = std::min(count, most - line_.size());
      line_.append(reinterpret_cast<const char*>(at), taken);
      used += taken;
      if (end != nullptr && taken == count) {
        take_line();
      } else if (line_.size() == most) {
        fail("a line of its reply is too long");
      }
    } else if (part_ == Part::kBulk) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(bulk_size_ - bulk_done_, size - used));
      if (!levels_.empty()) {
        levels_.back().array->items.back().text.append(reinterpret_cast<const char*>(at), count);
      } else if (to_ != nullptr) {
        std::memcpy(to_ + bulk_done_, at, count);
      }
      used += count;
      received(count);
    } else {
      if (*at != static_cast<uint8_t>(kLineEnd[end_done_])) {
        fail("a value has another size than the server said");
        break;
      }
      ++used;
      if (++end_done_ == kLineEnd.size()) complete();
    }
  }
  return used;
}

std::span<uint8_t> ReplyParser::place() const {
  if (state_ != State::kMore || part_ != Part::kBulk || !levels_.empty() || to_ == nullptr) return {};
  return {to_ + bulk_done_, static_cast<size_t>(bulk_size_ - bulk_done_)};
}

void ReplyParser::received(size_t size) {
  bulk_done_ += size;
  if (bulk_done_ == bulk_size_) part_ = Part::kBulkEnd;
}

void ReplyParser::take_line() {
  if (line_.size() < 3 || !line_.ends_with(kLineEnd)) return fail(kNoReply);
  const std::string_view text = std::string_view(line_).substr(1, line_.size() - 3);
  if (!levels_.empty()) levels_.back().array->items.emplace_back();
  Reply& to = levels_.empty() ? reply_ : levels_.back().array->items.back();
  const char type = line_[0];
  if (type == '+' || type == '-') {
    if (!levels_.empty() && text.size() > static_cast<size_t>(kMaxItemBytes)) return fail(kTooLarge);
    to.type = type == '+' ? Reply::kStatus : Reply::kError;
    to.text = text;
    line_.clear();
    return complete();
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return fail(kNoReply);
  line_.clear();
  if (type == ':') {
    to.type = Reply::kInteger;
    to.integer = number;
    return complete();
  }
  if (type == '$') return begin_bulk(to, number);
  if (type == '*') return begin_array(to, number);
  fail(kNoReply);
}

void ReplyParser::begin_bulk(Reply& to, int64_t size) {
  to.type = Reply::kNil;
  if (size == -1) return complete();
  if (size < 0) return fail(kNoReply);
  const bool fits = levels_.empty() ? static_cast<uint64_t>(size) <= most_ : size <= kMaxItemBytes;
  if (!fits) return fail(kTooLarge);
  to.type = Reply::kBulk;
  to.integer = size;
  bulk_size_ = static_cast<uint64_t>(size);
  bulk_done_ = 0;
  end_done_ = 0;
  part_ = bulk_size_ == 0 ? Part::kBulkEnd : Part::kBulk;
}

void ReplyParser::begin_array(Reply& to, int64_t count) {
  to.type = Reply::kNil;
  if (count == -1) return complete();
  if (!takes_array_ || count < 0) return fail(kNoReply);
  if (levels_.size() == kMaxNesting || static_cast<uint64_t>(count) > kMaxItems - items_) return fail(kTooLarge);
  items_ += static_cast<uint64_t>(count);
  to.type = Reply::kArray;
  if (count == 0) return complete();
  // The place of an array that is not complete does not change: the array around it gets its next item afterwards.
  levels_.push_back({&to, count});
}

// The value that was parsed last is complete, and with it the arrays whose last item it is.
void ReplyParser::complete() {
  part_ = Part::kLine;
  while (!levels_.empty() && --levels_.back().left == 0) levels_.pop_back();
  if (levels_.empty()) state_ = State::kDone;
}

std::string_view code_of_error(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const bool is_code = !word.empty() && word.size() <= 20 &&
                       std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_code ? word : std::string_view();
}

ErrorKind kind_of_error(std::string_view text) {
  const std::string_view code = code_of_error(text);
  for (const char* denied : {"NOAUTH", "WRONGPASS", "NOPERM", "DENIED"}) {
    if (code == denied) return ErrorKind::kDenied;
  }
  for (const char* busy : {"LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN"}) {
    if (code == busy) return ErrorKind::kBusy;
  }
  if (text.starts_with("ERR max number of clients")) return ErrorKind::kBusy;
  if (code == "OOM") return ErrorKind::kFull;
  if (code == "MOVED") return ErrorKind::kMoved;
  if (code == "ASK") return ErrorKind::kAsk;
  return ErrorKind::kFails;
}

}  // namespace loader::redis
