// Models apart from files: opened, supplied by name, trained, and the default ones.
#include <algorithm>
#include <memory>
#include <thread>

#include "by_hand.h"
#include "codec_testing.h"
#include "container/sha256.h"

namespace {

using codec_testing::Bytes;
using codec_testing::encode;
using codec_testing::Exact;
using codec_testing::ForcedTarget;
using codec_testing::info_of;
using codec_testing::options_of;
using codec_testing::targets;
using drawing::Drawing;
using drawing::Pattern;

constexpr l3_colour kColours[] = {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA};

struct Close {
  void operator()(l3_model* model) const { l3_close_model(model); }
  void operator()(l3_training* training) const { l3_close_training(training); }
};
using Model = std::unique_ptr<l3_model, Close>;
using Training = std::unique_ptr<l3_training, Close>;

Model open_model(const Bytes& bytes) {
  l3_model* model = nullptr;
  l3_error error{};
  const Exact exact(bytes);
  EXPECT_EQ(l3_open_model(exact.data(), exact.size(), &model, &error), L3_OK) << error.reason;
  return Model(model);
}
l3_model_info described(const Model& model) {
  l3_model_info info = l3_model_info_init();
  EXPECT_EQ(l3_describe_model(model.get(), &info, nullptr), L3_OK);
  return info;
}
Bytes bytes_of(const Model& model) {
  const l3_model_info info = described(model);
  return {info.bytes, info.bytes + info.size};
}
Bytes default_bytes(uint32_t number) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_default_model(number, &bytes, &size), L3_OK);
  return {bytes, bytes + size};
}

Drawing drawn(l3_colour colour, uint64_t seed = 1, drawing::Size size = {40, 30}) {
  return drawing::draw(size, {colour, 8}, Pattern::natural, seed);
}

// A model of some drawings.
Model trained(l3_colour colour, const l3_train_options& options = l3_train_options_init(), uint32_t images = 12) {
  l3_training* begun = nullptr;
  l3_error error{};
  EXPECT_EQ(l3_start_training(&options, &begun, &error), L3_OK) << error.reason;
  const Training training(begun);
  for (uint32_t i = 0; i < images; ++i) {
    const Drawing d = drawn(colour, 100 + i);
    const l3_image image = d.image();
    EXPECT_EQ(l3_add_to_training(training.get(), &image, &error), L3_OK) << error.reason;
  }
  l3_model* model = nullptr;
  EXPECT_EQ(l3_finish_training(training.get(), &model, &error), L3_OK) << error.reason;
  return Model(model);
}

l3_train_options complete() {
  l3_train_options options = l3_train_options_init();
  options.complete = 1;
  return options;
}

l3_encode_options by_name(const Model& model, l3_method method = L3_METHOD_DENSE) {
  l3_encode_options options = options_of(method);
  options.named_model = model.get();
  return options;
}

struct With {
  explicit With(const Model& model) : handle(model.get()) {
    options.models = &handle;
    options.model_count = 1;
  }
  const l3_model* handle;
  l3_decode_options options = l3_decode_options_init();
};

TEST(Models, AreNamedByTheirBytes) {
  for (uint32_t number = 1; number <= 8; ++number) {
    const Bytes bytes = default_bytes(number);
    const Model model = open_model(bytes);
    const l3_model_info info = described(model);
    EXPECT_EQ(bytes_of(model), bytes);
    EXPECT_EQ(info.channels, (number - 1) % 4 + 1);
    EXPECT_EQ(info.bits, 8u);
    EXPECT_EQ(info.kind, number > 4 ? 1u : 0u);
    l3::Sha256 sha;
    sha.update(bytes.data(), bytes.size());
    uint8_t whole[32];
    sha.finish(whole);
    EXPECT_TRUE(std::equal(info.name, info.name + 16, whole));
  }
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  for (const uint32_t number : {0u, 9u, UINT32_MAX}) {
    EXPECT_EQ(l3_default_model(number, &bytes, &size), L3_ERROR_ARGUMENT);
  }
  EXPECT_EQ(l3_default_model(1, nullptr, &size), L3_ERROR_ARGUMENT);
}

