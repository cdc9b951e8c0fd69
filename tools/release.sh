#!/usr/bin/env bash
# Writes a version wherever one stands, and dates the changelog. It commits nothing: read the diff, and follow what it
# prints at the end. `cargo test --test house` fails while the places disagree.
#
#   tools/release.sh X.Y.Z
set -euo pipefail
cd "$(dirname "$0")/.."

stop() { printf 'release: %s\n' "$*" >&2; exit 1; }

new=${1:-}
[ $# = 1 ] && [[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || stop "one version, as in: tools/release.sh 1.2.3"
old=$(sed -n '/^version = /{s/^version = "\(.*\)"/\1/p;q;}' Cargo.toml)
# The first release has the version that is already written.
[ "$(printf '%s\n' "$old" "$new" | sort -V | tail -n 1)" = "$new" ] || stop "$new comes before $old"
[ -z "$(git status --porcelain --untracked-files=no)" ] || stop "commit or stash first, so that the diff is the release"
! grep -qF "## [$new]" CHANGELOG.md || stop "CHANGELOG.md has $new already"
awk '/^## \[Unreleased\]/ { on = 1; next } /^## / { on = 0 } on && /^- /' CHANGELOG.md | grep -q . ||
  stop "CHANGELOG.md says nothing under Unreleased"

# edit FILE EXPRESSION: a sed that works everywhere and must not lose its file.
edit() { sed "$2" "$1" >"$1.new" && cat "$1.new" >"$1" && rm "$1.new"; }
o=${old//./\\.}
edit Cargo.toml "1,/^version = /s/^version = \"$o\"/version = \"$new\"/"
edit Cargo.lock "/^name = \"ckpt-lint\"\$/{n;s/^version = .*/version = \"$new\"/;}"
edit pyproject.toml "s/^version = \"$o\"/version = \"$new\"/; s/\"ckpt-lint==$o\"/\"ckpt-lint==$new\"/"
# What users paste: `ckpt-lint==1.2.3`, `rev: v1.2.3`, `ckpt-lint@v1.2.3`.
for page in README.md docs/*.md; do
  edit "$page" "s/ckpt-lint==$o/ckpt-lint==$new/g; s/rev: v$o/rev: v$new/g; s/ckpt-lint@v$o/ckpt-lint@v$new/g"
done
edit CHANGELOG.md "s/^## \[Unreleased\]\$/&\n\n## [$new] - $(date -u +%F)/"

git --no-pager diff --stat
cat <<TXT

$old -> $new. Then:
  .ci/run && tests/packaging.sh
  git commit -am 'Release $new' && git tag -a v$new -m v$new && git push origin main v$new
The tag builds and publishes. Until it is done, the hook of v$new finds no wheel: announce it afterwards.
TXT
