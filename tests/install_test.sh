#!/usr/bin/env bash
# Installs libl3 into a folder and uses it as strangers do: the programs of the pages in foreign CMake projects, and
# those in C by a plain compiler line with pkg-config; then all of it again after the folder has moved.
# Usage: install_test.sh static|shared BUILD_DIR SOURCE_DIR WORK_DIR
set -euo pipefail
kind=$1 build=$2 source=$3 work=$4
rm -rf "$work"
mkdir -p "$work"

no_pkg_config=-DPKG_CONFIG_EXECUTABLE=/nonexistent
flags="-Wall -Wextra -Wpedantic -Werror"

version=$(sed -n 's/^project(l3 VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }  # of the build that is installed
compiler=$(cached CMAKE_C_COMPILER)

fail() {
  echo "install: $*" >&2
  exit 1
}

# The programs of the pages, each with the CMakeLists.txt of its page; those in C as a project in C.
blocks() { python3 "$source/tests/docs_blocks.py" "$@"; }
program() {  # FOLDER PAGE NAME [PAGE_OF_CMAKE]
  local language=CXX
  case $3 in *.c) language=C ;; esac
  mkdir -p "$work/$1"
  blocks "$source/$2" "$3" >"$work/$1/$3"
  blocks "$source/${4:-$2}" CMakeLists.txt | sed "s/ [a-z_]*\.cpp)/ $3)/; s/ CXX)/ $language)/" >"$work/$1/CMakeLists.txt"
}
program crop docs/cpp.md crop.cpp
program crop_c docs/cpp.md crop.c
program parallel docs/cpp.md parallel.cpp
program write_set docs/cpp.md write_set.cpp docs/datasets.md
program write_set_c docs/cpp.md write_set.c docs/datasets.md
program read_set docs/datasets.md read_set.cpp
program count_samples_c docs/datasets.md count_samples.c
program epoch docs/loader.md epoch.cpp
program epoch_c docs/loader.md epoch.c
readme_programs=()
for name in $(blocks "$source/README.md"); do
  program "readme_$name" README.md "$name" docs/loader.md
  readme_programs+=("readme_$name")
done

read_sets() {  # PROGRAM
  [ "$("$1" /nonexistent 2>&1)" = '/nonexistent: cannot read: No such file or directory' ] || fail "$1 reads what is not there"
  [ ! -e "$work/set" ] || [ "$("$1" "$work/set")" = '1 samples' ] || fail "$1 does not read $work/set"
}

run_epoch() {  # PROGRAM
  [ ! -e "$work/set" ] || [ "$("$1" "$work/set")" = '1 images in 1 batches' ] || fail "$1 does not load $work/set"
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
  for each in crop crop_c parallel write_set write_set_c read_set count_samples_c epoch epoch_c "${readme_programs[@]}"; do
    said "$out/log" configure "$work/$each" "$out/$each" "$prefix" "${options[@]}"
    said "$out/log" cmake --build "$out/$each"
  done
  grep -q '^[0-9]* bytes of file, 12288 bytes of crop$' <("$out/crop/crop") || fail "crop.cpp of docs/cpp.md"
  grep -q '^[0-9]* bytes of file, 12288 bytes of crop$' <("$out/crop_c/crop") || fail "crop.c of docs/cpp.md"
  [ "$("$out/parallel/crop")" = 'the same pixels' ] || fail "parallel.cpp of docs/cpp.md"
  for each in write_set write_set_c; do
    "$out/$each/read_set" "$out/$each.set" || fail "$each of docs/cpp.md"
    "$out/$each/read_set" "$out/$each.set" 2>"$out/log" && fail "$each writes over a data set"
    grep -q 'contains a data set already' "$out/log" || { cat "$out/log"; fail "$each on a data set"; }
  done
  [ "$("$out/read_set/read_set" "$out/write_set.set")" = '20 samples' ] || fail "write_set.cpp of docs/cpp.md"
  [ "$("$out/read_set/read_set" "$out/write_set_c.set")" = '22 samples' ] || fail "write_set.c of docs/cpp.md"
  read_sets "$out/read_set/read_set"
  read_sets "$out/count_samples_c/read_set"
  run_epoch "$out/epoch/epoch"
  run_epoch "$out/epoch_c/epoch"
  for each in "${readme_programs[@]}"; do
    # README's program loads a data set, if there is a command that makes one.
    [ ! -e "$work/set" ] || [ "$("$out/$each/epoch" "$work/set")" = '1 images' ] || fail "$each"
  done

  pc=$(dirname "$(find "$prefix" -name l3.pc)")
  (
    if [ "$kind" = static ]; then
      export PKG_CONFIG_PATH=$pc
    else
      export PKG_CONFIG_LIBDIR=$pc PKG_CONFIG_PATH=  # there is no libzstd.pc then
    fi
    [ "$(pkg-config --modversion l3)" = "$version" ]
    # shellcheck disable=SC2046,SC2086
    "$compiler" $flags "$work/crop_c/crop.c" $(pkg-config "${words[@]}" l3) -o "$out/main_c"
    # shellcheck disable=SC2046,SC2086
    "$compiler" $flags "$work/count_samples_c/count_samples.c" $(pkg-config "${words[@]}" l3_data) -o "$out/main_data"
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
diff -r "$source/docs" "$work/prefix/share/doc/l3/docs"
if [ -e "$build/bin/l3" ]; then
  "$work/prefix/bin/l3" --version
  # It finds libl3_data_net.so in its own tree: no server listens there, but the attempt is made.
  if [ -n "$(find "$work/prefix" -name libl3_data_net.so)" ]; then
    answer=$(L3_ATTEMPTS=1 "$work/prefix/bin/l3" info http://127.0.0.1:1/x 2>&1) && fail "a server that is not there"
    grep -q 'no connection to the server' <<<"$answer" || fail "the installed command on a URL: $answer"
  fi
  mkdir "$work/src"
  printf 'P5\n2 2\n255\nabcd' >"$work/src/a.pgm"
  "$work/prefix/bin/l3" convert -q "$work/src" "$work/set"
  for file in man/man1/l3.1 bash-completion/completions/l3 zsh/site-functions/_l3 fish/vendor_completions.d/l3.fish; do
    [ -s "$work/prefix/share/$file" ] || fail "share/$file was not installed"
  done
fi

# The CUDA decoder: the program of docs/cuda.md.
use_cuda() {  # PREFIX
  local out=$1.cuda code=0
  mkdir -p "$out"
  program tensors docs/cuda.md tensors.cpp
  said "$out/log" configure "$work/tensors" "$out/build" "$1"
  said "$out/log" cmake --build "$out/build"
  "$out/build/tensors" >"$out/said" 2>&1 || code=$?
  [ "$code" = 2 ] && grep -q '^usage: ' "$out/said" || fail "the program of docs/cuda.md: exit code $code"
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
