#!/usr/bin/env bash
# The hooks, in a repository as a user has it, under the real pre-commit.
#
#   tests/precommit.sh              the hook as it is published: this repository's root, which takes the wheel (WHEEL=,
#                                   else it is built) from a folder instead of an index
#   HOOK=ckpt-lint-source tests/precommit.sh  the one that cargo builds (minutes, once)
#   BIN=FILE tests/precommit.sh     a binary, and no installation: what the hook does, but not how it is got
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# Nothing of the machine's git or pre-commit takes part.
export PRE_COMMIT_HOME=$work/home GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE

if [ -z "${PRE_COMMIT:-}" ]; then
  say "install pre-commit"
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check pre-commit
  PRE_COMMIT=$work/venv/bin/pre-commit
fi

HOOK=${HOOK:-ckpt-lint}
# What a tag would hold: the last commit, and the files that decide as they are now.
source="$work/hooks"
git clone -q "$root" "$source"
cp pyproject.toml .pre-commit-hooks.yaml "$source"
if [ -n "${BIN:-}" ]; then
  sed -i 's/language: .*/language: system/' "$source/.pre-commit-hooks.yaml"
  PATH=$(dirname "$(realpath "$BIN")"):$PATH
elif [ "$HOOK" = ckpt-lint ]; then
  if [ -z "${WHEEL:-}" ]; then
    KEEP=$work/index tests/packaging.sh
    WHEEL=$(echo "$work"/index/*.whl)
  fi
  mkdir -p "$work/index"
  [ "$(dirname "$WHEEL")" = "$work/index" ] || cp "$WHEEL" "$work/index"
  # pip makes a wheel of the root, which setuptools builds; before the index is closed.
  python3 -m pip download --quiet --disable-pip-version-check --dest "$work/index" setuptools wheel
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/index
  # Nothing compiles. (pip itself asks rustc for its version, to tell the index.)
  mkdir "$work/no compiler"
  for name in cargo maturin cc gcc clang; do
    printf '#!/bin/sh\necho "%s was called" >>"%s"\nexit 1\n' "$name" "$work/compiled" >"$work/no compiler/$name"
  done
  chmod +x "$work/no compiler"/*
  PATH="$work/no compiler:$PATH"
fi
git -C "$source" add .
git -C "$source" commit -q --allow-empty -m hooks

repo="$work/model repository"
mkdir -p "$repo/models"
cat >"$repo/.pre-commit-config.yaml" <<YAML
repos:
  - repo: $source
    rev: $(git -C "$source" rev-parse HEAD)
    hooks:
      - id: $HOOK
YAML

cd "$repo"
git init -q .
cat >.gitattributes <<'TXT'
*.safetensors -text
TXT
git add .
git commit -q -m start
"$PRE_COMMIT" install
say "pre-commit makes its environment"
time "$PRE_COMMIT" install-hooks
[ ! -e "$work/compiled" ] || fail "the hook compiles: $(cat "$work/compiled")"

broken=$root/examples/unlisted-linear/broken mended=$root/examples/unlisted-linear/mended

say "a good checkpoint is committed"
cp -r "$mended" models/tiny
git add .
git commit -m 'add a checkpoint' 2>&1 | tee "$work/out"
git log -1 --format=%s | grep -qx 'add a checkpoint' || fail "a good checkpoint was stopped"

say "a commit that breaks the ignore list is stopped, and told why"
cp "$broken/config.json" models/tiny/config.json
git add .
if git commit -m 'shorten the ignore list' >"$work/out" 2>&1; then cat "$work/out"; fail "it was committed"; fi
cat "$work/out"
for words in quant-unlisted-linear 'model.layers.1.mlp.down_proj' 'would refuse it' 'exit code: 1'; do
  grep -qF "$words" "$work/out" || fail "'$words' is not in what the user reads"
done

say "the mended one passes in under two seconds"
cp "$mended/config.json" models/tiny/config.json
sed -i 's/{/{ /' models/tiny/config.json
git add .
"$PRE_COMMIT" run --verbose 2>&1 | tee "$work/out"
took=$(sed -n 's/^- duration: \(.*\)s$/\1/p' "$work/out")
awk -v t="${took:-99}" 'BEGIN { exit !(t < 2) }' || fail "the hook took ${took:-no} seconds"
git commit -q -m 'mend it'

say "Git LFS pointers instead of weights pass"
cp -r "$mended" models/pointers
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' \
  "$(sha256sum "$mended/model.safetensors" | cut -d ' ' -f 1)" "$(wc -c <"$mended/model.safetensors")" \
  >models/pointers/model.safetensors
git add .
git commit -q -m 'a checkpoint of pointers'

say "a broken config beside pointers does not fail for want of weights"
cp "$broken/config.json" models/pointers/config.json
git add .
git commit -q -m 'names cannot be checked without headers'

say "deleting does not fail: one file, a folder, and a folder while another checkpoint changes"
git rm -q models/pointers/model.safetensors
git commit -q -m 'only the config is left'
git rm -q -r models/pointers
cp -r "$mended" models/other
git add .
git commit -q -m 'one goes, one comes'
git rm -q -r models/other
git commit -q -m 'gone'

say "other files do not wake the hook"
mkdir -p src
echo '{}' | tee src/package.json src/my_config.json >src/config.json.txt
git add .
"$PRE_COMMIT" run --verbose 2>&1 | tee "$work/out"
grep -q 'no files to check' "$work/out" || fail "it ran"

say "a config.json that is no model's: the hook is told where models are, or where none is"
mkdir app
echo '{"port": 8080}' >app/config.json
config=$(cat .pre-commit-config.yaml)
for narrow in 'exclude: ^(?!models/)' 'exclude: ^app/config\.json$'; do
  printf '%s\n        %s\n' "$config" "$narrow" >.pre-commit-config.yaml
  git add .
  "$PRE_COMMIT" run | tee "$work/out"
  grep -q 'no files to check' "$work/out" || fail "$narrow does not help"
done

say "all files"
"$PRE_COMMIT" run --all-files

say "settings at the root of the repository: a finding that is ignored for a reason does not stop a commit"
cp -r "$broken" models/known
git add .
! git commit -q -m 'a known finding' >"$work/out" 2>&1 || fail "it was committed"
cat >ckpt-lint.toml <<'TOML'
[[ignore]]
rule = "quant-unlisted-linear"
path = "models/known"
reason = "the twin of a report, kept as it came"
TOML
git add .
"$PRE_COMMIT" run --verbose 2>&1 | tee "$work/out"
grep -q '1 ignored' "$work/out" || fail "it does not say that something is ignored"
git commit -q -m 'a known finding, told'
sed -i '/^reason/d' ckpt-lint.toml
sed -i 's/{/{ /' models/known/config.json
git add .
! git commit -q -m 'no reason' >"$work/out" 2>&1 || fail "an ignore without a reason was taken"
grep -q 'reason' "$work/out" || fail "it does not say what is missing"
printf '\nprecommit: ok\n'
