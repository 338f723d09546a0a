#include "s3_upload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace loader::net {
namespace {

constexpr uint64_t kWholeLimit = 16 << 20;  // of objects in one request
constexpr uint64_t kMostParts = 9000;       // S3 takes 10,000
constexpr size_t kAtOnce = 4;
constexpr uint64_t kPiece = 1 << 20;

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    escaped += letter == '&' ? "&amp;" : letter == '<' ? "&lt;" : letter == '>' ? "&gt;" : std::string(1, letter);
  }
  return escaped;
}

}  // namespace

StoreFault S3Upload::run() { return upload_.size <= kWholeLimit ? put_whole() : put_parts(); }

StoreFault S3Upload::prepare(Part& part, uint64_t offset, uint64_t size) const {
  Sha256 sum;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min(size, kPiece)));
  for (uint64_t done = 0; done < size;) {
    const std::span<uint8_t> to = std::span(piece).first(static_cast<size_t>(std::min(size - done, kPiece)));
    if (StoreFault fault = upload_.read(offset + done, to)) return fault;
    sum.add(to);
    done += to.size();
  }
  part.body.size = size;
  part.body.read = [this, offset](uint64_t at, std::span<uint8_t> to) { return upload_.read(offset + at, to); };
  part.body.sent = upload_.sent;
  part.call.request.method = "PUT";
  part.call.request.target = target_;
  part.call.request.body = &part.body;
  part.call.request.body_hash = sum.hexadecimal();
  return {};
}

StoreFault S3Upload::put_whole() {
  Part part;
  if (StoreFault fault = prepare(part, 0, upload_.size)) return fault;
  engine_.run_call(part.call);
  return part.call.fault;
}

// ----------------------------------------------------------------------------------------------------------- parts

Call S3Upload::text_call(const char* method, const std::string& query) const {
  Call call;
  call.request.method = method;
  call.request.target = target_;
  call.request.target.query = query;
  return call;
}

StoreFault S3Upload::put_parts() {
  if (StoreFault fault = begin()) return fault;
  StoreFault fault;
  try {
    fault = send_parts();
    if (!fault) fault = complete();
  } catch (...) {
    abort();
    throw;
  }
  if (fault) abort();
  return fault;
}

StoreFault S3Upload::begin() {
  Call call = text_call("POST", "uploads");
  Body empty;
  call.request.body = &empty;
  engine_.run_call(call);
  if (call.fault) return call.fault;
  id_ = xml_text(call.body, "UploadId");
  return id_.empty() ? protocol_fault("the server did not begin the upload in parts") : StoreFault{};
}

StoreFault S3Upload::send_parts() {
  const uint64_t least = (upload_.size + kMostParts - 1) / kMostParts;
  const uint64_t size = std::max(kWholeLimit, (least + kPiece - 1) / kPiece * kPiece);
  for (uint64_t offset = 0; offset < upload_.size; offset += size) {
    if (in_progress_.size() == kAtOnce) {
      if (StoreFault fault = take_part()) return fault;
    }
    if (StoreFault fault = start_part(offset, std::min(size, upload_.size - offset))) return fault;
  }
  while (!in_progress_.empty()) {
    if (StoreFault fault = take_part()) return fault;
  }
  return {};
}

StoreFault S3Upload::start_part(uint64_t offset, uint64_t size) {
  in_progress_.push_back(std::make_unique<Part>());
  Part& part = *in_progress_.back();
  if (StoreFault fault = prepare(part, offset, size)) return fault;
  part.call.request.target.query = "partNumber=" + std::to_string(++started_) + "&uploadId=" + encode(id_, false);
  part.done = engine_.start(part.call);
  return {};
}

// Waits for the oldest part.
StoreFault S3Upload::take_part() {
  const std::unique_ptr<Part> part = std::move(in_progress_.front());
  in_progress_.pop_front();
  part->done.wait();
  if (part->call.fault) return part->call.fault;
  if (part->call.answer.etag.empty()) return protocol_fault("the server did not confirm a part");
  etags_.push_back(part->call.answer.etag);
  return {};
}

// An error may come with 200, because the server answers before it is done.
StoreFault S3Upload::complete() {
  std::string document = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < etags_.size(); ++i) {
    document += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + xml_escaped(etags_[i]) +
                "</ETag></Part>";
  }
  document += "</CompleteMultipartUpload>";
  Body body;
  body.size = document.size();
  body.read = [&document](uint64_t at, std::span<uint8_t> to) {
    std::memcpy(to.data(), document.data() + at, to.size());
    return StoreFault{};
  };
  std::string code;
  for (uint32_t attempt = 0; attempt < engine_.settings().attempts; ++attempt) {
    Call call = text_call("POST", "uploadId=" + encode(id_, false));
    call.request.body = &body;
    call.request.body_hash = sha256(document);
    call.request.headers.push_back("Content-Type: application/xml");
    engine_.run_call(call);
    // It succeeded before, and that answer was lost. The caller verifies the object.
    if (call.fault && call.fault.system_error == ENOENT && (attempt > 0 || call.attempts > 1)) return {};
    if (call.fault) return call.fault;
    if (call.body.find("<Error>") == std::string::npos) return {};
    code = printable(xml_text(call.body, "Code"), 60);
    if (code != "InternalError" && code != "SlowDown" && code != "ServiceUnavailable") break;
  }
  return make_fault(L3_ERROR_FILE, EIO, "the server could not join the parts: " + code);
}

void S3Upload::abort() {
  in_progress_.clear();  // waits
  Call call = text_call("DELETE", "uploadId=" + encode(id_, false));
  try {
    engine_.run_call(call);
  } catch (const std::exception&) {
    return;  // the server's own rules remove the parts
  }
}

}  // namespace loader::net
