"""Evaluates fact files as the Rust side does: a config program on a raw config, a class file on a resolved config.

The result has the form that real.py gives the real model, so that they can be compared.
"""
import copy
import functools
import json
import os
import re

import where
from expr import ev, truth

HERE = where.folder()
# (kind, name) -> what stands in for the file: programs under construction.
OVERRIDE = {}


def load(kind, name, facts=HERE):
    if (kind, name) in OVERRIDE:
        return OVERRIDE[(kind, name)]
    p = where.find(kind, name, facts)
    return read(p, os.stat(p).st_mtime_ns, where.instead(p, facts)) if p else None


@functools.lru_cache(2000)
def read(p, _, instead):
    with open(p) as f:
        text = f.read()
    for a, b in instead:
        text = text.replace(a, b)
    return json.loads(text)


def is_sub_config(field, value):
    """Whether a field of a config holds a sub-config."""
    return isinstance(value, dict) and field.endswith("_config") and field != "per_layer_config" and not field.startswith("quant")


class Refused(Exception):
    pass


def resolve(raw, facts=HERE, model_type=None, depth=0):
    """What vLLM sees after get_config(), as far as the program says."""
    raw = copy.deepcopy(raw)
    program = load("configs", model_type or raw["model_type"], facts)
    if program is None:
        raise LookupError(f"no config program for {model_type or raw.get('model_type')}")
    if isinstance(inner := raw.get(program.get("flat")), dict):
        raw = {**{k: v for k, v in inner.items() if k not in ("model_type", "_name_or_path")}, **raw}
    alias = program.get("aliases", {})
    out = {alias.get(k, k): copy.deepcopy(f.get("default")) for k, f in program["fields"].items()}
    for k, v in raw.items():
        out[alias.get(k, k)] = v
    for a, k in alias.items():
        out[a] = copy.deepcopy(out.get(k))
    for field, sub in program.get("sub", {}).items():
        v = out.get(sub.get("from", field))
        t, default = sub.get("model_type"), sub.get("default")
        if v is None and default == "flat":
            inner = load("configs", t, facts)
            v = {k: x for k, x in raw.items() if (k in inner["fields"] or k in inner.get("sub", ())) and k not in program["fields"]}
        elif v is None and default == "class":
            v = {}
        if isinstance(v, dict):
            out[field] = resolve(v, facts, t, depth + 1) if load("configs", t, facts) else v
    for field, sub in program.get("auto", {}).items():
        v = out.get(sub.get("from", field))
        v = copy.deepcopy(sub["default"]) if v is None else v
        if isinstance(v, dict):
            if sub.get("merge") and v.get("model_type", sub["model_type"]) == sub["model_type"]:
                v = {**copy.deepcopy(sub["default"]), **v}
            out[field] = resolve(v, facts, v.get("model_type") or sub["model_type"], depth + 1)
            out[field].setdefault("model_type", sub["model_type"])
    for field, e in program.get("derive", []):
        out[field] = ev(e, dict(config=out, root=out, vars={}))
    for c in program.get("checks", []):
        if not truth(c["ok"], dict(config=out, root=out, vars={})):
            raise Refused(c["error"] + ": " + c["message"])
    return json.loads(json.dumps(out, default=str))


def registered(config, facts=HERE):
    """Class that stands for the config of a language model inside a wrapper (`VllmConfig.with_hf_config`), or None."""
    config = config or {}
    named = config.get("architectures") or [load(".", "names", facts)["causal"].get(config.get("model_type"))]
    known = load(".", "registry", facts)["architectures"]
    return next((known[n]["class"] for n in named if n in known), None)


def shape(ds, s):
    return [ev(d, s) for d in ds]


def params(d, s):
    out = {}
    for k, p in (d or {}).items():
        if isinstance(p, list):
            p = dict(shape=p)
        if "if" in p and not truth(p["if"], s):
            continue
        out[k] = [shape(p["shape"], s), p.get("dtype")]
    return out


def fill(t, path, root, s):
    if t == "=":
        return path
    # A prefix that is put before `.layers` whether it is empty or not.
    t = t.replace("{root}.", root.rstrip(".") + ".").replace("{root}", root)
    return re.sub(r"\{([^}]*)\}", lambda m: str(ev(m.group(1), s)), t)


def rows(table, s):
    out = []
    for r in table or []:
        if isinstance(r, list):
            out.append(copy.deepcopy(r))
            continue
        each = r.get("each")
        n = ev(each[1], s) if each else 1
        for i in range(n or 0):
            v = dict(s, vars=dict(s["vars"], **({each[0]: i} if each else {})))
            if "if" in r and not truth(r["if"], v):
                continue
            sub = lambda x: x if x is None else fill(x, "", "", v)
            out.append([sub(r["from"]), [sub(r["to"]), r["shard"]] if "shard" in r else sub(r.get("to"))])
    return out


def mapper(m, s):
    if not m:
        return {}
    return {k: rows(m[k], s) for k in ("regex", "substr", "stacked", "prefix", "suffix") if rows(m.get(k), s)}


