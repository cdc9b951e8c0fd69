#!/usr/bin/env bash
# Builds the wheel as a release does, from its source distribution, installs it where nothing else is, and lets it judge
# the example; then installs the root as pre-commit does, which must take that wheel and compile nothing.
#
# `WHEEL=FILE tests/packaging.sh` takes a wheel that is already there. `KEEP=FOLDER` keeps the one that was built.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
venv() { python3 -m venv "$1"; "$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; }

if [ -z "${WHEEL:-}" ]; then
  say "build the wheel"
  venv "$work/build" 'maturin>=1.13,<2'
  target=${CARGO_TARGET_DIR:-$PWD/target}
  (
    cd packaging
    CARGO_TARGET_DIR=$target "$work/build/bin/maturin" build --sdist --release --locked --out "$work/wheels"
  )
  WHEEL=$(find "$work/wheels" -name '*.whl')
  if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    cp "$WHEEL" "$KEEP"
  fi
fi
[ -f "$WHEEL" ] || fail "no wheel at '$WHEEL'"
case $(basename "$WHEEL") in
  ckpt_lint-*-py3-none-*.whl) ;;
  *) fail "$WHEEL is tied to a Python version" ;;
esac

say "what it holds"
held=$(python3 -m zipfile --list "$WHEEL")
for file in 'data/scripts/ckpt-lint' licenses/LICENSE-APACHE licenses/LICENSE-MIT; do
  grep -qF "$file" <<<"$held" || fail "the wheel has no $file"
done
! grep -E '\.py ' <<<"$held" || fail "the wheel has Python"

say "install it alone"
venv "$work/run" --no-index "$WHEEL"
bin=$work/run/bin/ckpt-lint
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[ "$("$bin" --version)" = "ckpt-lint $version" ] || fail "$("$bin" --version) is not $version"
shown=$("$work/run/bin/python" -c 'from importlib.metadata import version; print(version("ckpt-lint"))')
[ "$shown" = "$version" ] || fail "the wheel says $shown, Cargo.toml $version"

expect() { # expect CODE PATTERN ARG...
  local wanted=$1 pattern=$2 code=0 out
  shift 2
  # From elsewhere: the wheel must not need the repository.
  out=$(cd "$work" && "$bin" "$@" 2>&1) || code=$?
  printf '%s\n' "$out" | tail -n 2
  [ "$code" = "$wanted" ] || fail "'ckpt-lint $*' exits with $code, not $wanted"
  grep -q "$pattern" <<<"$out" || fail "'ckpt-lint $*' does not say '$pattern'"
}

say "run it"
expect 1 'would refuse it' "$PWD/examples/unlisted-linear/broken"
expect 0 'would load this checkpoint' "$PWD/examples/unlisted-linear/mended"
expect 2 'no/such/folder' no/such/folder
expect 0 'quant-unlisted-linear' explain quant-unlisted-linear

say "install the root, as pre-commit does"
mkdir -p "$work/index"
cp "$WHEEL" "$work/index"
python3 -m pip download --quiet --disable-pip-version-check --dest "$work/index" 'setuptools>=61' wheel
mkdir "$work/clone"
cp pyproject.toml README.md "$work/clone"
PIP_FIND_LINKS=$work/index venv "$work/hook" --no-index "$work/clone"
[ "$("$work/hook/bin/ckpt-lint" --version)" = "ckpt-lint $version" ] || fail "the root installs another version"

printf '\npackaging: ok (%s, %s bytes)\n' "$(basename "$WHEEL")" "$(wc -c <"$WHEEL")"