TEST(Models, AreVerifiedWhenTheyAreOpened) {
  const Bytes good = default_bytes(3);
  l3_model* model = nullptr;
  l3_error error{};
  for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 97) {
    const Exact cut(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    EXPECT_NE(l3_open_model(cut.data(), cut.size(), &model, &error), L3_OK) << size;
    EXPECT_EQ(model, nullptr);
  }
  for (const uint8_t channels : Bytes{0, 1, 4, 5, 255}) {
    Bytes bytes = good;
    bytes[1] = channels;
    EXPECT_EQ(l3_open_model(bytes.data(), bytes.size(), &model, &error), L3_ERROR_CORRUPT);
  }
  Bytes bytes = good;
  bytes[0] = 77;
  EXPECT_EQ(l3_open_model(bytes.data(), bytes.size(), &model, &error), L3_ERROR_UNSUPPORTED);
  EXPECT_EQ(l3_open_model(nullptr, 8, &model, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_open_model(good.data(), good.size(), nullptr, &error), L3_ERROR_ARGUMENT);
  l3_close_model(nullptr);
  l3_close_training(nullptr);
}

TEST(NamedModels, AreNeededByWhoDecodes) {
  for (const l3_colour colour : kColours) {
    const Model model = trained(colour, complete());
    const Drawing d = drawn(colour);
    const Exact file(encode(d, by_name(model)));
    const l3_info info = info_of(Bytes(file.data(), file.data() + file.size()));
    EXPECT_EQ(info.model_origin, static_cast<uint32_t>(L3_MODEL_NAMED));
    EXPECT_EQ(info.required_features, 1u);
    EXPECT_TRUE(std::equal(info.model_name, info.model_name + 16, described(model).name));
    const Model other = open_model(default_bytes(4));
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      const Exact out(d.pixels.size());
      l3_error error{};
      const With wrong(other);
      for (const l3_decode_options* options : {static_cast<const l3_decode_options*>(nullptr), &wrong.options}) {
        EXPECT_EQ(l3_decode(file.data(), file.size(), options, out.data(), out.size(), 0, &error), L3_ERROR_MODEL);
        EXPECT_EQ(error.offset, info.head_bytes == 16 ? 12u : 64u);
        EXPECT_EQ(l3_verify(file.data(), file.size(), options, &error), L3_ERROR_MODEL);
      }
      const With with(model);
      EXPECT_EQ(l3_decode(file.data(), file.size(), &with.options, out.data(), out.size(), 0, &error), L3_OK);
      EXPECT_EQ(Bytes(out.data(), out.data() + out.size()), d.pixels);
      EXPECT_EQ(l3_verify(file.data(), file.size(), &with.options, &error), L3_OK);
      EXPECT_EQ(
          l3_decode_region(file.data(), file.size(), 1, 2, 3, 4, &with.options, out.data(), out.size(), 0, &error),
          L3_OK);
      l3_sizes sizes = l3_sizes_init();
      EXPECT_EQ(l3_measure(file.data(), file.size(), nullptr, &sizes, &error), L3_ERROR_MODEL);
      EXPECT_EQ(l3_measure(file.data(), file.size(), &with.options, &sizes, &error), L3_OK);
      EXPECT_EQ(sizes.head + sizes.index + sizes.model + sizes.sections + sizes.payloads, file.size());
    }
    EXPECT_EQ(l3_check(file.data(), file.size(), nullptr, nullptr), L3_OK);
    uint64_t dense = 0;
    EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_DENSE, &dense, nullptr), L3_OK);
    EXPECT_EQ(dense, 1u);
  }
}

