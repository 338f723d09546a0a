// Writes the same images as different data sets, and opens feeds of each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench_feeds.h"
#include "bridge/buffer.h"
#include "scratch.h"

namespace tools {

struct Picture {
  bridge::Buffer file;
  formats::Image image;
};

// Reads the images of the most frequent shape, of at most 2000 files. If two shapes are as frequent, takes the larger
// one. Images that cannot be read are left out; if `context` is not null, the reason is printed.
std::vector<Picture> read_pictures(const std::vector<std::string>& paths, const l3_limits& limits, Context* context);

// One way to feed a training.
struct Way {
  bench::FeedFigures figures;
  std::vector<std::string> paths;  // of all its files
  std::function<std::unique_ptr<Feed>(const FeedOptions&)> open;
};

class TrainingSets {
 public:
  TrainingSets(std::vector<Picture> pictures, const std::string& scratch, Context& context);

  // False if the folder for the data sets could not be made.
  bool has_folder() const { return !scratch_.folder().empty(); }

  // Each of these makes one way. They return false after a failure, and print why. The way is left out if the codec is
  // missing or cannot hold such images.
  bool make_files(const std::string& codec, const std::string& name, const std::string& extension);
  // Of the files of an l3 codec, which must have been made before.
  bool make_set(const std::string& codec, const std::string& name);
  // A tar with the files of the way before, for reading from the beginning to the end.
  bool make_tar(const std::string& codec, const std::string& name);

  std::vector<Way>& ways() { return ways_; }
  const FeedShape& shape() const { return shape_; }
  size_t images() const { return pictures_.size(); }
  uint32_t batch() const { return batch_; }
  // "400 images of 256 x 256, rgb of 8 bits"
  std::string about() const;

 private:
  std::vector<Picture> pictures_;
  Context& context_;
  Scratch scratch_;
  FeedShape shape_;
  uint32_t batch_ = 1;
  std::vector<Way> ways_;
  std::map<std::string, std::vector<std::vector<uint8_t>>> files_;  // of l3, by codec
};

}  // namespace tools
