#include "transfer.h"

#include "base/parallel.h"
#include "progress.h"

namespace tools {

using namespace std::chrono_literals;

uint64_t Transfer::run(uint32_t threads, const std::function<std::optional<TransferFailure>(uint64_t)>& move) {
  const auto move_one = [&](uint64_t shard) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
    }
    std::optional<TransferFailure> failed;
    try {
      failed = move(shard);
    } catch (...) {
      failed = {caught(""), true};
    }
    const std::lock_guard lock(mutex_);
    if (!failed) {
      ++done_;
      show();
      return;
    }
    if (!stopped_ || !failed->stops) console_.fail(failed->failure);
    stopped_ = stopped_ || failed->stops;
  };
  base::for_each_of(shards_, threads, move_one);
  console_.clear_status();
  return shards_ - done_;
}

void Transfer::count_moved(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  moved_ += bytes;
  show();
}

void Transfer::count_kept(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  kept_ += bytes;
}

void Transfer::keep_shard(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++shards_kept_;
  kept_ += bytes;
}

double Transfer::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Transfer::show() {
  const Clock::time_point now = Clock::now();
  if (now - shown_ < (console_.stderr_is_terminal() ? Clock::duration(100ms) : Clock::duration(10s))) return;
  shown_ = now;
  console_.status(line());
}

std::string Transfer::line() const {
  const double rate = static_cast<double>(moved_) / seconds();
  std::string text = std::to_string(done_) + "/" + std::to_string(shards_) + " shards, " +
                     format_bytes(moved_ + kept_) + " of " + format_bytes(bytes_) + ", " +
                     format_bytes(static_cast<uint64_t>(rate)) + "/s";
  if (rate > 0 && moved_ + kept_ < bytes_) {
    text += ", ETA " + format_time(static_cast<double>(bytes_ - moved_ - kept_) / rate);
  }
  return text;
}

std::string Transfer::summary(const std::string& what) const {
  if (shards_kept_ == shards_) {
    return shards_ == 1 ? "the shard is there already" : "all " + std::to_string(shards_) + " shards are there already";
  }
  std::string text = std::to_string(shards_moved()) + (shards_moved() == 1 ? " shard " : " shards ") + what + ": " +
                     format_bytes(moved_);
  if (moved_ > 0 && seconds() > 0) {
    text += ", " + format_bytes(static_cast<uint64_t>(static_cast<double>(moved_) / seconds())) + "/s";
  }
  if (shards_kept_ > 0) text += "; " + std::to_string(shards_kept_) + " already there";
  if (done_ < shards_) text += "; " + std::to_string(shards_ - done_) + " not done";
  return text;
}

}  // namespace tools
