#!/usr/bin/env bash
# Installs libl3 into a folder and uses it as strangers do: README's program in a foreign CMake project, and a C program by
# a plain compiler line with pkg-config.
# Usage: install_test.sh BUILD_DIR SOURCE_DIR WORK_DIR
set -euo pipefail
build=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work/app"
cmake --install "$build" --prefix "$work/prefix" >/dev/null

# The C++ and CMake snippets of the README.
awk '/^```cpp$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$work/app/main.cpp"
{
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo 'project(app CXX)'
  echo 'add_executable(your_loader main.cpp)'
  awk '/^```cmake$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md"
} >"$work/app/CMakeLists.txt"
cmake -G Ninja -S "$work/app" -B "$work/app/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror ${L3_TEST_FLAGS:-}" >/dev/null
cmake --build "$work/app/build" >/dev/null
"$work/app/build/your_loader" | tee "$work/output"
grep -q '12288 bytes of crop' "$work/output"

cat >"$work/app/main.c" <<'END'
#include <l3/l3.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  unsigned char pixels[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, file[512], back[16];
  size_t size = 0;
  l3_error error;
  l3_image image = l3_image_init();
  image.width = 4;
  image.height = 4;
  image.bits = 8;
  image.pixels = pixels;
  if (l3_encode(&image, NULL, file, sizeof(file), &size, &error) != L3_OK ||
      l3_decode(file, size, NULL, back, sizeof(back), 0, &error) != L3_OK || memcmp(pixels, back, 16) != 0) {
    return 1;
  }
  printf("C: libl3 %s, target %s, %u bytes\n", l3_version_text(), l3_cpu_target(), (unsigned)size);
  return 0;
}
END
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name l3.pc)")
# shellcheck disable=SC2046,SC2086
cc -Wall -Wextra -Werror ${L3_TEST_FLAGS:-} "$work/app/main.c" $(pkg-config --cflags --libs --static l3) -o "$work/app/main_c"
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/app/main_c"