TEST(NamedModels, OfOtherChannelsAreRefused) {
  const Model of_one = open_model(default_bytes(1)), of_three = open_model(default_bytes(3));
  const Drawing d = drawn(L3_COLOUR_RGB);
  const l3_image image = d.image();
  const l3_encode_options options = by_name(of_one);
  Bytes out(1 << 20);
  size_t written = 0;
  EXPECT_EQ(l3_encode(&image, &options, out.data(), out.size(), &written, nullptr), L3_ERROR_ARGUMENT);

  l3_encode_options named = by_name(of_three);
  named.model_origin = L3_MODEL_NAMED;
  by_hand::Parts parts = by_hand::take_apart(encode(d, named));
  const l3_model_info info = described(of_one);
  parts.name.assign(info.name, info.name + 16);
  const Bytes file = by_hand::put_together(parts);
  const With with(of_one);
  l3_error error{};
  EXPECT_EQ(l3_verify(file.data(), file.size(), &with.options, &error), L3_ERROR_CORRUPT);
  EXPECT_EQ(error.offset, 64u);
}

TEST(NamedModels, AreNamedOnlyWhereTheyHelp) {
  const Model model = open_model(default_bytes(1));
  const Drawing d = drawing::draw({64, 64}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  EXPECT_EQ(info_of(encode(d, by_name(model, L3_METHOD_AUTO))).model_origin, static_cast<uint32_t>(L3_MODEL_NONE));
}

TEST(NamedModels, GiveWayWhereTheyHaveNoCode) {
  // Of flat images: most symbols have no code.
  l3_training* begun = nullptr;
  ASSERT_EQ(l3_start_training(nullptr, &begun, nullptr), L3_OK);
  const Training training(begun);
  const Drawing flat = drawing::draw({64, 64}, {L3_COLOUR_GRAY, 8}, Pattern::flat);
  const l3_image image = flat.image();
  ASSERT_EQ(l3_add_to_training(training.get(), &image, nullptr), L3_OK);
  l3_model* made = nullptr;
  ASSERT_EQ(l3_finish_training(training.get(), &made, nullptr), L3_OK);
  const Model model(made);
  const Drawing d = drawn(L3_COLOUR_GRAY);
  l3_encode_options options = by_name(model);
  const Bytes file = encode(d, options);
  EXPECT_NE(info_of(file).model_origin, static_cast<uint32_t>(L3_MODEL_NAMED));
  EXPECT_EQ(codec_testing::decode(file), d.pixels);
  options.model_origin = L3_MODEL_NAMED;
  EXPECT_EQ(info_of(encode(d, options)).model_origin, static_cast<uint32_t>(L3_MODEL_NAMED));
}

TEST(NamedModels, GiveSmallImagesNoOtherAtLowEfforts) {
  // At effort 4 a model that is fitted to the image pays.
  const Model model = open_model(default_bytes(3));
  const Drawing d = drawn(L3_COLOUR_RGB, 1, {400, 300});
  l3_encode_options options = by_name(model);
  options.effort = 3;
  EXPECT_EQ(info_of(encode(d, options)).model_origin, static_cast<uint32_t>(L3_MODEL_NAMED));
  options.effort = 4;
  EXPECT_EQ(info_of(encode(d, options)).model_origin, static_cast<uint32_t>(L3_MODEL_OWN));
}

TEST(NamedModels, EncodeTheSameOnAllThreads) {
  const Bytes bytes = default_bytes(3);
  const Drawing d = drawn(L3_COLOUR_RGB);
  const Bytes expected = encode(d, by_name(open_model(bytes)));
  const Model model = open_model(bytes);
  Bytes files[4];
  std::vector<std::thread> threads;
  for (Bytes& file : files) threads.emplace_back([&] { file = encode(d, by_name(model)); });
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& file : files) EXPECT_EQ(file, expected);
  EXPECT_EQ(encode(d, by_name(model)), expected);
}

