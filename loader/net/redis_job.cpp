#include "redis_job.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "loader/shard_format.h"

namespace loader::redis {
namespace {

constexpr size_t kMaxText = 200;

StoreFault file_fault(int error, std::string reason) { return {L3_ERROR_FILE, error, L3_DATA_NONE, std::move(reason)}; }
StoreFault no_key() { return file_fault(ENOENT, "the server has no such key"); }
StoreFault ends_at(uint64_t offset) {
  return {L3_ERROR_TRUNCATED, 0, offset, "the value in Redis is shorter than it should be"};
}

// The place in the object of a place in the value.
uint64_t object_offset(const Job& job, uint64_t value_offset) {
  const Read& read = *job.read;
  return read.sample == kNoSample ? value_offset : read.sample_offset + value_offset;
}

void next_piece(Job& job) { job.piece = std::min(job.left, kMaxPiece); }

StoreFault fault_of_error(const std::string& text, const Secrets& secrets) {
  const ErrorKind kind = kind_of_error(text);
  const int error = kind == ErrorKind::kDenied ? EACCES
                    : kind == ErrorKind::kFull ? ENOSPC
                    : kind == ErrorKind::kBusy ? EBUSY
                                               : EIO;
  return file_fault(error, "the server answered: " + secrets.safe_text(text));
}

// Redis sends an empty reply also if there is no such key, so the job asks whether it exists. If it does, somebody may
// have set it in between: the job reads once more.
Outcome after_nothing(Job& job, StoreFault& fault) {
  if (job.exists) {
    fault = ends_at(job.read->from_end ? 0 : object_offset(job, job.begin));
    return Outcome::kFinished;
  }
  job.step = Job::Step::kExists;
  return Outcome::kGoesOn;
}

Outcome after_exists(Job& job, StoreFault& fault) {
  if (job.found == 0) {
    fault = no_key();
    return Outcome::kFinished;
  }
  job.exists = true;
  job.step = job.read->from_end ? Job::Step::kTail : Job::Step::kRange;
  return Outcome::kGoesOn;
}

Outcome after_tail(Job& job, StoreFault& fault) {
  Read& read = *job.read;
  if (job.length == 0 || (job.bytes == 0 && !job.exists)) return after_nothing(job, fault);
  if (job.length > kMaxValue || job.bytes != std::min(job.piece, job.length)) {
    fault = file_fault(EPROTO, "the value in Redis changed during the read");
    return Outcome::kFinished;
  }
  // The end has arrived where it belongs if the value is not shorter than the read.
  job.value_size = job.length;
  job.total = std::min(read.size, job.length);
  std::memmove(read.to + (job.total - job.bytes), job.to, job.bytes);
  job.left = job.total - job.bytes;
  job.begin = job.length - job.total;
  job.to = read.to;
  job.step = Job::Step::kRange;
  next_piece(job);
  return job.left == 0 ? Outcome::kFinished : Outcome::kGoesOn;
}

Outcome after_range(Job& job, StoreFault& fault) {
  const Read& read = *job.read;
  if (job.is_nil) {
    fault = no_key();
    return Outcome::kFinished;
  }
  if (job.bytes == 0 && !job.is_whole) return after_nothing(job, fault);
  if (job.checks_size && job.length != read.object_size) {
    fault = file_fault(0, "the object has " + std::to_string(job.length) + " bytes, and should have " +
                              std::to_string(read.object_size));
    return Outcome::kFinished;
  }
  if (job.bytes < job.piece) {
    fault = ends_at(object_offset(job, job.begin + job.bytes));
    return Outcome::kFinished;
  }
  job.checks_size = false;
  job.begin += job.piece;
  job.to += job.piece;
  job.left -= job.piece;
  next_piece(job);
  return job.left == 0 ? Outcome::kFinished : Outcome::kGoesOn;
}

void finish_tail(Job& job, StoreFault& fault) {
  Read& read = *job.read;
  uint64_t size = job.value_size;
  if (job.is_index && !shard_size(read.to + job.total, job.value_size, size)) {
    fault = file_fault(EPROTO, "the value in Redis does not hold the index and the footer of a shard");
    return;
  }
  read.size = job.total;
  read.object_size = size;
}

}  // namespace

std::string Secrets::safe_text(std::string_view text) const {
  const auto has = [&](const std::string& secret) { return !secret.empty() && text.find(secret) != text.npos; };
  // Some servers repeat the arguments of a command that they refuse.
  if (has(user) || has(password)) {
    text = code_of_error(text);
    if (text.empty() || has(user) || has(password)) text = "an error";
  }
  std::string safe(text.substr(0, kMaxText));
  for (char& c : safe) {
    if (c < 32 || c > 126) c = '?';
  }
  return safe;
}

bool is_shard(std::string_view key) { return key.ends_with(".l3s"); }
std::string index_key(std::string_view shard) { return std::string(shard) + "/index"; }
std::string sample_key(std::string_view shard, uint64_t sample) {
  return std::string(shard) + "/" + std::to_string(sample);
}

bool shard_size(const uint8_t* value_end, uint64_t value_size, uint64_t& size) {
  if (value_size < kFooterBytes) return false;
  const uint8_t* const at = value_end - kFooterBytes;
  if (std::memcmp(at, kFooterSignature.data(), kFooterSignature.size()) != 0) return false;
  const uint64_t offset = load_u64(at + footer::kIndexOffset), index = load_u64(at + footer::kIndexSize);
  if (value_size - kFooterBytes != index || offset > INT64_MAX) return false;
  size = offset + value_size;
  return true;
}

StoreFault prepare_read(Job& job, Read& read, const std::string& prefix, std::string_view key) {
  job.read = &read;
  job.to = read.to;
  job.key = prefix + "/" + std::string(key);
  if (read.size == 0) return {L3_ERROR_ARGUMENT, 0, L3_DATA_NONE, "a read has at least one byte"};
  if (read.from_end) {
    job.is_index = is_shard(key);
    if (job.is_index) job.key = index_key(job.key);
    if (job.is_index && read.size < kFooterBytes) {
      return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "the end of a shard in Redis is read with its whole footer"};
    }
    job.step = Job::Step::kTail;
    job.piece = std::min(read.size, kMaxPiece);
    job.to = read.to + (read.size - job.piece);
    return {};
  }
  uint64_t from = read.offset, most = kMaxValue;
  if (read.sample != kNoSample) {
    if (read.sample_size > kMaxValue) {
      return {L3_ERROR_LIMIT, 0, read.offset, "a value in Redis has at most 512 MiB"};
    }
    if (from < read.sample_offset) return {L3_ERROR_ARGUMENT, 0, read.offset, "the read begins before its sample"};
    from -= read.sample_offset;
    most = read.sample_size;
    job.key = sample_key(job.key, read.sample);
    job.is_whole = from == 0 && read.size == most && most <= kMaxPiece;
  } else if (is_shard(key)) {
    return {L3_ERROR_UNSUPPORTED, 0, read.offset, "Redis has only the samples and the end of a shard"};
  } else {
    job.checks_size = read.object_size != 0;
  }
  if (from > most || read.size > most - from) {
    if (read.sample != kNoSample) return {L3_ERROR_ARGUMENT, 0, read.offset, "the read ends after its sample"};
    return {L3_ERROR_LIMIT, 0, read.offset, "a value in Redis has at most 512 MiB"};
  }
  job.begin = from;
  job.total = job.left = read.size;
  next_piece(job);
  return {};
}

