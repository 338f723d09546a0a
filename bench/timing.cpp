#include "bench/timing.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "base/median.h"
#include "codecs/codec.h"

namespace bench {
namespace {

using formats::Error;
using formats::Image;

// Runs body(i) for each i < count on the caller's threads.
template <typename Body>
void for_each(const l3_parallel& parallel, uint64_t count, Body body) {
  if (parallel.run == nullptr) {
    for (uint64_t i = 0; i < count; ++i) body(i);
    return;
  }
  parallel.run(
      parallel.context, count, [](void* argument, uint64_t index) { (*static_cast<Body*>(argument))(index); }, &body);
}

// Of this thread alone.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Seconds {
  double clock = 0, processor = 0;
};

template <typename Work>
Seconds seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  const double before = processor_time();
  work();
  const double processor = processor_time() - before;
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), processor};
}

Speed speed_of(uint64_t pixels, std::span<const double> seconds) {
  const auto [minimum, maximum] = std::minmax_element(seconds.begin(), seconds.end());
  if (seconds.empty() || *minimum <= 0) return {};
  const double millions = static_cast<double>(pixels) / 1e6;
  return {millions / base::median({seconds.begin(), seconds.end()}), millions / *maximum, millions / *minimum,
          static_cast<uint32_t>(seconds.size())};
}

double squared_error(const Image& a, const Image& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    const double difference = static_cast<double>(a.pixels[i]) - static_cast<double>(b.pixels[i]);
    sum += difference * difference;
  }
  return sum;
}

void count_reason(CodecFigures& figures, const std::string& reason, uint64_t files) {
  auto& had = figures.not_held;
  const auto same = std::find_if(had.begin(), had.end(), [&](const auto& one) { return one.first == reason; });
  if (same == had.end()) {
    had.emplace_back(reason, files);
  } else {
    same->second += files;
  }
}

// What `decode` is told of an image before.
void set_shape(Image& image, const Image& of) {
  image.width = of.width;
  image.height = of.height;
  image.bits = of.bits;
  image.colour = of.colour;
}

// Where a codec keeps samples alone, samples alone are compared.
std::string difference(const Adapter& adapter, const Image& source, Image& decoded) {
  if (!adapter.keeps_everything) {
    decoded.palette = source.palette;
    decoded.transparency = source.transparency;
    decoded.chunks = source.chunks;
  }
  return formats::difference(source, decoded);
}

}  // namespace

// One sample on its way through the codecs.
struct Timing::Trial {
  struct Codec {
    std::string cannot_hold;  // empty: it is measured
    bridge::Buffer encoded;
    std::string difference;  // from the sample, once decoded
    double squared_error = 0;
  };
  Sample sample;
  std::vector<Codec> codecs;
  Image decoded;
  std::optional<Problem> failure;  // a codec fails on this sample

  std::span<const uint8_t> file_of(const Adapter& adapter, size_t index) const {
    const std::span<const uint8_t> supplied = sample.file.bytes();
    return adapter.takes_supplied != nullptr && adapter.takes_supplied(supplied) ? supplied
                                                                                 : codecs[index].encoded.bytes();
  }
};

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const Codec& codec : all_codecs()) names.emplace_back(codec.name);
  return names;
}

Timing::Timing(const std::vector<std::string>& codecs, uint32_t rounds, l3_parallel parallel)
    : rounds_(rounds), parallel_(parallel) {
  const Rounds empty{std::vector<double>(rounds), rounds};
  for (const std::string& name : codecs) {
    for (size_t i = 0; i < all_codecs().size(); ++i) {
      const Codec& codec = all_codecs()[i];
      if (name != codec.name) continue;
      Measured& measured = codecs_.emplace_back(Measured{{}, i, empty, empty, empty, empty, empty});
      CodecFigures& figures = measured.figures;
      figures.name = codec.name;
      figures.title = codec.title;
      figures.lossy = codec.lossy;
      if (const Adapter* adapter = codec.adapter(); adapter == nullptr) {
        figures.absent = std::string("built without ") + codec.library;
        figures.package = codec.package;
      } else {
        figures.version = adapter->version();
        figures.decodes_only = adapter->decodes_only;
        figures.samples_only = !adapter->keeps_everything;
      }
    }
  }
}

