"""Fact files of another vLLM release, from those that there are, and what is different: one command, and a diff to read.

    <venv of the release>/bin/python tools/facts/release.py [--base 0.32] [--verify 8] [--only NAME...]

Registry, names and sources are read anew. A config program is derived anew, and a class is built with random configs: where the base's file says the
same, it counts for this release, too (`base.json`); only what differs is extracted and stored. It can be stopped and started again: what has been
compared is compared again only when the base's file has changed. What it could not do is in left-<version>.json, and the summary says what to read.
"""
import argparse
import json
import os
import re
import sys

import batch
import sources
import where

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--base", help="the release to compare with; by default the newest other one that has all its files")
    ap.add_argument("--verify", type=int, default=8, help="random configs that a class is compared on")
    ap.add_argument("--limit", type=int, default=240, help="seconds of processor time for one class")
    ap.add_argument("--seed", type=int, default=77)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--kinds", nargs="*", default=where.KINDS, choices=where.KINDS)
    ap.add_argument("--only", nargs="*", default=[], help="only these config programs and classes")
    ap.add_argument("--summary", action="store_true", help="only say what is different")
    a = ap.parse_args()
    version, facts = where.version(), where.folder()
    others = [v for v in where.versions() if v != version and not where.base(where.folder(v=v))]
    have = where.base(facts) or {}
    base = a.base or have.get("base") or others[-1]
    left = f"{HERE}/left-{version}.json"
    if not a.summary:
        for kind in where.KINDS:
            os.makedirs(f"{facts}/{kind}", exist_ok=True)
        compare(a, facts, base, left)
    summary(version, base, left)


def compare(a, facts, base, left):
    """Writes the release's folder."""
    import plan
    for _, failed in batch.each(["tables"], tables, 1, a.limit):
        if failed:
            raise SystemExit(failed)
    where.TRUST.append(facts)
    import real
    real.start()
    theirs = where.folder(v=base)
    known = (where.base(facts) or {}).get("same", {})
    write(f"{facts}/base.json", dict(base=base, instead=instead(theirs), same=known))
    import extract
    from vllm.model_executor.models.registry import ModelRegistry
    archs = {}
    backend = [n for n in ordered("classes", theirs) if plan.load("classes", n, theirs)["class"].startswith("Transformers")]   # listed or not
    for x in dict.fromkeys([*ModelRegistry.models, *backend]):
        archs.setdefault(extract.file_of(x), []).append(x)
    opts = argparse.Namespace(verify=a.verify, seed=a.seed, out=f"{facts}/classes", samples=14, check=5, rounds=4)

    def one_class(cls):
        wrong = batch.verify(cls, archs[cls], opts)
        said = wrong and batch.one(cls, archs[cls], opts)
        return said and dict(differs=wrong, extracted=said)
    for kind in a.kinds:
        work, todo = one_config if kind == "configs" else one_class, []
        for name in ordered(kind, theirs):
            own, before = os.path.exists(f"{facts}/{kind}/{name}.json"), known.get(f"{kind}/{name}")
            if a.only and name not in a.only or own or before == where.fingerprint(f"{theirs}/{kind}/{name}.json"):
                continue
            if kind == "classes" and name not in archs:
                continue        # gone
            todo.append(name)
        for name, said in batch.each(todo, work, a.jobs, a.limit):
            key = f"{kind}/{name}"
            shared = not said and not os.path.exists(f"{facts}/{key}.json")
            note(f"{facts}/base.json", "same", key, where.fingerprint(f"{theirs}/{key}.json") if shared else None)
            note(left, "left", key, said)


def tables(_):
    """In a process of its own, in which nothing of vLLM is replaced."""
    import names
    import registry
    for name, module in (("registry", registry), ("names", names), ("sources", sources)):
        registry.write(f"{where.folder()}/{name}.json", module.table())


def note(path, table, key, value):
    """One entry of a table in a file, or its end. Several of us may be at work."""
    whole = json.load(open(path)) if os.path.exists(path) else {table: {}}
    whole[table].pop(key, None)
    if value:
        whole[table][key] = value
    whole[table] = dict(sorted(whole[table].items()))
    write(path, whole)


