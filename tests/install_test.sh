#!/usr/bin/env bash
# Installs libl3 into a folder and uses it as strangers do: README's program and a C program in foreign CMake projects,
# and the C program by a plain compiler line with pkg-config; then all of it again after the folder has moved.
# Usage: install_test.sh static|shared BUILD_DIR SOURCE_DIR WORK_DIR
set -euo pipefail
kind=$1 build=$2 source=$3 work=$4
rm -rf "$work"
mkdir -p "$work/cpp" "$work/c" "$work/data" "$work/data_cpp" "$work/loader"

no_pkg_config=-DPKG_CONFIG_EXECUTABLE=/nonexistent
flags="-Wall -Wextra -Wpedantic -Werror"

version=$(sed -n 's/^project(l3 VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }  # of the build that is installed
compiler=$(cached CMAKE_C_COMPILER)

fail() {
  echo "install: $*" >&2
  exit 1
}

project() {  # LANGUAGE SOURCE_FILE; the CMake snippet comes from the README
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo "project(app $1)"
  echo "add_executable(your_loader $2)"
  awk '/^```cmake$/ && !seen {on = seen = 1; next} /^```$/ {on = 0} on' "$source/README.md"
}
project CXX main.cpp >"$work/cpp/CMakeLists.txt"
project C main.c >"$work/c/CMakeLists.txt"
awk '/^```cpp$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$work/cpp/main.cpp"
cat >"$work/c/main.c" <<'END'
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

# README's reader of data sets and its loader, and a reader in C that says how many samples one has.
project CXX main.cpp | sed 's/l3::l3)/l3::l3_data)/' >"$work/data_cpp/CMakeLists.txt"
awk '/^```C\+\+$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$work/data_cpp/main.cpp"
project CXX main.cpp | sed 's/l3::l3)/l3::l3_data)/' >"$work/loader/CMakeLists.txt"
awk '/^```CPP$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$work/loader/main.cpp"
project C main.c | sed 's/l3::l3)/l3::l3_data)/' >"$work/data/CMakeLists.txt"
cat >"$work/data/main.c" <<'END'
#include <l3/l3_data.h>
#include <stdio.h>

int main(int count, char** words) {
  l3_data_set* set = NULL;
  l3_data_info info = l3_data_info_init();
  l3_data_error error;
  if (l3_data_open(words[count - 1], NULL, &set, &error) != L3_OK) {
    printf("%s: %s\n", error.file, error.reason);
    return 1;
  }
  if (l3_data_describe(set, &info) != L3_OK) return 2;
  printf("%u samples\n", (unsigned)info.samples);
  l3_data_close(set);
  return 0;
}
END
read_sets() {  # PROGRAM
  [ "$("$1" /nonexistent)" = '/nonexistent: cannot read: No such file or directory' ] || fail "$1 reads what is not there"
  [ ! -e "$work/set" ] || [ "$("$1" "$work/set")" = '1 samples' ] || fail "$1 does not read $work/set"
}

said() {  # LOG COMMAND...: what the command says is shown only where it fails
  "${@:2}" >"$1" 2>&1 || { cat "$1"; fail "${*:2}"; }
}

configure() {  # SOURCE BUILD PREFIX [options]
  cmake -G Ninja -S "$1" -B "$2" -DCMAKE_PREFIX_PATH="$3" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" "${@:4}"
}

use() {  # PREFIX
  local prefix=$1 out=$1.out options=() pc words=(--cflags --libs)
  mkdir "$out"
  # A shared libl3 must do without pkg-config.
  [ "$kind" = static ] || options=("$no_pkg_config")
  for language in cpp c data data_cpp loader; do
    said "$out/log" configure "$work/$language" "$out/$language" "$prefix" "${options[@]}"
    said "$out/log" cmake --build "$out/$language"
    case $language in cpp | c) "$out/$language/your_loader" | tee "$out/$language.said" ;; esac
  done
  read_sets "$out/data/your_loader"
  [ ! -e "$work/set" ] || [ "$("$out/data_cpp/your_loader" "$work/set")" = '1 samples' ] || fail "README's reader of data sets"
  [ ! -e "$work/set" ] || [ "$("$out/loader/your_loader" "$work/set")" = '1 images in 1 batches' ] || fail "README's loader"
  grep -q '12288 bytes of crop' "$out/cpp.said"

  pc=$(dirname "$(find "$prefix" -name l3.pc)")
  (
    if [ "$kind" = static ]; then
      export PKG_CONFIG_PATH=$pc
    else
      export PKG_CONFIG_LIBDIR=$pc PKG_CONFIG_PATH=  # there is no libzstd.pc then
    fi
    [ "$(pkg-config --modversion l3)" = "$version" ]
    # shellcheck disable=SC2046,SC2086
    "$compiler" $flags "$work/c/main.c" $(pkg-config "${words[@]}" l3) -o "$out/main_c"
    # shellcheck disable=SC2046,SC2086
    "$compiler" $flags "$work/data/main.c" $(pkg-config "${words[@]}" l3_data) -o "$out/main_data"
  )
  LD_LIBRARY_PATH=$(dirname "$pc") "$out/main_c"
  LD_LIBRARY_PATH=$(dirname "$pc") read_sets "$out/main_data"
}

