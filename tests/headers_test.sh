#!/usr/bin/env bash
# The public headers, each on its own, as all compilers at hand and all standards that they are for take them.
# Usage: headers_test.sh SOURCE_DIR
set -euo pipefail
include=(-I "$1/codec/include" -I "$1/kernels/include" -I "$1/loader/include")
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

check() {  # COMPILER LANGUAGE STANDARD HEADER
  command -v "$1" >/dev/null || { echo "headers: $1 is not installed, so it was not tried"; return 0; }
  # Twice: headers must bear that.
  printf '#include "l3/%s"\n#include "l3/%s"\ntypedef int not_empty;\n' "$4" "$4" |
    "$1" -x "$2" -std="$3" "${warnings[@]}" -fsyntax-only "${include[@]}" -
}

# A C++ header under an older standard says what it needs before anything else fails.
refuses() {  # COMPILER HEADER
  command -v "$1" >/dev/null || return 0
  local said
  said=$(printf '#include "l3/%s"\n' "$2" | "$1" -x c++ -std=c++17 -fsyntax-only "${include[@]}" - 2>&1) &&
    { echo "headers: $1 takes $2 under C++17"; return 1; }
  grep -m 1 'error' <<<"$said" | grep -qF "$2 needs C++20" || { echo "headers: $1 of $2 under C++17: $said"; return 1; }
}

for compiler in cc gcc clang; do
  for standard in c99 c11 c17; do
    for header in l3.h l3_cuda.h l3_cuda_encode.h l3_data.h l3_loader.h l3_writer.h; do check "$compiler" c "$standard" "$header"; done
  done
done
for compiler in c++ g++ clang++; do
  for standard in c++11 c++20; do
    for header in l3.h l3_cuda.h l3_cuda_encode.h l3_data.h l3_loader.h l3_writer.h; do check "$compiler" c++ "$standard" "$header"; done
  done
  for header in l3.hpp l3_data.hpp l3_loader.hpp; do check "$compiler" c++ c++20 "$header"; done
  # l3_cuda.hpp needs CUDA's headers to compile, but not to refuse.
  for header in l3.hpp l3_data.hpp l3_loader.hpp l3_cuda.hpp; do refuses "$compiler" "$header"; done
done