TEST(NamedModels, DoNotGoWithOtherChoices) {
  const Model model = open_model(default_bytes(3));
  const Bytes bytes = default_bytes(3);
  const Drawing d = drawn(L3_COLOUR_RGB);
  const l3_image image = d.image();
  const auto is_refused = [&](const l3_encode_options& options) { return l3_encode_bound(&image, &options) == 0; };
  l3_encode_options options = by_name(model);
  EXPECT_FALSE(is_refused(options));
  options.model_origin = L3_MODEL_NAMED;
  EXPECT_FALSE(is_refused(options));
  options.model_origin = L3_MODEL_OWN;
  EXPECT_TRUE(is_refused(options));
  options.model_origin = L3_MODEL_NONE;
  options.model = bytes.data();
  options.model_size = bytes.size();
  EXPECT_TRUE(is_refused(options));
  options.named_model = nullptr;
  EXPECT_FALSE(is_refused(options));
  options.model_origin = L3_MODEL_DEFAULT;
  EXPECT_TRUE(is_refused(options));
  options = options_of(L3_METHOD_AUTO);
  options.model_origin = L3_MODEL_NAMED;
  EXPECT_TRUE(is_refused(options));
  options.model_origin = 4;
  EXPECT_TRUE(is_refused(options));
  l3_decode_options decode = l3_decode_options_init();
  decode.model_count = 1;
  const Bytes file = encode(d);
  EXPECT_EQ(l3_verify(file.data(), file.size(), &decode, nullptr), L3_ERROR_ARGUMENT);
}

TEST(DefaultModels, AreForSmallImages) {
  for (const l3_colour colour : kColours) {
    const Drawing d = drawn(colour);
    l3_encode_options options = options_of(L3_METHOD_DENSE);
    options.model_origin = L3_MODEL_DEFAULT;
    const Bytes by_default = encode(d, options);
    const l3_info info = info_of(by_default);
    ASSERT_EQ(info.model_origin, static_cast<uint32_t>(L3_MODEL_DEFAULT));
    EXPECT_TRUE(info.default_model == info.channels || info.default_model == info.channels + 4);
    EXPECT_EQ(codec_testing::decode(by_default), d.pixels);
    // A handle of it does the same.
    const With with(open_model(default_bytes(info.channels)));
    EXPECT_EQ(l3_verify(by_default.data(), by_default.size(), nullptr, nullptr), L3_OK);
  }
}

TEST(DefaultModels, AreTakenWhereTheyMakeTheSmallerFile) {
  for (const l3_colour colour : kColours) {
    for (const drawing::Size size : {drawing::Size{5, 4}, drawing::Size{40, 30}, drawing::Size{150, 130}}) {
      for (const l3_method method : {L3_METHOD_AUTO, L3_METHOD_DENSE}) {
        const Drawing d = drawn(colour, 7, size);
        l3_encode_options options = options_of(method, 0, 0, 1);
        const size_t either = encode(d, options).size();
        options.model_origin = L3_MODEL_DEFAULT;
        const size_t by_default = encode(d, options).size();
        options.model_origin = L3_MODEL_OWN;
        const size_t own = encode(d, options).size();
        EXPECT_EQ(either, std::min(own, by_default)) << d.name() << own << " " << by_default;
      }
    }
  }
}

TEST(Training, MakesModelsThatHelpOthers) {
  for (const l3_colour colour : kColours) {
    const Model model = trained(colour);
    size_t named = 0, fast = 0;
    for (uint64_t seed = 500; seed < 510; ++seed) {
      const Drawing d = drawn(colour, seed);
      named += encode(d, by_name(model)).size();
      fast += encode(d, options_of(L3_METHOD_FAST)).size();
    }
    EXPECT_LT(named, fast);
  }
}

TEST(Training, HasCodesForSymbolsThatItDidNotSee) {
  const Model model = trained(L3_COLOUR_GRAY, complete());
  for (const Pattern pattern : drawing::kPatterns) {
    const Drawing d = drawing::draw({30, 30}, {L3_COLOUR_GRAY, 8}, pattern);
    l3_encode_options options = by_name(model);
    options.model_origin = L3_MODEL_NAMED;
    const Bytes file = encode(d, options);
    uint64_t dense = 0;
    EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_DENSE, &dense, nullptr), L3_OK);
    uint64_t constant = 0;
    EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_CONSTANT, &constant, nullptr), L3_OK);
    const bool is_wild = pattern == Pattern::noise || pattern == Pattern::extremes || pattern == Pattern::outliers;
    EXPECT_TRUE(dense + constant == 1 || is_wild) << drawing::name_of(pattern);  // the wild ones are smaller as raw
    const With with(model);
    EXPECT_EQ(l3_verify(file.data(), file.size(), &with.options, nullptr), L3_OK) << drawing::name_of(pattern);
  }
}