# Must fail, and say so: CMake's find_package(l3 VERSION) with these options.
refuses() {  # WANTED_MESSAGE VERSION PREFIX [options]
  mkdir -p "$work/refused"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(app C)\nfind_package(l3 %s REQUIRED)\n' "$2" \
    >"$work/refused/CMakeLists.txt"
  rm -rf "$work/refused/build"
  if configure "$work/refused" "$work/refused/build" "${@:3}" >"$work/refused/log" 2>&1; then
    fail "find_package(l3 $2) ${*:4} was not refused"
  fi
  tr -s '\n ' ' ' <"$work/refused/log" | grep -qF "$1" || { cat "$work/refused/log"; fail "no word of: $1"; }
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
libraries=$(find "$work/prefix" -name 'libl3.*' -printf '%f\n' | sort | xargs)
case $kind in
  static) [ "$libraries" = libl3.a ] ;;
  shared) [ "$libraries" = "libl3.so libl3.so.${version%.*} libl3.so.$version" ] ;;
esac || fail "installed as a $kind libl3: $libraries"
for file in README.md CHANGELOG.md LICENSE spec/format.md spec/shard.md; do
  cmp "$source/$file" "$work/prefix/share/doc/l3/$file"
done
if [ -e "$build/bin/l3" ]; then
  "$work/prefix/bin/l3" --version
  mkdir "$work/src"
  printf 'P5\n2 2\n255\nabcd' >"$work/src/a.pgm"
  "$work/prefix/bin/l3" convert -q "$work/src" "$work/set"
  for file in man/man1/l3.1 bash-completion/completions/l3 zsh/site-functions/_l3 fish/vendor_completions.d/l3.fish; do
    [ -s "$work/prefix/share/$file" ] || fail "share/$file was not installed"
  done
fi

# The CUDA decoder: README's program and its CMake lines.
use_cuda() {  # PREFIX
  local out=$1.cuda code=0
  mkdir -p "$out"
  awk '/^```c\+\+$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$out/main.cpp"
  {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(app CXX)' 'add_executable(your_loader main.cpp)'
    awk '/^```cmake$/ {on = ++seen == 2; next} /^```$/ {on = 0} on' "$source/README.md"
  } >"$out/CMakeLists.txt"
  said "$out/log" configure "$out" "$out/build" "$1"
  said "$out/log" cmake --build "$out/build"
  "$out/build/your_loader" >"$out/said" 2>&1 || code=$?
  [ "$code" = 2 ] && grep -q '^usage: ' "$out/said" || fail "README's program for GPUs: exit code $code"
}

refuses 'compatible with requested version "9.9"' 9.9 "$work/prefix"
if [ -z "$(find "$work/prefix" -name libl3_cuda.a)" ]; then
  refuses 'installed without the component cuda' 'COMPONENTS cuda' "$work/prefix"
else
  use_cuda "$work/prefix"
fi
if [ "$kind" = static ]; then
  PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH='' refuses 'needs libzstd' '' "$work/prefix"
  refuses 'needs libzstd' '' "$work/prefix" "$no_pkg_config"
fi
use "$work/prefix"
mv "$work/prefix" "$work/moved"
use "$work/moved"
