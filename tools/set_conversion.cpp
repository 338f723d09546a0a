#include "set_conversion.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bridge/image_bridge.h"
#include "file_io.h"
#include "model_files.h"

namespace tools {
namespace {

// The most bytes in memory between reading and writing: sources that were read, and results that wait for earlier
// groups. A single group may exceed this.
constexpr uint64_t kMaxBytesAhead = uint64_t{192} << 20;
constexpr uint64_t kGroupsAheadOfThread = 64;
constexpr uint64_t kMaxFilesOfGroup = 4096;
// Small groups go from thread to thread together: as many as have this many bytes of sources.
constexpr uint64_t kGroupsTogether = 16, kBytesTogether = uint64_t{1} << 16;
// Threads that read, because they mostly wait for disks and servers.
constexpr uint32_t kReaders = 4;

// The images of a group. What is cut out of one of them must fit the others.
class GroupImages {
 public:
  // Fails if an image of the group was turned or resized, and they did not have one size.
  std::optional<Failure> add(const std::string& name, const Reshaped& reshaped) {
    was_changed_ |= reshaped.was_changed;
    if (first_.empty()) {
      first_ = name;
      size_ = reshaped.before;
    } else if (size_ != reshaped.before && other_.empty()) {
      other_ = name;
      other_size_ = reshaped.before;
    }
    if (!was_changed_ || other_.empty()) return std::nullopt;
    const auto text = [](loader::Size size) {
      return std::to_string(size.width) + " x " + std::to_string(size.height);
    };
    return Failure{other_, std::nullopt,
                   "has " + text(other_size_) + " pixels, but " + first_ + " of its group " + text(size_) +
                       ": --resize and --orient need one size"};
  }

 private:
  std::string first_, other_;
  loader::Size size_, other_size_;
  bool was_changed_ = false;
};

struct ReadGroup {
  std::vector<bridge::Buffer> files;
  std::optional<Failure> failure;
};

class Pipeline {
 public:
  Pipeline(const Sources& sources, const SetConversion& conversion, SetWriter& writer, Progress& progress,
           Context& context)
      : sources_(sources),
        conversion_(conversion),
        writer_(writer),
        progress_(progress),
        context_(context),
        first_(writer.done()),
        next_to_read_(first_),
        next_to_write_(first_) {}

  SetOutcome run() {
    std::vector<std::thread> threads;
    const auto start = [&](uint32_t count, void (Pipeline::*body)()) {
      for (uint32_t i = 0; i < count; ++i) {
        try {
          threads.emplace_back([this, body] { guard(body); });
        } catch (const std::exception&) {
          break;  // no more threads are possible, so fewer do the work
        }
      }
    };
    const uint64_t groups = sources_.groups.size() - first_;
    start(static_cast<uint32_t>(std::min<uint64_t>(conversion_.threads, groups)), &Pipeline::convert_all);
    const size_t converters = threads.size();
    start(static_cast<uint32_t>(std::min<uint64_t>(kReaders, groups)), &Pipeline::read_all);
    if ((converters == 0 || threads.size() == converters) && groups > 0) {
      stop();
      outcome_.broken = Failure{"", std::nullopt, "cannot start a thread: too little memory, or too many threads"};
    } else {
      guard(&Pipeline::write_all);
    }
    for (std::thread& thread : threads) thread.join();
    outcome_.not_begun = sources_.groups.size() - next_to_write_;
    return outcome_;
  }

 private:
  // An exception in a thread, such as out of memory, ends the conversion and not the program.
  void guard(void (Pipeline::*body)()) {
    try {
      (this->*body)();
    } catch (...) {
      Failure failure = caught("");
      {
        const std::lock_guard lock(mutex_);
        if (!outcome_.broken) outcome_.broken = std::move(failure);
      }
      stop();
    }
  }

  // ---- reading

