// Turns images upright and resizes them between reading and encoding them: l3 convert --orient and --resize.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/resize_rules.h"
#include "failure.h"
#include "formats/image.h"
#include "l3/l3.h"
#include "loader/geometry.h"

namespace tools {

struct Resize {
  enum class Rule : uint8_t { shorter, longest, exact, max_pixels };
  Rule rule = Rule::exact;
  loader::Size exact;
  uint64_t most = 0;  // for the other rules
};

// Reads the word of --resize, such as "shorter=256". Returns nothing if it is wrong.
std::optional<Resize> parse_resize(const std::string& word);
// Returns what is wrong with a word of --resize or --interpolation, or an empty text if it is right.
std::string check_resize(const std::string& word);
std::string check_interpolation(const std::string& word);

struct Reshaping {
  bool orient = false;
  std::optional<Resize> resize;
  std::optional<base::Filter> filter;                        // for all roles that have none of their own
  std::map<std::string, base::Filter, std::less<>> of_role;  // samples of a data set have roles
  std::string first_role;  // of a pair: others are masks and labels. Empty: there are no pairs

  bool does_anything() const { return orient || resize; }
  base::Filter filter_of(std::string_view role) const;
};

// `interpolations` are words of --interpolation: NAME or ROLE=NAME.
Reshaping reshaping_of(bool orient, const std::string& resize, const std::vector<std::string>& interpolations);

// What was done to an image.
struct Reshaped {
  loader::Size before;       // the size of the image after it was turned upright
  bool was_changed = false;  // turned by 90 degrees, or resized
};

// Turns the image upright as its EXIF says, and then resizes it. Does nothing to an image that is upright and as small
// as wanted. Otherwise adds a tEXt chunk for each thing that was done, with one of these keywords.
inline constexpr std::string_view kOrientedKey = "l3:oriented";     // "6": the orientation that it had
inline constexpr std::string_view kResizedKey = "l3:resized-from";  // "500x375 bilinear"
Outcome<Reshaped> reshape(const std::string& name, const Reshaping& wanted, std::string_view role,
                          const l3_limits& limits, formats::Image& image);

// What these chunks of an image say: reshaping its source so gives the image again.
Reshaping reshaping_in(const formats::Image& image);

// Returns how `image`, which was decoded, differs from its source. Empty: it does not, or not after the source was
// reshaped as the image says.
std::string difference_from_source(const formats::Image& image, formats::Image source, const l3_limits& limits);

// The text of a tEXt chunk with one of the keywords, as "KEYWORD = TEXT" without any bytes that are not printable.
// Empty for other chunks.
std::string record_text(const formats::Chunk& chunk);

}  // namespace tools
