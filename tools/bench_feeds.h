// Ways to feed a training: they read a data set from a folder and decode it into batches ahead of the consumer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/one_codec.h"
#include "failure.h"
#include "l3/l3.h"
#include "slow_store.h"

namespace tools {

// The shape of all images.
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
  Link link;  // that the files are read through
};

// A member of a tar.
struct TarPart {
  uint64_t offset = 0, size = 0;
};

// One epoch of batches. Each image comes once, in an order that depends on the epoch. Samples are as stored, in rows of
// interleaved channels.
class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Waits for the next batch and releases it at once. Returns false at the end of the epoch and after a failure.
  virtual bool next() = 0;
  // The reason of a failure; empty if nothing failed.
  virtual std::string problem() const = 0;
};

// Feeds files of one codec. Each thread reads and decodes one image at a time, at most three batches ahead.
std::unique_ptr<Feed> feed_of_files(const std::vector<std::string>& paths, const bench::OneCodec& codec,
                                    const FeedShape& shape, const FeedOptions& options);

// Feeds the members of a tar, which is read from the beginning to the end, as WebDataset does. The order is that of a
// buffer of 1000 members, from which the next one is taken at random.
std::unique_ptr<Feed> feed_of_tar(const std::string& path, const std::vector<TarPart>& parts,
                                  const bench::OneCodec& codec, const FeedShape& shape, const FeedOptions& options);

// Feeds an l3 data set with the loader of libl3_data.
std::unique_ptr<Feed> feed_of_set(const std::string& folder, bool on_gpu, const FeedOptions& options);

}  // namespace tools
