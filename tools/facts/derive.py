"""What a config class computes from what it was given, found by trying: random raw configs, the real class, and the smallest template that
explains every field that comes out otherwise than it went in.

What no template explains is listed in the program as `unknown`; extract.py never builds a condition on it.
"""
import inspect
import itertools
import json
import random
import re

from expr import ev

# Of every config object, and nothing that is loaded depends on them.
DULL = {"output_hidden_states", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id", "problem_type",
        "transformers_version", "architectures", "dtype", "tie_last_hidden_states", "model_type", "attribute_map", "torch_dtype", "auto_map",
        "base_model_tp_plan", "base_model_pp_plan", "base_model_ep_plan", "sub_configs", "name_or_path", "rope_scaling", "use_return_dict",
        "output_attentions", "has_no_defaults_at_init", "keys_to_ignore_at_inference", "is_heterogeneous", "per_layer_config",
        "quantization_config", "allow_global_per_layer_attribute_access", "per_layer_attributes", "time_step_limit", "eos_token_id",
        "bos_token_id", "pad_token_id"}
ROPE = re.compile(r"rope|rotary_emb|theta")
# Fields of a sub-config that the outer one may take over.
FORWARDED = ("tie_word_embeddings", "hidden_size", "vocab_size")
COUNT = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")


REMAP = ("words({}, 'mamba', 'linear_attention', 'attention', 'full_attention', 'deepseek_sparse_attention', 'indexed_attention', "
         "'qwen_sparse_attention', 'indexed_attention')")


def plain(v):
    """As JSON has it, or None for what it has not."""
    try:
        return json.loads(json.dumps(v))
    except (TypeError, ValueError):
        return {"?": str(type(v))}


def own_init(cls):
    """The first class with a constructor of its own below PreTrainedConfig, or None for the dataclasses of transformers."""
    from transformers import PreTrainedConfig
    for c in cls.__mro__:
        if c is PreTrainedConfig:
            return None
        f = c.__dict__.get("__init__")
        if f and not hasattr(f, "__wrapped__") and f.__qualname__.startswith(c.__name__ + ".") and "self" in inspect.signature(f).parameters \
                and "dataclass" not in str(getattr(f, "__module__", "")) and _has_source(f):
            return c
    return None


def _has_source(f):
    try:
        return "def __init__" in inspect.getsource(f)
    except (OSError, TypeError):
        return False


def properties(cls):
    from transformers import PreTrainedConfig
    base = {n for n in dir(PreTrainedConfig)}
    return [n for c in cls.__mro__ for n, v in vars(c).items() if isinstance(v, property) and n not in base]


def attributes(obj):
    """{name: JSON value} of a config object, sub-configs left out."""
    out = {}
    names = [k for k in vars(obj) if not k.startswith("_")] + properties(type(obj))
    for k in names:
        if k in DULL or ROPE.search(k):
            continue
        try:
            v = getattr(obj, k)
        except Exception:       # noqa: BLE001  a property that this config has no answer for
            continue
        if hasattr(v, "to_dict"):
            continue
        out[k] = plain(v)
    return out


def observe(program, cls, n, extra=(), seed=7):
    """[(naive, real attributes)], [(naive, error)] for n random raw configs."""
    import plan
    import vary
    rng, good, bad = random.Random(seed), [], []
    base = vary.BASE.get(program["model_type"], {})
    plan.OVERRIDE[("configs", program["model_type"])] = {**program, "derive": [], "checks": []}
    try:
        for i in range(n):
            vary.CHANGE = (.75, .5, .25)[i % 3]
            raw = {**base, **vary.config(program["model_type"], rng, {(program["model_type"], k) for k in extra})}
            if i % 4 == 3:      # files of today name the kinds of layers themselves
                raw = {**raw, **lists(program, raw, rng)}
            for f, values in WINDOWS.items():
                if f in program["fields"] and rng.random() < .5:
                    raw[f] = rng.choice(values)
            naive = plan.resolve(raw)
            try:
                obj = cls(**{k: v for k, v in json.loads(json.dumps(raw)).items() if k != "model_type"})
                obj.allow_global_per_layer_attribute_access = True
            except Exception as e:      # noqa: BLE001  any refusal of the class
                bad.append((naive, e))
                continue
            good.append((naive, attributes(obj)))
    finally:
        vary.CHANGE = .75
        plan.OVERRIDE.pop(("configs", program["model_type"]))
    return good, bad


# Fields that extract.py leaves alone, and on which kinds of layers may depend.
WINDOWS = {"sliding_window": (None, 64, 128), "use_sliding_window": (True, False), "max_window_layers": (0, 1, 2, 3, 8)}


def lists(program, raw, rng):
    """Values for the fields that hold one word a layer."""
    out = {}
    n = next((raw.get(c, program["fields"].get(c, {}).get("default")) for c in COUNT if c in raw or c in program["fields"]), None)
    for f, words in program.get("words", {}).items():
        if isinstance(n, int):
            out[f] = [rng.choice(words) for _ in range(n)]
    return out


