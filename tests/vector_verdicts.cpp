// What libl3 says of files, for vectors_test.py to compare:
//
//     vector_verdicts MODEL... < NAMES        a file name on each line; the models that the files may name
//
// prints `targets NAME...`, then a line for each file: its name, what decoding says, what verifying says. That is the
// first half of the SHA-256 of the PAM file (section 11) for one that decodes, "ok" for one that verifies, "LIMIT",
// "MODEL", or `REJECT offset N: reason`. All processor targets of this machine must say the same, give the same
// samples, and every region must be a crop of the whole: where not, the program says so and exits with 1.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "codec_testing.h"
#include "container/sha256.h"
#include "pam.h"

namespace {

using codec_testing::Exact;
using codec_testing::ForcedTarget;
using codec_testing::targets;
using drawing::Bytes;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "vector_verdicts: %s\n", why.c_str());
  std::exit(1);
}

Bytes read(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in) stop("cannot read " + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string words_of(const l3_error& error) {
  if (error.status == L3_OK) return "ok";
  if (error.status == L3_ERROR_LIMIT) return "LIMIT";
  if (error.status == L3_ERROR_MODEL) return "MODEL";
  std::string words = "REJECT offset " + std::to_string(error.offset) + ": " + error.reason;
  if (error.tile != L3_NO_TILE) words += " (tile " + std::to_string(error.tile) + ")";
  return words;
}

// Of all models.
l3_decode_options options = l3_decode_options_init();

// The samples of a file, where it decodes, and what was said.
struct Verdict {
  std::string decoded, verified;
  Bytes samples;

  bool operator==(const Verdict&) const = default;
};

// An opened file must say the same as the calls that take bytes.
void check_opened(const Exact& file, const Verdict& verdict) {
  l3_file* opened = nullptr;
  l3_error error{};
  if (l3_open(file.data(), file.size(), &options, nullptr, 0, &opened, &error) == L3_OK) {
    Bytes samples(verdict.samples.size());
    if (verdict.decoded == "ok") {
      (void)!l3_file_decode(opened, samples.data(), samples.size(), 0, &error);
      if (words_of(error) != "ok" || samples != verdict.samples) stop("opened, the file decodes differently");
    }
    (void)!l3_file_verify(opened, &error);
  }
  // Limits apply once a file is open, so damage may come first.
  const std::string words = words_of(error);
  if (words != verdict.verified && (verdict.verified != "LIMIT" || words == "ok")) {
    stop("opened, the file is '" + words + "', not '" + verdict.verified + "'");
  }
  l3_close(opened);
}

Verdict judge(const Exact& file) {
  Verdict verdict;
  l3_error error{};
  l3_info info = l3_info_init();
  Bytes samples(1);
  if (l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) == L3_OK &&
      l3_check(file.data(), file.size(), nullptr, nullptr) == L3_OK) {
    samples.resize(info.image_bytes);
  }
  if (l3_decode(file.data(), file.size(), &options, samples.data(), samples.size(), 0, &error) == L3_OK) {
    verdict.samples = std::move(samples);
  }
  verdict.decoded = words_of(error);
  (void)!l3_verify(file.data(), file.size(), &options, &error);
  verdict.verified = words_of(error);
  check_opened(file, verdict);
  return verdict;
}

// Regions of an image that decodes: corners, and across the middle.
void check_regions(const std::string& name, const Exact& file, const Bytes& samples) {
  l3_info info = l3_info_init();
  if (l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) != L3_OK) stop(name + ": no info");
  const size_t pixel = samples.size() / info.width / info.height;
  const uint32_t half_width = (info.width + 1) / 2, half_height = (info.height + 1) / 2;
  const struct {
    uint32_t x, y, width, height;
  } regions[] = {{0, 0, 1, 1},
                 {info.width - 1, info.height - 1, 1, 1},
                 {info.width / 4, info.height / 4, half_width, half_height},
                 {info.width - half_width, 0, half_width, info.height},
                 {0, info.height - half_height, info.width, half_height}};
  for (const auto& region : regions) {
    const size_t row = region.width * pixel;
    const Exact out(row * region.height);
    if (l3_decode_region(file.data(), file.size(), region.x, region.y, region.width, region.height, &options,
                         out.data(), out.size(), 0, nullptr) != L3_OK) {
      stop(name + ": a region does not decode");
    }
    for (size_t y = 0; y < region.height; ++y) {
      const uint8_t* whole = &samples[((region.y + y) * info.width + region.x) * pixel];
      if (std::memcmp(out.data() + y * row, whole, row) != 0) stop(name + ": a region is no crop of the whole");
    }
  }
}

std::string hash_of(const Exact& file, Bytes samples) {
  l3_info info = l3_info_init();
  (void)!l3_read_info(file.data(), file.size(), nullptr, &info, nullptr);
  const std::string header = pam::header(info);
  pam::reorder(info, samples);
  l3::Sha256 sha;
  sha.update(reinterpret_cast<const uint8_t*>(header.data()), header.size());
  sha.update(samples.data(), samples.size());
  uint8_t digest[l3::Sha256::kBytes];
  sha.finish(digest);
  std::string text;
  for (size_t i = 0; i < sizeof(digest) / 2; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof(pair), "%02x", digest[i]);
    text += pair;
  }
  return text;
}

void judge_file(const std::string& name) {
  const Exact file(read(name));
  Verdict first;
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    Verdict verdict = judge(file);
    if (verdict.decoded == "ok") check_regions(name, file, verdict.samples);
    if (target == targets().front()) {
      first = std::move(verdict);
    } else if (verdict.decoded != first.decoded || verdict.verified != first.verified) {
      stop(name + ": " + target + " says " + verdict.decoded + " / " + verdict.verified + ", not " + first.decoded +
           " / " + first.verified);
    } else if (verdict.samples != first.samples) {
      stop(name + ": " + target + " gives other samples");
    }
  }
  if (first.decoded == "ok") first.decoded = hash_of(file, std::move(first.samples));
  std::printf("%s\t%s\t%s\n", name.c_str(), first.decoded.c_str(), first.verified.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<l3_model*> models;
  for (int i = 1; i < count; ++i) {
    const Bytes bytes = read(arguments[i]);
    models.push_back(nullptr);
    if (l3_open_model(bytes.data(), bytes.size(), &models.back(), nullptr) != L3_OK) {
      stop(std::string(arguments[i]) + " is no model");
    }
  }
  options.models = models.data();
  options.model_count = models.size();
  std::printf("targets");
  for (const char* target : targets()) std::printf(" %s", target);
  std::printf("\n");
  std::string name;
  while (std::getline(std::cin, name)) judge_file(name);
  for (l3_model* model : models) l3_close_model(model);
  return 0;
}
