"""Finds the simplest expression over the config that fits what was seen.

An observation is an environment (features: text -> value) and a target.
"""
import functools
import itertools
import re

import numpy as np

from expr import ev
from plan import is_sub_config
from vary import STILL


# Widths that linear attention and state space models put together.
PRODUCTS = [("linear_num_key_heads", "linear_key_head_dim"), ("linear_num_value_heads", "linear_value_head_dim"), ("mamba_n_heads", "mamba_d_head"),
            ("mamba_num_heads", "mamba_head_dim"), ("num_heads", "head_dim"), ("n_mamba_heads", "mamba_headdim"), ("mamba_expand", "hidden_size"),
            ("expand", "hidden_size"), ("mamba_n_groups", "mamba_d_state"), ("n_groups", "ssm_state_size"), ("n_groups", "state_size"),
            ("mamba_ngroups", "mamba_d_state"), ("num_attention_heads", "head_dim"), ("num_key_value_heads", "head_dim"),
            ("num_attention_heads", "v_head_dim"), ("num_attention_heads", "qk_nope_head_dim"), ("moe_intermediate_size", "n_shared_experts")]


class Env:
    """Features of one sample at one place: every expression of one step, with its value."""
    cache = {}
    hints = ()          # expressions of hints.py for the class at hand

    def __init__(self, sample, vars):
        self.sample, self.vars = sample, vars

    def features(self):
        key = (self.sample.id, tuple(self.vars.items()))
        if key not in self.cache:
            self.cache[key] = self.make()
        return self.cache[key]

    def make(self):
        out = {}
        s = self.sample
        for k, v in s.vars.items():
            out[k] = v
        for k, v in self.vars.items():
            out[k] = v

        def scope(c, pre):
            for f, v in c.items():
                name = pre + f
                if is_sub_config(f, v) and pre.count(".") < 2:
                    scope(v, name + ".")
                    out[name] = "{}"
                    continue
                if not s.reads(f) or f in s.unknown.get(c.get("model_type"), ()) or STILL.search(f) and not f.endswith("_config"):
                    continue
                if f == "per_layer_config":
                    for n, i in self.vars.items():
                        for a in sorted({a for o in (v or {}).values() for a in o} | set(s.layered.get(pre, ()))):
                            out[f"get(get({name}, str({n})), '{a}', {pre}{a})"] = (v or {}).get(str(i), {}).get(a, c.get(a))
                    continue
                if isinstance(v, list):
                    out["list:" + name] = v
                    for n, i in self.vars.items():
                        if i < len(v):
                            out[f"{name}[{n}]"] = v[i]
                    for i, x in enumerate(v[:4] if len(v) <= 4 and not isinstance((v or [0])[0], str) else []):
                        out[f"{name}[{i}]"] = x
                    continue
                if isinstance(v, dict):
                    continue
                out[name] = v
            # The size of one head, as most models work it out.
            for h in ("hidden_size", "d_model", "n_embd"):
                for n in ("num_attention_heads", "n_head"):
                    if pre + h in out and pre + n in out and number(out[pre + h]) and number(out[pre + n]) and out[pre + n] > 0:
                        e = f"{pre}{h} // {pre}{n}"
                        out[f"({e})"] = out[pre + h] // out[pre + n]
                        d = pre + "head_dim"
                        if d in out and (out[d] is None or number(out[d])):
                            out[f"({d} if {d} else {e})"] = out[d] or out[f"({e})"]
            for a, b in PRODUCTS:
                if number(out.get(pre + a)) and number(out.get(pre + b)):
                    out[f"({pre}{a} * {pre}{b})"] = out[pre + a] * out[pre + b]
            if pre + "block_auto_adjust_ff_dim" in out:     # LFM2
                for f in ("block_ff_dim", "intermediate_size"):
                    e = (f"(round_up(int({pre}block_ffn_dim_multiplier * int(2 * {pre}{f} / 3)) if {pre}block_ffn_dim_multiplier != null "
                         f"else int(2 * {pre}{f} / 3), {pre}block_multiple_of) if {pre}block_auto_adjust_ff_dim else {pre}{f})")
                    v = ev(e, dict(config=s.config, root=s.config, vars={}))
                    if number(v):
                        out[e] = v
            for f in c:
                if f.endswith("_config") and f != "per_layer_config" and c[f] is None:
                    out[pre + f] = None
        scope(s.config, "")
        for e in self.hints:
            v = ev(e, dict(config=s.config, root=s.config, vars={**s.vars, **self.vars}))
            if number(v) or isinstance(v, bool):
                out[f"({e})"] = v
        return out


