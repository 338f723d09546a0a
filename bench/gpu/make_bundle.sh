#!/usr/bin/env bash
# Makes a folder to copy to a machine with a GPU: programs, test vectors, source, and the script that runs them.
# Usage: make_bundle.sh BUILD_DIR OUT_DIR   (BUILD_DIR: of the preset gpu, with the target gpu_bundle_programs built)
# L3_COMPUTE_SANITIZER: a folder with compute-sanitizer, which is included if the size limit allows it.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 out=$2
most=$((60 << 20))  # bytes; most are the programs, each with the kernels for all architectures

fail() {
  echo "make_bundle: $*" >&2
  exit 1
}
size() { du -sb "$1" | cut -f 1; }

[ "$(wc -c <"$build/gpu_bundle_programs.txt")" -gt 1 ] || fail "$build names no programs"
rm -rf "$out"
mkdir -p "$out/programs"
while read -r program; do
  cp "$program" "$out/programs/"
  strip "$out/programs/$(basename "$program")"
done <"$build/gpu_bundle_programs.txt"
names=$(cd "$out/programs" && echo ./*)
# Unpacked they are over the limit. ./bundle unpacks them.
tar -czf "$out/programs.tar.gz" -C "$out" programs
rm -r "$out/programs"
cp "$source/bench/gpu/bundle" "$out/"
python3 "$source/spec/vectors/build.py" "$out/vectors" >/dev/null
cp "$source/spec/vectors/MANIFEST.txt" "$out/vectors/"

# For `./bundle rebuild`: the source, and the libraries to link, whose packages may be missing on that machine.
git -C "$source" archive --format=tar.gz -o "$(cd "$out" && pwd)/source.tar.gz" HEAD
if command -v dpkg-query >/dev/null; then
  mkdir -p "$out/libraries/include" "$out/libraries/lib/pkgconfig"
  for package in libzstd-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libgtest-dev; do
    dpkg-query -L "$package" 2>/dev/null | while read -r file; do
      [ -f "$file" ] || continue
      case $file in
        */include/*-linux-gnu/*) install -D -m 644 "$file" "$out/libraries/include/${file##*-linux-gnu/}" ;;
        */include/*) install -D -m 644 "$file" "$out/libraries/include/${file##*/include/}" ;;
        *.a) cp "$file" "$out/libraries/lib/" ;;
      esac
    done
  done
  for library in zstd webp webpdemux; do
    cat >"$out/libraries/lib/pkgconfig/lib$library.pc" <<END
prefix=\${pcfiledir}/../..
Name: $library
Description: lib$library, as it was where the bundle was made
Version: $(pkg-config --modversion "lib$library")
Libs: -L\${prefix}/lib -l$library
Cflags: -I\${prefix}/include
END
  done
fi

{
  if git -C "$source" diff --quiet HEAD; then changes=; else changes=' with changes'; fi
  echo "$(git -C "$source" rev-parse --short=12 HEAD)$changes"
  sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=/nvcc: /p; s/^L3_CUDA_ARCHITECTURES:[A-Z]*=/architectures: /p' \
    "$build/CMakeCache.txt"
  "$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")" --version | head -n 1
  getconf GNU_LIBC_VERSION
} >"$out/VERSION"

# compute-sanitizer, if it is found and the size limit allows it.
for folder in ${L3_COMPUTE_SANITIZER:+"$L3_COMPUTE_SANITIZER"} /usr/local/cuda/compute-sanitizer; do
  [ -x "$folder/compute-sanitizer" ] || continue
  if [ $(($(size "$out") + $(size "$folder"))) -le $most ]; then
    cp -R "$folder" "$out/compute-sanitizer"
  else
    echo "make_bundle: compute-sanitizer stays behind: $(size "$folder") bytes are too many" >&2
  fi
  break
done

total=$(size "$out")
[ "$total" -le $most ] || fail "$total bytes in $out, more than $most"
echo "make_bundle: $out, $((total >> 10)) KiB: $names" >&2