def find(program, cls, n=90):
    """(derive rows, unknown fields, what the class refused)."""
    aliases = program.get("aliases", {})
    good, bad = observe(program, cls, n)
    if not good:
        return [], sorted(program["fields"]), bad
    extra = {k for _, r in good for k in r} - set(program["fields"]) - set(aliases)
    if extra:
        good, bad = observe(program, cls, n, extra)
    subs = [*program.get("sub", {}), *program.get("auto", {})]
    names = list(dict.fromkeys(k for _, r in good for k in r if k not in subs))
    state = [a | {f"{sub}.{k}": a[sub][k] for sub in subs if isinstance(a.get(sub), dict) for k in FORWARDED if k in a[sub]} for a, _ in good]
    target = [b for _, b in good]
    rows = []
    for k in ("layer_types", "mtp_layer_types"):
        # `remap_legacy_layer_types`: older files have other words. What is derived has today's.
        if any(isinstance(t.get(k), list) and set(t[k]) & {"linear_attention", "indexed_attention"} for t in target):
            rows.append([k, REMAP.format(k)])
            rows += [[a, k] for a, to in aliases.items() if to == k]
            for s in state:
                s[k] = ev(REMAP.format(k), dict(config=s, root=s, vars={}))
    from vary import STILL
    todo = [k for k in names if any(s.get(k) != t.get(k) for s, t in zip(state, target)) and (k in WINDOWS or not STILL.search(k))]
    for _ in range(3):              # a derived field may need another
        left = []
        for k in todo:
            e = explain(k, state, target)
            if e is None:
                left.append(k)
                continue
            rows.append([k, e])
            rows += [[a, k] for a, to in aliases.items() if to == k]
            for s, t in zip(state, target):
                s[k] = t.get(k)
                for a, to in aliases.items():
                    if to == k or a == k:
                        s[a] = s[to] = t.get(k)
        if left == todo:
            break
        todo = left
    return rows, sorted(todo), bad


def explain(k, state, target):
    """The smallest expression for field k in every observation."""
    rows = [(s, t[k]) for s, t in zip(state, target) if k in t]
    if len(rows) < len(state):
        return None
    for head, rest in splits(k, rows):
        if not rest:
            return head and head[0]
        for e in expressions(k, rest):
            text = f"{k} if {head[1]} else {e}" if head else e
            if all(ev(text, dict(config=s, root=s, vars={})) == t for s, t in rows):
                return text
    return None


def splits(k, rows):
    """Where the given value stays: (kept, condition), and the rest to explain."""
    for cond, holds in ((f"{k} != null", lambda s: s.get(k) is not None), (f"{k}", lambda s: bool(s.get(k))),
                        (f"{k} != -1", lambda s: s.get(k) != -1),
                        (f"{k} != 'auto' and {k} != null", lambda s: s.get(k) not in ("auto", None))):
        if all(s.get(k) == t for s, t in rows if holds(s)) and any(holds(s) for s, _ in rows):
            rest = [(s, t) for s, t in rows if not holds(s)]
            if rest and len(rest) < len(rows):
                yield (k, cond), rest
    lists = [(s, t) for s, t in rows if isinstance(s.get(k), list)]
    if all(s[k] == t for s, t in lists):        # one number stands for both sides of a square
        rest = [(s, t) for s, t in rows if not isinstance(s.get(k), list)]
        if rest and all(t == [s.get(k)] * 2 for s, t in rest):
            yield (f"{k} if len({k}) != null else [{k}, {k}]", None), []
    for g in sorted({g for s, _ in rows for g, v in s.items() if isinstance(v, bool) and g != k}):
        if all(s.get(k) == t for s, t in rows if s.get(g)) and any(s.get(g) for s, _ in rows):
            yield (k, g), [(s, t) for s, t in rows if not s.get(g)]
    yield None, rows


def lit(v):
    return {None: "null", True: "true", False: "false"}[v] if v is None or isinstance(v, bool) else repr(v)


