// What efforts give, for help texts. Written by bench/efforts.py from bench/results/efforts.json.
#pragma once

namespace tools {

inline constexpr const char* kEffortFigures =
    "Efforts on photographs, with one core of a server:\n"
    "  effort           1      2      3      4      5      6      7      8      9\n"
    "  size / PNG   0.705  0.692  0.683  0.678  0.676  0.675  0.673  0.672  0.671\n"
    "  MP/s          14.7   7.92   4.50   2.34   1.46   0.93   0.60   0.38   0.23\n"
    "  libpng encodes 3.95 MP/s. JPEG XL at effort 7 makes 0.714 of PNG, 0.59 MP/s.\n";

}  // namespace tools
