// Measures images per second into tensors on a CPU: the loader, a thread pool with libpng, and decoding without a
// loader. Usage: l3_loader_bench SET PNG_FOLDER [--threads N] [--rounds N] [--batch N] [--epochs N] Make SET from
// PNG_FOLDER with `l3 convert`. Only the images of the most common shape are used. The first round, which is not
// counted, loads all files into the page cache. The ways take turns, and the results are medians.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/median.h"
#include "base/parallel.h"
#include "formats/formats.h"
#include "l3/l3.hpp"
#include "l3/l3_loader.hpp"

namespace {

using Bytes = std::vector<uint8_t>;

struct Options {
  std::string set, folder;
  uint32_t threads = std::max(std::thread::hardware_concurrency(), 1u), rounds = 7, batch = 16, epochs = 4;
};

[[noreturn]] void die(const std::string& reason) {
  std::fprintf(stderr, "l3_loader_bench: %s\n", reason.c_str());
  std::exit(1);
}

Options parse(int count, char** words) {
  Options options;
  std::vector<std::string> plain;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    uint32_t* number = word == "--threads"  ? &options.threads
                       : word == "--rounds" ? &options.rounds
                       : word == "--batch"  ? &options.batch
                       : word == "--epochs" ? &options.epochs
                                            : nullptr;
    if (number == nullptr) {
      plain.push_back(word);
    } else if (++i == count || (*number = static_cast<uint32_t>(std::strtoul(words[i], nullptr, 10))) == 0) {
      die(word + " wants a number");
    }
  }
  if (plain.size() != 2)
    die("usage: l3_loader_bench SET PNG_FOLDER [--threads N] [--rounds N] [--batch N] [--epochs N]");
  options.set = plain[0];
  options.folder = plain[1];
  return options;
}

Bytes read_file(const std::string& path) {
  Bytes bytes;
  if (base::read_file(path, bytes) != 0) die(path + ": cannot be read");
  return bytes;
}

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// A folder in memory for caches, which is removed at the end.
class CacheFolder {
 public:
  CacheFolder() {
    if (mkdtemp(path_.data()) == nullptr) die("cannot make a folder in /dev/shm");
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/dev/shm/l3-loader-bench-XXXXXX";
};

l3::DataSet open_cached(const std::string& path, const std::string& cache) {
  l3_data_options options = l3_data_options_init();
  options.cache = cache.c_str();
  auto set = l3::DataSet::open(path, options);
  if (!set) die(l3::message(set.error()));
  return std::move(*set);
}

struct Way {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
};

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  const auto opened = l3::DataSet::open(options.set);
  if (!opened) die(l3::message(opened.error()));
  const l3::DataSet& set = *opened;

  // The images of the commonest shape.
  using Shape = std::vector<uint32_t>;
  std::map<Shape, std::vector<uint64_t>> shapes;
  for (uint64_t i = 0; i < set.count(); ++i) {
    const l3::Sample sample = set.sample(i);
    if (sample.is_image()) shapes[{sample.width, sample.height, sample.channels, sample.bits}].push_back(i);
  }
  if (shapes.empty()) die(options.set + ": no images");
  const auto& [shape, samples] = *std::max_element(
      shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const uint32_t bits = shape[3];
  std::vector<uint64_t> groups;
  std::vector<std::string> names;
  std::vector<Bytes> files;
  for (const uint64_t i : samples) {
    const l3::Sample sample = set.sample(i);
    groups.push_back(sample.group);
    names.push_back(options.folder + "/" + std::string(sample.name_text()));
    auto file = set.read(i);
    if (!file) die(l3::message(file.error()));
    files.push_back(std::move(*file));
  }
  const size_t images = options.epochs * samples.size();
  const uint64_t image_bytes = uint64_t{shape[0]} * shape[1] * shape[2] * (bits > 8 ? 2 : 1);

  const auto load = [&](const l3::DataSet& from, const l3_tensor_options& wanted, l3_order order) {
    return [&, wanted, order] {
      l3_loader_options wish = l3_loader_options_init();
      wish.batch_size = options.batch;
      wish.threads = options.threads;
      wish.order = order;
      wish.tensors = &wanted;
      wish.tensor_count = 1;
      wish.groups = groups.data();
      wish.group_count = groups.size();
      auto loader = l3::Loader::open(from, wish);
      if (!loader) die(l3::message(loader.error()));
      for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
        if (const auto error = loader->start(epoch)) die(l3::message(*error));
        for (;;) {
          auto batch = loader->next();
          if (!batch) die(l3::message(batch.error()));
          if (!*batch) break;
        }
      }
    };
  };
  l3_tensor_options stored{}, half{};
  stored.layout = L3_LAYOUT_HWC;
  half.type = L3_VALUE_F16;
  for (uint32_t c = 0; c < 4; ++c) {
    half.scale[c] = 1.0f / (0.25f * static_cast<float>((1u << bits) - 1));
    half.bias[c] = -0.45f / 0.25f;
  }
  // Open the models before, as the loader does.
  std::vector<const l3_model*> models;
  for (uint32_t number = 1;; ++number) {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    l3_model* model = nullptr;
    if (l3_default_model(number, &bytes, &size) != L3_OK || l3_open_model(bytes, size, &model, nullptr) != L3_OK) break;
    models.push_back(model);
  }
  const l3_decode_options of_set = set.decode_options();
  models.insert(models.end(), of_set.models, of_set.models + of_set.model_count);