std::vector<Timing::Trial> Timing::check_lossless(std::vector<Sample> batch) {
  std::vector<Trial> trials(batch.size());
  for_each(parallel_, batch.size(), [&](uint64_t i) {
    Trial& trial = trials[i];
    trial.sample = std::move(batch[i]);
    trial.codecs.resize(codecs_.size());
    const Image& image = trial.sample.image;
    for (size_t c = 0; c < codecs_.size() && !trial.failure; ++c) {
      const Codec& codec = all_codecs()[codecs_[c].codec];
      const Adapter* const adapter = codec.adapter();
      Trial::Codec& result = trial.codecs[c];
      if (adapter == nullptr) {
        result.cannot_hold = codecs_[c].figures.absent;
        continue;
      }
      result.cannot_hold = adapter->cannot_hold(image);
      if (!result.cannot_hold.empty()) continue;
      std::optional<Error> error;
      try {
        error = adapter->encode(image, codec.level, result.encoded);
        set_shape(trial.decoded, image);
        if (!error) error = adapter->decode(trial.file_of(*adapter, c), trial.decoded);
        if (!error && codec.lossy) result.squared_error = squared_error(image, trial.decoded);
        if (!error) result.difference = difference(*adapter, image, trial.decoded);
      } catch (const std::bad_alloc&) {
        error = failed("out of memory");
      }
      if (error) trial.failure = Problem{trial.sample.name, std::string(codec.name) + ": " + error->reason};
    }
  });
  for (const Trial& trial : trials) {
    if (trial.failure) problems_.push_back(*trial.failure);
  }
  std::erase_if(trials, [](const Trial& trial) { return trial.failure.has_value(); });
  return trials;
}

void Timing::count(const Trial& trial) {
  const Image& image = trial.sample.image;
  const uint64_t pixels = uint64_t{image.width} * image.height;
  ++files_;
  pixels_ += pixels;
  supplied_bytes_ += trial.sample.file.size();
  sample_bytes_ += image.pixels.size();
  for (size_t c = 0; c < codecs_.size(); ++c) {
    const Trial::Codec& result = trial.codecs[c];
    Measured& measured = codecs_[c];
    CodecFigures& figures = measured.figures;
    if (!figures.absent.empty()) continue;
    if (!result.cannot_hold.empty()) {
      count_reason(figures, result.cannot_hold, 1);
      continue;
    }
    ++figures.files;
    figures.pixels += pixels;
    figures.bytes += trial.file_of(*all_codecs()[measured.codec].adapter(), c).size();
    figures.supplied_bytes += trial.sample.file.size();
    figures.sample_bytes += image.pixels.size();
    measured.squared_error += result.squared_error;
    measured.compared_samples += image.pixels.size();
    if (result.difference.empty()) continue;
    figures.lossless = false;
    if (figures.lossy) continue;
    problems_.push_back({trial.sample.name, figures.name + " is not lossless: " + result.difference});
  }
}

void Timing::time_one(std::vector<Trial>& trials, uint32_t round, size_t at, const l3_parallel& parallel,
                      Rounds& encode, Rounds& decode) {
  const Codec& codec = all_codecs()[codecs_[at].codec];
  const Adapter& adapter = *codec.adapter();
  const auto is_held = [at](const Trial& trial) { return trial.codecs[at].cannot_hold.empty(); };
  const bool one_core = parallel.run == nullptr;
  const auto counted = [&](const Seconds& seconds) {
    if (!one_core) return seconds.clock;
    clock_seconds_ += seconds.clock;
    processor_seconds_ += seconds.processor;
    return seconds.processor;
  };
  // What went well once goes well again, on the same input; errors were looked at in `prove`.
  if (!adapter.decodes_only && !codecs_[at].slow) {
    encode.seconds[round] += counted(seconds_of([&] {
      for_each(parallel, trials.size(), [&](uint64_t i) {
        Trial& trial = trials[i];
        if (is_held(trial)) (void)adapter.encode(trial.sample.image, codec.level, trial.codecs[at].encoded);
      });
    }));
  }
  decode.seconds[round] += counted(seconds_of([&] {
    for_each(parallel, trials.size(), [&](uint64_t i) {
      Trial& trial = trials[i];
      if (!is_held(trial)) return;
      set_shape(trial.decoded, trial.sample.image);
      (void)adapter.decode(trial.file_of(adapter, at), trial.decoded);
    });
  }));
}

