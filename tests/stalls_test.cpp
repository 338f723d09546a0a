// Tests the model of l3 stalls: what it predicts, and what it advises.
#include <gtest/gtest.h>

#include "bench/stalls.h"

namespace {

using namespace bench;

// Images of 100 kB that take 2 ms of a processor; a store of 50 MB/s.
StallModel example() {
  StallModel model;
  model.batch = 20;
  model.bytes = 100'000;
  model.processors = 4;
  model.threads = 4;
  model.one_thread = 500;
  model.all_threads = 1700;
  model.cpu_from_memory = 0.002;
  model.cpu_from_store = 0.0024;
  model.link = 50e6;
  return model;
}

void expect(const StallModel& model, const StallCase& training, double images_per_second, Bound bound) {
  const Prediction found = predict(model, training);
  EXPECT_NEAR(found.images_per_second, images_per_second, images_per_second * 1e-6);
  EXPECT_EQ(found.bound, bound);
}

TEST(StallModels, TheSlowestPartAlone) {
  const StallModel model = example();
  expect(model, {0, 4, 0, 50e6}, 500, Bound::link);
  expect(model, {0, 4, 0.5, 50e6}, 1000, Bound::link);
  expect(model, {0, 4, 1, 50e6}, 1700, Bound::processors);
  expect(model, {0, 4, 1, 1}, 1700, Bound::processors);
  expect(model, {0.1, 4, 0, 50e6}, 200, Bound::step);
  expect(model, {0.02, 4, 1, 50e6}, 1000, Bound::step);
  // Reading from the store takes a fifth more processor time.
  expect(model, {0, 4, 0, 1e12}, 1700 / 1.2, Bound::processors);
  expect(model, {0, 4, 0.5, 1e12}, 1700 / 1.1, Bound::processors);
}

TEST(StallModels, ThreadsBetweenWhatWasMeasured) {
  const StallModel model = example();
  expect(model, {0, 1, 1, 0}, 500, Bound::processors);
  expect(model, {0, 2, 1, 0}, 900, Bound::processors);
  expect(model, {0, 8, 1, 0}, 3400, Bound::processors);
  StallModel one = model;
  one.threads = 1;
  one.all_threads = 500;
  expect(one, {0, 3, 1, 0}, 1500, Bound::processors);
  // More threads than processors were no more than the processors.
  StallModel crowded = model;
  crowded.threads = 16;
  expect(crowded, {0, 4, 1, 0}, 1700, Bound::processors);
}

TEST(StallModels, AGpu) {
  StallModel model = example();
  model.device_seconds = 0.001;
  expect(model, {0, 4, 1, 0}, 1000, Bound::device);
}

StallFigures explained(StallModel model, double step) {
  StallFigures figures;
  model.step = step;
  figures.model = model;
  explain(figures);
  EXPECT_NEAR(figures.step_share + figures.decode_share + figures.store_share, 1, 1e-9);
  return figures;
}

TEST(StallModels, AdviseWhatToChangeFirst) {
  StallFigures found = explained(example(), 0);
  EXPECT_NE(found.advice.find("Cache 70 % of the data set"), std::string::npos) << found.advice;
  EXPECT_NE(found.advice.find("then the processors are the limit"), std::string::npos) << found.advice;
  EXPECT_NEAR(found.store_share, 1 - 500.0 / 1700, 1e-9);
  EXPECT_EQ(found.step_share, 0);

  found = explained(example(), 0.1);
  EXPECT_NE(found.advice.find("Change nothing"), std::string::npos) << found.advice;
  EXPECT_EQ(found.step_share, 1);

  StallModel fast = example();
  fast.link = 1e12;
  found = explained(fast, 0);
  EXPECT_NE(found.advice.find("twice as many"), std::string::npos) << found.advice;
  fast.threads = 2;
  found = explained(fast, 0);
  EXPECT_NE(found.advice.find("Use more threads"), std::string::npos) << found.advice;
}

TEST(StallPages, AreComplete) {
  StallFigures figures = explained(example(), 0.01);
  figures.set = "<set>";
  figures.about = "4 images";
  figures.runs = {{"from memory", 1700, 0.002, 0.0019, 0.0001, 0, 0, 0.9, 1e5, 0}};
  figures.predictions = {{"link", {{"1 MB/s", {10, Bound::link}, true}}}};
  figures.checks = {{"50 %", 1000, 950}};
  const std::string page = stalls_page(figures);
  for (const char* part : {"&lt;set&gt;", "from memory", "1 MB/s", "5.3", "Where the time"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("<set>"), std::string::npos);
  LayoutFigures layouts;
  layouts.places = {"page cache", "far"};
  layouts.details = {"here", "there"};
  layouts.rows = {{"PNG tree", false, 1000, {12.3, 0}}};
  EXPECT_NE(layouts_page(layouts).find("PNG tree"), std::string::npos);
}

}  // namespace
