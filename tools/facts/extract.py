"""Class files out of the real vLLM: rules/facts/vllm/<version>/classes/<Class>.json.

    python tools/facts/extract.py [--samples N] [--check N] [--seed S] [--out DIR] [ARCH...]

Every architecture is built on the meta device with random admissible configs; what differs between the builds is explained by
the simplest expressions over the config. `--check N` compares the file with N new random configs and writes nothing
(`--config FILE...`: with these configs).
"""
import argparse
import collections
import hashlib
import json
import os
import random
import re
import sys
import time

import real
import where
from hand import REFUSALS
from hints import ONLY
from fit import Env, fit, predicate, negate
from plan import READ, Refused, is_sub_config, load, resolve, tree as plan_tree

# Admissible values that names do not tell, by architecture; and the model type when it is not the architecture's own.
TABLE = {}
# Model types of text classes whose default config is that of a wrapper.
TYPES = {"Qwen3_5ForCausalLM": "qwen3_5_text", "Qwen3_5MoeForCausalLM": "qwen3_5_moe_text", "Qwen4ExpForCausalLM": "qwen4_exp_text",
         "MuseGlimmerForCausalLM": "muse_glimmer_text"}
# Other model types that a class is built with: by name, or inside a wrapper.
ALSO = {"Gemma4ForCausalLM": ["gemma4_unified_text"], "UnlimitedOCRForCausalLM": ["unlimited-ocr"]}
# A text class that takes the text_config of a nested config.
UNWRAP = {"Gemma4ForCausalLM": ["gemma4", "gemma4_unified"]}
REFUSED = []
# Whether conditions of refusals are looked for; a batch, which nobody reads line by line, leaves them.
GUESS = True
QUANTS = ["fp8", "compressed-tensors", "torchao", "awq"]


DRAFTED = " else ".join(f"{f} if {f} != null" for f in ("n_predict", "num_nextn_predict_layers", "mtp_num_hidden_layers")) + " else 0"


class Sample:
    count = 0

    def __init__(self, raw, config, lm_only, quant):
        Sample.count += 1
        self.id, self.raw, self.config = Sample.count, raw, config
        self.vars = dict(lm_only=lm_only, quant=quant)
        self.layered, self.known, self.unknown = {}, None, {}

    def reads(self, f):
        return self.known is None or f in self.known


def at(config, path):
    """Sub-config by its dotted name."""
    for field in filter(None, path.split(".")):
        config = config[field]
    return config


class Hopeless(Exception):
    """No config of the class could be built."""


# How many of the fields are changed: the more a class refuses, the fewer.
CHANGES = (.75, .75, .5, .75, .5, .25, .25, .5, .25, .1)


def draw(arch, model_type, rng, extra, wrapper, tries=40, table=None):
    """A sample and its real tree; refusals are counted."""
    import vary
    refused = collections.Counter()
    for i in range(tries):
        vary.CHANGE = CHANGES[min(i, len(CHANGES) - 1)]
        raw = vary.config(model_type, rng, extra, table=table)
        if wrapper and "vision_config" in raw and rng.random() < .06:
            raw["vision_config"] = None
        try:
            config = resolve(raw)
        except Refused as e:
            refused[f"program: {str(e)[:200]}"] += 1
            continue
        lm_only = wrapper and rng.random() < .25
        quant = rng.choice(QUANTS)
        try:
            model, vc = real.build(arch, raw, lm_only, quant)
        except Exception as e:      # noqa: BLE001  any refusal of vLLM or transformers
            msg = re.sub(r"\d+", "N", f"{type(e).__name__}: {str(e)}".replace("\n", " "))[-260:]
            refused[msg] += 1
            if filled(model_type, raw, str(e)):
                continue
            s = Sample(raw, config, lm_only, quant)
            s.refusal = [type(e).__name__, str(e)]
            REFUSED.append(s)
            continue
        s = Sample(raw, config, lm_only, quant)
        s.nodes, s.ties, s.facts, s.notes = real.describe(model, vc)
        tie_inner(config, s.facts["tie_into"])
        return s, refused
    raise Hopeless(f"no admissible config in {tries} tries: {refused.most_common(3)}")


def tie_inner(config, chain):
    """`VllmConfig.with_hf_config` gives the language model the outer config's flag: in a copy where it has to find its architecture itself,
    so that the outer class goes on with `kept_tie_word_embeddings`."""
    for source, path in chain:
        outer, inner = at(config, source), at(config, path)
        if outer.get("tie_word_embeddings") is not None:
            copied = not inner.get("architectures") and inner.get("model_type") in load(".", "names")["causal"]
            inner["kept_tie_word_embeddings"] = (inner if copied else outer).get("tie_word_embeddings")
            inner["tie_word_embeddings"] = outer["tie_word_embeddings"]


def filled(model_type, raw, message):
    """Whether the refusal is that of a field which config files have and config classes have no default for; it is given from now on."""
    import vary
    from _configs import FILL
    m = re.search(r"'(\w+)' object has no attribute '(\w+)'$", message)
    if not m:
        return False
    at = part(model_type, m.group(1))
    model_type = at[-1][1] if at else model_type
    base, field = vary.BASE.setdefault(model_type, {}), m.group(2)
    if field not in FILL or field in base:
        return False
    v = FILL[field]
    try:
        given = {**resolve(raw), **raw}
        for name, _ in at:
            given = given[name]
        base[field] = v(given) if callable(v) else v
    except (KeyError, TypeError):
        return False
    return True