void Timing::measure(std::vector<Sample> batch, double long_seconds) {
  std::vector<Trial> trials = check_lossless(std::move(batch));
  for (const Trial& trial : trials) count(trial);
  for (Measured& measured : codecs_) measured.slow = false;
  for (uint32_t round = 0; round < rounds_; ++round) {
    for (size_t c = 0; c < codecs_.size(); ++c) {
      Measured& measured = codecs_[c];
      if (!measured.figures.absent.empty()) continue;
      const double before = measured.encode.seconds[round];
      time_one(trials, round, c, l3_parallel{}, measured.encode, measured.decode);
      if (parallel_.run != nullptr) {
        time_one(trials, round, c, parallel_, measured.encode_all, measured.decode_all);
      }
      if (measured.slow || measured.encode.seconds[round] - before <= long_seconds) continue;
      measured.slow = true;
      measured.encode.rounds = std::min(measured.encode.rounds, round + 1);
      measured.encode_all.rounds = std::min(measured.encode_all.rounds, round + 1);
    }
  }
  for (size_t c = 0; c < codecs_.size(); ++c) time_gpu(trials, c);
}

void Timing::time_gpu(const std::vector<Trial>& trials, size_t at) {
  Measured& measured = codecs_[at];
  const Adapter* const adapter = all_codecs()[measured.codec].adapter();
  if (gpu_ == nullptr || adapter == nullptr || !adapter->gpu_decodes) return;
  const std::unique_ptr<GpuBatch> batch = gpu_->make_batch();
  std::optional<std::string> problem;
  for (const Trial& trial : trials) {
    if (!problem) problem = batch->add(trial.file_of(*adapter, at), trial.sample.image);
  }
  if (!problem && !trials.empty()) problem = batch->check_lossless();
  if (problem) {
    // Its speed would be that of something else.
    measured.decode_gpu.rounds = 0;
    problems_.push_back({gpu_->name(), measured.figures.name + ": " + *problem});
  }
  for (uint32_t round = 0; round < measured.decode_gpu.rounds && !trials.empty(); ++round) {
    measured.decode_gpu.seconds[round] += batch->run();
  }
}

void Timing::Rounds::add(const Rounds& other) {
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] += other.seconds[i];
  rounds = std::min(rounds, other.rounds);
}

void Timing::add(const Timing& other) {
  files_ += other.files_;
  pixels_ += other.pixels_;
  supplied_bytes_ += other.supplied_bytes_;
  sample_bytes_ += other.sample_bytes_;
  clock_seconds_ += other.clock_seconds_;
  processor_seconds_ += other.processor_seconds_;
  problems_.insert(problems_.end(), other.problems_.begin(), other.problems_.end());
  for (size_t c = 0; c < codecs_.size(); ++c) {
    Measured& sum = codecs_[c];
    const Measured& more = other.codecs_[c];
    sum.figures.files += more.figures.files;
    sum.figures.pixels += more.figures.pixels;
    sum.figures.bytes += more.figures.bytes;
    sum.figures.supplied_bytes += more.figures.supplied_bytes;
    sum.figures.sample_bytes += more.figures.sample_bytes;
    sum.figures.lossless = sum.figures.lossless && more.figures.lossless;
    for (const auto& [reason, files] : more.figures.not_held) count_reason(sum.figures, reason, files);
    sum.encode.add(more.encode);
    sum.decode.add(more.decode);
    sum.encode_all.add(more.encode_all);
    sum.decode_all.add(more.decode_all);
    sum.decode_gpu.add(more.decode_gpu);
    sum.squared_error += more.squared_error;
    sum.compared_samples += more.compared_samples;
  }
}

SetFigures Timing::figures(const std::string& name) const {
  SetFigures set{name, files_, pixels_, supplied_bytes_, sample_bytes_, {}, clock_seconds_, processor_seconds_};
  for (const Measured& measured : codecs_) {
    CodecFigures& codec = set.codecs.emplace_back(measured.figures);
    const auto speed = [&](const Rounds& rounds) {
      return speed_of(codec.pixels, std::span(rounds.seconds).first(rounds.rounds));
    };
    if (!codec.decodes_only) codec.encode = speed(measured.encode);
    if (!codec.decodes_only) codec.encode_all = speed(measured.encode_all);
    codec.decode = speed(measured.decode);
    codec.decode_all = speed(measured.decode_all);
    codec.decode_gpu = speed(measured.decode_gpu);
    if (codec.lossy && measured.squared_error > 0) {
      const double mean = measured.squared_error / static_cast<double>(measured.compared_samples);
      codec.psnr = 10 * std::log10(255.0 * 255.0 / mean);
    }
  }
  return set;
}

}  // namespace bench
