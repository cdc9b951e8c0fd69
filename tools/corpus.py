#!/usr/bin/env python3
"""Run ckpt-lint on every checkpoint folder below a path and say what came out.

    python tools/corpus.py FOLDER [--bin target/release/ckpt-lint] [--verbose]

One line a folder (verdict, findings by level, rules), then counts. Exit 1 when a run crashed: an exit status other than 0, 1 and 2,
a message of a panic, or more than --seconds.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--bin", default="target/release/ckpt-lint")
    ap.add_argument("--seconds", type=float, default=30)
    ap.add_argument("--verbose", action="store_true")
    a = ap.parse_args()
    classes, rules, bad = collections.Counter(), collections.Counter(), []
    for folder in sorted(p for p in a.folder.iterdir() if p.is_dir()):
        try:
            r = subprocess.run([a.bin, "--format", "json", str(folder)], capture_output=True, text=True, timeout=a.seconds)
        except subprocess.TimeoutExpired:
            bad.append((folder.name, "timeout"))
            continue
        if r.returncode not in (0, 1, 2) or "panicked" in r.stderr:
            bad.append((folder.name, f"exit {r.returncode} {r.stderr[-300:]}"))
            continue
        report = json.loads(r.stdout) if r.stdout.strip() else {"checkpoints": []}
        if not report["checkpoints"]:
            classes["nothing to lint"] += 1
            print(f"{folder.name}: exit {r.returncode}, nothing to lint")
        for c in report["checkpoints"]:
            v = c["verdict"]
            classes[v["class"]] += 1
            levels = collections.Counter(f["level"] for f in c["findings"])
            for f in c["findings"]:
                rules[f["level"], f["rule"]] += 1
            why = "; ".join(c.get("unknown", []))[:120] if v["class"] == "unknown" else (v.get("message") or "")[:120].replace("\n", " ")
            print(f"{folder.name}: {v['class']} {dict(levels) or ''} {why}")
            if a.verbose:
                for f in c["findings"]:
                    print(f"    {f['level']} {f['rule']}: {f['message']}")
    print("\n" + ", ".join(f"{n} {c}" for c, n in classes.most_common()))
    for (level, rule), n in sorted(rules.items()):
        print(f"  {n:4} {level:8} {rule}")
    for name, why in bad:
        print(f"CRASHED {name}: {why}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
