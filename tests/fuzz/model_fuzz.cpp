// Any bytes as a model: two of its length, the model, and after it the payload of a dense tile whose file names it. All
// processor targets say the same.
#include <algorithm>
#include <memory>

#include "by_hand.h"
#include "harness.h"

namespace {

using fuzz::Bytes;
using fuzz::Said;
using fuzz::said;

struct Close {
  void operator()(l3_model* model) const { l3_close_model(model); }
};

constexpr uint32_t kWidth = 20, kHeight = 9;

struct Answers {
  Said opened, verified;

  bool operator==(const Answers&) const = default;
};

// A file of one tile, whose model has that name.
Bytes file_of(const l3_model_info& model, Bytes payload) {
  by_hand::Parts parts;
  const uint8_t parameters = static_cast<uint8_t>(payload.empty() ? 0 : payload[0] % 6);
  parts.header = by_hand::header(kWidth, kHeight, static_cast<l3_colour>(model.channels - 1), 8);
  parts.header[12] = 1;
  parts.name.assign(model.name, model.name + sizeof(model.name));
  payload.resize(by_hand::pad(std::max<size_t>(payload.size(), size_t{4} << parameters)));
  parts.tiles.push_back({3, parameters, {}, std::move(payload)});
  return by_hand::put_together(parts);
}

Answers ask(const Bytes& bytes, const Bytes& payload) {
  Answers answers;
  l3_error error{};
  l3_model* opened = nullptr;
  answers.opened = said(l3_open_model(bytes.data(), bytes.size(), &opened, &error), error);
  FUZZ_EXPECT(answers.opened.ok() == (opened != nullptr));
  if (opened == nullptr) return answers;
  const std::unique_ptr<l3_model, Close> model(opened);
  l3_model_info info = l3_model_info_init();
  FUZZ_EXPECT(l3_describe_model(opened, &info, nullptr) == L3_OK);
  FUZZ_EXPECT(info.size == bytes.size() && std::equal(bytes.begin(), bytes.end(), info.bytes));
  const Bytes file = file_of(info, payload);
  FUZZ_EXPECT(l3_verify(file.data(), file.size(), nullptr, nullptr) == L3_ERROR_MODEL);
  const l3_model* const models[] = {opened};
  l3_decode_options options = l3_decode_options_init();
  options.models = models;
  options.model_count = 1;
  answers.verified = said(l3_verify(file.data(), file.size(), &options, &error), error);
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(size - 2, data[0] | size_t{data[1]} << 8);
  const Bytes model = fuzz::exactly(data + 2, length);
  const Bytes payload = fuzz::exactly(data + 2 + length, size - 2 - length);
  fuzz::same_on_all_targets([&] { return ask(model, payload); });
  return 0;
}
