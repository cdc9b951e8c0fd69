#!/usr/bin/env bash
# Plays GitHub's runner for action/run.sh: environment files, and a workspace with spaces in its path.
#
# `BIN=FILE tests/action.sh` takes a built binary. `WHEEL=FILE` also installs a wheel as the Action does.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$work/log" "$GITHUB_OUTPUT" "$GITHUB_STEP_SUMMARY" >&2
  exit 1
}

if [ -z "${BIN:-}" ]; then
  cargo build --release --locked
  BIN=${CARGO_TARGET_DIR:-target}/release/ckpt-lint
fi
BIN=$(realpath "$BIN")
# The runner's PATH has no ckpt-lint, unless a test puts one there.
plain=$PATH

space="$work/a work space"
mkdir -p "$space/my models" "$work/runner temp"
cp -r examples/unlisted-linear/broken "$space/my models/broken one"
cp -r examples/unlisted-linear/mended "$space/my models/mended one"
export RUNNER_TEMP="$work/runner temp" GITHUB_WORKSPACE=$space GITHUB_ACTION_PATH=$root
export GITHUB_OUTPUT=$work/output GITHUB_STEP_SUMMARY=$work/summary
cd "$space"

# What the runner gives: every input, with the defaults of action.yml.
play() { # play CODE NAME=VALUE...
  local wanted=$1 code=0
  shift
  : >"$GITHUB_OUTPUT"
  : >"$GITHUB_STEP_SUMMARY"
  env INPUT_PATHS=. INPUT_FAIL_ON= INPUT_SELECT= INPUT_IGNORE= INPUT_CONFIG= INPUT_VLLM= INPUT_VERSION= INPUT_BIN="$BIN" \
    INPUT_SARIF_FILE= INPUT_SUMMARY=true "$@" bash "$GITHUB_ACTION_PATH/action/run.sh" >"$work/log" 2>&1 || code=$?
  [ "$code" = "$wanted" ] || fail "exit code $code, not $wanted: $*"
}
says() { grep -qF -e "$2" "$1" || fail "'$2' is not in $1"; }
gives() { grep -qxF -e "$1" "$GITHUB_OUTPUT" || fail "no output '$1'"; }
test_() { printf '== %s\n' "$*"; }

test_ "a folder with a space: refused, with log, outputs, report and summary"
play 1 INPUT_PATHS="my models/broken one"
says "$work/log" "quant-unlisted-linear"
says "$work/log" "would refuse it"
gives verdict=refuses
gives errors=1
gives warnings=0
report=$(sed -n 's/^report=//p' "$GITHUB_OUTPUT")
jq -e '.version == 1 and .checkpoints[0].verdict.class == "refuses"' "$report" >/dev/null || fail "the report"
says "$GITHUB_STEP_SUMMARY" "quant-unlisted-linear"

test_ "several paths, one a line, with Windows line ends, blanks and an empty line: the worst verdict"
play 1 INPUT_PATHS=$'  my models/mended one \r\n\nmy models/broken one\n'
gives verdict=refuses
[ "$(jq '.checkpoints | length' "$(sed -n 's/^report=//p' "$GITHUB_OUTPUT")")" = 2 ] || fail "not two checkpoints"

test_ "a good one"
play 0 INPUT_PATHS="my models/mended one"
gives verdict=loads
gives errors=0

test_ "fail-on: never still tells"
play 0 INPUT_FAIL_ON=never
gives verdict=refuses
gives errors=1

test_ "ignore and select, by comma and by line; another vLLM"
play 0 INPUT_PATHS="my models/mended one" INPUT_IGNORE=$'tie, load\nserve' INPUT_SELECT=quant INPUT_VLLM=0.32
play 2 INPUT_VLLM=0.1
play 2 INPUT_SELECT=no-such-rule

test_ "settings at the root of the repository: a known finding is ignored for a reason, and the verdict stays"
cat >ckpt-lint.toml <<'TOML'
[[ignore]]
rule = "quant-unlisted-linear"
path = "my models/broken*"
reason = "waits for its author"
TOML
play 0 INPUT_PATHS="my models"
says "$work/log" "1 ignored"
gives verdict=refuses
gives errors=0
report=$(sed -n 's/^report=//p' "$GITHUB_OUTPUT")
jq -e '[.checkpoints[].ignored[].reason] == ["waits for its author"]' "$report" >/dev/null || fail "the reason"

test_ "config: other settings instead; one that is not there fails"
printf 'fail-on = "never"\n' >"$work/other settings.toml"
play 0 INPUT_CONFIG="$work/other settings.toml"
gives errors=1
play 2 INPUT_CONFIG="no such.toml"
play 2 INPUT_CONFIG="\$(touch hacked)"
[ ! -e hacked ] || fail "an input was run"

test_ "fail-on of the settings holds until the input says otherwise"
printf 'fail-on = "never"\n' >ckpt-lint.toml
play 0
play 1 INPUT_FAIL_ON=error
rm ckpt-lint.toml

