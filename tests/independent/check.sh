#!/usr/bin/env bash
# Runs the kernels' PTX on GPGPU-Sim, and compares with libl3 and with the emulated GPU.
#
# Usage: check.sh CHECKOUT BUILD L3    CHECKOUT: GPGPU-Sim's sources; BUILD: a folder for all that is made;
#                                      L3: a build of l3 with independent_vectors and independent_test
#
# Needs nvcc, flex, bison, makedepend, OpenGL's header, and pip, which brings headers of CUDA 11.8 for GPGPU-Sim.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tested=667834cfe5214523edd7769aeab77f91b7137686
checkout=$(realpath "$1") build=$2 l3=$(realpath "$3")
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
mkdir -p "$build"
build=$(realpath "$build")

say() { printf 'independent: %s\n' "$*" >&2; }

# GPGPU-Sim in a copy of the checkout, with CUDA 11.8's headers and a compiler that only says its version.
build_simulator() {
  local cuda=$build/cuda
  if [ ! -x "$cuda/bin/nvcc" ]; then
    say "fetching headers of CUDA 11.8"
    pip download -q --no-deps -d "$build/wheels" nvidia-cuda-runtime-cu11==11.8.89 nvidia-cuda-nvcc-cu11==11.8.89
    for wheel in "$build"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$build/wheels"; done
    mkdir -p "$cuda/include" "$cuda/bin"
    cp -r "$build"/wheels/nvidia/cuda_{runtime,nvcc}/include/. "$cuda/include"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "Cuda compilation tools, release 11.8, V11.8.89"\n' >"$cuda/bin/nvcc"
    chmod +x "$cuda/bin/nvcc"
  fi
  # Without what was built there before, for other options. Not a git repository: as it is.
  [ -d "$build/simulator" ] || git clone -q "$checkout" "$build/simulator" || cp -r "$checkout" "$build/simulator"
  local commit
  commit=$(git -C "$checkout" rev-parse HEAD 2>/dev/null || echo unknown)
  [ "$commit" = $tested ] || say "this is commit $commit of GPGPU-Sim; the check was made with $tested"
  say "building GPGPU-Sim: minutes (log: $build/simulator.log)"
  (
    cd "$build/simulator"
    export CUDA_INSTALL_PATH=$cuda
    set +eu
    . ./setup_environment release
    set -eu
    make -j "$(nproc)"
  ) >"$build/simulator.log" 2>&1
  local objects
  objects=$(dirname "$(find "$build/simulator/build" -name detailed_version)")
  g++ -std=c++11 -O2 -w -fPIC -shared -DCUDART_VERSION=11080 -DTRACING_ON=1 -DGPGPUSIM_POWER_MODEL \
    -I"$build/simulator/src/accelwattch" -iquote "$build/simulator" -iquote "$objects/cuda-sim" -iquote "$objects" \
    -I"$cuda/include" "$root/tests/independent/executor.cpp" \
    "$objects"/{libcuda,cuda-sim,cuda-sim/decuda_pred_table,gpgpu-sim,intersim2,accelwattch,.}/*.o \
    -lm -lz -lGL -lpthread -o "$build/executor.so"
}

# All kernels are one module.
compile_kernels() {
  say "compiling the kernels to PTX"
  for source in "$root"/kernels/src/*.cu; do printf '#include "%s"\n' "$source"; done >"$build/kernels.cu"
  "$nvcc" -std=c++20 -O3 -arch=compute_80 -ptx --expt-relaxed-constexpr -I"$root/codec/src" -I"$root/codec/include" \
    -I"$root/kernels/include" -I"$root/base/include" -I"$l3/codec/generated" "$build/kernels.cu" -o "$build/kernels.ptx"
  python3 "$root/tests/independent/lower_ptx.py" "$build/kernels.ptx" "$build/lowered.ptx"
}

# Small files of every method, and every twelfth of those that break a rule.
choose_vectors() {
  local names=()
  read -rd '' -a names <<<'constant_* raw_* fast_predictor_* fast_*16_bits fast_across_bands fast_left_over_15
    transform_* noise_one_row noise_gray_alpha_16 dense_tap_1[0-5]* dense_palette dense_*_channel
    dense_column dense_row dense_one_pixel
    dense_turn_ends_early table_mode_* default_model_* named_model palette_* token_1_bit token_column
    token_colours_of_1 token_extremes_16 token_hole_*known token_hole_of_1_bit token_literal_16 token_literal_known
    token_match_*known token_match_w_n token_match_nww_nw token_match_all_channels token_lanes_32 token_palette
    token_ranks_32768 token_ranks token_raw_bits token_colours_32768 token_still_* token_ending_of_rows
    token_ending_of_rgb
    token_follow_* token_zones tiles_at_edges spec_example
    bit_all_levels bit_beside_* bit_beyond_* bit_colours_* bit_ending_* bit_lanes_4_narrow bit_neighbours_mixed
    bit_of_* bit_one_* bit_state_* bit_tiles_with_edges bit_tree_*
    map_alpha_of_0 map_bits* map_*colours map_constant_* map_dense_gray map_fast_gray map_gray_* map_of_* map_opaque_*
    map_tokens_gray map_two_*' || true
  python3 "$root/spec/vectors/build.py" "$build/vectors" >/dev/null
  rm -rf "$build/chosen"
  mkdir -p "$build/chosen/valid" "$build/chosen/invalid"
  for name in "${names[@]}"; do cp "$build"/vectors/valid/$name.l3 "$build/chosen/valid"; done
  find "$build/vectors/invalid" -name '*.l3' | sort | awk 'NR % 12 == 0' | xargs cp -t "$build/chosen/invalid"
}

# Runs a program in a folder of its own, where GPGPU-Sim finds its settings.
run() { # NAME VARIABLE=VALUE... PROGRAM ARGUMENT...
  local folder=$build/run-$1
  mkdir -p "$folder"
  cp "$build"/simulator/configs/tested-cfgs/SM7_QV100/{gpgpusim.config,*.icnt} "$folder"
  (cd "$folder" && env L3_EXECUTOR="$build/executor.so" L3_PTX="$build/lowered.ptx" L3_VECTORS="$build/vectors" \
    "${@:2}") >"$folder/log" 2>&1
}

[ -f "$build/executor.so" ] || build_simulator
compile_kernels
choose_vectors
say "decoding: about ten minutes on two idle cores"
status=0
# Named models, images that are changed (of these launches every 60th, because there are thousands), and the encoder.
(
  others=0
  run models "$l3/tests/independent_test" --gtest_filter=LoaderDevice.NamedAndDefaultModels || others=1
  run changes L3_ALONE=1 L3_EVERY=60 "$l3/tests/independent_test" --gtest_filter='*.ChangeImagesAsProcessorsDo' ||
    others=1
  run encoder "$l3/tests/independent_test" --gtest_filter='GpuEncode.EmptySlots*:GpuEncode.TheRoom*' || others=1
  exit $others
) &
run vectors "$l3/tests/independent_vectors" --quick "$build/chosen" || status=1
wait $! || status=1
for name in vectors models changes encoder; do
  printf '\n%s\n' "$name"
  grep -E 'WRONG|^vectors:|FAILED|PASSED|^kernel|^[a-z_]+ +[0-9]' "$build/run-$name/log" || status=1
done
for kernel in $(grep -oP '(?<=\.entry )\w+' "$build/kernels.ptx" | c++filt | sed 's/(.*//; s/.*:://'); do
  grep -qh "^$kernel " "$build"/run-*/log || { say "$kernel did not run" && status=1; }
done
if [ $status -eq 0 ]; then say "equal"; else say "NOT equal: see $build/run-*/log"; fi
exit $status