def expressions(k, rows):
    """Candidates for the value in all rows, simplest first."""
    ts = [t for _, t in rows]
    if all(t == ts[0] for t in ts) and (ts[0] is None or isinstance(ts[0], (bool, int, float, str)) or ts[0] == []):
        yield "[]" if ts[0] == [] else lit(ts[0])
    names = sorted({f for s, _ in rows for f in s if f != k and not ROPE.search(f)}, key=len)
    for f in names:
        if all(f in s and s[f] == t for s, t in rows):
            yield f
    consts = {json.dumps(t) for t in ts}
    for f in names:             # g if g != null else constant; g if g != null else h
        if all(s.get(f) == t for s, t in rows if s.get(f) is not None) and any(s.get(f) is not None for s, _ in rows):
            for e in expressions(k, [(s, t) for s, t in rows if s.get(f) is None]) if any(s.get(f) is None for s, _ in rows) else ():
                yield f"{f} if {f} != null else {e}"
    nums = [f for f in names if all(isinstance(s.get(f), int) and not isinstance(s.get(f), bool) for s, _ in rows)]
    if all(isinstance(t, int) and not isinstance(t, bool) for t in ts):
        for f in nums:
            for c in (2, 3, 4, 8, 16):
                if all(s[f] * c == t for s, t in rows):
                    yield f"{f} * {c}"
                if all(s[f] // c == t for s, t in rows):
                    yield f"{f} // {c}"
            for c in (1, -1):
                if all(s[f] + c == t for s, t in rows):
                    yield f"{f} {'+' if c > 0 else '-'} 1"
            if all(-(-s[f] // 16) == t for s, t in rows):
                yield f"ceil_div({f}, 16)"
        for f, g in itertools.permutations(nums, 2):
            if all(s[g] > 0 and s[f] // s[g] == t for s, t in rows):
                yield f"{f} // {g}"
            if f < g and all(s[f] * s[g] == t for s, t in rows):
                yield f"{f} * {g}"
            if f < g and all(s[f] + s[g] == t for s, t in rows):
                yield f"{f} + {g}"
        few = [f for f in nums if re.search("head|size|dim|expand|width", f)]
        for f, g, h in itertools.permutations(few, 3):
            if f < g and all(s[h] > 0 and s[f] * s[g] // s[h] == t for s, t in rows):
                yield f"{f} * {g} // {h}"
    if all(isinstance(t, list) for t in ts):
        yield from of_lists(nums, rows)
    if len(consts) == 2:        # two constants, by a flag or by whether something is there
        for f in names:
            for cond, holds in ((f, lambda s: bool(s.get(f))), (f"{f} != null", lambda s: s.get(f) is not None)):
                a, b = {json.dumps(t) for s, t in rows if holds(s)}, {json.dumps(t) for s, t in rows if not holds(s)}
                if len(a) == 1 and len(b) == 1 and a != b:
                    x, y = json.loads(a.pop()), json.loads(b.pop())
                    if all(v is None or isinstance(v, (bool, int, float, str)) for v in (x, y)):
                        yield f"{lit(x)} if {cond} else {lit(y)}"


def of_lists(nums, rows):
    """One value a layer."""
    ns = [f for f in nums if all(s[f] == len(t) for s, t in rows)]
    values = list(dict.fromkeys(json.dumps(x) for _, t in rows for x in t))
    if not ns or not 1 <= len(values) <= 2 or any(isinstance(json.loads(v), (dict, list)) for v in values):
        return
    n = min(ns, key=lambda f: (f not in COUNT, len(f)))
    if len(values) == 1:
        v = lit(json.loads(values[0]))
        yield f"cycle({n}, 1, {v}, {v})"
        return
    for a, b in (values, values[::-1]):
        x, y = json.loads(a), json.loads(b)
        every = [str(c) for c in range(2, 13)] + nums
        for e in every:
            k = [int(e) if e.isdigit() else s[e] for s, _ in rows]
            if all(c > 0 and [y if i % c == 0 else x for i in range(1, len(t) + 1)] == t for c, (_, t) in zip(k, rows)):
                yield f"cycle({n}, {e}, {lit(x)}, {lit(y)})"
            if all([x if i < c else y for i in range(len(t))] == t for c, (_, t) in zip(k, rows)):
                yield f"step({n}, {e}, {lit(x)}, {lit(y)})"
            if all(c > 0 and [y if i % c == 0 else x for i in range(len(t))] == t for c, (_, t) in zip(k, rows)):
                yield f"from_cycle({n}, {e}, 0, {lit(x)}, {lit(y)})"
            for o in nums if not e.isdigit() else ():
                if o != e and all(c > 0 and [y if i % c == s[o] else x for i in range(len(t))] == t for c, (s, t) in zip(k, rows)):
                    yield f"from_cycle({n}, {e}, {o}, {lit(x)}, {lit(y)})"
        for f in sorted({f for s, _ in rows for f, v in s.items() if isinstance(v, list)}, key=len):
            if all([y if i in (s.get(f) or []) else x for i in range(len(t))] == t for s, t in rows):
                yield f"at_places({n}, {f}, {lit(x)}, {lit(y)})"
    with_last = [t for _, t in rows]
    if all(with_last):
        last = {json.dumps(t[-1]) for t in with_last}
        if len(last) == 1:
            y = json.loads(last.pop())
            x = next(json.loads(v) for v in values if json.loads(v) != y)
            for c in range(2, 9):
                if all(([y if i % c == 0 else x for i in range(1, len(t) + 1)][:-1] + [y]) == t for t in with_last):
                    yield f"with_last(cycle({n}, {c}, {lit(x)}, {lit(y)}), {lit(y)})"

