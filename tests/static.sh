#!/usr/bin/env bash
# The static binary of the archives, the wheels and the image: built from what the Dockerfile copies and nothing else,
# and run where there is nothing else, which is what `FROM scratch` means.
#
# For musl as in a release where rustc has it, else for glibc. `BIN=FILE tests/static.sh` takes a built binary.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

if [ -z "${BIN:-}" ]; then
  target=$(uname -m)-unknown-linux-musl
  if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    target=$(uname -m)-unknown-linux-gnu
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
  fi
  say "build for $target from the Dockerfile's context"
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
  # Always the same folder and the files' own times, so that a second run builds nothing.
  context=$CARGO_TARGET_DIR/context
  rm -rf "$context"
  mkdir -p "$context"
  sed -n '/^FROM scratch/q; s/^COPY //p' Dockerfile | while read -r line; do
    read -ra words <<<"$line"
    cp -rp "${words[@]::${#words[@]}-1}" "$context/${words[-1]}"
  done
  (cd "$context" && cargo build --locked --profile dist --target "$target")
  BIN=$CARGO_TARGET_DIR/$target/dist/ckpt-lint
fi

say "no dynamic linker, no libraries"
linked=$(ldd "$BIN" 2>&1 || true)
echo "$linked"
grep -qE 'statically linked|not a dynamic executable' <<<"$linked" || fail "it is not static"

say "run it in an empty root, as nobody"
mkdir -p "$work/root/w"
cp "$BIN" "$work/root/ckpt-lint"
cp -r examples/unlisted-linear/* "$work/root/w"
chmod -R a+rX "$work"
enter=(chroot --userspec=65534:65534)
[ "$(id -u)" = 0 ] || enter=(sudo -n "${enter[@]}")

expect() { # expect CODE PATTERN ARG...
  local wanted=$1 pattern=$2 code=0 out
  shift 2
  out=$(env -i "$(command -v "${enter[0]}")" "${enter[@]:1}" "$work/root" /ckpt-lint "$@" 2>&1) || code=$?
  printf '%s\n' "$out" | tail -n 1
  [ "$code" = "$wanted" ] || fail "'ckpt-lint $*' exits with $code, not $wanted: $out"
  grep -q -e "$pattern" <<<"$out" || fail "'ckpt-lint $*' does not say '$pattern'"
}
expect 1 'would refuse it' w/broken
expect 0 'would load this checkpoint' w/mended
expect 0 '"class": "loads"' --format json w/mended
expect 1 '2 checkpoints' w
expect 2 'no/such' no/such
expect 0 'quant-unlisted-linear' explain quant-unlisted-linear

printf '\nstatic: ok (%s bytes)\n' "$(wc -c <"$BIN")"
