#include "bench/timing.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "codec.h"

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

template <typename Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

uint64_t pixels_of(const Image& image) { return uint64_t{image.width} * image.height; }

double per_second(uint64_t pixels, double seconds) {
  return seconds > 0 ? static_cast<double>(pixels) / 1e6 / seconds : 0;
}

}  // namespace

// One sample on its way through the codecs.
struct Timing::Trial {
  Sample sample;
  std::vector<bridge::Buffer> encoded;  // of each codec
  Image decoded;
  std::optional<Problem> failure;       // a codec cannot do this sample
  std::vector<std::string> difference;  // of each codec, from the sample

  std::span<const uint8_t> file_of(const Codec& codec, size_t index) const {
    return codec.takes_supplied(sample.file.bytes()) ? sample.file.bytes() : encoded[index].bytes();
  }
};

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  names.reserve(kCodecs.size());
  for (const Codec* codec : kCodecs) names.emplace_back(codec->name);
  return names;
}

Timing::Timing(const std::vector<std::string>& codecs, uint32_t rounds, l3_parallel parallel)
    : rounds_(rounds), parallel_(parallel) {
  for (const std::string& name : codecs) {
    for (size_t i = 0; i < kCodecs.size(); ++i) {
      if (name != kCodecs[i]->name) continue;
      codecs_.push_back({i, 0, true, std::vector<double>(rounds), std::vector<double>(rounds)});
    }
  }
}

std::vector<Timing::Trial> Timing::prove(std::vector<Sample> batch) {
  std::vector<Trial> trials(batch.size());
  for_each(parallel_, batch.size(), [&](uint64_t i) {
    Trial& trial = trials[i];
    trial.sample = std::move(batch[i]);
    trial.encoded.resize(codecs_.size());
    trial.difference.resize(codecs_.size());
    for (size_t c = 0; c < codecs_.size() && !trial.failure; ++c) {
      const Codec& codec = *kCodecs[codecs_[c].codec];
      std::optional<Error> error;
      try {
        error = codec.encode(trial.sample.image, trial.encoded[c]);
        if (!error) error = codec.decode(trial.file_of(codec, c), trial.decoded);
      } catch (const std::bad_alloc&) {
        error = Error{0, "out of memory"};
      }
      if (error) {
        trial.failure = Problem{trial.sample.name, std::string(codec.name) + ": " + error->reason};
      } else {
        trial.difference[c] = formats::difference(trial.sample.image, trial.decoded);
      }
    }
  });
  for (const Trial& trial : trials) {
    if (trial.failure) problems_.push_back(*trial.failure);
  }
  std::erase_if(trials, [](const Trial& trial) { return trial.failure.has_value(); });
  return trials;
}

void Timing::time_round(std::vector<Trial>& trials, uint32_t round) {
  for (size_t c = 0; c < codecs_.size(); ++c) {
    const Codec& codec = *kCodecs[codecs_[c].codec];
    // What went well once goes well again, on the same input; errors were looked at in `prove`.
    codecs_[c].encode_seconds[round] += seconds_of([&] {
      for_each(parallel_, trials.size(),
               [&](uint64_t i) { (void)codec.encode(trials[i].sample.image, trials[i].encoded[c]); });
    });
    codecs_[c].decode_seconds[round] += seconds_of([&] {
      for_each(parallel_, trials.size(),
               [&](uint64_t i) { (void)codec.decode(trials[i].file_of(codec, c), trials[i].decoded); });
    });
  }
}

void Timing::measure(std::vector<Sample> batch) {
  std::vector<Trial> trials = prove(std::move(batch));
  for (const Trial& trial : trials) {
    ++files_;
    pixels_ += pixels_of(trial.sample.image);
    supplied_bytes_ += trial.sample.file.size();
    for (size_t c = 0; c < codecs_.size(); ++c) {
      const Codec& codec = *kCodecs[codecs_[c].codec];
      codecs_[c].bytes += trial.file_of(codec, c).size();
      if (trial.difference[c].empty()) continue;
      codecs_[c].lossless = false;
      problems_.push_back({trial.sample.name, std::string(codec.name) + " is not lossless: " + trial.difference[c]});
    }
  }
  for (uint32_t round = 0; round < rounds_; ++round) time_round(trials, round);
}

Report Timing::report() const {
  Report report;
  report.files = files_;
  report.pixels = pixels_;
  report.supplied_bytes = supplied_bytes_;
  report.problems = problems_;
  for (const Measured& measured : codecs_) {
    CodecReport& codec = report.codecs.emplace_back();
    codec.codec = kCodecs[measured.codec]->name;
    codec.bytes = measured.bytes;
    if (supplied_bytes_ > 0) codec.ratio = static_cast<double>(measured.bytes) / static_cast<double>(supplied_bytes_);
    codec.encode_mpps = per_second(pixels_, median(measured.encode_seconds));
    codec.decode_mpps = per_second(pixels_, median(measured.decode_seconds));
    codec.lossless = measured.lossless;
  }
  return report;
}

}  // namespace bench
