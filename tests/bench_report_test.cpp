// Tests of reports: which codec beats which, where labels go, and how text is escaped.
#include <gtest/gtest.h>

#include <random>

#include "bench/report.h"
#include "bench/timing.h"
#include "csv.h"
#include "frontier.h"
#include "label_places.h"
#include "markup.h"
#include "page.h"
#include "plot.h"

namespace bench {
namespace {

CodecFigures codec(const std::string& name, uint64_t bytes, double decode, double encode, uint64_t files = 10) {
  CodecFigures figures;
  figures.name = name;
  figures.title = "title of " + name;
  figures.version = "1";
  figures.files = files;
  figures.pixels = files * 1000;
  figures.bytes = bytes;
  figures.supplied_bytes = 1000;
  figures.sample_bytes = 3000;
  figures.decode = {decode, decode * 0.9, decode * 1.1, 3};
  figures.encode = {encode, encode * 0.9, encode * 1.1, 3};
  return figures;
}

SetFigures set_of(const std::string& name, std::vector<CodecFigures> codecs) {
  return {name, 10, 10000, 1000, 3000, std::move(codecs)};
}

std::vector<std::string> names(const std::vector<const CodecFigures*>& codecs) {
  std::vector<std::string> result;
  for (const CodecFigures* one : codecs) result.push_back(one->name);
  return result;
}

TEST(Frontier, SmallerOrQuickerIsNotBeaten) {
  const SetFigures set =
      set_of("s", {codec("small", 500, 10, 1), codec("quick", 900, 100, 50), codec("both", 950, 90, 5)});
  EXPECT_TRUE(on_frontier(set, set.codecs[0], Direction::decode));
  EXPECT_TRUE(on_frontier(set, set.codecs[1], Direction::decode));
  EXPECT_FALSE(on_frontier(set, set.codecs[2], Direction::decode));
  EXPECT_EQ(names(beaten_by(set, set.codecs[2], Direction::decode)), std::vector<std::string>{"quick"});
}

TEST(Frontier, EqualsDoNotBeatEachOther) {
  const SetFigures set = set_of("s", {codec("a", 500, 10, 1), codec("b", 500, 10, 1), codec("c", 500, 10, 2)});
  for (const CodecFigures& one : set.codecs) EXPECT_TRUE(on_frontier(set, one, Direction::decode)) << one.name;
  EXPECT_EQ(names(beaten_by(set, set.codecs[0], Direction::encode)), std::vector<std::string>{"c"});
}

TEST(Frontier, WhoDoesNotCompeteBeatsNobody) {
  SetFigures set =
      set_of("s", {codec("ours", 500, 10, 1), codec("lossy", 50, 1000, 100), codec("part", 50, 1000, 100, 9),
                   codec("wrong", 50, 1000, 100), codec("absent", 50, 1000, 100)});
  set.codecs[1].lossy = true;
  set.codecs[3].lossless = false;
  set.codecs[4].absent = "built without it";
  EXPECT_TRUE(on_frontier(set, set.codecs[0], Direction::decode));
  for (size_t i = 1; i < 5; ++i) EXPECT_FALSE(on_frontier(set, set.codecs[i], Direction::decode)) << i;
}

TEST(Frontier, DecodersAloneDoNotCompeteInEncoding) {
  const SetFigures set = set_of("s", {codec("decoder", 500, 10, 0)});
  EXPECT_TRUE(on_frontier(set, set.codecs[0], Direction::decode));
  EXPECT_FALSE(on_frontier(set, set.codecs[0], Direction::encode));
}

TEST(Labels, LieNeitherOverEachOtherNorOverPoints) {
  std::mt19937 random(1);
  const Box room = {60, 10, 500, 340};
  for (int run = 0; run < 60; ++run) {
    std::vector<LabelWish> wishes;
    // Half of the points lie close together, as the points of real codecs do.
    for (int i = 0; i < 19; ++i) {
      const double spread = i % 2 == 0 ? 1 : 0.25;
      const auto at = [&](double size) {
        return size * (0.5 + spread * (static_cast<double>(random() % 1000) / 1000 - 0.5));
      };
      wishes.push_back({room.x + at(room.width), room.y + at(room.height), i % 3 == 0 ? "l3-dense5" : "jxl3"});
    }
    const std::vector<LabelPlace> places = place_labels(wishes, room, 6);
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_NEAR(overlap(places[i].box, room), places[i].box.width * places[i].box.height, 1e-6) << run;
      for (size_t j = 0; j < i; ++j)
        EXPECT_EQ(overlap(places[i].box, places[j].box), 0) << run << ": " << i << " " << j;
    }
  }
}

TEST(Texts, AreNoPartOfAPage) {
  EXPECT_EQ(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
  EXPECT_EQ(escaped("\xC3\xA9\xFF\x01\n"), "\xC3\xA9???");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(three_digits(0.12345), "0.123");
  EXPECT_EQ(three_digits(9.999), "10.0");
  EXPECT_EQ(three_digits(1234.5), "1234");
}

Results results_of(std::vector<SetFigures> categories, SetFigures whole) {
  Results results;
  results.whole = std::move(whole);
  results.categories = std::move(categories);
  results.folder = "a/folder";
  results.command = "l3 bench a/folder";
  return results;
}

TEST(Conclusions, NameWhoeverWins) {
  const SetFigures good = set_of("good", {codec("l3-fast", 800, 100, 100), codec("png", 1000, 10, 1)});
  const SetFigures bad = set_of("bad", {codec("l3-fast", 800, 100, 100), codec("other", 700, 200, 1)});
  const auto said = [](const Results& results) {
    std::string text;
    for (const std::string& line : conclusions(results)) text += line + "\n";
    return text;
  };
  EXPECT_NE(
      said(results_of({}, good)).find("l3-fast: no codec is both smaller and faster to decode, and none to encode."),
      std::string::npos);
  const std::string mixed = said(results_of({good, bad}, bad));
  EXPECT_NE(mixed.find("l3-fast: smaller and faster to decode: other in bad (no codec in 1 of 2 categories)."),
            std::string::npos)
      << mixed;
  EXPECT_NE(mixed.find("No codec is both smaller and faster to encode in any of the 2 categories."), std::string::npos)
      << mixed;
  EXPECT_NE(mixed.find("other makes the smallest files (0.700"), std::string::npos) << mixed;
}

TEST(Conclusions, SayWhoLoses) {
  SetFigures set = set_of("s", {codec("webp", 800, 100, 100)});
  set.codecs[0].lossless = false;
  const std::vector<std::string> lines = conclusions(results_of({}, set));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "webp did not return the images that it was given.");
}

TEST(Reports, BearAnything) {
  // No measurements, one codec, codecs of size 0, and names that contain markup.
  EXPECT_FALSE(make_report({}).empty());
  SetFigures odd = set_of("<b>&\"", {codec("l3-fast", 0, 0, 0, 0), codec("png", 1000, 1e-9, 1e12)});
  odd.codecs[1].not_held = {{"<i>", 3}};
  const std::vector<ReportFile> files = make_report(results_of({odd, odd}, odd));
  for (const ReportFile& file : files) {
    if (file.name != "results.csv") {
      EXPECT_EQ(file.contents.find("<b>"), std::string::npos) << file.name;
      EXPECT_EQ(file.contents.find("<i>"), file.contents.find("<i>Everything</i>")) << file.name;
    }
    EXPECT_EQ(file.contents.find("nan"), std::string::npos) << file.name;
    EXPECT_EQ(file.contents.find("inf"), std::string::npos) << file.name;
    EXPECT_EQ(file.name.find_first_of("<>&\"/"), std::string::npos) << file.name;
    for (const ReportFile& other : files) EXPECT_TRUE(&file == &other || file.name != other.name) << file.name;
  }
}

TEST(Csv, QuotesWhatHasCommas) {
  SetFigures set = set_of("a,\"b\"", {codec("png", 1000, 1, 1)});
  const std::string table = csv_table(results_of({set, set}, set));
  EXPECT_NE(table.find("\n\"a,\"\"b\"\"\",png,"), std::string::npos) << table;
}

}  // namespace
}  // namespace bench
