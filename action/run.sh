#!/usr/bin/env bash
# The GitHub Action: text to the log, JSON and SARIF to files, a summary, outputs, and ckpt-lint's own exit code.
#
# Everything comes by the environment: INPUT_* as in action.yml, and the runner's files. tests/action.sh plays the runner.
set -euo pipefail

# Commands of the runner are lines; what comes from outside must not end one.
escaped() {
  local text=$1
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '%s' "${text//$'\n'/%0A}"
}
stop() {
  printf '::error title=ckpt-lint::%s\n' "$(escaped "$1")"
  exit 2
}
# Lines without the white space around them, and without empty ones.
lines() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' <<<"$1"; }
# A list of rules as one word: `a,b`.
joined() { tr ', \t\r\n' '\n' <<<"$1" | sed '/^$/d' | paste -sd , -; }

temp=${RUNNER_TEMP:-$(mktemp -d)}
work=$(mktemp -d "$temp/ckpt-lint.XXXXXX")
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
output=${GITHUB_OUTPUT:-/dev/null}

# --- which program

version=${INPUT_VERSION:-}
version=${version#v}
if [ -n "${INPUT_BIN:-}" ]; then
  bin=$INPUT_BIN
  command -v "$bin" >/dev/null || stop "bin: there is no program '$bin'"
elif [ -z "$version" ] && command -v ckpt-lint >/dev/null; then
  bin=ckpt-lint
else
  # The program of the same release, so that pinning the Action pins all of it.
  here=${GITHUB_ACTION_PATH:-$(dirname "$0")/..}
  [ -n "$version" ] || version=$(sed -n '/^version = /{s/^version = "\(.*\)"/\1/p;q;}' "$here/Cargo.toml")
  if ! [[ $version =~ ^[0-9][0-9A-Za-z.+-]*$ ]]; then
    stop "version: '$version' is no version, as 0.1.0 is"
  fi
  python=python3
  command -v python3 >/dev/null || python=python
  echo "::group::Install ckpt-lint $version"
  # A virtual environment, since the Python of some images refuses packages; a wheel only, since nothing may compile.
  "$python" -m venv "$work/venv" || stop "no Python with venv on this runner: install ckpt-lint before, or give bin"
  scripts=$work/venv/bin
  [ -d "$scripts" ] || scripts=$work/venv/Scripts
  "$scripts/python" -m pip install --disable-pip-version-check --only-binary ckpt-lint \
    "ckpt-lint==$version" || stop "cannot install ckpt-lint $version: see the log"
  echo "::endgroup::"
  bin=$scripts/ckpt-lint
fi

# --- what to run

formats=$("$bin" check --help) || stop "'$bin' does not run"
# Formats come and go with versions; the help says which there are.
formats=$(grep -A 4 -e '--format' <<<"$formats" || true)
knows() { grep -qiw -e "$1" <<<"$formats"; }

case ${INPUT_SUMMARY:-true} in
  true | false) ;;
  *) stop "summary: '$INPUT_SUMMARY' is neither true nor false" ;;
esac

args=(--color never --format text --format "json=$work/report.json")
[ -z "${INPUT_FAIL_ON:-}" ] || args+=("--fail-on=$INPUT_FAIL_ON")
[ -z "${INPUT_CONFIG:-}" ] || args+=("--config=$INPUT_CONFIG")
[ -z "${INPUT_VLLM:-}" ] || args+=("--vllm=$INPUT_VLLM")
select=$(joined "${INPUT_SELECT:-}")
[ -z "$select" ] || args+=("--select=$select")
ignore=$(joined "${INPUT_IGNORE:-}")
[ -z "$ignore" ] || args+=("--ignore=$ignore")
markdown=
if [ "${INPUT_SUMMARY:-true}" = true ] && knows markdown; then
  markdown=$work/report.md
  args+=(--format "markdown=$markdown")
fi
annotations=
if knows github; then
  annotations=$work/annotations.txt
  args+=(--format "github=$annotations")
fi
if [ -n "${INPUT_SARIF_FILE:-}" ]; then
  if knows sarif; then
    mkdir -p "$(dirname "$INPUT_SARIF_FILE")"
    args+=(--format "sarif=$INPUT_SARIF_FILE")
  else
    printf '::warning title=ckpt-lint::%s\n' \
      "$(escaped "sarif-file: $("$bin" --version) writes no SARIF; no file is written")"
  fi
fi
paths=()
while IFS= read -r path; do
  paths+=("$path")
done < <(lines "${INPUT_PATHS:-.}")
[ "${#paths[@]}" -gt 0 ] || stop "paths: is empty"

# --- run it once

code=0
"$bin" check "${args[@]}" -- "${paths[@]}" >"$work/report.txt" 2>"$work/errors.txt" || code=$?
# The report quotes names from checkpoints; none may speak to the runner. What it writes is shown, not obeyed.
token=ckpt-lint-$RANDOM$RANDOM$RANDOM
echo "::stop-commands::$token"
cat "$work/report.txt" "$work/errors.txt"
printf '\n::%s::\n' "$token"
# The program escapes what it quotes, and these lines are annotations or nothing.
[ -z "$annotations" ] || [ ! -s "$annotations" ] || grep -E '^::(error|warning|notice) ' "$annotations" || true
[ ! -s "$work/errors.txt" ] || [ "$code" -lt 2 ] ||
  printf '::error title=ckpt-lint::%s\n' "$(escaped "$(head -c 2000 "$work/errors.txt")")"

# --- outputs

verdict='' errors='' warnings=''
if [ -s "$work/report.json" ] && command -v jq >/dev/null; then
  # `refuses` is worse than `damages`: nothing is served. Unknown is no pass.
  read -r verdict errors warnings < <(jq -r '
    def count(level): [.checkpoints[].findings[] | select(.level == level)] | length;
    ([.checkpoints[].verdict.class] as $all
      | first(("refuses", "damages", "unknown", "loads") | select(. as $c | $all | any(. == $c))) // "-")
    + " \(count("error")) \(count("warning"))"' "$work/report.json" | tr -d '\r')
  [ "$verdict" != - ] || verdict=''
elif [ -s "$work/report.json" ]; then
  echo "::warning title=ckpt-lint::no jq on this runner: the outputs verdict, errors and warnings stay empty"
fi
{
  echo "verdict=$verdict"
  echo "errors=$errors"
  echo "warnings=$warnings"
  echo "report=$([ ! -s "$work/report.json" ] || echo "$work/report.json")"
} >>"$output"

# --- summary; GitHub drops one over 1 MiB whole

most=900000
if [ "${INPUT_SUMMARY:-true}" = true ]; then
  if [ -n "$markdown" ] && [ -s "$markdown" ] && [ "$(wc -c <"$markdown")" -le "$most" ]; then
    cat "$markdown" >>"$summary"
  else
    # A fence longer than any in the text, so that no name can leave it.
    fence=$({ cat "$work/report.txt" "$work/errors.txt"; echo '```'; } | grep -o '``*' |
      awk 'length > most { most = length; fence = $0 } END { print fence }')
    fence=$fence\`
    {
      echo "### ckpt-lint"
      echo
      echo "${fence}text"
      head -c "$most" "$work/report.txt"
      head -c 10000 "$work/errors.txt"
      echo
      echo "$fence"
      [ "$(wc -c <"$work/report.txt")" -le "$most" ] || echo "The report is longer; the log has all of it."
    } >>"$summary"
  fi
fi

exit "$code"
