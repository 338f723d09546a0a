// The model of l3 stalls, and its advice.
#include "bench/stalls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "markup.h"

namespace bench {
namespace {

// Images per second that decoding from memory reaches with some threads. Two threads on the two halves of a core are
// not twice as fast as one, so what was measured is interpolated. Beyond it nothing is known, and each further
// processor counts as much as those measured did on average.
double from_memory(const StallModel& model, double threads) {
  const double measured = std::min(model.threads, model.processors);
  if (measured <= 1 || model.one_thread <= 0) return model.all_threads * threads / std::max(measured, 1.0);
  if (threads <= 1) return model.one_thread * threads;
  const double each = (model.all_threads - model.one_thread) / (measured - 1);
  if (threads <= measured) return model.one_thread + each * (threads - 1);
  return model.all_threads * threads / measured;
}

}  // namespace

Prediction predict(const StallModel& model, const StallCase& training) {
  Prediction prediction{std::numeric_limits<double>::infinity(), Bound::step};
  const auto limit = [&](double images_per_second, Bound bound) {
    if (images_per_second < prediction.images_per_second) prediction = {images_per_second, bound};
  };
  if (training.step > 0) limit(model.batch / training.step, Bound::step);
  // Reading from the store takes processor time, too.
  const double cpu = model.cpu_from_memory + (1 - training.cached) * (model.cpu_from_store - model.cpu_from_memory);
  const double slower = model.cpu_from_memory > 0 ? std::max(cpu / model.cpu_from_memory, 1.0) : 1;
  limit(from_memory(model, training.threads) / slower, Bound::processors);
  if (model.device_seconds > 0) limit(1 / model.device_seconds, Bound::device);
  const double bytes = model.bytes * (1 - training.cached);
  if (training.link > 0 && bytes > 0) limit(training.link / bytes, Bound::link);
  return prediction;
}

StallCase measured_case(const StallModel& model) { return {0, model.threads, 0, model.link}; }

std::string bound_text(Bound bound) {
  switch (bound) {
    case Bound::step: return "the training";
    case Bound::processors: return "the processors";
    case Bound::device: return "the GPU's decoding";
    case Bound::link: return "the store";
  }
  return "";
}

void explain(StallFigures& figures) {
  const StallModel& model = figures.model;
  StallCase now = measured_case(model);
  now.step = model.step;
  StallCase in_memory = now;
  in_memory.cached = 1;
  const Prediction from_store = predict(model, now), from_memory_now = predict(model, in_memory);
  const double whole = 1 / from_store.images_per_second;
  figures.step_share = std::min(model.step / model.batch / whole, 1.0);
  figures.decode_share = std::max(1 / from_memory_now.images_per_second / whole - figures.step_share, 0.0);
  figures.store_share = std::max(1 - figures.step_share - figures.decode_share, 0.0);

  const auto percent = [](double share) { return fixed(100 * share, 0) + " %"; };
  const auto rate = [](double images) { return three_digits(images) + " images/s"; };
  std::string& advice = figures.advice;
  switch (from_store.bound) {
    case Bound::step:
      advice = "Change nothing: the training's steps take all of the time, and the loader could deliver " +
               three_digits(predict(model, {0, now.threads, 0, now.link}).images_per_second) + " images/s.";
      return;
    case Bound::link: {
      // The smallest share in steps of 5 % that makes something else the bound.
      double share = 0.05;
      for (; share < 1; share += 0.05) {
        StallCase cached = now;
        cached.cached = share;
        if (predict(model, cached).bound != Bound::link) break;
      }
      share = std::min(share, 1.0);
      const double needed = from_memory_now.images_per_second * model.bytes;
      advice = "Cache " + percent(share) + " of the data set, or get a link of " +
               format_size(static_cast<uint64_t>(needed)) + "/s instead of " +
               format_size(static_cast<uint64_t>(model.link)) + "/s: that gives " +
               rate(from_memory_now.images_per_second) + " instead of " + rate(from_store.images_per_second) +
               ", and then " + bound_text(from_memory_now.bound) +
               (from_memory_now.bound == Bound::processors ? " are" : " is") + " the limit.";
      return;
    }
    case Bound::device: advice = "The GPU's decoding is the limit: use the method fast, or smaller crops."; return;
    case Bound::processors: break;
  }
  StallCase more = now;
  more.threads = 2 * now.threads;
  const Prediction doubled = predict(model, more);
  if (model.threads < model.processors) {
    advice = "Use more threads: with " + fixed(std::min(2 * model.threads, model.processors), 0) + " instead of " +
             fixed(model.threads, 0) + " the loader delivers about ";
    more.threads = std::min(2 * model.threads, model.processors);
    advice += rate(predict(model, more).images_per_second) + ".";
    return;
  }
  advice = "The processors are the limit: twice as many give " + rate(doubled.images_per_second) + " instead of " +
           rate(from_store.images_per_second) + "; the method fast, or decoding on a GPU, needs far less of them.";
}

}  // namespace bench