  void read_all() {
    for (;;) {
      uint64_t first = 0, end = 0;
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return stopped_ || next_to_read_ == sources_.groups.size() || has_room(); });
        if (stopped_ || next_to_read_ == sources_.groups.size()) return;
        first = next_to_read_;
        uint64_t bytes = 0;
        do {
          bytes += bytes_of(next_to_read_);
          bytes_ahead_ += bytes_of(next_to_read_++);
        } while (next_to_read_ - first < kGroupsTogether && bytes < kBytesTogether &&
                 next_to_read_ < sources_.groups.size() && has_room());
        end = next_to_read_;
      }
      StageTimes times;
      std::vector<ReadGroup> groups;
      for (uint64_t number = first; number < end; ++number) groups.push_back(read(number, times));
      {
        const std::lock_guard lock(mutex_);
        for (uint64_t number = first; number < end; ++number) read_.emplace(number, std::move(groups[number - first]));
        outcome_.times.add(times);
      }
      if (end - first > 1) {
        ready_.notify_all();
      } else {
        ready_.notify_one();
      }
    }
  }

  bool has_room() const {
    if (next_to_read_ == next_to_write_) return true;
    return next_to_read_ - next_to_write_ < kGroupsAheadOfThread * conversion_.threads &&
           bytes_ahead_ + bytes_of(next_to_read_) <= kMaxBytesAhead;
  }

  uint64_t bytes_of(uint64_t number) const { return sources_.bytes_of(sources_.groups[number]); }

  ReadGroup read(uint64_t number, StageTimes& times) {
    const SourceGroup& group = sources_.groups[number];
    const Stopwatch watch(times.read);
    ReadGroup result;
    if (group.count > kMaxFilesOfGroup) {
      result.failure = Failure{sources_.display_name(*sources_.begin_of(group)), std::nullopt,
                               "belongs to a group of " + std::to_string(group.count) + " files; the limit is " +
                                   std::to_string(kMaxFilesOfGroup)};
    }
    for (uint64_t i = 0; i < group.count && !result.failure; ++i) {
      const SourceItem& item = sources_.items[group.first + i];
      try {
        Outcome<bridge::Buffer> bytes = read_source(item);
        if (bytes) {
          result.files.push_back(std::move(*bytes));
        } else {
          result.failure = bytes.failure();
        }
      } catch (...) {
        result.failure = caught(sources_.display_name(item));
      }
    }
    return result;
  }

  // Reads a file. Fails if it has changed since it was listed.
  Outcome<bridge::Buffer> read_source(const SourceItem& item) const {
    Outcome<bridge::Buffer> bytes = sources_.read(item);
    const int64_t now = modified(sources_.path_of(item));
    if (now != 0 && now != item.modified) {
      return Failure{sources_.display_name(item), std::nullopt, "changed during the conversion"};
    }
    return bytes;
  }

  // ---- converting

  void convert_all() {
    for (;;) {
      std::map<uint64_t, ReadGroup> groups;
      {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return stopped_ || !read_.empty() || taken_ == sources_.groups.size() - first_; });
        if (stopped_ || read_.empty()) return;
        // Takes the earliest groups, because later ones wait for them, and leaves some for the other threads.
        const uint64_t maximum = std::clamp<uint64_t>(read_.size() / conversion_.threads, 1, kGroupsTogether);
        uint64_t bytes = 0;
        do {
          bytes += bytes_of(read_.begin()->first);
          groups.insert(read_.extract(read_.begin()));
        } while (groups.size() < maximum && bytes < kBytesTogether);
        taken_ += groups.size();
        if (taken_ == sources_.groups.size() - first_) ready_.notify_all();
      }
      StageTimes times;
      std::map<uint64_t, NewGroup> converted;
      for (auto& [number, group] : groups) {
        progress_.begin(bytes_of(number));
        NewGroup& result = converted.emplace(number, convert(number, std::move(group), times)).first->second;
        progress_.end(bytes_of(number), result.totals.pixels);
      }
      bool has_next = false;
      {
        const std::lock_guard lock(mutex_);
        has_next = converted.contains(next_to_write_);
        converted_.merge(converted);
        outcome_.times.add(times);
      }
      if (has_next) written_.notify_one();
    }
  }

  NewGroup convert(uint64_t number, ReadGroup files, StageTimes& times) {
    const SourceGroup& group = sources_.groups[number];
    NewGroup result;
    result.failure = std::move(files.failure);
    result.totals.groups = 1;
    uint32_t label = group.label;
    GroupImages images;
    for (uint64_t i = 0; i < group.count && !result.failure; ++i) {
      const SourceItem& item = sources_.items[group.first + i];
      result.totals.bytes_in += files.files[i].size();
      ++result.totals.files;
      try {
        result.failure = take(item, std::move(files.files[i]), result, label, images, times);
      } catch (...) {
        result.failure = caught(sources_.display_name(item));
      }
    }
    std::set<std::string_view> roles;
    for (NewPart& part : result.parts) {
      if (result.failure) break;
      part.sample.label = label;
      part.sample.opens_group = &part == &result.parts.front();
      const char* problem = loader::problem(part.sample);
      if (problem == nullptr && !roles.insert(part.sample.role).second)
        problem = "two files of its group have the same role";
      if (problem != nullptr) result.failure = Failure{part.sample.name, std::nullopt, problem};
    }
    if (result.failure) {
      result.parts.clear();
      result.totals = {};
    }
    return result;
  }

  // Adds the result for a file to its group.
  std::optional<Failure> take(const SourceItem& item, bridge::Buffer bytes, NewGroup& group, uint32_t& label,
                              GroupImages& images, StageTimes& times) {
    if (item.use == Use::label) {
      const auto number = label_in(bytes.bytes());
      if (!number)
        return Failure{sources_.display_name(item), std::nullopt, "the label is not a number of one to nine digits"};
      if (const size_t classes = sources_.classes.size(); classes > 0 && *number >= classes) {
        return Failure{sources_.display_name(item), std::nullopt,
                       "the label is " + std::to_string(*number) + ", but __classes__ has the names of only " +
                           std::to_string(classes)};
      }
      label = *number;
      return std::nullopt;
    }
    if (item.use == Use::metadata) {
      if (group.parts.empty())
        return Failure{sources_.display_name(item), std::nullopt, "this metadata belongs to no image"};
      group.parts.front().sample.metadata.assign(bytes.bytes().begin(), bytes.bytes().end());
      return std::nullopt;
    }
    NewPart part;
    part.sample.name = item.name;
    part.sample.role = sources_.role_of(item);
    if (item.use == Use::image) {
      Reshaped reshaped;
      Outcome<bridge::Buffer> encoded = encode(item, std::move(bytes), group.totals, times, reshaped);
      if (!encoded) return encoded.failure();
      bytes = std::move(*encoded);
      if (auto failure = images.add(sources_.display_name(item), reshaped)) return failure;
    }
    group.totals.bytes_out += bytes.size();
    if (!loader::describe(bytes.bytes(), item.use == Use::image ? L3_DATA_IMAGE : L3_DATA_BYTES, part.sample)) {
      return Failure{sources_.display_name(item), std::nullopt, "the result is not an L3 file"};
    }
    part.bytes = std::move(bytes);
    group.parts.push_back(std::move(part));
    return std::nullopt;
  }

  Outcome<bridge::Buffer> encode(const SourceItem& item, bridge::Buffer bytes, SetTotals& totals, StageTimes& times,
                                 Reshaped& reshaped) {
    const std::string name = sources_.display_name(item);
    const Outcome<formats::Image> image = unpack(name, bytes.bytes(), conversion_.settings, times, context_, item.page,
                                                 sources_.role_of(item), &reshaped);
    if (!image) return image.failure();
    bytes = bridge::Buffer();  // free this memory early
    totals.pixels += uint64_t{image->width} * image->height;
    return encode_image(name, *image, conversion_.settings, times);
  }

  // ---- writing

  void write_all() {
    bool goes_on = true;
    while (goes_on && next_to_write_ < sources_.groups.size()) {
      std::vector<NewGroup> groups;
      {
        std::unique_lock lock(mutex_);
        const auto is_next = [&] {
          return !converted_.empty() && converted_.begin()->first == next_to_write_ + groups.size();
        };
        written_.wait(lock, [&] { return stopped_ || is_next(); });
        if (stopped_) return;
        while (is_next()) groups.push_back(std::move(converted_.extract(converted_.begin()).mapped()));
      }
      for (size_t i = 0; i < groups.size() && goes_on; ++i) {
        goes_on = write(std::move(groups[i]));
        const std::lock_guard lock(mutex_);
        if (outcome_.broken) break;
        bytes_ahead_ -= bytes_of(next_to_write_);
        ++next_to_write_;
      }
      goes_on &= timed([&] { return writer_.put(); });
      room_.notify_all();
    }
    stop();
  }

  // Calls one of the writer's functions. Returns false if it fails, or something failed before.
  template <class Body>
  bool timed(const Body& body) {
    StageTimes times;
    std::optional<Failure> broken;
    {
      const Stopwatch watch(times.write);
      broken = body();
    }
    const std::lock_guard lock(mutex_);
    outcome_.times.add(times);
    if (broken) outcome_.broken = std::move(broken);
    return !outcome_.broken;
  }

  // Returns false if the work must end.
  bool write(NewGroup group) {
    const SetTotals totals = group.totals;
    const bool failed = group.failure.has_value();
    if (failed) {
      if (!timed([&] { return writer_.put(); })) return false;  // saying that it failed may take long
      ++outcome_.failed;
      progress_.count(*group.failure);
      if (conversion_.stop_at_failure) {
        const std::lock_guard lock(mutex_);
        outcome_.stopped_by = std::move(group.failure);  // started, but not part of the data set
        return false;
      }
    }
    if (!timed([&] { return writer_.add(std::move(group)); })) return false;
    outcome_.totals.add(totals);
    if (!failed) progress_.count({totals.files, 0, totals.pixels, totals.bytes_in, totals.bytes_out});
    return true;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    ready_.notify_all();
    written_.notify_all();
  }

  const Sources& sources_;
  const SetConversion& conversion_;
  SetWriter& writer_;
  Progress& progress_;
  Context& context_;
  const uint64_t first_;

  std::mutex mutex_;
  std::condition_variable room_, ready_, written_;
  bool stopped_ = false;
  uint64_t next_to_read_;
  uint64_t next_to_write_;
  uint64_t taken_ = 0;  // groups that converting threads have taken
  uint64_t bytes_ahead_ = 0;
  std::map<uint64_t, ReadGroup> read_;
  std::map<uint64_t, NewGroup> converted_;
  SetOutcome outcome_;
};

}  // namespace

SetOutcome convert_set(const Sources& sources, const SetConversion& conversion, SetWriter& writer, Progress& progress,
                       Context& context) {
  return Pipeline(sources, conversion, writer, progress, context).run();
}

}  // namespace tools
