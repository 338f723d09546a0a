// Describes the results in sentences.
#include <algorithm>
#include <functional>
#include <utility>

#include "frontier.h"
#include "markup.h"
#include "page.h"

namespace bench {
namespace {

const CodecFigures* best(const SetFigures& set, Direction direction,
                         const std::function<double(const CodecFigures&)>& value) {
  const CodecFigures* found = nullptr;
  for (const CodecFigures& codec : set.codecs) {
    if (!competes(set, codec, direction)) continue;
    if (found == nullptr || value(codec) > value(*found)) found = &codec;
  }
  return found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

const CodecFigures* find(const SetFigures& set, const std::string& name) {
  const auto at =
      std::find_if(set.codecs.begin(), set.codecs.end(), [&](const CodecFigures& codec) { return codec.name == name; });
  return at == set.codecs.end() ? nullptr : &*at;
}

// Lists the codecs that beat a codec in any set: "jxl7 in medical and satellite".
std::string beaten_by(const std::vector<const SetFigures*>& sets, const std::string& name, Direction direction) {
  std::vector<std::pair<std::string, std::vector<std::string>>> winners;
  for (const SetFigures* set : sets) {
    for (const CodecFigures* winner : beaten_by(*set, *find(*set, name), direction)) {
      const auto at =
          std::find_if(winners.begin(), winners.end(), [&](const auto& one) { return one.first == winner->name; });
      (at == winners.end() ? winners.emplace_back(winner->name, std::vector<std::string>{}) : *at)
          .second.push_back(set->name);
    }
  }
  std::string text;
  for (const auto& [winner, where] : winners) {
    text += (text.empty() ? "" : "; ") + winner;
    if (sets.size() > 1) text += " in " + joined(where);
  }
  return text;
}

// How a codec compares with the others. All is empty if the codec does not compete.
struct Standing {
  size_t contests = 0, on_frontier = 0;
  std::string winners;
};

Standing standing(const std::vector<const SetFigures*>& sets, const std::string& name, Direction direction) {
  Standing result;
  std::vector<const SetFigures*> contests;
  for (const SetFigures* set : sets) {
    const CodecFigures* codec = find(*set, name);
    if (codec == nullptr || !competes(*set, *codec, direction)) continue;
    contests.push_back(set);
    result.on_frontier += on_frontier(*set, *codec, direction);
  }
  result.contests = contests.size();
  result.winners = beaten_by(contests, name, direction);
  return result;
}

std::string in_words(const Standing& decode, const Standing& encode) {
  const auto wins = [](const Standing& one) { return one.contests > 0 && one.on_frontier == one.contests; };
  const auto everywhere = [](const Standing& one) {
    return one.contests > 1 ? " in any of the " + std::to_string(one.contests) + " categories" : std::string();
  };
  if (wins(decode) && wins(encode) && decode.contests == encode.contests) {
    return "no codec is both smaller and faster to decode, and none to encode" + everywhere(decode);
  }
  std::string text;
  for (const auto& [one, quick] : {std::pair(&decode, "decode"), std::pair(&encode, "encode")}) {
    if (one->contests == 0) continue;
    text += text.empty() ? "" : ". ";
    if (wins(*one)) {
      text +=
          std::string(text.empty() ? "no" : "No") + " codec is both smaller and faster to " + quick + everywhere(*one);
      continue;
    }
    text += std::string(text.empty() ? "smaller" : "Smaller") + " and faster to " + quick + ": " + one->winners;
    if (one->on_frontier > 0) {
      text +=
          " (no codec in " + std::to_string(one->on_frontier) + " of " + std::to_string(one->contests) + " categories)";
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> conclusions(const Results& results) {
  std::vector<std::string> lines;
  const SetFigures& whole = results.whole;
  const CodecFigures* smallest =
      best(whole, Direction::decode, [](const CodecFigures& codec) { return -codec.ratio(); });
  const CodecFigures* decodes =
      best(whole, Direction::decode, [](const CodecFigures& codec) { return codec.decode.median; });
  const CodecFigures* encodes =
      best(whole, Direction::encode, [](const CodecFigures& codec) { return codec.encode.median; });
  if (smallest != nullptr && decodes != nullptr) {
    std::string text = "Of the codecs that can store all images without loss, " + smallest->name +
                       " makes the smallest files (" + three_digits(smallest->ratio()) + " of the source size), " +
                       decodes->name + " decodes fastest (" + three_digits(decodes->decode.median) +
                       " MP/s on one core)";
    if (encodes != nullptr) {
      text += " and " + encodes->name + " encodes fastest (" + three_digits(encodes->encode.median) + " MP/s)";
    }
    lines.push_back(text + ".");
  }
  std::vector<const SetFigures*> sets;
  for (const SetFigures& set : results.categories) sets.push_back(&set);
  if (sets.empty()) sets.push_back(&whole);
  for (const CodecFigures& codec : whole.codecs) {
    if (!is_ours(codec)) continue;
    const std::string words =
        in_words(standing(sets, codec.name, Direction::decode), standing(sets, codec.name, Direction::encode));
    if (!words.empty()) lines.push_back(codec.name + ": " + words + ".");
  }
  for (const CodecFigures& codec : whole.codecs) {
    if (!codec.lossy && !codec.lossless) lines.push_back(codec.name + " did not return the images that it was given.");
  }
  return lines;
}

}  // namespace bench