TEST(Training, DependsNeitherOnThreadsNorOnTheProcessor) {
  l3_train_options options = l3_train_options_init();
  options.effort = 2;
  const Bytes alone = bytes_of(trained(L3_COLOUR_RGB, options));
  options.parallel = codec_testing::three_threads();
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(bytes_of(trained(L3_COLOUR_RGB, options)), alone) << target;
  }
}

TEST(Training, KeepsASampleWithinItsBound) {
  l3_train_options options = l3_train_options_init();
  options.max_pixels = 2000;  // of images of 1200
  EXPECT_NE(bytes_of(trained(L3_COLOUR_GRAY, options, 40)), bytes_of(trained(L3_COLOUR_GRAY, options, 1)));
}

// Samples of other than 8 bits, and labels: token models, which have a code for everything.
TEST(Training, MakesTokenModelsOfOtherImages) {
  struct Kind {
    drawing::Type type;
    Pattern pattern;
  };
  for (const Kind& kind : {Kind{{L3_COLOUR_GRAY, 16}, Pattern::natural}, Kind{{L3_COLOUR_RGB, 12}, Pattern::natural},
                           Kind{{L3_COLOUR_GRAY, 1}, Pattern::labels}, Kind{{L3_COLOUR_GRAY, 8}, Pattern::labels},
                           Kind{{L3_COLOUR_RGB_ALPHA, 8}, Pattern::labels}}) {
    l3_train_options quick = l3_train_options_init();
    quick.effort = 1;
    l3_training* begun = nullptr;
    ASSERT_EQ(l3_start_training(&quick, &begun, nullptr), L3_OK);
    const Training training(begun);
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Drawing d = drawing::draw({90, 70}, kind.type, kind.pattern, seed);
      const l3_image image = d.image();
      ASSERT_EQ(l3_add_to_training(training.get(), &image, nullptr), L3_OK);
    }
    l3_model* made = nullptr;
    ASSERT_EQ(l3_finish_training(training.get(), &made, nullptr), L3_OK);
    const Model model(made);
    EXPECT_EQ(described(model).kind, 1u);
    EXPECT_EQ(described(model).bits, kind.type.bits);
    // Like what it learnt from; and noise, in which there is every value.
    for (const Pattern pattern : {kind.pattern, Pattern::noise}) {
      const Drawing d = drawing::draw({70, 50}, kind.type, pattern, 77);
      l3_encode_options options = by_name(model);
      options.model_origin = L3_MODEL_NAMED;
      const Bytes file = encode(d, options);
      EXPECT_EQ(info_of(file).model_origin, static_cast<uint32_t>(L3_MODEL_NAMED));
      const With with(model);
      Bytes out(d.pixels.size());
      l3_error error{};
      EXPECT_EQ(l3_decode(file.data(), file.size(), &with.options, out.data(), out.size(), 0, &error), L3_OK);
      EXPECT_EQ(out, d.pixels);
    }
  }
}

TEST(Training, RefusesSamplesOutOfRange) {
  l3_training* begun = nullptr;
  ASSERT_EQ(l3_start_training(nullptr, &begun, nullptr), L3_OK);
  const Training training(begun);
  Drawing d = drawing::draw({9, 9}, {L3_COLOUR_GRAY, 12}, Pattern::natural);
  d.pixels[2 * 40 + 1] = 0x10;
  const l3_image image = d.image();
  l3_error error{};
  EXPECT_EQ(l3_add_to_training(training.get(), &image, &error), L3_ERROR_ARGUMENT);
}

