#include "piece_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "far_set.h"
#include "loader/data_writer.h"

namespace tools {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
constexpr size_t kMostParts = 4096;  // of a piece
constexpr size_t kInFlight = 4;      // pieces

// Room for a piece, and its reads.
struct Slot {
  Piece piece;
  std::vector<uint8_t> bytes;
  std::vector<loader::Read> reads;
  size_t left = 0;           // reads in progress
  loader::StoreFault fault;  // the first one
};

class PieceReader {
 public:
  PieceReader(loader::Store& store, const loader::Object& object, uint64_t object_size)
      : object_(object),
        object_size_(object_size),
        apart_(store.keeps_samples_apart()),
        channel_(store.make_channel(L3_READING_AUTO)) {
    for (Slot& slot : slots_) free_.push_back(&slot);
  }

  ~PieceReader() {
    if (in_progress_ == 0) return;
    channel_->cancel();
    while (in_progress_ > 0) (void)wait();
  }
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;

  bool has_room() const { return !free_.empty(); }
  bool is_idle() const { return in_progress_ == 0; }
  void give_back(Slot& slot) { free_.push_back(&slot); }

  void submit(Piece piece) {
    Slot& slot = *free_.back();
    slot.piece = std::move(piece);
    slot.fault = {};
    const uint64_t begin = slot.piece.begin();
    slot.bytes.assign(static_cast<size_t>(slot.piece.end() - begin), 0);
    slot.reads.clear();
    if (apart_) {
      for (const SamplePart& part : slot.piece.parts) {
        loader::Read read = read_of(slot, part.offset, part.size);
        read.sample = part.sample;
        read.sample_offset = part.sample_offset;
        read.sample_size = part.sample_size;
        slot.reads.push_back(read);
      }
    } else {
      slot.reads.push_back(read_of(slot, begin, slot.bytes.size()));
    }
    std::vector<loader::Read*> reads;
    for (loader::Read& read : slot.reads) reads.push_back(&read);
    slot.left = reads.size();
    channel_->submit(reads);
    free_.pop_back();
    ++in_progress_;
  }

  // Waits for a piece. The caller must give the slot back.
  Slot& wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return !done_.empty(); });
    Slot& slot = *done_.back();
    done_.pop_back();
    --in_progress_;
    return slot;
  }

 private:
  struct Waiting {
    PieceReader* reader;
    Slot* slot;
  };

  loader::Read read_of(Slot& slot, uint64_t offset, uint64_t size) {
    Waiting& waiting = waiting_[static_cast<size_t>(&slot - slots_.data())];
    waiting = {this, &slot};
    loader::Read read;
    read.object = &object_;
    read.offset = offset;
    read.size = size;
    read.to = slot.bytes.data() + (offset - slot.piece.begin());
    read.object_size = object_size_;
    read.finish = [](loader::Read& finished, const loader::StoreFault& fault) {
      const auto [reader, of] = *static_cast<Waiting*>(finished.context);
      reader->finish(*of, fault);
    };
    read.context = &waiting;
    return read;
  }

  void finish(Slot& slot, const loader::StoreFault& fault) {
    const std::lock_guard lock(mutex_);
    if (fault && !slot.fault) slot.fault = fault;
    if (--slot.left > 0) return;
    done_.push_back(&slot);
    finished_.notify_one();
  }

  const loader::Object& object_;
  const uint64_t object_size_;
  const bool apart_;
  std::array<Slot, kInFlight> slots_;
  std::array<Waiting, kInFlight> waiting_{};
  std::vector<Slot*> free_;
  size_t in_progress_ = 0;  // pieces
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Slot*> done_;
  std::unique_ptr<loader::Channel> channel_;  // ends before what its reads use
};

void clear_gaps(const Piece& piece, std::vector<uint8_t>& bytes) {
  uint64_t end = piece.begin();
  for (const SamplePart& part : piece.parts) {
    std::memset(bytes.data() + (end - piece.begin()), 0, static_cast<size_t>(part.offset - end));
    end = part.offset + part.size;
  }
}

}  // namespace

std::optional<Piece> Pieces::take() {
  if (!rest_) return std::nullopt;
  Piece piece;
  const uint64_t limit = rest_->offset + kPieceBytes;
  while (rest_ && piece.parts.size() < kMostParts) {
    const bool follows = piece.parts.empty() || rest_->offset == loader::ShardBuilder::next_after(piece.end());
    if (!follows || rest_->offset >= limit) break;
    SamplePart part = *rest_;
    part.size = std::min(part.size, limit - part.offset);
    rest_->offset += part.size;
    rest_->size -= part.size;
    piece.parts.push_back(part);
    if (rest_->size > 0) break;
    advance();
  }
  return piece;
}

std::optional<TransferFailure> read_pieces(
    loader::Store& store, const loader::Object& object, uint64_t object_size, Pieces& pieces,
    const std::function<std::optional<Failure>(uint64_t offset, std::span<const uint8_t> bytes)>& took) {
  PieceReader reader(store, object, object_size);
  std::optional<Piece> next = pieces.take();
  while (next || !reader.is_idle()) {
    while (next && reader.has_room()) {
      reader.submit(*std::move(next));
      next = pieces.take();
    }
    Slot& slot = reader.wait();
    if (slot.fault) {
      const bool of_object = slot.fault.status == L3_ERROR_TRUNCATED || slot.fault.system_error == ENOENT;
      return TransferFailure{failure_of(object.name(), slot.fault), !of_object};
    }
    clear_gaps(slot.piece, slot.bytes);
    if (auto failure = took(slot.piece.begin(), slot.bytes)) return TransferFailure{*std::move(failure), true};
    reader.give_back(slot);
  }
  return std::nullopt;
}

}  // namespace tools
