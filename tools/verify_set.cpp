#include "verify_set.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bridge/image_bridge.h"
#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "progress.h"
#include "reshape.h"
#include "sources.h"

namespace tools {
namespace {

class SetVerifier {
 public:
  SetVerifier(const SetVerification& wanted, const l3::DataSet& set, Context& context)
      : wanted_(wanted), set_(set), context_(context) {}

  // Checks the shards, and that no source is missing. Returns the number of failures.
  uint64_t check_whole() {
    uint64_t failed = 0;
    const auto fail = [&](const Failure& failure) {
      context_.console.fail(failure);
      ++failed;
    };
    const uint64_t shards = set_.info().shards;
    for (uint64_t shard = 0; shard < shards; ++shard) {
      l3_data_error error{};
      if (l3_data_verify_shard(set_.get(), shard, &error) != L3_OK) fail(failure_of(error));
    }
    if (wanted_.against.empty()) return failed;
    sources_ = list_files(wanted_.against);
    for (const std::string& skipped : sources_.skipped) context_.console.note(skipped, kSkipped);
    for (const Failure& failure : sources_.left_out) fail(failure);
    for (const Failure& failure : sources_.refused) fail(failure);
    if (lacks_sources()) return failed;
    for (const SourceItem& item : sources_.items) source_of_.emplace(item.name, &item);
    // The extensions of metadata and labels may have capital letters, .JSON and .CLS.
    for (const SourceItem& item : sources_.items) {
      const size_t dot = item.name.rfind('.');
      const std::string extension = dot == item.name.npos ? "" : lower(item.name.substr(dot));
      if (extension == ".json" || extension == ".cls") source_of_.emplace(item.name.substr(0, dot) + extension, &item);
      // A label that became a sample did not become the label of one.
      if (extension == ".cls" && !set_.find(item.name)) labels_are_numbers_ = !sources_.classes.empty();
    }
    labels_are_numbers_ = labels_are_numbers_ || set_.info().classes == 0;
    if (labels_are_numbers_ && !has_classes_of_sources()) {
      fail({wanted_.against, std::nullopt, "its names of classes differ from those of the data set"});
    }
    if (wanted_.subset) return failed;
    Ignored ignored;
    for (const SourceItem& item : sources_.items) {
      if (set_.find(item.name)) continue;
      if (item.use != Use::image) {
        ignored.add(item.name);
      } else if (set_.find(page_name(item.name, 1))) {
        for_missing_pages(item, fail);
      } else {
        fail({sources_.display_name(item), std::nullopt, "is not in the data set (--subset allows this)"});
      }
    }
    const auto unsupported = ignored.failure(wanted_.against);
    if (unsupported && !wanted_.ignore_unsupported) fail(*unsupported);
    return failed;
  }

  // Then no sample can be compared.
  bool lacks_sources() const { return !sources_.refused.empty(); }