TEST(Training, RefusesWhatIsNotForOneModel) {
  l3_training* begun = nullptr;
  l3_error error{};
  ASSERT_EQ(l3_start_training(nullptr, &begun, &error), L3_OK);
  const Training training(begun);
  l3_model* model = nullptr;
  EXPECT_EQ(l3_finish_training(training.get(), &model, &error), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "there are no images to make a model from");
  const Drawing rgb = drawn(L3_COLOUR_RGB), gray = drawn(L3_COLOUR_GRAY);
  const Drawing deep = drawing::draw({9, 9}, {L3_COLOUR_RGB, 12}, Pattern::natural);
  const auto add = [&](const Drawing& d) {
    const l3_image image = d.image();
    return l3_add_to_training(training.get(), &image, &error);
  };
  EXPECT_EQ(add(rgb), L3_OK);
  EXPECT_EQ(add(gray), L3_ERROR_ARGUMENT);
  EXPECT_EQ(add(deep), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "the images of one model must have the same channels and bits");
  EXPECT_EQ(l3_add_to_training(training.get(), nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_finish_training(training.get(), &model, &error), L3_OK);
  l3_close_model(model);
  l3_train_options options = l3_train_options_init();
  options.effort = 10;
  EXPECT_EQ(l3_start_training(&options, &begun, &error), L3_ERROR_ARGUMENT);
  options.effort = 1;
  options.tile_width = 33;
  EXPECT_EQ(l3_start_training(&options, &begun, &error), L3_ERROR_ARGUMENT);
}

// ---- named models that files get

// What l3_embed_model makes of a file.
Bytes embedded(const Bytes& file, const l3_model* model) {
  size_t size = 0;
  l3_error error{};
  const Exact exact(file);
  EXPECT_EQ(l3_embed_model(exact.data(), exact.size(), model, nullptr, 0, &size, &error), L3_ERROR_BUFFER);
  const Exact out(size);
  EXPECT_EQ(l3_embed_model(exact.data(), exact.size(), model, out.data(), size - 1, &size, &error), L3_ERROR_BUFFER);
  EXPECT_EQ(l3_embed_model(exact.data(), exact.size(), model, out.data(), out.size(), &size, &error), L3_OK)
      << error.reason;
  EXPECT_EQ(size, out.size());
  return {out.data(), out.data() + out.size()};
}

TEST(EmbeddedModels, MakeFilesThatNeedNothingElse) {
  const uint8_t metadata[] = {'t', 'E', 'X', 't', 0, 0, 0, 0, 3, 0, 0, 0, 'a', 0, 'b'};
  const uint8_t icc[] = {'x', 0, 0, 1, 2, 3};
  for (const bool with_sections : {false, true}) {
    for (const l3_colour colour : kColours) {
      const Model model = trained(colour, complete());
      const Drawing d = drawn(colour, 3, {300, 200});
      l3_image image = d.image();
      if (with_sections) {
        image.icc = icc;
        image.icc_size = sizeof icc;
        image.metadata = metadata;
        image.metadata_size = sizeof metadata;
      }
      l3_encode_options options = by_name(model);
      options.model_origin = L3_MODEL_NAMED;  // not a smaller one
      Bytes named(l3_encode_bound(&image, &options));
      size_t written = 0;
      l3_error error{};
      ASSERT_EQ(l3_encode(&image, &options, named.data(), named.size(), &written, &error), L3_OK) << error.reason;
      named.resize(written);
      for (const char* target : targets()) {
        const ForcedTarget forced(target);
        const Bytes file = embedded(named, model.get());
        EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, &error), L3_OK) << error.reason << " " << error.offset;
        const l3_info info = info_of(file);
        EXPECT_EQ(info.model_origin, static_cast<uint32_t>(L3_MODEL_OWN));
        Bytes out(d.pixels.size());
        EXPECT_EQ(l3_decode(file.data(), file.size(), nullptr, out.data(), out.size(), 0, &error), L3_OK);
        EXPECT_EQ(out, d.pixels);
        // As if it had been encoded with that model: the same tiles with the same bytes.
        l3_encode_options own = options_of(L3_METHOD_DENSE);
        own.tile_width = info.tile_width;
        own.tile_height = info.tile_height;
        const Bytes bytes = bytes_of(model);
        own.model = bytes.data();
        own.model_size = bytes.size();
        Bytes expected(l3_encode_bound(&image, &own));
        ASSERT_EQ(l3_encode(&image, &own, expected.data(), expected.size(), &written, &error), L3_OK) << error.reason;
        expected.resize(written);
        EXPECT_EQ(file, expected);
      }
    }
  }
}

