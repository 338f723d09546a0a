// Section 11 of spec/format.md: decoded samples as a PAM file.
#pragma once

#include <cstring>
#include <string>

#include "drawing.h"
#include "l3/l3.h"

namespace pam {

inline std::string header(const l3_info& info) {
  constexpr const char* kBlackAndWhite[] = {"BLACKANDWHITE", "BLACKANDWHITE_ALPHA"};
  constexpr const char* kTypes[] = {"GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA", "PALETTE_INDICES"};
  const bool black_and_white = info.bits == 1 && info.colour <= L3_COLOUR_GRAY_ALPHA;
  return "P7\nWIDTH " + std::to_string(info.width) + "\nHEIGHT " + std::to_string(info.height) + "\nDEPTH " +
         std::to_string(info.channels) + "\nMAXVAL " + std::to_string((1u << info.bits) - 1) + "\nTUPLTYPE " +
         (black_and_white ? kBlackAndWhite[info.colour] : kTypes[info.colour]) + "\nENDHDR\n";
}

// Samples of the machine's byte order to those of the file, in place.
inline void reorder(const l3_info& info, drawing::Bytes& samples) {
  if (info.bits <= 8) return;
  for (size_t i = 0; i < samples.size(); i += 2) {
    uint16_t value;
    std::memcpy(&value, &samples[i], 2);
    samples[i] = static_cast<uint8_t>(value >> 8);
    samples[i + 1] = static_cast<uint8_t>(value);
  }
}

}  // namespace pam
