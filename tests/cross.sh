#!/usr/bin/env bash
# Builds libl3, the command and the tests for other processors, and runs them under qemu-user.
#
# Usage: cross.sh MACHINE... (arm64, s390x). Called by ./run cross, which installs compilers, qemu and what the native
# build needs. Debian only: the foreign libraries are Debian's packages, unpacked below build/cross/MACHINE/sysroot and
# nowhere else.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'cross: %s\n' "$*" >&2; }

# Downloads and unpacks the packages that the build needs, with package lists apart from this machine's own.
fill_sysroot() {
  local lists=$base/apt package link
  rm -rf "$root" "$lists"
  mkdir -p "$lists/lists/partial" "$lists/archives/partial" "$root"
  : >"$lists/status"
  local apt=(apt-get -qq -o "Dir::State=$lists" -o "Dir::State::status=$lists/status" -o "Dir::Cache=$lists"
    -o "APT::Architecture=$machine" -o "APT::Architectures=$machine" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  (cd "$lists" && "${apt[@]}" download libzstd1 libzstd-dev libpng16-16 libpng-dev zlib1g zlib1g-dev libcli11-dev \
    libjpeg62-turbo libjpeg62-turbo-dev libwebp7 libwebpdemux2 libwebpmux3 libwebp-dev libstb-dev libtiff6 libtiff-dev \
    libdeflate0 libdeflate-dev libjbig0 libjbig-dev liblerc4 liblerc-dev liblzma5 liblzma-dev)
  for package in "$lists"/*.deb; do dpkg-deb -x "$package" "$root"; done
  # Some links name their targets from the root of the machine they are meant for.
  find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
}

build_googletest() {
  cmake -S /usr/src/googletest -B "$base/googletest" -G Ninja --toolchain "$PWD/cmake/$machine.cmake" \
    -DL3_SYSROOT="$root" -DCMAKE_BUILD_TYPE=Release -DBUILD_GMOCK=OFF -DCMAKE_INSTALL_PREFIX="$root/usr" >/dev/null
  cmake --build "$base/googletest" -- --quiet
  cmake --install "$base/googletest" >/dev/null
}

# A command that runs a program of that machine: "$base/emulate" PROGRAM [ARGUMENTS].
write_emulator() {
  printf '#!/bin/sh\nexec qemu-%s -L "/usr/%s" -E "LD_LIBRARY_PATH=%s" "$@"\n' \
    "${triplet%%-*}" "$triplet" "$root/lib/$triplet:$root/usr/lib/$triplet" >"$base/emulate"
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$base/emulate" "$base/build/bin/l3" >"$base/l3"
  chmod +x "$base/emulate" "$base/l3"
}

prepare_and_build() {
  write_emulator
  # The packages are fetched once; remove build/cross to have newer ones.
  if [ ! -e "$base/ready" ]; then
    say "$machine: libraries, below $root"
    fill_sysroot
    build_googletest
    touch "$base/ready"
  fi
  say "$machine: build"
  # -O2 without debug information: with -O3, GCC 12 takes minutes for one file of vectors on s390x.
  cmake --preset dev -B "$base/build" --toolchain "$PWD/cmake/$machine.cmake" -DL3_SYSROOT="$root" \
    -DCMAKE_BUILD_TYPE=None -DL3_CUDA=OFF >/dev/null
  cmake --build "$base/build" -- --quiet
}

run_all() {
  say "$machine: tests"
  # Command tests beside unit tests, to keep all cores busy. Of the former those that see samples and chunks: signals,
  # pipes and messages do not depend on the processor.
  python3 tests/command_test.py --l3 "$base/l3" RoundTrips Decoding >"$base/command.log" 2>&1 &
  local command_tests=$! failed=0
  # SealedMutants compare the verdicts of one machine's processor targets, of which these have one; emulated, they would
  # take half of the time of all tests.
  GTEST_FILTER='-SealedMutants.*' ctest --test-dir "$base/build" --output-on-failure --no-tests=error \
    -j "$(nproc)" -R '^(codec|data_set|engine|formats|hostile|resample|resample_portable)$' || failed=1
  if ! wait "$command_tests"; then
    cat "$base/command.log" >&2
    failed=1
  fi
  [ $failed -eq 0 ]

  say "$machine: encoded bytes, beside those of this machine"
  "$base/emulate" "$base/build/tests/encoded_digests" >"$base/digests"
  # Metadata is packed by the machine's own libzstd, and may differ with its version.
  diff <(grep -v '^metadata' build/dev/digests) <(grep -v '^metadata' "$base/digests")

  say "$machine: vectors"
  python3 tests/vectors_test.py --no-oracle "$base/emulate" "$base/build/tests/vector_verdicts"
}

# Commands that build only the command leave the tests switched off.
cmake --preset dev -DL3_TESTS=ON >/dev/null
cmake --build build/dev --target encoded_digests -- --quiet
build/dev/tests/encoded_digests >build/dev/digests

for machine in "$@"; do
  case $machine in
    arm64) triplet=aarch64-linux-gnu ;;
    s390x) triplet=s390x-linux-gnu ;;
    *) say "no machine $machine: arm64 or s390x" && exit 2 ;;
  esac
  base=$PWD/build/cross/$machine
  root=$base/sysroot
  mkdir -p "$base"
  prepare_and_build
  run_all
  say "$machine: all as on this machine"
done