  std::vector<Way> ways;
  ways.push_back({"png files, threads over libpng", [&] {
                    base::for_each_of(images, options.threads, [&](size_t i) {
                      const Bytes file = read_file(names[i % names.size()]);
                      if (const auto image = formats::read(file); !image.ok()) die(image.error().reason);
                    });
                  }});
  ways.push_back({"l3 in memory, decoding alone", [&] {
                    std::vector<Bytes> out(options.batch * 2, Bytes(image_bytes));
                    std::atomic<size_t> turn{0};
                    base::for_each_of(images, options.threads, [&](size_t i) {
                      const Bytes& file = files[i % files.size()];
                      l3_decode_options decode = l3_decode_options_init();
                      decode.models = models.data();
                      decode.model_count = models.size();
                      Bytes& to = out[turn++ % out.size()];
                      if (l3_decode(file.data(), file.size(), &decode, to.data(), to.size(), 0, nullptr) != L3_OK) {
                        die("a sample is broken");
                      }
                    });
                  }});
  ways.push_back({"loader, HWC as stored", load(set, stored, L3_ORDER_STORED)});
  ways.push_back({"loader, shuffled, HWC as stored", load(set, stored, L3_ORDER_SHUFFLED)});
  ways.push_back({"loader, shuffled, CHW f16 normalised", load(set, half, L3_ORDER_SHUFFLED)});
  const CacheFolder folder;
  const l3::DataSet empty = open_cached(options.set, folder.path() + "/empty=1B");
  const l3::DataSet full = open_cached(options.set, folder.path() + "/full=100%");
  ways.push_back({"the same, with a cache that holds nothing", load(empty, half, L3_ORDER_SHUFFLED)});
  ways.push_back({"the same, from a cache in memory", load(full, half, L3_ORDER_SHUFFLED)});

  for (uint32_t round = 0; round <= options.rounds; ++round) {
    for (Way& way : ways) {
      const double seconds = seconds_of(way.run);
      if (round > 0) way.seconds.push_back(seconds);
    }
  }
  std::printf("%zu images of %u x %u x %u, %u bits; %u threads, batches of %u, %u rounds of %u epochs; %s\n",
              samples.size(), shape[0], shape[1], shape[2], bits, options.threads, options.batch, options.rounds,
              options.epochs, l3_cpu_target());
  std::printf("%-40s %10s %8s %8s %8s\n", "", "images/s", "MP/s", "/ png", "/ alone");
  const double png = base::median(ways[0].seconds), alone = base::median(ways[1].seconds);
  for (const Way& way : ways) {
    const double seconds = base::median(way.seconds);
    const double per_second = static_cast<double>(images) / seconds;
    std::printf("%-40s %10.1f %8.1f %8.2f %8.3f\n", way.name.c_str(), per_second,
                per_second * shape[0] * shape[1] / 1e6, png / seconds, alone / seconds);
  }
  for (size_t i = 0; i + of_set.model_count < models.size(); ++i) l3_close_model(const_cast<l3_model*>(models[i]));
  return 0;
}