test_ "summary: false"
play 1 INPUT_SUMMARY=false
[ ! -s "$GITHUB_STEP_SUMMARY" ] || fail "there is a summary"
play 2 INPUT_SUMMARY=maybe

test_ "sarif-file: written where the program can, else said"
play 1 INPUT_SARIF_FILE="out dir/lint.sarif"
if [ -e "out dir/lint.sarif" ]; then
  jq -e '.version == "2.1.0"' "out dir/lint.sarif" >/dev/null || fail "no SARIF"
else
  says "$work/log" "::warning title=ckpt-lint::sarif-file"
fi

test_ "a run that fails: code 2, an error for the annotations, empty outputs"
play 2 INPUT_PATHS="no such folder"
says "$work/log" "::error title=ckpt-lint::ckpt-lint: no such folder"
gives verdict=
play 2 INPUT_PATHS=$' \n '
play 2 INPUT_FAIL_ON=sometimes

test_ "nothing that is given becomes code or an option"
play 2 INPUT_PATHS="\$(touch hacked)\`touch hacked\`; touch hacked"
play 2 INPUT_PATHS="--help"
play 2 INPUT_IGNORE="x;touch hacked"
play 2 INPUT_BIN='' INPUT_VERSION="1; touch hacked"
play 2 INPUT_BIN='' INPUT_VERSION="@ ./elsewhere"
play 2 INPUT_BIN="./not there"
[ ! -e hacked ] || fail "an input was run"

test_ "nothing in a checkpoint speaks to the runner, or leaves the fence of the summary"
mkdir evil
jq '.quantization_config.ignore += ["::error::owned", "````\n::set-output name=x::y"]' "my models/broken one/config.json" >evil/config.json
cp "my models/broken one/model.safetensors" evil
play 1 INPUT_PATHS=evil
awk '/^::stop-commands::/ { token = "::" substr($0, 18) "::"; next } $0 == token { token = ""; next } !token && /^::/ && !/^::(error|warning|notice) (file|title)=/ { bad = 1 }
  END { exit bad || token != "" }' "$work/log" || fail "a command from a checkpoint"
grep -q '^verdict=refuses$' "$GITHUB_OUTPUT" && [ "$(wc -l <"$GITHUB_OUTPUT")" = 4 ] || fail "outputs"

test_ "a program on PATH is taken"
mkdir "$work/on path"
cp "$BIN" "$work/on path/ckpt-lint"
play 1 INPUT_BIN='' PATH="$work/on path:$plain"
! grep -q '::group::Install' "$work/log" || fail "it installed"

test_ "formats that a later program has are found by its help: annotations, Markdown, SARIF"
cat >"$work/later" <<'SH'
#!/usr/bin/env bash
set -euo pipefail
if [[ " $* " == *" --help "* && " $* " != *" -- "* ]]; then
  printf '      --format <FORMAT[=FILE]>\n          `text`, `json`, `sarif`, `github`, `markdown`; `json=FILE` writes a file\n'
  exit
fi
args=()
for arg; do
  case $arg in
    markdown=*) echo '## a table' >"${arg#*=}" ;;
    sarif=*) echo '{"version": "2.1.0"}' >"${arg#*=}" ;;
    github=*) printf '::error file=config.json,line=54::refused\n::set-env name=x::y\n' >"${arg#*=}" ;;
    *)
      args+=("$arg")
      continue
      ;;
  esac
  unset 'args[-1]'
done
exec "$REAL" "${args[@]}"
SH
chmod +x "$work/later"
play 1 INPUT_PATHS="my models/broken one" INPUT_BIN="$work/later" REAL="$BIN" INPUT_SARIF_FILE="later dir/lint.sarif"
says "$work/log" "::error file=config.json,line=54::refused"
grep -q set-env "$work/log" && fail "a line that is no annotation"
[ "$(cat "$GITHUB_STEP_SUMMARY")" = '## a table' ] || fail "the summary is not the program's Markdown"
jq -e '.version == "2.1.0"' "later dir/lint.sarif" >/dev/null || fail "no SARIF"
gives verdict=refuses

if [ -n "${WHEEL:-}" ]; then
  test_ "else a wheel is installed: the version asked for, even with another one on PATH"
  version=$("$BIN" --version | cut -d ' ' -f 2)
  wheels=$(dirname "$(realpath "$root/${WHEEL#"$root"/}" 2>/dev/null || realpath "$WHEEL")")
  # Only what is at hand, so that the test says the same before and after a release.
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheels
  play 1 INPUT_BIN='' PATH="$work/on path:$plain" INPUT_VERSION="v$version"
  says "$work/log" "::group::Install ckpt-lint $version"
  gives verdict=refuses
  play 1 INPUT_BIN=''
  says "$work/log" "::group::Install ckpt-lint $version"
  gives verdict=refuses
  play 2 INPUT_BIN='' INPUT_VERSION=99.0.0
  says "$work/log" "::error title=ckpt-lint::cannot install ckpt-lint 99.0.0"
fi
printf '\naction: ok\n'