def one_config(t):
    """Writes the program of a model type if it is another one."""
    import configs
    import plan
    import vary
    vary.BASE[t] = configs.base_of(t)
    try:
        cls = configs.class_of(t)
    except (KeyError, ValueError, ImportError) as e:
        return f"no such config class: {type(e).__name__}: {e}"[:200]
    old = plan.load("configs", t)
    if json.loads(json.dumps(configs.measured(t, cls))).items() <= old.items() and not configs.check(t, 60, program=old):
        return None         # declared as it was, and 60 random configs come out as the program says
    plan.OVERRIDE.clear()
    new = json.loads(json.dumps(configs.program(t, cls)))
    if {**new, "source": 0} == {**old, "source": 0}:
        return None         # what its class refuses, no program says
    with open(f"{where.folder('configs')}/{t}.json", "w") as f:
        f.write(configs.dump(new))
    wrong = configs.check(t, 60)
    if wrong and not configs.check(t, 60, program=old):
        # The search found less this time; what it found before holds.
        os.remove(f"{where.folder('configs')}/{t}.json")
    return None


def instead(theirs):
    """What stands otherwise in every config program: the kinds of layers that this transformers allows."""
    import configs
    with open(f"{theirs}/configs/llama.json") as f:
        old = [c for c in json.load(f)["checks"] if "subset(layer_types" in c["ok"]]
    pairs = [(o[k], n[k]) for o, n in zip(old, configs.layer_checks()) for k in ("ok", "message")]
    return [[json.dumps(a)[1:-1], json.dumps(b)[1:-1]] for a, b in pairs if a != b]


def ordered(kind, folder):
    """Names of the files of a folder; classes after those that they `use`."""
    names, out = sorted(f[:-5] for f in os.listdir(f"{folder}/{kind}")), []

    def put(name):
        if name in names and name not in out:
            if kind == "classes":
                with open(f"{folder}/{kind}/{name}.json") as f:
                    for inner in re.findall(r'"use": "(\w+)"', f.read()):
                        if inner != name:
                            put(inner)
            out.append(name)
    for n in names:
        put(n)
    return out


def write(path, table):
    with open(path + ".new", "w") as f:
        f.write(json.dumps(table, indent=1) + "\n")
    os.replace(path + ".new", path)


def summary(version, base, left):
    """What is different, as a list to read."""
    def load(v, name):
        path = f"{where.folder(v=v)}/{name}.json"
        return json.load(open(path)) if os.path.exists(path) else {}

    def section(title, rows):
        if rows:
            print(f"\n## {title}\n")
            print("\n".join(f"* {r}" for r in rows))
    new, old = load(version, "registry"), load(base, "registry")
    print(f"# vLLM {version} beside {base}")
    one_side = lambda a, b: [f"`{x}`" for x in a if x not in b]
    section(f"Architectures that only {version} has", one_side(new["architectures"], old["architectures"]))
    section(f"Architectures that only {base} has", one_side(old["architectures"], new["architectures"]))
    section("Architectures with another class or group", [f"`{x}`: {new['architectures'][x]}, {base}: {old['architectures'][x]}"
            for x in new["architectures"] if old["architectures"].get(x, new["architectures"][x]) != new["architectures"][x]])
    section(f"Quantization methods that only {version} has", one_side(new["quant_methods"], old["quant_methods"]))
    section(f"Quantization methods that only {base} has", one_side(old["quant_methods"], new["quant_methods"]))
    n, o = load(version, "names"), load(base, "names")
    section(f"Model types that only {version} parses", one_side(n["model_types"], o["model_types"]))
    section(f"Model types that only {base} parses", one_side(o["model_types"], n["model_types"]))
    for kind, title in (("configs", "Config programs"), ("classes", "Classes")):
        section(f"{title} that differ", [f"`{f[:-5]}`" for f in sorted(os.listdir(where.folder(kind, version)))])
    why = json.load(open(left))["left"] if os.path.exists(left) else {}
    section("Without facts, and why", [f"`{k}`: {json.dumps(v)[:400]}" for k, v in why.items()])
    shared = load(version, "base").get("same", {})
    stale = [k for k, h in shared.items() if where.fingerprint(f"{where.folder(v=base)}/{k}.json") != h]
    section(f"Compared before the file of {base} changed: run this again", [f"`{k}`" for k in stale])
    section("Hand-read loaders whose source is another one: read them again, and put the hash into hand.py", sources.unread())
    section("Functions that src/vllm follows and that changed: read them", [f"`{f}`: {', '.join(names)}" for f, names in
            sources.changed(load(version, "sources"), load(base, "sources")).items()])


if __name__ == "__main__":
    sys.exit(main())