  std::optional<Failure> check(uint64_t index, l3_parallel parallel, Totals& done) const try {
    const l3::Sample sample = set_.sample(index);
    const std::string name = display_name(set_, sample);
    const Outcome<bridge::Buffer> file = read_sample(set_, index);
    if (!file) return file.failure();
    l3_data_error data_error{};
    if (l3_data_check_sample(set_.get(), index, file->bytes().data(), file->size(), &data_error) != L3_OK) {
      return Failure{name, std::nullopt, data_error.reason};
    }
    done = {1, 0, uint64_t{sample.width} * sample.height, 0, 0};
    if (!wanted_.against.empty() && sample.metadata_size > 0) {
      if (auto failure = compare_bytes(metadata_name(std::string(sample.name_text())), name, sample.metadata_text()))
        return failure;
    }
    if (!wanted_.against.empty() && sample.label != L3_NO_LABEL && labels_are_numbers_) {
      if (auto failure = compare_label(label_name(std::string(sample.name_text())), name, sample.label)) return failure;
    }
    if (!sample.is_image()) {
      if (wanted_.against.empty()) return std::nullopt;
      const std::span<const uint8_t> bytes = file->bytes();
      return compare_bytes(std::string(sample.name_text()), name,
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    l3_decode_options options = set_.decode_options();
    options.limits = wanted_.limits;
    options.parallel = parallel;
    const l3::Result<l3::File> opened = l3::File::open(file->bytes(), options);
    if (!opened) return failure_in(name, bridge::to_error(opened.error()));
    l3_error error{};
    if (opened->verify(&error) != L3_OK) return failure_in(name, bridge::to_error(error, *opened));
    if (wanted_.against.empty()) return std::nullopt;
    return compare(std::string(sample.name_text()), name, *opened);
  } catch (...) {
    return caught(path_text(wanted_.set));
  }

 private:
  // Also if the data set has no names, as after --labels none.
  bool has_classes_of_sources() const {
    const uint32_t count = set_.info().classes;
    if (count == 0) return true;
    if (count != sources_.classes.size()) return false;
    for (uint32_t label = 0; label < count; ++label) {
      if (sources_.classes[label] != l3_data_class(set_.get(), label)) return false;
    }
    return true;
  }

  // Compares a file that is kept as it is.
  std::optional<Failure> compare_bytes(const std::string& key, const std::string& name, std::string_view kept) const {
    const auto source = source_of_.find(key);
    if (source == source_of_.end()) return Failure{name, std::nullopt, key + " is missing in " + wanted_.against};
    const Outcome<bridge::Buffer> bytes = sources_.read(*source->second);
    if (!bytes) return bytes.failure();
    const bool same = std::equal(kept.begin(), kept.end(), bytes->bytes().begin(), bytes->bytes().end(),
                                 [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
    if (same) return std::nullopt;
    return Failure{name, std::nullopt, "differs from " + key + " in " + wanted_.against};
  }

  // Reports the missing pages of a file whose first page is in the data set.
  template <class Fail>
  void for_missing_pages(const SourceItem& item, const Fail& fail) const {
    const Outcome<uint32_t> pages = count_pages(sources_, item);
    if (!pages) fail(pages.failure());
    for (uint32_t page = 2; pages && page <= *pages; ++page) {
      if (!set_.find(page_name(item.name, page))) {
        fail({sources_.display_name(item), std::nullopt, "page " + std::to_string(page) + " is not in the data set"});
      }
    }
  }

  std::optional<Failure> compare_label(const std::string& key, const std::string& name, uint32_t label) const {
    const auto source = source_of_.find(key);
    if (source == source_of_.end()) return Failure{name, std::nullopt, key + " is missing in " + wanted_.against};
    const Outcome<bridge::Buffer> bytes = sources_.read(*source->second);
    if (!bytes) return bytes.failure();
    if (label_in(bytes->bytes()) == label) return std::nullopt;
    return Failure{name, std::nullopt, "its label differs from " + key + " in " + wanted_.against};
  }

  std::optional<Failure> compare(const std::string& key, const std::string& name, const l3::File& file) const {
    auto source = source_of_.find(key);
    formats::ReadOptions read = read_options(wanted_.limits);
    if (source == source_of_.end()) {
      if (const auto of_page = page_of_name(key)) {
        source = source_of_.find(of_page->first);
        read.page = of_page->second;
      }
    }
    if (source == source_of_.end())
      return Failure{name, std::nullopt, "the image of this name is missing in " + wanted_.against};
    const SourceItem& item = *source->second;
    const Outcome<bridge::Buffer> bytes = sources_.read(item);
    if (!bytes) return bytes.failure();
    formats::Result<formats::Image> expected = formats::read(bytes->bytes(), read);
    if (!expected) return failure_in(sources_.display_name(item), expected.error());
    formats::Image image;
    if (const auto error = bridge::decode_l3(file, image)) return failure_in(name, *error);
    const std::string difference = difference_from_source(image, std::move(*expected), wanted_.limits);
    if (difference.empty()) return std::nullopt;
    return Failure{name, std::nullopt, "differs from " + sources_.display_name(item) + ": " + difference};
  }

  const SetVerification& wanted_;
  const l3::DataSet& set_;
  Context& context_;
  Sources sources_;
  std::unordered_map<std::string, const SourceItem*> source_of_;
  bool labels_are_numbers_ = false;  // they come from .cls files, and their names, if they have any, from a tar
};

}  // namespace

uint64_t verify_data_set(const SetVerification& wanted, base::Parallel& parallel, Context& context) {
  Console& console = context.console;
  const Outcome<l3::DataSet> set = open_data_set(wanted.set);
  if (!set) {
    console.fail(set.failure());
    return 1;
  }
  SetVerifier verifier(wanted, *set, context);
  const uint64_t failed = verifier.check_whole();
  if (verifier.lacks_sources()) return failed;
  const l3_data_info info = set->info();
  Progress progress(console, info.samples, info.sample_bytes);
  // Several samples are verified in parallel. If there is only one, its tiles are.
  const bool single = info.samples == 1;
  const auto verify_one = [&](uint64_t index) {
    Totals done;
    const uint64_t bytes = set->sample(index).size;
    progress.begin(bytes);
    if (const auto failure = verifier.check(index, single ? parallel.for_l3() : l3_parallel{}, done)) {
      progress.fail(*failure, bytes);
    } else {
      progress.add(done, bytes);
    }
  };
  if (single) {
    verify_one(0);
  } else {
    parallel.for_each(info.samples, verify_one);
  }
  console.clear_status();
  const uint64_t all = failed + progress.totals().failed;
  if (wanted.say_result) {
    console.print((all == 0 ? "OK " : "FAILED ") + one_line(path_text(wanted.set)) + ": " +
                  std::to_string(progress.totals().files) + " samples OK" +
                  (all > 0 ? ", " + std::to_string(all) + (all == 1 ? " failure" : " failures") : std::string()));
  }
  return all;
}

}  // namespace tools