def part(model_type, cls):
    """Where among the sub-configs of a model type the one of class `cls` is: [(field, model type), ...]; [] for itself or nowhere."""
    program = load("configs", model_type) or {}
    for field, sub in {**program.get("sub", {}), **program.get("auto", {})}.items():
        t = sub["model_type"]
        if (load("configs", t) or {}).get("class") == cls:
            return [(field, t)]
        if below := t != model_type and part(t, cls):
            return [(field, t), *below]
    return []


# ---------------------------------------------------------------- generalise

class Nested:
    """A node with its children, from {path: node}."""
    def __init__(self, rec):
        self.rec, self.kids = rec, {}


def nest(nodes):
    all_ = {}
    for p, r in nodes.items():
        n = all_[p] = Nested(r)
        if p:
            all_[p.rpartition(".")[0]].kids[p.rpartition(".")[2]] = n
    return all_[""]


def merged_order(seqs):
    out = []
    for s in seqs:
        last = -1
        for x in s:
            if x in out:
                last = out.index(x)
            else:
                out.insert(last + 1, x)
                last += 1
    return out


class Gen:
    def __init__(self, samples, arch, uses):
        self.samples, self.arch, self.uses = samples, arch, uses
        self.unknown, self.notes = [], []

    def number(self, obs, where):
        e = fit(obs)
        if e is None:
            self.unknown.append(f"{where}: no expression fits {sorted({t for _, t in obs})[:6]}")
            return "null"
        return e

    def when(self, obs, where, mods=False):
        if all(t for _, t in obs):
            return "true"
        p = predicate(obs, mods)
        if p is None:
            self.unknown.append(f"{where}: no condition fits ({sum(1 for _, t in obs if t)} of {len(obs)} observations have it)")
            return "null"
        return p[1]

    def alternatives(self, scope, found, name, path):
        """scope: environments of the parent; found: {index of environment: Nested}; -> nodes"""
        groups = {}
        for i, n in found.items():
            groups.setdefault(self.signature(n), []).append(i)
        out = []
        for sig, idx in groups.items():
            inside = set(idx)
            cond = self.when([(e, i in inside) for i, e in enumerate(scope)], f"{path} ({sig})")
            node = {}
            if name is not None:
                node["name"] = name
            body = self.node([(scope[i], found[i]) for i in idx], path)
            node.update(body)
            if cond != "true":
                node = {k: v for k, v in [*list(node.items())[:2], ("if", cond), *list(node.items())[2:]]}
            out.append(node)
        return out

    def signature(self, n):
        r = n.rec
        if "same" in r:
            return "same " + re.sub(r"\.\d+(?=\.|$)", ".N", r["same"])
        if r.get("idle"):
            return "idle"
        if r.get("inner", [None, False])[1]:
            return f"class of {r['inner'][0]}"      # whichever that is
        l = r.get("loader")
        return f"{r['cls']} {r['kind']} {l['kind'] if l else ''}".strip()

    def node(self, obs, path):
        """One alternative: everything but name and condition."""
        rec = obs[0][1].rec
        if "same" in rec:
            return {"same": self.same([(e, n.rec["same"]) for e, n in obs], path)}
        out = {"cls": rec["cls"]}
        sub, named = rec.get("inner", [None, False])
        if named:
            if sub and (c := self.auto(obs, path, sub)) is not None:
                return c
        inner = self.uses(rec["cls"]) if path else None
        if inner:
            c = inner(obs, path, self)
            if c is not None:
                sub, base = c
                return {"cls": rec["cls"], **({"config": sub} if sub else {}), "use": rec["cls"], **({"quant_base": base} if base != path else {})}
        if rec["kind"] != "plain":
            out["kind"] = rec["kind"]
        self.attributes(obs, path, out)
        offers = lambda n: ("quant" in n.rec) + sum(offers(c) for c in n.kids.values())
        kids = merged_order([list(n.kids) for _, n in sorted(obs, key=lambda o: -offers(o[1]))])
        if self.is_list(obs, kids):
            var = "layer" if not any("layer" in e.vars for e, _ in obs) else "sub"
            out["each"] = [var, self.number([(e, len(n.kids)) for e, n in obs], f"{path} count")]
            scope, found = [], {}
            for e, n in obs:
                for k, c in n.kids.items():
                    found[len(scope)] = c
                    scope.append(Env(e.sample, {**e.vars, var: int(k)}))
            if scope:
                out["nodes"] = self.alternatives(scope, found, None, f"{path}.{{{var}}}" if path else "{%s}" % var)
            return out
        nodes = []
        for k in kids:
            found = {i: n.kids[k] for i, (_, n) in enumerate(obs) if k in n.kids}
            nodes += self.alternatives([e for e, _ in obs], found, k, f"{path}.{k}" if path else k)
        if nodes:
            out["nodes"] = nodes
        return out

    def auto(self, obs, path, sub):
        """A language model of whatever class its config names, as the files of these classes say; None if they do not."""
        from plan import registered
        bases = set()
        for e, n in obs:
            cls = registered(at(e.sample.config, sub))
            inner = self.uses(cls) if cls else None
            found = inner([(e, n)], path, self) if inner else None
            if not found or found[0] != sub:
                self.unknown.append(f"{path}: not as the file of {cls} says: {getattr(self, 'last', [])[:3]}")
                return None
            bases.add(found[1])
        if len(bases) > 1:
            self.unknown.append(f"{path}: quantization prefixes vary {sorted(bases)}")
        base = bases.pop()
        return {"config": sub, "use": "auto", **({"quant_base": base} if base != path else {})}

    def same(self, obs, path):
        """The other name, its indices as expressions: `layers.{layer + 2}`."""
        t = obs[0][1]
        nums = [int(x) for x in re.findall(r"(?<=\.)\d+(?=\.|$)", t)]
        for i in range(len(nums)):
            k = [(e, int(re.findall(r"(?<=\.)\d+(?=\.|$)", x)[i])) for e, x in obs]
            t = re.sub(rf"(?<=\.){nums[i]}(?=\.|$)", lambda _: "{" + self.number(k, f"{path} alias") + "}", t, count=1)
        return t

    def is_list(self, obs, kids):
        cls = obs[0][1].rec["cls"]
        if cls == "Sequential":         # the blocks of a timm model
            return len(kids) > 8 and all(len({c.rec.get("cls") for c in n.kids.values()}) == 1 for _, n in obs)
        if cls != "ModuleList":
            return False
        # A few different things one after another, always the same ones, are not a list: a projector's linear, activation, linear.
        rows = {tuple(c.rec.get("cls") or "same" for c in n.kids.values()) for _, n in obs}
        return len(rows) > 1 or len(set(*rows)) == 1 or len(kids) > 4

    def attributes(self, obs, path, out):
        q = [(e, n.rec.get("quant")) for e, n in obs]
        have = [(e, x) for e, x in q if x is not None]
        if have:
            out["quant"] = self.prefix(obs, path)
            if len(have) < len(q):
                out["quant_if"] = self.when([(e, x is not None) for e, x in q], f"{path} quantization", True)
        for key in ("count", "in", "out"):
            v = [(e, n.rec[key]) for e, n in obs if key in n.rec]
            if v:
                out[key] = self.number(v, f"{path}.{key}")
        if any(n.rec.get("ahead") for _, n in obs):
            out["ahead"] = True
        if obs[0][1].rec.get("gated") is False:
            out["gated"] = False
        for flag in ("unsqueezed", "numbered", "turned"):
            if obs[0][1].rec.get(flag):
                out[flag] = True
        if "names" in obs[0][1].rec:
            if len({json.dumps(n.rec["names"]) for _, n in obs}) > 1:
                self.unknown.append(f"{path}: names of expert projections vary")
            out["names"] = obs[0][1].rec["names"]
        b = self.when([(e, n.rec["bias"]) for e, n in obs], f"{path}.bias") if any(n.rec["bias"] for _, n in obs) else "false"
        if b != "false":
            out["bias"] = True if b == "true" else b
        if "parts" in obs[0][1].rec:
            k = len(obs[0][1].rec["parts"])
            if any(len(n.rec["parts"]) != k for _, n in obs):
                self.unknown.append(f"{path}: number of parts varies")
            names = self.part_names(path, k)
            out["parts"] = [[names[i], self.number([(e, n.rec["parts"][i]) for e, n in obs], f"{path} part {i}")] for i in range(k)]
        for key in ("params", "buffers"):
            names = merged_order([list(n.rec[key]) for _, n in obs])
            d = {}
            for p in names:
                v = [(e, n.rec[key][p]) for e, n in obs if p in n.rec[key]]
                ranks = {len(s) for _, (s, _) in v}
                if len(ranks) > 1:
                    self.unknown.append(f"{path}.{p}: rank varies")
                    continue
                shp = [self.number([(e, s[i]) for e, (s, _) in v], f"{path}.{p}[{i}]") for i in range(ranks.pop())]
                dt = {t for _, (_, t) in v}
                cond = self.when([(e, p in n.rec[key]) for e, n in obs], f"{path}.{p}")
                if len(dt) > 1:
                    self.unknown.append(f"{path}.{p}: dtype varies {sorted(map(str, dt))}")
                dt = dt.pop()
                d[p] = shp if cond == "true" and not dt else {"shape": shp, **({"dtype": dt} if dt else {}), **({"if": cond} if cond != "true" else {})}
            if d:
                out[key] = d
        if obs[0][1].rec.get("loader"):
            out["loader"] = self.loader([(e, n.rec["loader"]) for e, n in obs], path)

    def prefix(self, obs, path):
        def actual(e):
            p = path
            for k, v in e.vars.items():
                p = p.replace("{%s}" % k, str(v))
            return p
        pairs = [(e, n.rec["quant"]) for e, n in obs if n.rec.get("quant") is not None]
        if all(actual(e) == q for e, q in pairs):
            return "="
        t = templated(pairs)
        if t.startswith("?"):
            self.unknown.append(f"{path}: prefix {t[1:]}")
        return t if not t or t.split(".")[0] not in path.split(".")[0] else "{root}" + t

    def part_names(self, path, k):
        last = path.split(".")[-1]
        packed = {}
        for s in self.samples:
            packed |= s.facts["packed"]
        if len(packed.get(last, ())) == k:
            return packed[last]
        # The stacked rows of the loaders, by shard.
        byshard = {}
        for s in self.samples:
            for r in s.nodes.values():
                for f, (t, sh) in ((r.get("loader") or {}).get("mapper") or {}).get("stacked", []):
                    if t.strip(".").split(".")[-1] == last and not isinstance(sh, (list, dict)):
                        byshard.setdefault({"q": 0, "k": 1, "v": 2}.get(sh, sh), f.strip(".").split(".")[-1])
        if len(byshard) == k:
            return [byshard[i] for i in sorted(byshard)]
        if k == 3 and any("q_proj" in v for v in packed.values()):
            return ["q_proj", "k_proj", "v_proj"]
        self.notes.append(f"{path}: no checkpoint names known for its {k} parts")
        return [f"{last}.{i}" for i in range(k)]

    def loader(self, obs, path):
        kind = obs[0][1]["kind"]
        if kind != "auto":
            return obs[0][1]
        extras = {k: obs[0][1][k] for k in READ if k in obs[0][1]}
        out = {"kind": "auto", **extras, "mapper": self.mapper([(e, l["mapper"]) for e, l in obs], path) or None}
        for key in ("ignore_prefixes", "ignore_suffixes"):
            lists = sorted((l[key] for _, l in obs), key=len, reverse=True)      # the longest has them all in order
            always = [x for x in lists[0] if all(x in l for l in lists)]
            if always:
                out[key] = always
            byc = {}
            for x in merged_order(lists):
                if x not in always:
                    c = self.when([(e, x in l[key]) for e, l in obs], f"{path} {key} {x}")
                    byc.setdefault(c, []).append(x)
            if byc:
                out[key + "_if"] = [[c, xs] for c, xs in byc.items()]
        for word, seen in (("skip", "skip_rows"), ("ignore_layers", "ignore_rows")):
            rows = [(e, l[seen]) for e, l in obs if seen in l]
            if rows:
                # Where nothing is left out, only the number says so.
                number = [(e, len(l[seen][1]) if seen in l else 0) for e, l in obs]
                count = DRAFTED if word == "ignore_layers" and self.drafted(number) else self.number(number, f"{path}: layers left out")
                out[word] = [rows[0][1][0], self.number([(e, r[1][0]) for e, r in rows], f"{path}: first layer left out"), count]
        aware = {l["quant_aware"] for _, l in obs}
        if len(aware) > 1:
            self.unknown.append(f"{path}: quant_aware varies")
        out["quant_aware"] = aware.pop()
        return out

    def drafted(self, obs):
        """Whether the number of layers is the one that `Base.recursive_replace` of the Transformers backend leaves to the drafter."""
        from expr import ev
        return all(ev(DRAFTED, dict(config=e.sample.config, root=e.sample.config, vars=e.vars)) == n for e, n in obs)

    def mapper(self, obs, path):
        out = {}
        for key in ("renaming", "regex", "substr", "stacked", "prefix", "suffix"):
            per = [(e, m.get(key, [])) for e, m in obs]
            if not any(r for _, r in per):
                continue
            if key == "renaming":
                self.unknown.append(f"{path}: mapper with renaming objects")
                continue
            rows, seqs = {}, []
            for e, rs in per:
                seqs.append({})
                for r in rs:
                    f = r[0]
                    t = r[1][0] if key == "stacked" else r[1]
                    sh = json.dumps(r[1][1]) if key == "stacked" else None
                    m = re.search(r"(?<![\d])\.?(\d+)\.", f) if key != "regex" and re.search(r"layers\.\d+\.", f) else None
                    if m:
                        i = m.group(1)
                        ft, tt, idx = re.sub(rf"layers\.{i}\.", "layers.{layer}.", f), t and re.sub(rf"layers\.{i}\.", "layers.{layer}.", t), int(i)
                    else:
                        ft, tt, idx = f, t, None
                    k = (ft, tt, sh)
                    if k not in rows:
                        rows[k] = {}
                    rows[k].setdefault(e.sample.id, set()).add(idx)
                    seqs[-1][k] = True
            order = merged_order(seqs)
            res = []
            for k in order:
                ft, tt, sh = k
                if any(None in v for v in rows[k].values()):
                    c = self.when([(e, e.sample.id in rows[k]) for e, _ in per], f"{path} mapper {ft}")
                    if c == "true":
                        res.append([ft, [tt, json.loads(sh)] if sh else tt])
                    else:
                        res.append({"if": c, "from": ft, "to": tt, **({"shard": json.loads(sh)} if sh else {})})
                    continue
                count = self.layer_count(path)
                obs2 = []
                for e, _ in per:
                    from expr import ev
                    n = ev(count, dict(config=e.sample.config, root=e.sample.config, vars=e.vars)) or 0
                    hit = rows[k].get(e.sample.id, set())
                    if hit - set(range(n)):
                        self.unknown.append(f"{path}: mapper rows beyond the layers")
                    obs2 += [(Env(e.sample, {**e.vars, "layer": i}), i in hit) for i in range(n)]
                c = self.when(obs2, f"{path} mapper {ft}")
                row = {"each": ["layer", count], **({"if": c} if c != "true" else {}), "from": ft, "to": tt}
                if tt is None:
                    del row["to"]
                if sh:
                    row["shard"] = json.loads(sh)
                res.append(row)
            out[key] = res
        return out

    def layer_count(self, path):
        for s in self.samples:
            for f in ("num_hidden_layers", "num_layers", "n_layer"):
                if f in s.config:
                    return f
                if isinstance(s.config.get("text_config"), dict) and f in s.config["text_config"]:
                    return "text_config." + f
        return "null"


