// What efforts give, for help texts. Written by bench/efforts.py from bench/results/efforts.json.
#pragma once

namespace tools {

inline constexpr const char* kEffortFigures =
    "Efforts on photographs, with one core of a server:\n"
    "  effort           1      2      3      4      5      6      7      8      9\n"
    "  size / PNG   0.660  0.651  0.648  0.645  0.644  0.643  0.642  0.642  0.642\n"
    "  MP/s          1.35   1.18   0.96   0.45   0.30   0.20   0.17   0.12   0.09\n"
    "  libpng encodes 4.37 MP/s. JPEG XL at effort 7 makes 0.649 of PNG, 1.04 MP/s.\n";

}  // namespace tools