def number(x):
    return isinstance(x, int) and not isinstance(x, bool)


def thin(obs, most=160):
    """Enough observations to decide: all targets of every sample."""
    seen, out = {}, []
    for env, t in obs:
        k = (env.sample.id, repr(t))
        seen[k] = seen.get(k, 0) + 1
        if seen[k] <= 2:
            out.append((env, t))
    return out[:most * 4]


@functools.lru_cache(10_000)
def cost_of(name):
    return 0.02 * len(name) + (0.3 if "." in name else 0) + (0.3 if "get(" in name else 0) + (.2 if re.fullmatch(r"layer|sub\d*", name) else 0)


def table(obs):
    fs = [e.features() for e, _ in obs]
    names = [n for n in fs[0] if all(n in f and number(f[n]) for f in fs)] if fs else []
    names.sort(key=cost_of)
    return names, np.array([[f[n] for f in fs] for n in names], dtype=np.int64).reshape(len(names), len(fs))


def simple(obs):
    """(cost, text) of an expression without a condition, or None."""
    t = np.array([x for _, x in obs], dtype=np.int64)
    if (t == t[0]).all() and (t[0] in (0, 1, 2, 3, 4) or len({e.sample.id for e, _ in obs}) >= 3):
        const = (0.5, str(int(t[0])))
    else:
        const = None
    names, F = table(obs)
    best = []
    hit = [(1 + cost_of(n), n) for n, row in zip(names, F) if (row == t).all()]
    if const and (t == t[0]).all():
        # A field that is the same constant in all samples says nothing.
        hit = [h for h in hit if False]
        return const
    if hit:
        return min(hit)
    for n, row in zip(names, F):
        if (row > 0).all() and (t % row == 0).all():
            k = t // row
            if (k == k[0]).all() and 1 < k[0] <= 64:
                best.append((2 + cost_of(n), f"{n} * {int(k[0])}"))
        if (t > 0).all() and (row > t).all():
            k = int(row[0] // t[0])
            for c in (k, k - 1, 2, 4):
                if c > 1 and (row // c == t).all():
                    best.append((2 + cost_of(n), f"{n} // {c}"))
        d = t - 2 * row
        if (d == d[0]).all() and 0 < abs(d[0]) <= 2:
            best.append((2.6 + cost_of(n), f"{n} * 2 {'+' if d[0] > 0 else '-'} {abs(int(d[0]))}"))
        d = t - row
        if (d == d[0]).all() and 0 < abs(d[0]) <= 8:
            best.append((2.3 + cost_of(n), f"{n} {'+' if d[0] > 0 else '-'} {abs(int(d[0]))}"))
    if best:
        return min(best)
    n = len(names)
    idx = {}

    def pairs(op, sign, target, sym):
        out = []
        for i in range(n):
            j0 = i if sym else 0
            with np.errstate(divide="ignore", invalid="ignore"):
                m = (op(F[i][None, :], F[j0:]) == target[None, :]).all(1)
            for j in np.nonzero(m)[0]:
                out.append((3 + cost_of(names[i]) + cost_of(names[j0 + j]), f"{names[i]} {sign} {names[j0 + j]}"))
        return out
    best += pairs(lambda a, b: a * b, "*", t, True) + pairs(lambda a, b: a + b, "+", t, True) + pairs(lambda a, b: a - b, "-", t, False)
    if (F > 0).all(1).any():
        G = [i for i in range(n) if (F[i] > 0).all()]
        for i in G:
            for j in G:
                if (F[i] // F[j] == t).all():
                    best.append((3.2 + cost_of(names[i]) + cost_of(names[j]), f"{names[i]} // {names[j]}"))
                elif ((F[i] // F[j]) ** 2 == t).all():      # patches of a square image
                    f = f"({names[i]} // {names[j]})"
                    best.append((3.9 + cost_of(names[i]) + cost_of(names[j]), f"{f} * {f}"))
                elif ((F[i] // F[j]) ** 2 + 1 == t).all():  # and one for the class
                    f = f"({names[i]} // {names[j]})"
                    best.append((4 + cost_of(names[i]) + cost_of(names[j]), f"{f} * {f} + 1"))
    if best:
        return min(best)
    pos = [i for i in range(n) if (F[i] > 0).all()]
    for i in pos:
        if not (t % F[i] == 0).all():
            continue
        q = t // F[i]
        for j in pos:                                   # f * g * k
            if j >= i and (q % F[j] == 0).all():
                k = q // F[j]
                if (k == k[0]).all() and 1 < k[0] <= 64:
                    best.append((4 + cost_of(names[i]) + cost_of(names[j]), f"{names[i]} * {names[j]} * {int(k[0])}"))
                for m in pos:                           # f * g * h
                    if m >= j and (k % F[m] == 0).all() and len(set((k // F[m]).tolist())) == 1 and 1 < k[0] // F[m][0] <= 16:
                        best.append((4.8 + sum(cost_of(names[x]) for x in (i, j, m)), f"{names[i]} * {names[j]} * {names[m]} * {k[0] // F[m][0]}"))
                    if m >= j and (k == F[m]).all():
                        best.append((4.4 + sum(cost_of(names[x]) for x in (i, j, m)), f"{names[i]} * {names[j]} * {names[m]}"))
        for j in range(n):                              # f * (g + h), f * (g // k)
            for m in range(j, n):
                if (F[j] + F[m] == q).all():
                    best.append((4.2 + sum(cost_of(names[x]) for x in (i, j, m)), f"{names[i]} * ({names[j]} + {names[m]})"))
            for k in (2, 4, 8):
                if (F[j] // k == q).all():
                    best.append((4.2 + cost_of(names[i]) + cost_of(names[j]), f"{names[i]} * ({names[j]} // {k})"))
    if best:
        return min(best)
    sq = [(F[i] * F[j], i, j) for i in pos for j in pos if j >= i]
    sq = {row.tobytes(): (i, j) for row, i, j in sq}
    for i in pos:                                       # f * f * g * g * k  (patches)
        for j in pos:
            if j >= i:
                r = F[i] * F[i] * F[j] * F[j]
                if (r > 0).all() and (t % r == 0).all() and (k := t // r)[0] == k.max() == k.min() and 1 <= k[0] <= 64:
                    kk = "" if k[0] == 1 else f" * {int(k[0])}"
                    best.append((5 + cost_of(names[i]) + cost_of(names[j]), f"{names[i]} * {names[i]} * {names[j]} * {names[j]}{kk}"))
    for i in range(n):                                  # f + g - h
        for j in range(i + 1, n):
            for m in np.nonzero((F == (F[i] + F[j] - t)[None, :]).all(1))[0]:
                if m not in (i, j):
                    best.append((4.1 + sum(cost_of(names[x]) for x in (i, j, m)), f"{names[i]} + {names[j]} - {names[m]}"))
    if best:
        return min(best)
    for i in range(n):                                  # f + g * h, f - g * h
        for s, r in (("+", t - F[i]), ("-", F[i] - t)):
            if (r > 0).all() and r.tobytes() in sq:
                a, b = sq[r.tobytes()]
                best.append((4.6 + sum(cost_of(names[x]) for x in (i, a, b)), f"{names[i]} {s} {names[a]} * {names[b]}"))
            for j in pos:                               # f + k * g
                if (r > 0).all() and (r % F[j] == 0).all() and len(set((r // F[j]).tolist())) == 1 and 1 < r[0] // F[j][0] <= 8:
                    best.append((4.3 + cost_of(names[i]) + cost_of(names[j]), f"{names[i]} {s} {names[j]} * {int(r[0] // F[j][0])}"))
    return min(best) if best else combination(names, F, t)


def combination(names, F, t):
    """A sum of two or three features, each once or twice."""
    pos = [i for i in range(len(names)) if (F[i] > 0).all() and (F[i] < t).all()]
    terms = [(k, i, F[i] * k) for i in pos for k in (1, 2)]
    if len(terms) < 2:
        return None
    A = np.array([x for _, _, x in terms])
    cost = np.array([cost_of(names[i]) + .2 * (k > 1) for k, i, _ in terms])
    first = {}
    for x in np.argsort(cost):
        first.setdefault(A[x].tobytes(), int(x))
    one, best = [f"{names[i]} * {k}" if k > 1 else names[i] for k, i, _ in terms], []
    for x in range(len(terms)):
        r = t - A[x]
        if r.tobytes() in first:
            y = first[r.tobytes()]
            best.append((4 + cost[x] + cost[y], f"{one[x]} + {one[y]}"))
    if best:
        return min(best)
    for x in range(len(terms)):
        R = (t - A[x])[None, :] - A[x:]
        for d in np.nonzero((R > 0).all(1))[0]:
            z = first.get(R[d].tobytes())
            if z is not None:
                best.append((5 + cost[x] + cost[x + d] + cost[z], f"{one[x]} + {one[x + d]} + {one[z]}"))
    return min(best) if best else None


def candidates(obs):
    """Simple expressions that fit some observations: (cost, text, mask)."""
    t = np.array([x for _, x in obs], dtype=np.int64)
    fs = [e.features() for e, _ in obs]
    names = sorted({n for f in fs for n, v in f.items() if number(v)}, key=cost_of)
    out = []
    rows = {}
    for n in names:
        v = [f.get(n) for f in fs]
        ok = np.array([number(x) for x in v])
        r = np.array([x if number(x) else -1 for x in v], dtype=np.int64)
        rows[n] = (r, ok)
        for k, text in ((1, n), (2, f"{n} * 2"), (3, f"{n} * 3"), (4, f"{n} * 4")):
            m = ok & (r * k == t)
            if m.any():
                out.append((1 + cost_of(n) + (k > 1), text, m))
    for a, b in itertools.combinations_with_replacement(names, 2):
        m = rows[a][1] & rows[b][1] & (rows[a][0] * rows[b][0] == t)
        if m.sum() >= max(2, len(obs) // 50):
            out.append((3 + cost_of(a) + cost_of(b), f"{a} * {b}", m))
    for c in set(t.tolist()):
        m = t == c
        if len({e.sample.id for (e, _), x in zip(obs, m) if x}) >= 3:
            out.append((.8, str(c), m))
    return out


def fit(obs):
    """Text of an integer expression for the observations, or None."""
    obs = thin(obs)
    if not obs:
        return None
    s = simple(obs)
    if s:
        return s[1]
    cand = sorted(candidates(obs), key=lambda c: (-int(c[2].sum()), c[0]))
    tried, best = 0, []
    for c, text, m in cand[:40]:
        if m.all():
            return text
        rest = [o for o, x in zip(obs, m) if not x]
        s = simple(rest)
        if not s:
            continue
        both = [i for i, (o, x) in enumerate(zip(obs, m)) if not (x and ev_env(s[1], o[0]) == o[1])]
        p = predicate([(obs[i][0], bool(m[i])) for i in both])
        if p:
            best.append((c + s[0] + p[0], f"{text} if {p[1]} else {s[1]}", text, p, s[1]))
        tried += 1
        if tried > 12:
            break
    if not best:
        return None
    _, e, a, p, b = min(best, key=lambda x: x[0])
    if p[1].startswith("not ") or len(p[1]) > len(negate(p[1])):
        e = f"{b} if {negate(p[1])} else {a}"
    return e


def ev_env(text, env):
    return ev(text, dict(config=env.sample.config, root=env.sample.config, vars={**env.sample.vars, **env.vars}))


# ---------------------------------------------------------------- predicates

def negate(p):
    if p.startswith("(") and p.endswith(")"):
        return f"not {p}"
    for a, b in ((" == ", " != "), (" != ", " == "), (" < ", " >= "), (" >= ", " < "), (" not in ", " in "), (" in ", " not in ")):
        if a in p and " and " not in p and " or " not in p and not p.startswith("not "):
            return p.replace(a, b, 1)
    if p.startswith("not ") and " and " not in p and " or " not in p:
        return p[4:]
    return f"not ({p})" if " " in p else f"not {p}"


COUNTS = re.compile(r"(^|\.)num_\w*layers$|first_k_dense|layers$|_(start|end)_index$")
WIDTH = re.compile(r"(size|dim)$")


def atoms(fs, mods=False):
    out = {}                    # mask -> (cost, text)
    full = (1 << len(fs)) - 1

    def add(cost, text, bits):
        m = 0
        for i, b in enumerate(bits):
            if b:
                m |= 1 << i
        for mask, tx, c in ((m, text, cost), (full & ~m, negate(text), cost + .3)):
            if mask in (0, full):
                continue
            c += .01 * len(tx)
            if mask not in out or out[mask][0] > c:
                out[mask] = (c, tx)
    keys = {k for f in fs for k in f}
    index = [k for k in keys if re.fullmatch(r"layer|sub\d*", k)]
    for n in index:
        if all(number(f.get(n)) for f in fs):
            add(1.2, f"{n} > 0", [f[n] > 0 for f in fs])
            for c in (2, 3, 4):     # every third layer, as some towers have it built in
                add(2.8, f"{n} % {c} == 0", [f[n] % c == 0 for f in fs])
                add(2.9, f"({n} + 1) % {c} == 0", [(f[n] + 1) % c == 0 for f in fs])
    for k in sorted(keys):
        v = [f.get(k) for f in fs]
        if k.startswith("list:"):
            name = k[5:]
            add(1.5, name, [bool(x) for x in v])
            for n in index:
                if all(x is None or all(number(y) for y in x) for x in v):
                    add(2, f"{n} in {name}", [f.get(n) in (x or []) for f, x in zip(fs, v)])
                    if name.startswith("no_"):      # a flag for every layer
                        add(1.8, f"{name}[{n}]", [bool(x) and number(f.get(n)) and f[n] < len(x) and bool(x[f[n]]) for f, x in zip(fs, v)])
            continue
        if k[0] == "(":
            if any(isinstance(x, bool) for x in v):
                add(.8, k, [bool(x) for x in v])
            continue
        pre = .2 if "." in k else 0
        if any(x is None for x in v) and any(x is not None for x in v):
            add(1 + pre, f"{k} != null", [x is not None for x in v])
        if any(isinstance(x, bool) for x in v):
            add(.9 + pre, k, [bool(x) for x in v])
        if any(isinstance(x, str) for x in v) and k not in index:
            for x in sorted({x for x in v if isinstance(x, str) and x != "{}"}):
                add(1.4 + pre, f"{k} == '{x}'", [y == x for y in v])
        if any(number(x) for x in v) and k not in index:
            if any(x == 0 for x in v):
                add(1.2 + pre, f"{k} > 0", [number(x) and x > 0 for x in v])
                if any(x is None for x in v):
                    add(1.1 + pre, k, [bool(x) for x in v])
            if any(number(x) and x <= 1 for x in v):
                add(1.5 + pre, f"{k} > 1", [number(x) and x > 1 for x in v])
            if mods:
                add(1.6 + pre, f"{k} % 64 == 0", [number(x) and x % 64 == 0 for x in v])
            for n in index:
                if all(number(f.get(n)) for f in fs) and not k.startswith("get("):
                    i = [f[n] for f in fs]
                    if COUNTS.search(k):
                        add(2 + pre, f"{n} < {k}", [number(x) and j < x for j, x in zip(i, v)])
                        for k2 in keys:
                            if k2 != k and COUNTS.search(k2):
                                w = [f.get(k2) for f in fs]
                                add(3 + pre, f"{n} < {k} - {k2}", [number(x) and number(y) and j < x - y for j, x, y in zip(i, v, w)])
                                add(3.2 + pre, f"{k} > {k2}", [number(x) and number(y) and x > y for x, y in zip(v, w)])
                    if not COUNTS.search(k) and all(x is None or not number(x) or 0 < x <= 8 for x in v):
                        add(2.5 + pre, f"{n} % {k} == 0", [number(x) and x > 0 and j % x == 0 for j, x in zip(i, v)])
                        add(2.6 + pre, f"({n} + 1) % {k} == 0", [number(x) and x > 0 and (j + 1) % x == 0 for j, x in zip(i, v)])
    for a in sorted(k for k in keys if WIDTH.search(k) and k[0] != "("):     # projections where two widths differ
        for b in sorted(k for k in keys if WIDTH.search(k) and k[0] != "(" and k > a):
            x = [number(f.get(a)) and f.get(a) == f.get(b) for f in fs]
            if any(x) and not all(x):
                add(2.2, f"{a} == {b}", x)
    for p in sorted(k for k in keys if k.endswith("_period")):
        o = p[:-6] + "offset"
        for n in index if o in keys else ():
            if all(number(f.get(n)) and number(f.get(p)) and f[p] > 0 for f in fs):
                add(2, f"{n} % {p} == {o}", [f[n] % f[p] == f.get(o) for f in fs])
    for n in index if "index_topk_freq" in keys else ():            # layers with an indexer of their own (DeepseekV2MLAAttention)
        def own(f):
            pattern, freq, offset = (f.get(f"index_{k}") for k in ("topk_pattern", "topk_freq", "skip_topk_offset"))
            if pattern is not None:
                return pattern[f[n]:f[n] + 1] != "S"
            return bool(freq is None or freq) and max(f[n] - (2 if offset is None else offset) + 1, 0) % (1 if freq is None else freq) == 0
        add(2, f"(index_topk_pattern[{n}] != 'S' if index_topk_pattern != null else max({n} - (2 if index_skip_topk_offset == null else "
               f"index_skip_topk_offset) + 1, 0) % (1 if index_topk_freq == null else index_topk_freq) == 0)", [own(f) for f in fs])
    for q in sorted(k for k in keys if k.endswith("qkv_bias")):     # as the Llama family reads it
        pre = q[:-8]
        rest = [pre + x for x in ("attention_bias", "bias") if pre + x in keys]
        if rest:
            add(1.5, f"({q} if {q} != null else {' or '.join(rest)})",
                [bool(f[q]) if f.get(q) is not None else any(bool(f.get(r)) for r in rest) for f in fs])
    return out, full


def paren(p, op):
    return f"({p})" if (" or " in p and op == "and") or (" and " in p and op == "or") else p


def predicate(obs, mods=False):
    """(cost, text) of the smallest predicate that is true exactly where the target is."""
    # One bit for each distinct environment.
    seen, fs, ts = {}, [], []
    for e, t in obs:
        k = (e.sample.id, tuple(e.vars.items()))
        if k not in seen:
            seen[k] = t
            fs.append(e.features())
            ts.append(t)
        elif seen[k] != t:
            return None
    target = sum(1 << i for i, t in enumerate(ts) if t)
    at, full = atoms(fs, mods)
    if target == full:
        return 0, "true"
    if target == 0:
        return 0, "false"
    if target in at:
        return at[target]
    # Strings: a set of values.
    for k in sorted({k for f in fs for k in f}):
        v = [f.get(k) for f in fs]
        if k == "quant" and all(isinstance(x, str) for x in v):
            yes, no = {x for x, t in zip(v, ts) if t}, {x for x, t in zip(v, ts) if not t}
            sure = sorted(yes - no)
            if len(sure) > 1:
                m = sum(1 << i for i, x in enumerate(v) if x in sure)
                at[m] = (1.5, f"quant in {sure}")
                if m == target:
                    return at[m]
    items = list(at.items())

    def conj(t, dontcare=0):
        """a and b (and c) that equals t outside dontcare."""
        best = None
        up = [(m, ct) for m, ct in items if m & t == t]
        for i, (m1, (c1, x1)) in enumerate(up):
            if (m1 & ~dontcare) == t & ~dontcare and (best is None or c1 < best[0]):
                best = (c1, x1)
            for m2, (c2, x2) in up[i + 1:]:
                if (m1 & m2 & ~dontcare) == t & ~dontcare and (best is None or c1 + c2 < best[0]):
                    best = (c1 + c2, (x1, x2) if c1 <= c2 else (x2, x1))
        if best is None and len(up) < 160:
            for (m1, (c1, x1)), (m2, (c2, x2)), (m3, (c3, x3)) in itertools.combinations(up, 3):
                if (m1 & m2 & m3 & ~dontcare) == t & ~dontcare and (best is None or c1 + c2 + c3 < best[0]):
                    best = (c1 + c2 + c3, (x1, x2, x3))
        return best

    def text(b, op):
        return b[1] if isinstance(b[1], str) else f" {op} ".join(paren(x, op) for x in b[1])
    found = []
    b = conj(target)
    if b:
        found.append((b[0], text(b, "and")))
    b = conj(full & ~target)
    if b:
        parts = b[1] if isinstance(b[1], tuple) else (b[1],)
        found.append((b[0] + .2, " or ".join(paren(negate(x), "or") for x in parts)))
    if found:
        return min(found)
    for m1, (c1, x1) in items:                      # x or (a and b); x and (a or b)
        if m1 & ~target == 0:
            b = conj(target & ~m1, m1)
            if b:
                found.append((b[0] + c1, f"{x1} or ({text(b, 'and')})" if isinstance(b[1], tuple) else f"{x1} or {text(b, 'and')}"))
        t2 = full & ~target
        if m1 & ~t2 == 0:
            b = conj(t2 & ~m1, m1)
            if b:
                found.append((b[0] + c1 + .3, f"{negate(x1)} and not ({text(b, 'and')})"))
    return min(found) if found else None
