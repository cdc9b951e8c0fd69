"""Class files of many architectures: rules/facts/vllm/<version>/classes, and why the others have none.

    python tools/facts/batch.py [--jobs 2] [--limit 240] [--left tools/facts/left.json] [--only-new] ARCH...

    python tools/facts/batch.py --verify 20 [--seed S] ARCH...      compares the files with new random configs, writes nothing

One process imports vLLM; every class is extracted in a forked child with a limit of processor time. A file is written only if all own samples
and --check new configs give the same tree, module by module, and nothing is left unexpressed. Everything else goes to `left.json`: class → reason.
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import signal
import sys
import time
import traceback

import hints
import real
import where

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY = 8 << 30
FREE = {"num_experts_per_tok", "top_k_experts", "rotary_dim", "moe_k"}      # they decide no shape
SIZE = re.compile(r"size|dim|heads|experts|rank|layers|channels|inner|embd|width|n_embed|d_ff|kv_")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("archs", nargs="+")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--limit", type=int, default=150, help="seconds of processor time for one class")
    ap.add_argument("--samples", type=int, default=14)
    ap.add_argument("--check", type=int, default=5)
    ap.add_argument("--rounds", type=int, default=4)
    ap.add_argument("--verify", type=int, default=0, help="only compare the files that are there with so many new configs")
    ap.add_argument("--seed", type=int, default=77)
    ap.add_argument("--only-new", action="store_true", help="leave classes alone that have a file")
    ap.add_argument("--out", default=where.folder("classes"))
    ap.add_argument("--left", default=f"{HERE}/left.json")
    a = ap.parse_args()
    os.nice(int(os.environ.get("NICE", "10")))
    real.start()
    import extract
    groups = collections.OrderedDict()
    for arch in a.archs:
        groups.setdefault(extract.file_of(arch), []).append(arch)
    if a.only_new:
        groups = {cls: archs for cls, archs in groups.items() if not os.path.exists(f"{a.out}/{cls}.json")}
    left = json.load(open(a.left)) if os.path.exists(a.left) else {}
    work = verify if a.verify else one
    for cls, why in each(groups, lambda cls: work(cls, groups[cls], a), a.jobs, a.limit):
        left.pop(cls, None)
        if why:
            left[cls] = {"architectures": groups[cls], "why": why}
        if not a.verify:
            with open(a.left, "w") as f:
                json.dump(dict(sorted(left.items())), f, indent=1)
                f.write("\n")


def each(names, work, jobs, limit):
    """(name, what work(name) said) of each, in forked children; a child that raises, dies or takes too long says so."""
    running = {}

    def reap():
        pid, status = os.wait()
        name, pipe, t0 = running.pop(pid)
        with os.fdopen(pipe) as f:
            said = f.read().strip().split("\n")[-1]
        try:
            why = json.loads(said)
        except ValueError:
            why = f"out of time ({limit} s)" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else f"died: {said[:200]}"
        print(f"{time.strftime('%H:%M:%S')} {name}: {'ok' if not why else json.dumps(why)[:300]} ({time.time() - t0:.0f} s)", flush=True)
        return name, why
    for name in names:
        while len(running) >= jobs:
            yield reap()
        r, w = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(r)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))      # a config may ask for more than the machine has
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.alarm(limit * 8)
            try:
                why = work(name)
            except BaseException as e:      # noqa: BLE001  one class less
                at = traceback.extract_tb(e.__traceback__)[-1]
                said = re.sub(r" \(/[^)]*\)", "", str(e))       # no paths of the machine
                why = f"{type(e).__name__}: {said[:400]} ({os.path.basename(at.filename)}:{at.lineno})"
            with os.fdopen(w, "w") as f:
                f.write(json.dumps(why))
            os._exit(0)
        os.close(w)
        running[pid] = (name, r, time.time())
    while running:
        yield reap()


def one(cls, archs, a):
    """Writes the file of a class, or says why not."""
    import gc
    import extract
    import vary
    from configs import remote
    from plan import load
    from vllm.model_executor.models.registry import ModelRegistry, _MULTIMODAL_MODELS
    gc.disable()        # children are short-lived, and the parent's heap is large
    extract.GUESS = False
    extract.Env.hints = hints.EXPRESSIONS.get(cls, ())
    arch, wrapper = archs[0], archs[0] in _MULTIMODAL_MODELS
    classes = {m.class_name for m in ModelRegistry.models.values()}
    facts, files = os.path.dirname(a.out.rstrip("/")), {}
    pairs = list(dict.fromkeys((x, t) for x in archs for t in [extract.type_of(x), *extract.ALSO.get(x, [])]))
    missing = [t for _, t in pairs if not load("configs", t, facts) and not (t and remote(t))]
    if missing:
        return f"no config program for {', '.join(map(str, missing))}"
    restrict(cls, pairs)
    for x in archs:
        extract.entry(x).load_model_cls()
    rng, samples, refused = random.Random(1), [], collections.Counter()
    extra = extract.prepare(pairs, rng, wrapper)

    def more(n):
        out = []
        for i in range(n):
            s, r = extract.draw(*pairs[(len(samples) + i) % len(pairs)], rng, extra, wrapper)
            refused.update(r)
            out.append(s)
        return out
    samples += more(max(a.samples, 10 * len(pairs)))
    why = None
    for _ in range(a.rounds):
        extract.mark(samples + extract.REFUSED)
        extract.Env.cache.clear()
        f = extract.build_file(arch, samples, extract.inner_files(cls, classes, files, facts))
        files[cls] = f
        wrong = [(s, d) for s in samples if (d := extract.compare(s, cls, files, True, facts))]
        if f["unknown"] or wrong:
            why = [*f["unknown"][:6], *[f"own sample differs: {x}" for _, d in wrong[:1] for x in d[:3]]]
            samples += more(8)
            continue
        new = more(a.check)
        extract.mark(samples + new)
        wrong = [(s, d) for s in new if (d := extract.compare(s, cls, files, True, facts))]
        samples += new
        if not wrong:
            why = None
            break
        why = [f"new config differs: {x}" for _, d in wrong[:1] for x in d[:4]]
    sizes = [dict(flat(s.config)) for s in samples]
    said = " ".join(f.get("only", ()))
    still = sorted(k for k, v in sizes[0].items() if (leaf := k.rpartition(".")[2]) in samples[0].known and SIZE.search(leaf) and v > 1 and leaf not in said
                   and leaf not in FREE and not vary.STILL.search(leaf) and all(x.get(k, v) == v for x in sizes))
    if not why and still:
        why = [f"never varied, yet read: {k}" for k in still]
    if why:
        return why if not refused else [*why, f"refused most often: {refused.most_common(1)[0][0][:160]}"]
    f.pop("notes", None) if not f.get("notes") else None
    with open(f"{a.out}/{cls}.json", "w") as o:
        o.write(extract.dump(f))
    return None


def restrict(cls, pairs):
    """The samples of a class are as `hints.ONLY` has them."""
    for _, field, values in hints.ONLY.get(cls, ()):
        for _, t in pairs if field else ():
            hints.VALUES.setdefault(t, {})[field] = values


def verify(cls, archs, a):
    """What a file that is there gets wrong."""
    import gc
    import extract
    from configs import remote
    from vllm.model_executor.models.registry import ModelRegistry, _MULTIMODAL_MODELS
    gc.disable()
    facts, wrapper = os.path.dirname(a.out.rstrip("/")), archs[0] in _MULTIMODAL_MODELS
    if not where.find("classes", cls, facts):
        return "no file"
    pairs = list(dict.fromkeys((x, t) for x in archs for t in [extract.type_of(x), *extract.ALSO.get(x, [])]))
    for _, t in pairs:
        remote(t)
    restrict(cls, pairs)
    for x in archs:
        extract.entry(x).load_model_cls()
    rng = random.Random(a.seed)
    extra = extract.prepare(pairs, rng, wrapper)
    samples = [extract.draw(*pairs[i % len(pairs)], rng, extra, wrapper)[0] for i in range(a.verify)]
    extract.mark(samples)
    wrong = [d for s in samples if (d := extract.compare(s, cls, {}, True, facts))]
    return [f"{len(wrong)} of {len(samples)} differ", *wrong[0][:4]] if wrong else None


def flat(config, pre=""):
    """Whole numbers of a config and of its sub-configs, by dotted names."""
    from plan import is_sub_config
    for k, v in config.items():
        if is_sub_config(k, v):
            yield from flat(v, f"{pre}{k}.")
        elif isinstance(v, int) and not isinstance(v, bool):
            yield pre + k, v


if __name__ == "__main__":
    main()
