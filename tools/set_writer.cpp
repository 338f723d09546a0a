#include "set_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/crc32.h"
#include "file_io.h"
#include "image_tree.h"
#include "loader/shard_files.h"

namespace tools {

namespace fs = std::filesystem;

namespace {

constexpr const char* kState = "state";
constexpr const char* kGrowing = "growing.l3s";
constexpr const char* kJournal = "journal";
constexpr const char* kLock = "lock";
constexpr const char* kRemedy = "; continue it with --resume, or start over with --force";

Failure system_failure(const std::string& file, const std::string& doing, int error) {
  return {file, std::nullopt, doing + ": " + std::strerror(error)};
}

std::string part_suffix(uint32_t part, uint32_t parts) {
  return parts > 1 ? std::string("-") + std::to_string(part) + "of" + std::to_string(parts) : "";
}

// The failure to write a file, or nothing if the error is 0.
std::optional<Failure> write_failure(const std::string& file, int error) {
  if (error == 0) return std::nullopt;
  return system_failure(file, "cannot write", error);
}

}  // namespace

void SourceChain::advance() {
  const SourceGroup& group = sources_.groups[count_++];
  std::string text(value_.begin(), value_.end());
  const auto begin = sources_.begin_of(group);
  for (auto item = begin; item != begin + static_cast<std::ptrdiff_t>(group.count); ++item) {
    text += item->name;
    text += '\0' + sources_.role_of(*item) + '\0';
    text +=
        std::to_string(item->size) + " " + std::to_string(item->modified) + " " + std::to_string(item->offset) + ";";
  }
  text += std::to_string(group.label);
  l3_digest(text.data(), text.size(), value_.data());
}

SetWriter::SetWriter(const SetTarget& target, const Sources& sources, Context& context)
    : target_(target), sources_(sources), context_(context), chain_(sources) {
  work_folder_ = in_folder(loader::kWorkFolder + part_suffix(target.part, target.parts));
}

std::string SetWriter::in_folder(const std::string& name) const { return join(target_.folder, name); }
std::string SetWriter::in_work_folder(const std::string& name) const { return join(work_folder_, name); }

std::string SetWriter::index_name() const {
  return target_.parts > 1 ? part_index_name(target_.part, target_.parts) : loader::kIndexFile;
}

std::string SetWriter::shard_name(uint64_t number) const {
  return loader::shard_file_name("shard" + part_suffix(target_.part, target_.parts) + "-", number);
}

std::optional<Failure> SetWriter::take_lock() {
  std::error_code error;
  fs::create_directories(work_folder_, error);
  if (error) return Failure{work_folder_, std::nullopt, "cannot create: " + error.message()};
  const std::string path = in_work_folder(kLock);
  const int taking = lock_.take(path);
  if (taking == EWOULDBLOCK) return Failure{target_.folder, std::nullopt, loader::kBusy};
  if (taking != 0) return system_failure(path, "cannot write", taking);
  return std::nullopt;
}

std::optional<Failure> SetWriter::begin() {
  const bool had_work_folder = loader::path_exists(work_folder_);
  if (auto failure = take_lock()) return failure;
  if (auto failure = inspect_existing()) {
    if (!had_work_folder) remove_work_folder();
    return failure;
  }
  if (was_whole_) {
    remove_work_folder();
    return std::nullopt;
  }
  if (loader::path_exists(in_work_folder(kState))) return resume();
  state_.settings = target_.settings;
  if (auto failure = write_state()) return failure;
  return open_shard(false);
}

std::optional<Failure> SetWriter::inspect_existing() {
  std::error_code error;
  const bool whole = fs::is_regular_file(in_folder(index_name()), error);
  const bool unfinished = loader::path_exists(in_work_folder(kState));
  const std::vector<std::string> shards =
      loader::shards_in(target_.folder, "shard" + part_suffix(target_.part, target_.parts) + "-");
  if (target_.existing == Existing::replace) {
    remove_all();
    return std::nullopt;
  }
  if (whole && (target_.existing == Existing::resume)) {
    was_whole_ = true;
    return std::nullopt;
  }
  if (whole) return Failure{target_.folder, std::nullopt, "contains a data set already; to replace it, use --force"};
  if (unfinished && target_.existing == Existing::refuse) {
    return Failure{target_.folder, std::nullopt, std::string("contains an unfinished data set") + kRemedy};
  }
  if (!unfinished && !shards.empty()) {
    return Failure{in_folder(shards.front()), std::nullopt,
                   "exists already, without an index; start over with --force"};
  }
  if (const std::string other = unfinished ? "" : loader::file_of_others(target_.folder); !other.empty()) {
    return Failure{target_.folder, std::nullopt,
                   "contains other files, such as " + other +
                       "; use a new folder, or add --force to write here and keep these files"};
  }
  return std::nullopt;
}

// Removes only files whose names were made here.
void SetWriter::remove_all() {
  std::error_code error;
  fs::remove(in_folder(index_name()), error);
  if (target_.parts > 1) fs::remove(in_folder(loader::kIndexFile), error);
  for (const std::string& name :
       loader::shards_in(target_.folder, "shard" + part_suffix(target_.part, target_.parts) + "-")) {
    fs::remove(in_folder(name), error);
  }
  for (const char* name : {kState, kGrowing, kJournal}) fs::remove(in_work_folder(name), error);
}

void SetWriter::remove_work_folder() {
  shard_.reset();
  journal_.reset();
  std::error_code error;
  remove_abandoned_of({in_work_folder(kState), in_folder(index_name())});
  // Shards of a writer that was killed (loader/data_set_writer.h).
  for (const std::string& name : loader::shards_in(work_folder_, "shard-")) fs::remove(in_work_folder(name), error);
  for (const char* name : {kJournal, kGrowing, kState, kLock}) fs::remove(in_work_folder(name), error);
  fs::remove(work_folder_, error);
}

std::optional<Failure> SetWriter::compare_settings() const {
  if (state_.settings == target_.settings) return std::nullopt;
  std::string_view before = state_.settings, now = target_.settings;
  while (!before.empty() || !now.empty()) {
    const std::string_view a = before.substr(0, before.find('\n')), b = now.substr(0, now.find('\n'));
    if (a != b) {
      // All settings except these have the names of options.
      const bool is_option = !a.starts_with("version=") && !a.starts_with("sources=");
      const std::string dashes = is_option ? "--" : "";
      return Failure{target_.folder, std::nullopt,
                     std::string("was begun with other ") + (is_option ? "options" : "input") + ": " + dashes +
                         std::string(a) + ", now " + dashes + std::string(b) +
                         "; use the same, or start over with --force"};
    }
    before.remove_prefix(std::min(before.size(), a.size() + 1));
    now.remove_prefix(std::min(now.size(), b.size() + 1));
  }
  return std::nullopt;
}

std::optional<Failure> SetWriter::resume() {
  const Outcome<bridge::Buffer> file = read_file(in_work_folder(kState));
  if (!file) return file.failure();
  std::optional<SetState> state = state_of(file->bytes());
  if (!state) {
    return Failure{in_work_folder(kState), std::nullopt, "is damaged; start over with --force"};
  }
  state_ = *std::move(state);
  name_models();
  if (auto failure = compare_settings()) return failure;
  remove_abandoned_of({in_work_folder(kState), in_folder(index_name())});
  const Failure changed{target_.folder, std::nullopt,
                        "sources that were converted already have changed, or others were added or removed before "
                        "them; start over with --force"};
  if (state_.next > sources_.groups.size()) return changed;
  while (chain_.count() < state_.next) chain_.advance();
  if (chain_.value() != state_.sources) return changed;
  for (const loader::ShardSummary& shard : state_.shards) {
    if (listed_size(in_folder(shard.file)) != shard.bytes) {
      return Failure{in_folder(shard.file), std::nullopt, "is missing or has changed; start over with --force"};
    }
  }
  failures_ = state_.failures;
  done_ = state_.next;
  kept_ = state_.totals;
  // The last run may have ended after the shard got its name and before the state was written.
  const std::string whole = in_folder(shard_name(state_.shards.size()));
  if (loader::path_exists(whole) && !loader::path_exists(in_work_folder(kGrowing)) &&
      std::rename(whole.c_str(), in_work_folder(kGrowing).c_str()) != 0) {
    return system_failure(whole, "cannot rename", errno);
  }
  const bool has_journal =
      loader::path_exists(in_work_folder(kJournal)) && loader::path_exists(in_work_folder(kGrowing));
  if (auto failure = open_shard(has_journal)) return failure;
  if (!has_journal) return std::nullopt;
  return read_journal();
}

std::optional<Failure> SetWriter::read_journal() {
  const std::string path = in_work_folder(kJournal);
  const Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  std::span<const uint8_t> rest = file->bytes();
  uint64_t kept_bytes = 0;
  const bool has_head = head_is_there();
  while (has_head && done_ < sources_.groups.size()) {
    std::span<const uint8_t> behind = rest;
    const auto entry = take_entry(behind);
    if (!entry || !samples_are_there(*entry)) break;
    chain_.advance();
    if (chain_.value() != entry->sources) {
      return Failure{sources_.display_name(*sources_.begin_of(sources_.groups[done_])), std::nullopt,
                     "was converted already, but it or a file next to it has changed; start over with --force"};
    }
    rest = behind;
    kept_bytes = file->size() - rest.size();
    since_state_.add(entry->totals);
    kept_.add(entry->totals);
    if (entry->failure) failures_.push_back(*entry->failure);
    for (const loader::NewSample& sample : entry->samples) builder_->add(sample, model_of(sample));
    ++done_;
  }
  if (auto failure = write_failure(journal_->path(), journal_->cut(kept_bytes))) return failure;
  if (builder_->samples() > 0) return write_failure(shard_->path(), shard_->cut(builder_->end()));
  if (auto failure = write_failure(shard_->path(), shard_->cut(0))) return failure;  // its head may be missing, too
  shard_->append(loader::ShardBuilder::head());
  return write_failure(shard_->path(), shard_->put());
}

bool SetWriter::head_is_there() const {
  const Outcome<bridge::Buffer> start = read_start(in_work_folder(kGrowing), loader::ShardBuilder::head().size());
  return start && std::ranges::equal(start->bytes(), loader::ShardBuilder::head());
}

// Whether the growing shard contains the samples of a journal entry. After a power failure it may not.
bool SetWriter::samples_are_there(const JournalEntry& entry) {
  RandomFile file;
  if (file.open(in_work_folder(kGrowing))) return false;
  uint64_t end = builder_->end(), begin = builder_->next();
  for (const loader::NewSample& sample : entry.samples) {
    if (begin > file.size() || sample.size > file.size() - begin) return false;
    bridge::Buffer bytes;  // with the padding before the sample
    const uint64_t padding = begin - end;
    uint8_t* const to = bytes.reset(static_cast<size_t>(padding + sample.size));
    if (file.read(end, {to, bytes.size()})) return false;
    const auto zeros = bytes.bytes().first(padding);
    if (std::ranges::any_of(zeros, [](uint8_t byte) { return byte != 0; })) return false;
    if (base::crc32(bytes.bytes().subspan(padding)) != sample.check) return false;
    end = begin + sample.size;
    begin = loader::ShardBuilder::next_after(end);
  }
  return true;
}

std::optional<Failure> SetWriter::open_shard(bool keep_contents) {
  builder_.emplace();
  since_state_ = {};
  shard_ = std::make_unique<loader::GrowingFile>();
  journal_ = std::make_unique<loader::GrowingFile>();
  if (const int error = journal_->open(in_work_folder(kJournal), keep_contents)) {
    return write_failure(journal_->path(), error);
  }
  if (const int error = shard_->open(in_work_folder(kGrowing), keep_contents)) {
    return write_failure(shard_->path(), error);
  }
  if (!keep_contents) shard_->append(loader::ShardBuilder::head());
  return write_failure(shard_->path(), shard_->put());
}

std::span<const uint8_t> SetWriter::model_of(const loader::NewSample& sample) const {
  if (!sample.model) return {};
  const auto at = std::find(model_names_.begin(), model_names_.end(), *sample.model);
  if (at == model_names_.end()) return {};
  return state_.models[static_cast<size_t>(at - model_names_.begin())];
}

void SetWriter::name_models() {
  model_names_.resize(state_.models.size());
  for (size_t i = 0; i < state_.models.size(); ++i) {
    l3_digest(state_.models[i].data(), state_.models[i].size(), model_names_[i].data());
  }
}

std::optional<Failure> SetWriter::set_models(std::vector<std::vector<uint8_t>> models) {
  state_.models = std::move(models);
  state_.trained = true;
  name_models();
  return write_state();
}

std::optional<Failure> SetWriter::add(NewGroup group) {
  loader::GroupSize size;
  for (const NewPart& part : group.parts) size.add(part.sample, model_of(part.sample).size());
  if (!loader::takes(*builder_, size, target_.shard_bytes)) {
    if (auto failure = end_shard()) return failure;
    if (auto failure = open_shard(false)) return failure;
  }
  JournalEntry entry;
  chain_.advance();
  entry.sources = chain_.value();
  entry.totals = group.totals;
  entry.failure = group.failure;
  for (NewPart& part : group.parts) {
    loader::append_sample(*builder_, *shard_, part.sample, part.bytes.bytes(), model_of(part.sample));
    entry.samples.push_back(std::move(part.sample));
  }
  entries_.emplace_back(shard_->size(), to_bytes(entry));
  if (group.failure) failures_.push_back(*group.failure);
  since_state_.add(entry.totals);
  ++done_;
  return shard_->has_much_to_put() ? put() : std::nullopt;
}

std::optional<Failure> SetWriter::put() {
  auto failure = write_failure(shard_->path(), shard_->put());
  for (const auto& [end, entry] : entries_) {
    if (end <= shard_->written()) journal_->append(entry);
  }
  entries_.clear();
  auto of_journal = write_failure(journal_->path(), journal_->put());
  return failure ? failure : of_journal;
}

std::optional<Failure> SetWriter::end_shard() {
  if (builder_->samples() > 0) {
    loader::ShardSummary summary;
    const std::vector<uint8_t> end = builder_->finish(summary);
    shard_->append(end);
    if (auto failure = put()) return failure;
    if (auto failure = write_failure(shard_->path(), shard_->flush())) return failure;
    summary.file = shard_name(state_.shards.size());
    shard_.reset();
    const std::string path = in_folder(summary.file);
    if (std::rename(in_work_folder(kGrowing).c_str(), path.c_str()) != 0) {
      return system_failure(path, "cannot write", errno);
    }
    flush_folder_of(path);
    state_.shards.push_back(std::move(summary));
  }
  state_.next = done_;
  state_.sources = chain_.value();
  state_.totals.add(since_state_);
  state_.failures = failures_;
  return write_state();
}

std::optional<Failure> SetWriter::write_state() {
  return write_file(in_work_folder(kState), to_bytes(state_), Flush::to_disk, context_.unfinished);
}

std::optional<Failure> SetWriter::finish(const std::vector<std::string>& classes) {
  if (auto failure = write_index(classes)) return failure;
  remove_work_folder();
  return std::nullopt;
}

std::optional<Failure> SetWriter::write_index(const std::vector<std::string>& classes) {
  loader::DataSetIndex index;
  index.classes = classes;
  index.shards = state_.shards;
  std::string json;
  if (target_.parts > 1) {
    json = to_json(PartIndex{target_.part, target_.parts, target_.settings, std::move(index)});
  } else {
    json = loader::to_json(index);
  }
  return write_file(in_folder(index_name()), {reinterpret_cast<const uint8_t*>(json.data()), json.size()},
                    Flush::to_disk, context_.unfinished);
}

uint64_t SetWriter::bytes() const {
  uint64_t sum = 0;
  for (const loader::ShardSummary& shard : state_.shards) sum += shard.bytes;
  return sum;
}

}  // namespace tools
