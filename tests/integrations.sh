#!/usr/bin/env bash
# Runs the blocks of docs/integrations.md and docs/machines.md as they are written. Only addresses are turned to what is
# at hand: the index of packages to WHEEL (else it is built), the repository's address to this clone.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
block() { # block NAME: the fenced block after `<!-- run: NAME -->`
  awk -v mark="<!-- run: $1 -->" '$0 == mark { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next } inside' \
    "$root"/docs/*.md | grep . || fail "no block $1"
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

say "the command"
python3 -m venv "$work/run"
mkdir -p "$work/cwd/path/to"
cp -r examples/unlisted-linear/mended "$work/cwd/path/to/checkpoint"
(cd "$work/cwd" && PATH=$work/run/bin:$PATH bash -euo pipefail -c "$(block wheel)")

say "the hook's pattern is the same in both places"
[ "$(block hook-wheel | sed -n "s/^ *files: '\(.*\)'$/\1/p")" = \
  "$(sed -n "s/^ *files: &files '\(.*\)'$/\1/p" .pre-commit-hooks.yaml)" ] || fail "it is not"

# The repository at its address, as a tag of this version would have it.
git clone -q "$root" "$work/clone"
cp pyproject.toml .pre-commit-hooks.yaml "$work/clone"
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org
git -C "$work/clone" commit -q --allow-empty -a -m tag
git -C "$work/clone" tag -f "v$version" >/dev/null
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.$work/clone.insteadOf GIT_CONFIG_VALUE_0=https://github.com/ckpt-lint/ckpt-lint

hook() { # hook NAME: the config of a block, on the example
  say "$1"
  local repo=$work/$1
  mkdir -p "$repo/models"
  git init -q "$repo"
  block "$1" >"$repo/.pre-commit-config.yaml"
  cp -r examples/unlisted-linear/broken "$repo/models/tiny"
  (
    cd "$repo"
    git add .
    ! "$work/tools/bin/pre-commit" run --all-files >out 2>&1 || fail "the broken checkpoint passed"
    cat out
    grep -q 'would refuse it' out || fail "it failed for another reason"
    cp "$root/examples/unlisted-linear/mended/config.json" models/tiny/config.json
    git add models
    "$work/tools/bin/pre-commit" run --all-files
  )
}
hook hook
hook hook-wheel
hook hook-narrow
mkdir "$work/hook-narrow/app"
echo '{"port": 8080}' >"$work/hook-narrow/app/config.json"
git -C "$work/hook-narrow" add .
(cd "$work/hook-narrow" && "$work/tools/bin/pre-commit" run --all-files)

say "settings"
cp -r examples/unlisted-linear/broken "$work/hook/models/known one"
block settings >"$work/hook/ckpt-lint.toml"
git -C "$work/hook" add .
(cd "$work/hook" && "$work/tools/bin/pre-commit" run --all-files)

say "docs/machines.md: Python and jq"
mkdir -p "$work/programs/models"
cp -r examples/unlisted-linear/* "$work/programs/models"
(
  cd "$work/programs"
  PATH=$work/run/bin:$PATH
  block gate >gate.py
  code=0
  python3 gate.py models >out || code=$?
  cat out
  [ "$code $(wc -l <out)" = '1 1' ] || fail "the gate ends with $code"
  grep -q '^models/broken: vLLM stops with ValueError: There is no module or parameter named' out || fail "the gate"
  [ -z "$(python3 gate.py models/mended)" ] || fail "the gate on a good checkpoint"
  code=0
  python3 gate.py no/such 2>out || code=$?
  [ "$code" = 1 ] || fail "the gate on nothing ends with $code"
  grep -q no/such out || fail "the gate on nothing does not say why"

  run() { bash -euo pipefail -c "$(block "$1")"; }
  run jq-report
  run jq-verdicts | tee verdicts
  [ "$(cut -d , -f 1-2 verdicts | tr '\n' ' ')" = '["models/broken","refuses" ["models/mended","loads" ["models/source","loads" ' ] || fail "verdicts"
  run jq-errors | tee errors
  [ "$(jq -r '[.path, .rule, .subjects] | join(" ")' errors)" = "models/broken quant-unlisted-linear 1" ] || fail "errors"
  run jq-ignore | tee entries
  ! run jq-all-load || fail "not all of them load"
  # What it says to paste makes the checkpoint load.
  jq --slurpfile add entries '.quantization_config.ignore += $add[0].entries' models/broken/config.json >config.json
  mv config.json models/broken
  run jq-report
  run jq-all-load
)

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