void begin_exchange(Job& job, std::string& commands) {
  job.want_count = job.want_at = 0;
  job.is_nil = false;
  job.bytes = job.length = job.found = 0;
  job.error.clear();
  const auto command = [&](Job::Want want, std::initializer_list<std::string_view> arguments) {
    if (job.asks) {
      append_command(commands, {"ASKING"});
      job.wants[job.want_count++] = Job::Want::kState;
    }
    if (arguments.size() == 0) {
      append_set(commands, job.key, job.value.size());
    } else {
      append_command(commands, arguments);
    }
    job.wants[job.want_count++] = want;
  };
  switch (job.step) {
    case Job::Step::kTail:
      command(Job::Want::kBytes, {"GETRANGE", job.key, std::to_string(-static_cast<int64_t>(job.piece)), "-1"});
      command(Job::Want::kLength, {"STRLEN", job.key});
      break;
    case Job::Step::kRange:
      if (job.is_whole) {
        command(Job::Want::kBytes, {"GET", job.key});
      } else {
        command(Job::Want::kBytes,
                {"GETRANGE", job.key, std::to_string(job.begin), std::to_string(job.begin + job.piece - 1)});
      }
      if (job.checks_size) command(Job::Want::kLength, {"STRLEN", job.key});
      break;
    case Job::Step::kExists: command(Job::Want::kFound, {"EXISTS", job.key}); break;
    case Job::Step::kSet: command(Job::Want::kState, {}); break;
    case Job::Step::kFindSlots: command(Job::Want::kTree, {"CLUSTER", "SLOTS"}); break;
  }
}

