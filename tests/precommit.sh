#!/usr/bin/env bash
# The hooks, in a repository as a user has it, under the real pre-commit.
#
#   tests/precommit.sh              with a built binary (BIN=, else cargo's), so that nothing compiles a second time
#   HOOK=ckpt-lint tests/precommit.sh         the hook as it is published: pre-commit builds it (minutes, once)
#   HOOK=ckpt-lint-source tests/precommit.sh  the same through cargo
#   WHEEL=FILE tests/precommit.sh   `repo: local` with the wheel, as docs/integrations.md shows it
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

files=$(sed -n "s/^  files: &files '\(.*\)'$/\1/p" .pre-commit-hooks.yaml)
[ -n "$files" ] || fail "no pattern in .pre-commit-hooks.yaml"

repo="$work/model repository"
mkdir -p "$repo/models"
if [ -n "${WHEEL:-}" ]; then
  cat >"$repo/.pre-commit-config.yaml" <<YAML
repos:
  - repo: local
    hooks:
      - id: ckpt-lint
        name: ckpt-lint
        entry: ckpt-lint check
        language: python
        additional_dependencies: ["$(realpath "$WHEEL")"]
        files: '$files'
        require_serial: true
YAML
else
  source=$root
  if [ -z "${HOOK:-}" ]; then
    if [ -z "${BIN:-}" ]; then
      cargo build --release --locked
      BIN=${CARGO_TARGET_DIR:-target}/release/ckpt-lint
    fi
    # The published hooks, but for where the program comes from.
    HOOK=ckpt-lint
    source=$work/hooks
    git init -q "$source"
    sed 's/language: .*/language: system/' .pre-commit-hooks.yaml >"$source/.pre-commit-hooks.yaml"
    PATH=$(dirname "$(realpath "$BIN")"):$PATH
    git -C "$source" add .
    git -C "$source" commit -q -m hooks
  fi
  cat >"$repo/.pre-commit-config.yaml" <<YAML
repos:
  - repo: $source
    rev: $(git -C "$source" rev-parse HEAD)
    hooks:
      - id: $HOOK
YAML
fi

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

say "all files"
"$PRE_COMMIT" run --all-files
printf '\nprecommit: ok\n'
