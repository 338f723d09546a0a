// Ways to feed a training: a data set that lies in a folder, read and decoded into batches ahead of who takes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/one_codec.h"
#include "failure.h"
#include "l3/l3.h"

namespace tools {

// What all images have.
struct FeedShape {
  uint32_t width = 0, height = 0, bits = 8;
  formats::Colour colour = formats::Colour::rgb;

  uint64_t image_bytes() const;
  bool operator==(const FeedShape&) const = default;
  auto operator<=>(const FeedShape&) const = default;
};

struct FeedOptions {
  uint32_t threads = 1, batch = 16;
  uint64_t epoch = 0;
};

// One epoch of batches of samples as stored, rows of interleaved channels, each image once in an order of its own.
class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Waits for the next batch and gives it back at once. False at the end of the epoch, and where something failed.
  virtual bool next() = 0;
  // Why it ended, where it failed.
  virtual std::string problem() const = 0;
};

// A folder of files of one codec, by threads that each read and decode an image at a time, at most three batches ahead.
std::unique_ptr<Feed> feed_of_files(const std::vector<std::string>& paths, const bench::OneCodec& codec,
                                    const FeedShape& shape, const FeedOptions& options);

// A data set of l3, by libl3_data's loader.
std::unique_ptr<Feed> feed_of_set(const std::string& folder, bool on_gpu, const FeedOptions& options);

}  // namespace tools