def templated(pairs):
    """A template with index variables for strings that vary with the indices."""
    texts = {t for _, t in pairs}
    if len(texts) == 1:
        return texts.pop()
    e, t = max(pairs, key=lambda p: sum(p[0].vars.values()) if p[0].vars else 0)
    for k, v in e.vars.items():
        t = re.sub(rf"(?<=\.){v}(?=\.|$)|^{v}(?=\.)", "{%s}" % k, t, count=1)
    ok = all(re.sub(r"\{(\w+)\}", lambda m: str(e.vars.get(m.group(1))), t) == x for e, x in pairs)
    if ok:
        return t
    # Some models count on where others have stopped.
    parts = [x.split(".") for _, x in pairs]
    if len({tuple("#" if y.isdigit() else y for y in p) for p in parts}) > 1:
        return "?" + t
    out = []
    for i, seg in enumerate(parts[0]):
        if not seg.isdigit() or len({p[i] for p in parts}) == 1:
            out.append(seg)
            continue
        e = fit([(env, int(p[i])) for (env, _), p in zip(pairs, parts)])
        if e is None:
            return "?" + t
        out.append("{%s}" % e)
    return ".".join(out)


def hoist(node):
    """Where everything below speaks of one sub-config only, say so once: "config"."""
    if "use" in node:
        return
    own = {k: v for k, v in node.items() if k not in ("name", "if")}
    text = json.dumps(own)
    words, tower = set(), set()
    for key, e in expressions(own):
        e = re.sub(r"'[^']*'", "", e)
        (tower if key == "quant_if" else words).update(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?![\w(])", e))
    subs = {w for w in words if w.endswith("_config")}
    free = {"layer", "sub", "lm_only", "quant", "and", "or", "not", "in", "if", "else", "null", "true", "false"}
    if len(subs) != 1 or words - subs - free or not node.get("nodes") or '"use":' in text \
            or {w for w in tower if not w.endswith("_config")} - free:
        for c in node.get("nodes", []):
            hoist(c)
        return
    sub = subs.pop()

    def strip(x, key=None):
        if isinstance(x, str):
            if key == "quant_if":
                x = re.sub(rf"(?<![\w.])(?!{sub}\.)(\w+_config\.)", r"root.\1", x)
            return re.sub(rf"(?<![\w.]){sub}\.", "", x)
        if isinstance(x, list):
            return [strip(i, key) for i in x]
        if isinstance(x, dict):
            return {k: strip(v, k) for k, v in x.items()}
        return x
    new = {k: (v if k in ("name", "if") else strip(v, k)) for k, v in node.items()}
    node.clear()
    for k, v in new.items():
        node[k] = v
        if k == "cls":
            node["config"] = sub


def expressions(n):
    for k in ("if", "in", "out", "count", "quant_if", "bias"):
        if isinstance(n.get(k), str):
            yield k, n[k]
    if "each" in n:
        yield "each", n["each"][1]
    for _, e in n.get("parts", []):
        yield "parts", e
    if "same" in n:
        for e in re.findall(r"\{([^}]*)\}", n["same"]):
            yield "same", e
    for key in ("params", "buffers"):
        for p in n.get(key, {}).values():
            for e in p if isinstance(p, list) else [*p["shape"], *([p["if"]] if "if" in p else [])]:
                yield key, e
    for rows in ((n.get("loader") or {}).get("mapper") or {}).values():
        for r in rows:
            if isinstance(r, dict):
                yield "mapper", r.get("if", "true")
                yield "mapper", r.get("each", ["", "0"])[1]
    for c in n.get("nodes", []):
        yield from expressions(c)


def build_file(arch, samples, uses):
    g = Gen(samples, arch, uses)
    root = [(Env(s, {}), nest(s.nodes)) for s in samples]
    f0 = samples[0].facts
    out = {"class": f0["cls"], "module": f0["module"], "supports_quant": f0["supports_quant"]}
    packed = {}
    for k in merged_order([list(s.facts["packed"]) for s in samples]):
        vals = {json.dumps(s.facts["packed"][k]) for s in samples if k in s.facts["packed"]}
        c = g.when([(Env(s, {}), k in s.facts["packed"]) for s in samples], f"packed {k}")
        if len(vals) > 1:
            g.unknown.append(f"packed {k}: parts vary")
        v = json.loads(vals.pop())
        packed[k] = v if c == "true" else {"parts": v, "if": c}
    out["packed"] = packed
    out["mapper"] = g.mapper([(Env(s, {}), s.facts["mapper"]) for s in samples], "") or None
    heads = {h for s in samples for h in s.ties}
    into = merged_order([s.facts["tie_into"] for s in samples])
    if any(s.facts["tie_into"] != into for s in samples):
        g.unknown.append("tie: the configs that get the outer flag vary")
    out["tie"] = None
    inner = []
    tree = g.node(root, "")
    collect_uses(tree, "", inner)
    heads = {h for h in heads if not any(h.startswith(p + ".") for p in inner)}
    if len(heads) == 1:
        h = heads.pop()
        emb = {s.ties.get(h) for s in samples} - {None}
        if len(emb) == 1:
            c = g.when([(Env(s, {}), s.ties.get(h) is not None) for s in samples], "tie")
            out["tie"] = {"head": h, "embed": emb.pop(), "if": c}
        elif not emb:
            e = next((p for what in ({"kind": "embedding"}, {"cls": "Embedding"}) for p, n in samples[0].nodes.items() if what.items() <= n.items()), None)
            out["tie"] = e and {"head": h, "embed": e, "if": "false"}
        else:
            g.unknown.append(f"tie: {h} with one of {sorted(emb)}")
    elif heads:
        g.unknown.append(f"tie: several heads {sorted(heads)}")
    for c in tree.get('nodes', []):
        hoist(c)
    hand, src = {}, {}
    for s in samples:
        for p, (q, h) in s.facts["hand"].items():
            if not any(p == i or p.startswith(i + ".") for i in inner):
                src[q] = h
    out["source"] = src
    if arch_is_wrapper(arch):
        out["tie_into"] = into
    if pinned := sorted({*pins(samples[0].raw["model_type"], ""), *(c for c, _, _ in ONLY.get(file_of(arch), ()))}):
        out["only"] = pinned
    if f0["beside"]:
        out["beside"] = f0["beside"]
    if arch in UNWRAP:
        out["unwrap"] = "text_config"
    byerr = {}
    for r in REFUSED:
        byerr.setdefault(tuple(r.refusal), []).append(r)
    out["refuses"] = []
    for (error, message), rs in sorted(byerr.items(), key=lambda x: -len(x[1])):
        if error.startswith("StrictDataclass") or "Storage size" in message:
            continue    # the config program's own, and sizes that no file has
        have = set(samples[0].config) | set(samples[0].config.get("text_config") or ())
        known = next((row for pattern, row in REFUSALS if re.search(pattern, message)
                      and set(re.findall(r"[a-z_]{4,}", re.sub(r"'[^']*'", "", row["if"]))) - {"null"} <= have), None)
        if known:
            # A wrapper has it from the class of its language model.
            row = {**known, "config": "text_config"} if any("text_config" in x.raw for x in samples) else known
            if row not in out["refuses"] and not inner:
                out["refuses"].append(row)
            continue
        ids = {r.id for r in rs}
        p = None
        if GUESS and len(rs) >= 3:
            p = predicate([(Env(r, {}), r.id in ids) for r in rs + samples + [x for x in REFUSED if x.id not in ids]])
        if p and p[0] < 5:
            out["refuses"].append({"if": p[1], "error": error, "message": message, "pointer": pointer(p[1])})
        else:
            short = re.sub(r"\d+", "N", message.split("\n")[0][:120])
            g.notes.append(f"also refused, condition not expressed: {error}: {short}")
    # `Attention.__init__` asserts it for every class; samples that are drawn to be admissible do not show it.
    heads = next(row for pattern, row in REFUSALS if "num_kv_heads" in pattern)
    text = any("text_config" in x.raw for x in samples)
    row = {**heads, "config": "text_config"} if text else heads
    if not inner and row not in out["refuses"] and by_heads(tree):
        out["refuses"].append(row)
    out["unknown"] = sorted(set(g.unknown))
    notes = sorted({re.sub(r"\.\d+", ".N", n) for s in samples for n in s.notes} | set(g.notes))
    if notes:
        out["notes"] = notes
    out["tree"] = tree
    return out


def by_heads(node):
    """Whether query and key sizes follow from these two fields."""
    words = " ".join(e for _, e in node.get("parts", ())) if node.get("kind") == "qkv" else ""
    return "num_key_value_heads" in words and "num_attention_heads" in words or any(by_heads(c) for c in node.get("nodes", ()))


def pointer(cond):
    """The field to blame: one that is null, else the first."""
    m = re.search(r"([\w.]+) == null", cond) or re.search(r"(?<!')\b([a-z_][\w.]*)", re.sub(r"\bnot\b", "", cond))
    return "/" + m.group(1).replace(".", "/")


def collect_uses(node, path, out):
    if "use" in node:
        out.append(path)
    for c in node.get("nodes", []):
        if "name" in c:
            collect_uses(c, f"{path}.{c['name']}" if path else c["name"], out)


# ---------------------------------------------------------------- compare and write

def canon(nodes, alias=True):
    """What both sides must agree on."""
    out, after, ps = {}, {}, list(nodes)
    for p, q in zip(ps, ps[1:]):
        after[p] = [q]
    for p, n in nodes.items():
        if "same" in n:
            out[p] = n
            continue
        if n.get("idle") or n.get("cls") != "ModuleList" and set(n) <= {"cls", "kind", "bias", "params", "buffers", "loader"} and n["kind"] == "plain" and not n["params"] \
                and not n["buffers"] and not n["loader"] and not any(q.startswith(p + ".") for q in after.get(p, ())):
            out[p] = {}
            continue
        n = {k: v for k, v in n.items() if k != "inner" and v is not None and v != {} and v is not False and v != []}
        if "parts" in n:
            n["parts"] = [x[1] if isinstance(x, list) else x for x in n["parts"]]
        if "loader" in n:
            l = dict(n["loader"])
            m = {k: v for k, v in (l.get("mapper") or {}).items() if v}
            # Rows of different layers are independent: no `layers.i.` occurs in another layer's name.
            for k in m:
                lay = [r for r in m[k] if re.search(r"layers\.\d+\.", r[0])]
                m[k] = [r for r in m[k] if r not in lay] + sorted(lay, key=json.dumps)
            l["mapper"] = m
            n["loader"] = l
        out[p] = n
    return out


IDLE = re.compile(r"(^|\.)(rotary_emb|act_fn|act|logits_processor|apply_rotary_emb|rel_pos_enc|pooler|decoder_layers|cross_decoder)(\.|$)")


def differences(want, got, strict=True):
    for p, n in got.items():
        w = (want.get(p) or {}).get("loader") or {}
        if n.get("loader"):
            # What is read by hand is compared as it is written, what is measured by what it means.
            n["loader"].pop("skip_rows" if "skip" in w else "skip", None)
    want, got = canon(want), canon(got)
    out = []
    for p in want:
        if p not in got:
            out.append(f"missing {p} {want[p].get('cls', want[p])}")
        elif want[p] != got[p]:
            for k in sorted(set(want[p]) | set(got[p])):
                if want[p].get(k) != got[p].get(k):
                    out.append(f"{p}.{k}: vLLM {json.dumps(want[p].get(k))[:150]}, facts {json.dumps(got[p].get(k))[:150]}")
    out += [f"too much {p}" for p in got if p not in want]
    a, b = [p for p in want if p in got and "quant" in want[p]], [p for p in got if p in want and "quant" in got[p]]
    if a != b:
        x, y = next(((x, y) for x, y in zip([*a, None], [*b, None]) if x != y))
        out.append(f"order: vLLM {x}, facts {y}")
    if not strict:
        out = [o for o in out if not (IDLE.search(o.split(" ")[1].split(":")[0]) and o.startswith("missing"))]
    return out


def compare(s, cls, files=None, strict=True, facts=None):
    kw = dict(facts=facts) if facts else {}
    try:
        got, ties = plan_tree(cls, s.config, s.vars["lm_only"], s.vars["quant"], files=files, **kw)
    except (ValueError, LookupError, TypeError) as e:
        return [f"{type(e).__name__}: {e}"]
    out = differences(s.nodes, got, strict)
    if ties != s.ties:
        out.append(f"tie: vLLM {s.ties}, facts {ties}")
    return out


def dump(f):
    def line(x):
        return json.dumps(x, ensure_ascii=False)

    def node(n, pad):
        kids = n.get("nodes")
        if not kids:
            return pad + line(n)
        head = {k: v for k, v in n.items() if k != "nodes"}
        return pad + line(head)[:-1] + ', "nodes": [\n' + ",\n".join(node(c, pad + " ") for c in kids) + "]}"
    rows = []
    for k, v in f.items():
        if k == "tree":
            rows.append(' "tree":\n' + node(v, "  "))
        elif k in ("mapper",) and v:
            rows.append(' "mapper": {' + ",\n  ".join(f'{line(a)}: {line(b)}' for a, b in v.items()) + "}")
        else:
            rows.append(f" {line(k)}: {line(v)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("archs", nargs="*")
    ap.add_argument("--samples", type=int, default=40)
    ap.add_argument("--check", type=int, default=0)
    ap.add_argument("--config", nargs="*", default=[])
    ap.add_argument("--seed", type=int, default=None)
    ap.add_argument("--out", default=where.folder("classes"))
    ap.add_argument("--loose", action="store_true", help="modules without parameters may be missing in the file")
    a = ap.parse_args()
    real.start()
    from vllm.model_executor.models.registry import ModelRegistry, _MULTIMODAL_MODELS
    classes = {m.class_name for m in ModelRegistry.models.values()}
    files = {}
    facts = os.path.dirname(a.out.rstrip("/"))
    bad = 0
    for arch in a.archs:
        t0 = time.time()
        mt = type_of(arch)
        cls = file_of(arch)
        wrapper = arch in _MULTIMODAL_MODELS
        entry(arch).load_model_cls()
        rng = random.Random(a.seed if a.seed is not None else (2 if a.check else 1))
        if a.config:
            for c in a.config:
                raw = json.load(open(c))
                raw.pop("quantization_config", None)
                if arch not in raw.get("architectures", [arch]):
                    continue
                for lm in ([False, True] if wrapper else [False]):
                    config = resolve(raw)
                    model, vc = real.build(arch, raw, lm, "compressed-tensors")
                    s = Sample(raw, config, lm, "compressed-tensors")
                    s.nodes, s.ties, s.facts, s.notes = real.describe(model, vc)
                    tie_inner(config, s.facts["tie_into"])
                    d = compare(s, cls, files, not a.loose, facts)
                    bad += bool(d)
                    print(f"{'same' if not d else 'DIFF'} {arch} {'lm_only ' if lm else ''}{c.split('/')[-2]} {len(s.nodes)} modules", *d[:20], sep="\n   ")
            continue
        types = [mt, *ALSO.get(arch, [])]
        if a.check:
            types += UNWRAP.get(arch, [])
        n = a.check or a.samples
        refused, samples = collections.Counter(), []
        extra = prepare([(arch, t) for t in types], rng, wrapper)
        while len(samples) < n:
            s, r = draw(arch, types[len(samples) % len(types)], rng, extra, wrapper)
            refused += r
            samples.append(s)
        mark(samples + REFUSED)
        print(f"{arch}: {n} configs built in {time.time() - t0:.0f} s, refused: {dict(refused.most_common(6))}")
        if a.check:
            diffs = [(s, compare(s, cls, files, not a.loose, facts)) for s in samples]
            wrong = [(s, d) for s, d in diffs if d]
            bad += len(wrong)
            print(f"{arch}: {n - len(wrong)} of {n} trees equal")
            for s, d in wrong[:3]:
                print("  ", json.dumps(s.raw), s.vars, *d[:12], sep="\n   ")
            continue
        f = build_file(arch, samples, inner_files(cls, classes, files, facts))
        files[cls] = f
        wrong = [(s, d) for s in samples if (d := compare(s, cls, files, True, facts))]
        print(f"{arch}: own samples: {n - len(wrong)} of {n} equal; unknown: {f['unknown']}; {time.time() - t0:.0f} s")
        for s, d in wrong[:2]:
            print("  ", json.dumps(s.raw), s.vars, *d[:12], sep="\n   ")
        os.makedirs(a.out, exist_ok=True)
        with open(f"{a.out}/{cls}.json", "w") as o:
            o.write(dump(f))
    sys.exit(bool(bad))


def pins(model_type, pre, place=""):
    """What vary.PIN keeps as it is below a model type, as conditions."""
    import vary
    for field, value in {**vary.PIN.get(model_type, {}), **vary.PIN.get(place, {})}.items():
        word = {None: "null", True: "true", False: "false"}.get(value) if value is None or isinstance(value, bool) else repr(value)
        yield f"{pre}{field} == {word}"
    program = load("configs", model_type) or {}
    for field, sub in {**program.get("sub", {}), **program.get("auto", {})}.items():
        if sub["model_type"] and sub["model_type"] != model_type:
            yield from pins(sub["model_type"], f"{pre}{field}.", f"{model_type}.{field}")


def arch_is_wrapper(arch):
    from vllm.model_executor.models.registry import _MULTIMODAL_MODELS
    return arch in _MULTIMODAL_MODELS


def type_of(arch):
    from _configs import model_type_of
    return TYPES.get(arch) or model_type_of(arch)


def entry(arch):
    """What vLLM's registry has of an architecture; those that it does not list go to the Transformers backend, to a class that the config decides."""
    from vllm.model_executor.models.registry import ModelRegistry
    return ModelRegistry.models.get(arch) or ModelRegistry.models["TransformersForCausalLM"]


def file_of(arch):
    """Name of the class file; what vLLM's Transformers backend builds depends on the architecture."""
    cls = entry(arch).class_name
    return arch if cls.startswith("Transformers") else cls


def bases(t, given, depth=0):
    """Tells vary the fields that configs of a model type and of its sub-configs always have; `given` are more of them, dotted for sub-configs."""
    import vary
    from _configs import FIXES
    from configs import base_of
    vary.BASE[t] = {**base_of(t), **{k: v for k, v in given.items() if not k.startswith("-") and "." not in k}}
    program = load("configs", t) or {}
    for field, sub in {**program.get("sub", {}), **program.get("auto", {})}.items():    # text_config.head_dim
        below = {k.partition(".")[2]: v for k, v in {**FIXES.get(t, {}), **given}.items() if k.startswith(field + ".")}
        for inner in [sub["model_type"]] if sub["model_type"] else vary.KINDS.get((t, field), []):
            if inner != t and depth < 3:
                bases(inner, below, depth + 1)


def prepare(pairs, rng, wrapper):
    """Fields that the model reads beyond the declared ones; `pairs` are architectures and model types."""
    import vary
    from _configs import EXTRA, borrowed
    REFUSED.clear()
    vary.EXTRA_KEY = 1 if all(borrowed(arch) for arch, _ in pairs) else .5
    for arch, t in pairs:
        own = EXTRA.get(arch, (t, {}))[1]
        bases(t, own)
    extra = set()
    for i in range(max(4, 2 * len(pairs))):
        arch, t = pairs[i % len(pairs)]
        draw(arch, t, rng, extra, wrapper)
    return {(t, k) for (t, k), ok in dict(real.READS.get("names", {})).items() if not ok}


def mark(samples):
    """Tell every sample which fields the models have read."""
    known, unknown = {k for (_, k) in real.READS["names"]}, {}
    for t in {t for (t, _) in real.READS["names"]}:
        program = load("configs", t) or {}
        for x, y in (program.get("aliases") or {}).items():
            known |= {x, y} if {x, y} & known else set()
        # Derived fields stand for what the code computes from those that it reads.
        for field, e in program.get("derive", []):
            known.add(field)
        # What the class makes of these is not known; what they are made of may explain the tree.
        unknown[t] = set(program.get("unknown", ())) - {"text_config", "vision_config", "audio_config"}
        if unknown[t] & known:
            known |= {f for f in program.get("fields", ()) if re.search(r"pattern|indices|layer_ids|_every|period|offset|interval", f)}
    known |= {"use_bidirectional_attention", "per_layer_config", "layer_types", "model_type", "kept_tie_word_embeddings", "text_config", "vision_config", "audio_config"}
    layered = collections.defaultdict(set)
    for s in samples:
        for pre, c in [("", s.config)] + [(k + ".", v) for k, v in s.config.items() if isinstance(v, dict) and k.endswith("_config")]:
            for o in ((c.get("per_layer_config") or {}).values() if isinstance(c.get("per_layer_config"), dict) else ()):
                layered[pre] |= set(o)
    for s in samples:
        s.known, s.layered, s.unknown = known, layered, unknown


def inner_files(cls, classes, files, facts):
    def uses(c):
        if c not in classes or c == cls or not (c in files or load("classes", c, facts)):
            return None
        return lambda obs, path, g: use(c, obs, path, g, files, facts)
    return uses


def use(c, obs, path, g, files, facts):
    """(sub-config in which class c's own file gives this subtree in every sample, '' for the same; prefix under which it is quantized), or None."""
    subs = [""] + sorted({p for e, _ in obs for p in sub_configs(e.sample.config)})
    given = obs[0][1].rec.get("inner", [None])[0]
    for sub in sorted(subs, key=lambda s: (s != given, s != "text_config")):
        bases, wrong = set(), None
        for e, _ in obs:
            s = e.sample
            try:
                got, ties = plan_tree(c, at(s.config, sub), s.vars["lm_only"], s.vars["quant"], files=files, facts=facts, prefix=path)
            except (ValueError, LookupError, TypeError) as x:
                wrong = [str(x)]
                break
            want = {p: n for p, n in s.nodes.items() if p == path or p.startswith(path + ".")}
            bases.add(rebased(want, got, path))
            wrong = differences(want, got)
            if wrong:
                break
        if not wrong and len(bases - {None}) <= 1:
            return sub, (bases - {None} or {path}).pop()
        if sub in (given, ""):
            g.last = wrong
    g.notes.append(f"{path}: not as the file of {c} says: {getattr(g, 'last', [])[:3]}")
    return None


def rebased(want, got, path):
    """The prefix that stands for `path` in the quantization prefixes of `want`; those of `got` get it. None: there are none."""
    pair = next(((want[p]["quant"], n["quant"]) for p, n in got.items() if n.get("quant") and want.get(p, {}).get("quant")), None)
    if not pair:
        return None
    there, here = pair
    tail = here[len(path):]
    if not here.startswith(path) or not there.endswith(tail):
        return path
    base = there[:len(there) - len(tail)]
    for n in got.values():
        if base != path and (n.get("quant") or "").startswith(path):
            n["quant"] = base + n["quant"][len(path):]
    return base


def sub_configs(config, pre="", depth=2):
    """Dotted names of the sub-configs."""
    for k, v in config.items():
        if is_sub_config(k, v):
            yield pre + k
            if depth > 1:
                yield from sub_configs(v, f"{pre}{k}.", depth - 1)


if __name__ == "__main__":
    main()