void expect_reply(const Job& job, ReplyParser& parser) {
  const Job::Want want = job.wants[job.want_at];
  const bool has_bytes = want == Job::Want::kBytes;
  parser.expect(has_bytes && !job.is_cancelled ? job.to : nullptr, has_bytes ? job.piece : 0, want == Job::Want::kTree);
}

bool take_reply(Job& job, const Reply& reply, bool& is_wrong) {
  const Job::Want want = job.wants[job.want_at++];
  const bool is_count = reply.type == Reply::kInteger && reply.integer >= 0;
  if (reply.type == Reply::kError) {
    // After a redirection ASKING is not what the reader wants to know about.
    if (job.error.empty()) job.error = reply.text.empty() ? "an error without a text" : reply.text;
  } else if (want == Job::Want::kState) {
    is_wrong = reply.type != Reply::kStatus || reply.text != "OK";
  } else if (want == Job::Want::kBytes) {
    job.is_nil = reply.type == Reply::kNil;
    if (reply.type == Reply::kBulk) job.bytes = static_cast<uint64_t>(reply.integer);
    is_wrong = reply.type != Reply::kBulk && !job.is_nil;
  } else if (want == Job::Want::kTree) {
    is_wrong = reply.type != Reply::kArray;
    if (!is_wrong) job.slots = reply;
  } else {
    (want == Job::Want::kLength ? job.length : job.found) = is_count ? static_cast<uint64_t>(reply.integer) : 0;
    is_wrong = !is_count;
  }
  return job.want_at == job.want_count;
}

Outcome conclude(Job& job, const Secrets& secrets, StoreFault& fault) {
  job.asks = false;
  if (!job.error.empty()) {
    const ErrorKind kind = kind_of_error(job.error);
    fault = fault_of_error(job.error, secrets);
    if (kind == ErrorKind::kBusy) return Outcome::kTryLater;
    if (kind != ErrorKind::kMoved && kind != ErrorKind::kAsk) return Outcome::kFinished;
    if (++job.redirections <= kMaxRedirections) return kind == ErrorKind::kMoved ? Outcome::kMoved : Outcome::kAsk;
    fault = file_fault(EPROTO, "the cluster redirects the request too often");
    return Outcome::kFinished;
  }
  Outcome outcome = Outcome::kFinished;
  if (job.step == Job::Step::kExists) {
    outcome = after_exists(job, fault);
  } else if (job.step == Job::Step::kTail) {
    outcome = after_tail(job, fault);
  } else if (job.step == Job::Step::kRange) {
    outcome = after_range(job, fault);
  }
  if (outcome == Outcome::kFinished && !fault && job.read != nullptr && job.read->from_end) finish_tail(job, fault);
  return outcome;
}

}  // namespace loader::redis
