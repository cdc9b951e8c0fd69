"""What one would write in Python instead: open every shard with safetensors, read every name and dtype, and compare
them with the index and with the quantization config's ignore list.

    python baseline.py DIR
"""

import json
import pathlib
import re
import sys

from safetensors import safe_open


def ignored(module: str, entries: list[str]) -> bool:
    return any(re.match(e[3:], module) if e.startswith("re:") else e == module for e in entries)


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    quantization = config.get("quantization_config") or {}
    entries = quantization.get("ignore") or quantization.get("modules_to_not_convert") or []
    quantized = {"F8_E4M3", "I32", "U8", "I8"}

    stored: dict[str, tuple[str, str]] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        with safe_open(shard, framework="np") as f:
            for name in f.keys():
                stored[name] = (shard.name, f.get_slice(name).get_dtype())

    problems = 0
    index = folder / "model.safetensors.index.json"
    if index.exists():
        weight_map = json.loads(index.read_text())["weight_map"]
        problems += sum(stored.get(name, ("",))[0] != shard for name, shard in weight_map.items())
        problems += sum(name not in weight_map for name in stored)
    for name, (_, dtype) in stored.items():
        module, _, parameter = name.rpartition(".")
        if parameter == "weight" and dtype in quantized and ignored(module, entries):
            problems += 1
    print(f"{len(stored)} tensors, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
