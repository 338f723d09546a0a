// Chooses the processor target at run time, for the decoder's loops and for the encoder's.
#pragma once

namespace l3 {

enum class Cpu { none, portable, neon, sse4, avx2, vnni, avx512 };

// The best target that this processor supports and this build contains, or the one that the environment variable
// L3_CPU named at the first call, or that l3_force_cpu_target() named. Returns `none` if that one is unknown, not
// supported, or not in this build.
Cpu chosen_cpu();

}  // namespace l3