# What hand.py knows of a loader beyond what is measured.
READ = ("permute", "segments", "skip", "prefix", "turned", "one_row", "squeezed", "halves", "zero_bias", "head_bias", "aside", "filled", "outer", "joined", "patches")


def loader(l, s):
    if not l:
        return None
    if l.get("lenient"):
        return dict(kind="auto", lenient=True)
    if l["kind"] != "auto":
        return copy.deepcopy(l)
    out = dict(kind=l["kind"])
    if l["kind"] == "auto":
        ign = list(l.get("ignore_prefixes", []))
        for cond, more in l.get("ignore_prefixes_if", []):
            if truth(cond, s):
                ign += more
        suf = list(l.get("ignore_suffixes", []))
        for cond, more in l.get("ignore_suffixes_if", []):
            if truth(cond, s):
                suf += more
        out.update({k: copy.deepcopy(l[k]) for k in READ if k in l})
        if "skip" in l:
            first, n = ev(l["skip"][1], s), ev(l["skip"][2], s)
            if n:
                out["skip_rows"] = [l["skip"][0], list(range(first, first + n))]
        if "ignore_layers" in l:
            prefix, first, n = l["ignore_layers"][0], ev(l["ignore_layers"][1], s), ev(l["ignore_layers"][2], s)
            if n:
                out["ignore_rows"] = [prefix, list(range(first, first + n))]
        out.update(mapper=mapper(l.get("mapper"), s), ignore_prefixes=ign, ignore_suffixes=suf,
                   quant_aware=bool(l.get("quant_aware", False)))
    return out


def tree(cls, config, lm_only=False, quant="spy", facts=HERE, files=None, prefix=""):
    """{path: node}, in construction order, and the tie: {head: embedding or None}"""
    out, ties = {}, {}
    files = files or {}

    def get(name):
        return files.get(name) or load("classes", name, facts)

    def klass(name, path, s):
        f = get(name)
        if f is None:
            raise LookupError(f"no class file {name}")
        root = path + "." if path else ""
        if f.get("unwrap") and isinstance(s["config"].get(f["unwrap"]), dict):
            s = dict(s, config=s["config"][f["unwrap"]])
        node(f["tree"], path, root, s)
        s = narrow(f["tree"], s)
        t = f.get("tie")
        if t:
            ties[root + t["head"]] = root + t["embed"] if truth(t["if"], s) else None

    def narrow(n, s):
        c = n.get("config")
        if not c:
            return s
        if c.endswith("?"):
            sub = s["config"].get(c[:-1])
            return dict(s, config=sub) if isinstance(sub, dict) else s
        return dict(s, config=ev(c, s) or {})

    def node(n, path, root, s):
        s = narrow(n, s)
        if "use" in n:
            klass(registered(s["config"], facts) if n["use"] == "auto" else n["use"], path, s)
            for p, r in out.items():
                if "quant_base" in n and (p == path or p.startswith(path + ".")) and (r.get("quant") or "").startswith(path):
                    r["quant"] = n["quant_base"] + r["quant"][len(path):]
            return
        if "same" in n:
            out[path] = dict(same=root + re.sub(r"\{([^}]*)\}", lambda m: str(ev(m.group(1), s)), n["same"]))
            return
        r = dict(cls=n["cls"], kind=n.get("kind", "plain"))
        if n.get("ahead") and s["vars"].get("layer"):       # in the first element it comes first anyway
            r["ahead"] = True
        if "quant" in n and truth(n.get("quant_if", "true"), s):
            r["quant"] = fill(n["quant"], path, root, s)
        for k in ("in", "out", "count"):
            if k in n:
                r[k] = ev(n[k], s)
        if "names" in n:
            r["names"] = n["names"]
        if n.get("gated") is False:
            r["gated"] = False
        r.update({k: True for k in ("unsqueezed", "numbered", "turned") if n.get(k)})
        b = n.get("bias", False)
        r["bias"] = b if isinstance(b, bool) else truth(b, s)
        if "parts" in n:
            r["parts"] = [[a, ev(e, s)] for a, e in n["parts"]]
        r["params"], r["buffers"] = params(n.get("params"), s), params(n.get("buffers"), s)
        r["loader"] = loader(n.get("loader"), s)
        out[path] = r
        if "each" in n:
            var, count = n["each"]
            for i in range(ev(count, s) or 0):
                v = dict(s, vars=dict(s["vars"], **{var: i}))
                hit = [a for a in n["nodes"] if truth(a.get("if", "true"), v)]
                if len(hit) != 1:
                    raise ValueError(f"{path}.{i}: {len(hit)} alternatives")
                node(hit[0], f"{path}.{i}" if path else str(i), root, v)
        else:
            for c in n.get("nodes", []):
                if truth(c.get("if", "true"), s):
                    p = f"{path}.{c['name']}" if path else c["name"]
                    if p in out:
                        raise ValueError(f"{p}: two alternatives")
                    node(c, p, root, s)

    klass(cls, prefix, dict(config=config, root=config, vars=dict(lm_only=lm_only, quant=quant)))
    return out, ties
