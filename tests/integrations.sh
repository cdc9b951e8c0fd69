#!/usr/bin/env bash
# Runs the blocks of docs/integrations.md as they are written. Only addresses are turned to what is at hand: the index
# of packages to WHEEL (else it is built), the repository's address to this clone.
#
# `FULL=1` also lets pre-commit build the hook from source, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
block() { # block NAME: the fenced block after `<!-- run: NAME -->`
  awk -v mark="<!-- run: $1 -->" '$0 == mark { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next } inside' \
    "$root/docs/integrations.md" | grep . || fail "no block $1"
}

if [ -z "${WHEEL:-}" ]; then
  KEEP=$work/wheels tests/packaging.sh
  WHEEL=$(find "$work/wheels" -name '*.whl')
fi
mkdir "$work/index"
cp "$WHEEL" "$work/index"
python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check pre-commit pyyaml
# pre-commit wraps what it installs in a package of its own, which setuptools builds.
"$work/tools/bin/pip" download --quiet --disable-pip-version-check --dest "$work/index" setuptools wheel
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/index PIP_DISABLE_PIP_VERSION_CHECK=1
export PRE_COMMIT_HOME=$work/home GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
! grep -oE '(==|rev: v|@v|version: )[0-9]+\.[0-9]+\.[0-9]+' docs/integrations.md | grep -vF "$version" ||
  fail "docs/integrations.md is about another version than $version"

say "the command"
python3 -m venv "$work/run"
mkdir -p "$work/cwd/path/to"
cp -r examples/unlisted-linear/mended "$work/cwd/path/to/checkpoint"
(cd "$work/cwd" && PATH=$work/run/bin:$PATH bash -euo pipefail -c "$(block wheel)")

say "the hook's pattern is the same in both places"
[ "$(block hook-wheel | sed -n "s/^ *files: '\(.*\)'$/\1/p")" = \
  "$(sed -n "s/^ *files: &files '\(.*\)'$/\1/p" .pre-commit-hooks.yaml)" ] || fail "it is not"

hook() { # hook NAME: the config of a block, on the example
  say "$1"
  local repo=$work/$1
  mkdir "$repo"
  git init -q "$repo"
  block "$1" >"$repo/.pre-commit-config.yaml"
  cp -r examples/unlisted-linear/broken "$repo/tiny"
  (
    cd "$repo"
    git add .
    ! "$work/tools/bin/pre-commit" run --all-files >out 2>&1 || fail "the broken checkpoint passed"
    cat out
    grep -q 'would refuse it' out || fail "it failed for another reason"
    cp "$root/examples/unlisted-linear/mended/config.json" tiny/config.json
    git add tiny
    "$work/tools/bin/pre-commit" run --all-files
  )
}
hook hook-wheel
if [ -n "${FULL:-}" ]; then
  git clone -q "$root" "$work/clone"
  git -C "$work/clone" tag "v$version"
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_VALUE_0=https://github.com/ckpt-lint/ckpt-lint
  export GIT_CONFIG_KEY_0=url.$work/clone.insteadOf
  (unset PIP_NO_INDEX PIP_FIND_LINKS && hook hook)
fi

say "the workflow, with the inputs as the runner would give them"
block workflow >"$work/workflow.yml"
mkdir -p "$work/models repository/models" "$work/temp"
cd "$work/models repository"
cp -r "$root/examples/unlisted-linear/mended" models/small
cp -r "$root/examples/unlisted-linear/broken" "models/large one"
cat >"$work/step.py" <<'PY'
"""Runs the step of the Action: its inputs over the defaults of action.yml, as environment."""
import os, subprocess, sys, yaml

root, workflow = sys.argv[1:]
action = yaml.safe_load(open(f"{root}/action.yml"))
steps = yaml.safe_load(open(workflow))["jobs"]["lint"]["steps"]
given = next(s for s in steps if s["uses"].startswith("ckpt-lint/"))["with"]
unknown = set(given) - set(action["inputs"])
assert not unknown, f"no such inputs: {unknown}"
values = {name: str(given.get(name, spec["default"])) for name, spec in action["inputs"].items()}
step = action["runs"]["steps"][0]
env = {}
for name, text in step["env"].items():
    key = text.removeprefix("${{ inputs.").removesuffix(" }}")
    env[name] = values.pop(key)
assert not values, f"inputs that no script sees: {values}"
sys.exit(subprocess.run(["bash", "-c", step["run"]], env={**os.environ, **env, "GITHUB_ACTION_PATH": root}).returncode)
PY
code=0
RUNNER_TEMP=$work/temp GITHUB_OUTPUT=$work/output GITHUB_STEP_SUMMARY=$work/summary \
  "$work/tools/bin/python" "$work/step.py" "$root" "$work/workflow.yml" || code=$?
[ "$code" = 1 ] || fail "the Action ends with $code"
grep -x 'verdict=refuses' "$work/output" || fail "no verdict"
printf '\nintegrations: ok\n'