// A payload may have up to 15 zeros left over, and its size is a multiple of 4 in a tiny file but of 16 in others.
TEST(EmbeddedModels, MakeTinyFilesLargerWhateverTheirPayloadHasLeftOver) {
  const Model model = trained(L3_COLOUR_RGB, complete());
  const l3_model* const models[] = {model.get()};
  l3_decode_options with_model = l3_decode_options_init();
  with_model.models = models;
  with_model.model_count = 1;
  for (uint32_t width = 9; width < 17; ++width) {
    l3_encode_options options = by_name(model);
    options.model_origin = L3_MODEL_NAMED;
    const Drawing d = drawn(L3_COLOUR_RGB, 3, {width, 7});
    by_hand::Parts parts = by_hand::take_apart(encode(d, options));
    ASSERT_EQ(parts.name.size(), 16);
    const Bytes payload = parts.tiles[0].payload;
    uint32_t valid = 0;
    for (size_t size = payload.size() - 12; size <= payload.size() + 16; size += 4) {
      parts.tiles[0].payload = payload;
      parts.tiles[0].payload.resize(size);
      const std::optional<Bytes> tiny = by_hand::put_together_tiny(parts);
      ASSERT_TRUE(tiny);
      if (l3_verify(tiny->data(), tiny->size(), &with_model, nullptr) != L3_OK) continue;
      ++valid;
      const Bytes file = embedded(*tiny, model.get());
      EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK) << width << " " << size;
      EXPECT_EQ(codec_testing::decode(file), d.pixels);
    }
    EXPECT_GE(valid, 3) << width;
  }
}

TEST(EmbeddedModels, AreRefusedWhereTheyDoNotBelong) {
  const Model model = trained(L3_COLOUR_RGB, complete()), other = open_model(default_bytes(3));
  const Drawing d = drawn(L3_COLOUR_RGB);
  const Bytes named = encode(d, by_name(model)), own = encode(d, options_of(L3_METHOD_FAST));
  Bytes out(named.size() + (1 << 17));
  size_t size = 0;
  l3_error error{};
  const auto embed = [&](const Bytes& file, const l3_model* with) {
    return l3_embed_model(file.data(), file.size(), with, out.data(), out.size(), &size, &error);
  };
  EXPECT_EQ(embed(named, other.get()), L3_ERROR_MODEL);
  EXPECT_EQ(embed(own, model.get()), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "the file names no model");
  EXPECT_EQ(embed(named, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_embed_model(nullptr, 0, model.get(), out.data(), out.size(), &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_embed_model(named.data(), named.size(), model.get(), out.data(), out.size(), nullptr, &error),
            L3_ERROR_ARGUMENT);
  for (size_t cut = 0; cut < named.size(); ++cut) {
    const Exact exact(Bytes(named.begin(), named.begin() + static_cast<ptrdiff_t>(cut)));
    EXPECT_NE(l3_embed_model(exact.data(), exact.size(), model.get(), out.data(), out.size(), &size, &error), L3_OK);
  }
}

TEST(Digests, AreTheBeginningOfSha256) {
  const uint8_t expected[L3_DIGEST_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                             0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23};
  uint8_t digest[L3_DIGEST_BYTES];
  l3_digest("abc", 3, digest);
  EXPECT_TRUE(std::equal(digest, digest + L3_DIGEST_BYTES, expected));
  l3_digest(nullptr, 0, digest);
  EXPECT_EQ(digest[0], 0xe3);
}

}  // namespace
