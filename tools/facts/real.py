"""The real vLLM: builds a class on the meta device and says what was built, as {path: node} (see plan.py for the other side)."""
import copy
import inspect
import hashlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
SPY = {"name": "spy"}
READS = {}          # (config class name, attribute) -> present, while a model is built
INNER = {}          # of the last build: id of a language model inside a wrapper -> (config, whether the config names the class)


def start(platform="cuda:90"):
    import _oracle
    from _oracle import boot, inspect_here
    _oracle.EMPTY = "meta"
    boot(platform)
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    import logging
    logging.disable(logging.ERROR)
    import skeleton as S
    inspect_here()
    spy = S.spy_config()
    S.keep_on_meta()
    S.mock_processors()
    spy.get_name = lambda self: SPY["name"]
    watch_reads()
    watch_inner()
    # The folder is gone by the time that loaders are called.
    from vllm.model_executor.models import jina
    jina._load_adapter = lambda *a: None


def watch_inner():
    """Which models are built by `init_vllm_registered_model`, and for which config."""
    from vllm.config import VllmConfig
    from vllm.model_executor.model_loader import utils
    narrow, make, given = VllmConfig.with_hf_config, utils.initialize_model, {}

    def with_hf_config(self, hf_config, architectures=None):
        out = narrow(self, hf_config, architectures=architectures)
        given[id(out)] = out, hf_config, not architectures or architectures == getattr(hf_config, "architectures", None), self.model_config.hf_config
        return out

    def initialize_model(vllm_config, **kw):
        out = make(vllm_config=vllm_config, **kw)
        if id(vllm_config) in given:
            INNER[id(out)] = given[id(vllm_config)][1:3]
        return out
    VllmConfig.with_hf_config, utils.initialize_model = with_hf_config, initialize_model
    READS["narrowed"] = given


def config_path(root, config):
    """Dotted name of a sub-config of `root`, or None."""
    if root is config:
        return ""
    for k, v in vars(root).items():
        if hasattr(v, "to_dict") and (below := config_path(v, config)) is not None:
            return f"{k}.{below}".rstrip(".")
    return None


def tie_chain(root):
    """[[sub-config whose tie flag is copied, sub-config that gets it]] in order: what `VllmConfig.with_hf_config` was called with."""
    known = [("", root)]        # copies stand for what they are copies of

    def path(config):
        for base, c in reversed(known):
            below = config_path(c, config)
            if below is not None:
                return f"{base}.{below}".strip(".")
        return None
    out = []
    for made, config, _, outer in READS["narrowed"].values():
        at, text, source = path(config), path(config.get_text_config()), path(outer)
        if at is not None:
            known.append((at, made.model_config.hf_config))
        if text and source is not None and text != source and [source, text] not in out:
            out.append([source, text])
    return out


def watch_reads():
    from transformers import PreTrainedConfig
    real = PreTrainedConfig.__getattribute__

    def get(self, key):
        if not READS.get("on") or key.startswith("_"):
            return real(self, key)
        try:
            v = real(self, key)
        except AttributeError:
            READS.setdefault("names", {})[(real(self, "model_type"), key)] = False
            raise
        READS.setdefault("names", {})[(real(self, "model_type"), key)] = True
        return v
    PreTrainedConfig.__getattribute__ = get


PACKED = {}


def restore_packed():
    """Some constructors change packed_modules_mapping of their class; a process that loads one model starts afresh."""
    for c in list(all_models()):
        if isinstance(v := vars(c).get("packed_modules_mapping"), dict):
            if c not in PACKED:
                PACKED[c] = copy.deepcopy(v)
            elif v != PACKED[c]:
                v.clear()
                v.update(copy.deepcopy(PACKED[c]))


def forget_fusers():
    """The Transformers backend keeps, for every class, how the first model of the process was fused, with its sizes. Norms and
    the like, which have no modules inside, have none."""
    if fuser := sys.modules.get("vllm.model_executor.models.transformers.fuser"):
        cache = fuser.get_fusers.cache
        for key in [k for k in cache if k[1]]:
            del cache[key]


def all_models():
    for name, mod in list(sys.modules.items()):
        if name.startswith("vllm.model_executor.models."):
            yield from (c for c in list(vars(mod).values()) if isinstance(c, type))


def build(arch, config, lm_only=False, quant="spy", dtype="bfloat16"):
    import torch
    import skeleton as S
    from _configs import write_dir
    from _oracle import engine_config, parallel_groups
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype
    restore_packed()
    forget_fusers()
    config = copy.deepcopy(config)
    config["architectures"] = [arch]
    config["quantization_config"] = {"quant_method": "spy"}
    extra = dict(language_model_only=True) if lm_only else {}
    with tempfile.TemporaryDirectory() as d:
        extra |= write_dir(d, arch, config)
        SPY["name"] = "spy"
        vc = engine_config(d, dtype=dtype, load_format="dummy", max_model_len=16, **extra)
        parallel_groups()
        SPY["name"] = quant
        INNER.clear()
        READS["narrowed"].clear()
        try:
            with set_current_vllm_config(vc), set_default_torch_dtype(vc.model_config.dtype), torch.device("meta"), S.meta_ok():
                READS["on"] = True
                try:
                    model = initialize_model(vllm_config=vc)
                finally:
                    READS["on"] = False
        finally:
            SPY["name"] = "spy"
    return model, vc


def kind_of(m):
    names = [c.__name__ for c in type(m).__mro__]
    for k, wanted in (("placeholder", {"StageMissingLayer", "PPMissingLayer"}), ("qkv", {"QKVParallelLinear"}),
                      ("merged", {"MergedColumnParallelLinear"}), ("column", {"ColumnParallelLinear"}), ("row", {"RowParallelLinear"}),
                      ("gate", {"GateLinear"}), ("replicated", {"LinearBase"}), ("lm_head", {"ParallelLMHead"}),
                      ("embedding", {"VocabParallelEmbedding"}), ("experts", {"MoERunner", "RoutedExperts", "FusedMoE"}),
                      ("attention", {"AttentionLayerBase", "Attention", "MLAAttention", "MMEncoderAttention"}),
                      ("torch_linear", {"Linear"}), ("conv", {"_ConvNd", "ConvLayerBase", "Conv2dLayer", "Conv3dLayer"})):
        if wanted & set(names):
            return k
    return "norm" if re.search(r"norm", type(m).__name__, re.I) else "plain"


# Another kernel for what is loaded alike; a wrapper's field decides, so that the file of its language model cannot say which.
SAME_CLASS = {"RSWAAttention": "Attention"}
LINEAR = ("qkv", "merged", "column", "row", "gate", "replicated")


def mapper(m):
    out = {}
    if m is None:
        return out
    renamed = [renaming(r) for r in m.orig_to_new_renaming]
    if None in renamed:
        out["renaming"] = [repr(r)[:200] for r, row in zip(m.orig_to_new_renaming, renamed) if row is None]
    if rows := [r for r in renamed if r] + [[p.pattern, n] for p, n in m.orig_to_new_regex.items()]:
        out["regex"] = rows
    if m.orig_to_new_substr:
        out["substr"] = [[k, v] for k, v in m.orig_to_new_substr.items()]
    if m.orig_to_new_stacked:
        out["stacked"] = [[k, [v[0], shard(v[1])]] for k, v in m.orig_to_new_stacked.items()]
    if m.orig_to_new_prefix:
        out["prefix"] = [[k, v] for k, v in m.orig_to_new_prefix.items()]
    if m.orig_to_new_suffix:
        out["suffix"] = [[k, v] for k, v in m.orig_to_new_suffix.items()]
    return out


def renaming(r):
    """A `WeightRenaming` of transformers as a row of regular expressions, which it is when it has one source and no scope: it replaces
    the text of its first match, `\\1` is the source's own group, and the rest of its target is plain text."""
    if type(r).__name__ not in ("WeightRenaming", "PrefixChange") or r.scope_prefix is not None or len(r.source_patterns) != 1:
        return None
    return [r.source_patterns[0].replace("*.", r".*\."), re.sub(r"\\(?!1)", r"\\\\", r.target_patterns[0])]


def renames(model):
    """The mapper of the class; that of the Transformers backend is made for the model, and no list of modules sees its stacked rows."""
    out = mapper(getattr(model if type(model).__name__.startswith("Transformers") else type(model), "hf_to_vllm_mapper", None))
    if type(model).__name__.startswith("Transformers"):
        out.pop("stacked", None)
    return out


def beside(model, vc):
    """Files of weights in the folder that the model reads besides the shards."""
    sources = [s for s in getattr(model, "secondary_weights", ()) if s.model_or_path == vc.model_config.model]
    return [p for s in sources for p in s.allow_patterns_overrides or () if "*" not in p]


def shard(s):
    if isinstance(s, tuple):
        return {"span": list(s)}
    return [shard(x) for x in s] if isinstance(s, list) else s


def source(fn):
    try:
        return hashlib.sha256(inspect.getsource(fn).encode()).hexdigest()[:12]
    except (OSError, TypeError):
        return None


def own_loader(m):
    """How a module with its own load_weights goes about it: what it hands to AutoWeightsLoader when called with no weights."""
    from hand import AFTER
    from vllm.model_executor.models import utils
    fn = getattr(m, "load_weights", None)
    if not callable(fn):
        return None, None
    calls, weights = [], iter([])
    real = utils.AutoWeightsLoader.load_weights

    def load(self, w, *, mapper=None):
        calls.append((self, w, mapper))
        return set()
    utils.AutoWeightsLoader.load_weights = load
    try:
        fn(weights)
        err = None
    except Exception as e:          # noqa: BLE001  hand-written loops may want more than nothing
        err = f"{type(e).__name__}: {str(e)[:100]}"
    finally:
        utils.AutoWeightsLoader.load_weights = real
    mod = type(m).load_weights.__module__.split(".")[-1]
    after = f"{mod}.{type(m).load_weights.__qualname__}" in AFTER
    if len(calls) == 1 and calls[0][0].module is m and not err:
        a, given, mp = calls[0]
        qc = next((x.quant_config for x in (m, *m.children()) if hasattr(x, "quant_config")), None)
        auto = dict(kind="auto", mapper=mapper(mp), ignore_prefixes=list(a.ignore_unexpected_prefixes),
                    ignore_suffixes=list(a.ignore_unexpected_suffixes), quant_aware=qc is not None)
        left_out(auto)
        ignored_layers(auto)
        return auto, fn if after or given is not weights else None
    return dict(kind=mod), fn


def left_out(loader):
    """Rows that drop whole layers, as what they mean: `skip_rows`, the prefix and the indices."""
    rows = loader["mapper"].get("prefix", [])
    hits = [(r, m) for r in rows if r[1] is None and (m := re.fullmatch(r"(.*layers\.)(\d+)\.", r[0]))]
    index = [int(m.group(2)) for _, m in hits]
    if hits and len({m.group(1) for _, m in hits}) == 1 and index == list(range(index[0], index[0] + len(index))):
        loader["skip_rows"] = [hits[0][1].group(1), index]
        loader["mapper"]["prefix"] = [r for r in rows if r not in [h for h, _ in hits]]
        if not loader["mapper"]["prefix"]:
            del loader["mapper"]["prefix"]


def ignored_layers(loader):
    """Prefixes of whole layers that may be there, as what they mean: `ignore_rows`, the prefix and the indices."""
    hits = [(p, m) for p in loader["ignore_prefixes"] if (m := re.fullmatch(r"(.*\.)(\d+)\.", p))]
    index = [int(m.group(2)) for _, m in hits]
    if hits and len({m.group(1) for _, m in hits}) == 1 and index == list(range(index[0], index[0] + len(index))):
        loader["ignore_rows"] = [hits[0][1].group(1), index]
        loader["ignore_prefixes"] = [p for p in loader["ignore_prefixes"] if p not in [h for h, _ in hits]]


def by_hand(fn, seen, module):
    """What is known of a load_weights with code of its own around or instead of AutoWeightsLoader."""
    from hand import LOADERS
    name = f"{fn.__module__.split('.')[-1]}.{fn.__qualname__}"
    read, table = LOADERS.get(name, (None, None))
    if not read or read != source(fn):
        return dict(kind=fn.__module__.split(".")[-1])
    if callable(table):
        table = table(module)
    for rows in ("stacked", "regex"):
        before = f"{rows}_before"
        if before in table and seen["kind"] == "auto":
            table = {**table, "mapper": {**seen["mapper"], rows: table[before] + seen["mapper"].get(rows, [])}}
            del table[before]
    if "child" in table:
        if seen["kind"] != "auto":      # an adapter: the class that it was made from has the loop
            inner = next(c for c in type(module).__mro__ if "load_weights" in vars(c) and vars(c)["load_weights"] is not fn.__func__)
            return by_hand(inner.load_weights, seen, module)
        # Names that begin with another child of the module are left alone.
        prefix, others = table["prefix"]
        has = hasattr(module, table["child"])
        table = {"kind": "auto", **({"prefix": [prefix, list(dict.fromkeys([*others, *(n + "." for n in module._modules)]))]} if has else {})}
    return copy.deepcopy({**seen, **table} if table["kind"] == "auto" == seen["kind"] else table)


def describe(model, vc):
    """{path: node} in construction order, tie, packed mapping, class facts."""
    import torch
    spy = vc.quant_config
    offered, when = {}, {}
    for i, (layer, prefix) in enumerate(spy.offered):
        offered.setdefault(id(layer), []).append(prefix)
        when.setdefault(id(layer), i)
    dtype = str(vc.model_config.dtype)[6:]
    out, hand, notes = {}, {}, []

    # The first name of every module in registration order is its own; others are aliases.
    own = {}
    for n, m in model.named_modules():
        own.setdefault(id(m), n)
    live = {id(m) for m in model.modules() if m.state_dict(keep_vars=True) or any(id(x) in when for x in m.modules())}

    def offers(m, path):
        return [(when[id(x)], id(x)) for x in m.modules() if id(x) in when and own[id(x)].startswith(path)]

    # Blocks that the elements of a list share: they are offered before it, and lie in an element that comes later.
    ahead, inside = set(), set()
    for path, m in model.named_modules():
        elders = []
        for n, c in m._modules.items() if type(m).__name__ == "ModuleList" else ():
            spans = [(d, [i for i, _ in offers(d, f"{path}.{n}.{k}")]) for k, d in c._modules.items() if d is not None]
            new = [d for d, o in spans if o and any(max(o) < e for e in elders)]
            ahead |= {id(d) for d in new}
            inside |= {id(x) for d in new for x in d.modules()}
            elders += [min(o) for d, o in spans if o and id(d) not in ahead]

    def first(m, path):
        return min((i for i, x in offers(m, path) if x not in inside or id(m) in inside), default=None)

    def ordered(m, path):
        """Children in the order in which they were offered for quantization, else of registration."""
        kids = [(n, c) for n, c in m._modules.items() if c is not None]
        keys, last = {}, -1
        for n, c in kids:
            f = first(c, f"{path}.{n}" if path else n)
            keys[n] = last if f is None else f
            last = keys[n]
        return sorted(kids, key=lambda kv: keys[kv[0]])      # stable

    def sizes(t):
        return list(t.shape)

    def tensor(t):
        d = str(t.dtype)[6:]
        return [sizes(t), None if d == dtype else d]

    def visit(m, path):
        k = kind_of(m)
        if id(m) not in live and k not in ("norm", "placeholder") and path \
                and not any(type(x).__name__ == "ModuleList" for x in m.modules()):
            out[path] = dict(cls=type(m).__name__, kind="plain", bias=False, params={}, buffers={}, loader=None, idle=True)
            return
        if own[id(m)] != path and id(m) in live:
            if k != "experts":
                out[path] = dict(same=own[id(m)])
            return
        e = dict(cls=SAME_CLASS.get(type(m).__name__) or type(m).__name__, kind=k, bias=False)
        ps = {n: p for n, p in m._parameters.items() if p is not None}
        bs = {n: b for n, b in m._buffers.items() if b is not None and n not in m._non_persistent_buffers_set}
        q = offered.get(id(m))
        kids = ordered(m, path)
        if k in LINEAR:
            outs = list(m.output_sizes) if hasattr(m, "output_sizes") else [m.output_size]
            e["in"], e["bias"] = m.input_size, "bias" in ps
            if k in ("qkv", "merged"):
                e["parts"] = outs
            else:
                e["out"] = m.output_size
            w = ps.pop("weight", None)
            ps.pop("bias", None)
            if w is not None and sizes(w) == [sum(outs), 1, m.input_size]:
                e["unsqueezed"] = True      # a convolution along time
                if getattr(w.weight_loader, "__qualname__", "").startswith("_make_fused_conv1d_weight_loader") and not any(path.startswith(p) for p in hand):
                    e["numbered"] = True    # it takes numbered parts only, and AutoWeightsLoader gives no numbers
            elif w is None or sizes(w) != [sum(outs), m.input_size]:
                notes.append(f"{path}: weight {w is not None and sizes(w)} is not [{sum(outs)}, {m.input_size}]")
        elif k in ("embedding", "lm_head"):
            e["out"], e["in"], e["bias"] = m.org_vocab_size, m.embedding_dim, "bias" in ps
            ps.pop("bias", None)
            w = ps.pop("weight", None)
            if w is None or sizes(w) != [-(-m.num_embeddings // 64) * 64, m.embedding_dim]:
                notes.append(f"{path}: weight is not [{m.num_embeddings} padded, {m.embedding_dim}]")
        elif k == "experts":
            r = m.routed_experts if hasattr(m, "routed_experts") else m
            q = q or offered.get(id(r))
            rp = dict(r._parameters)
            w13, w2 = rp.pop("w13_weight"), rp.pop("w2_weight")
            e.update(count=r.global_num_experts, **{"in": w13.shape[2], "out": w2.shape[2]},
                     bias=rp.pop("w13_bias", None) is not None, names=[r.ckpt_gate_proj_name, r.ckpt_down_proj_name, r.ckpt_up_proj_name or ""])
            rp.pop("w2_bias", None)
            gated = w13.shape[1] == 2 * w2.shape[2]
            if not gated:
                e["gated"] = False
            if getattr(r, "is_fused_checkpoint_transposed", False):
                e["turned"] = True
            if sizes(w13) != [e["count"], e["out"] * (2 if gated else 1), e["in"]] or sizes(w2) != [e["count"], e["in"], e["out"]]:
                notes.append(f"{path}: expert shapes {sizes(w13)} {sizes(w2)}")
            for n, p in rp.items():
                if p is not None and not any(p is x for y, o in model.named_modules() if o is not r for x in o._parameters.values()):
                    ps[n] = p
            kids = [(n, c) for n, c in kids if c is not r and id(c) in live and own[id(c)] == f"{path}.{n}"]
        elif k in ("attention", "placeholder"):
            bs = {n: b for n, b in bs.items() if not re.match(r"_?[kqv]_|_prob_scale|_\w+_scale", n)}
            if k == "placeholder":
                kids, ps, bs = [], {}, {}
        if id(m) in ahead:
            e["ahead"] = True
        if q:
            e["quant"] = q[0]
            if len(set(q)) > 1:
                notes.append(f"{path}: offered as {sorted(set(q))}")
        e["params"] = {n: tensor(p) for n, p in ps.items()}
        e["buffers"] = {n: tensor(b) for n, b in bs.items()}
        e["loader"] = None
        if k not in LINEAR + ("experts", "placeholder"):
            e["loader"], fn = own_loader(m)
            if fn is not None:
                e["loader"] = by_hand(fn, e["loader"], m)
            if fn is not None:
                hand[path] = fn
        if k in LINEAR and k not in ("qkv", "merged") and callable(getattr(m, "load_weights", None)):
            notes.append(f"{path}: {e['cls']} has load_weights of its own")
        if id(m) in INNER and path:
            config, named = INNER[id(m)]
            e["inner"] = [config_path(vc.model_config.hf_config, config), named]
        out[path] = e
        for n, c in kids:
            visit(c, f"{path}.{n}" if path else n)

    visit(model, "")
    ties = {}
    emb = {}
    for n, m in model.named_modules():
        if kind_of(m) == "embedding" and getattr(m, "weight", None) is not None:
            emb.setdefault(id(m.weight), n)
    for n, m in model.named_modules():
        if kind_of(m) == "lm_head" and getattr(m, "weight", None) is not None:
            ties[n] = emb.get(id(m.weight))
    c = type(model)
    facts = dict(cls=c.__name__, module=c.__module__,
                 tie_into=tie_chain(vc.model_config.hf_config),
                 supports_quant=any(x.__name__ == "SupportsQuant" for x in c.__mro__),
                 packed={k: list(v) for k, v in (spy.packed_modules_mapping or {}).items()},
                 mapper=renames(model), beside=beside(model, vc),
                 hand={p: (f"{fn.__module__.split('.')[-1]}.{fn.__qualname__}", source(fn)) for p, fn in hand.items()})
    return out, ties, facts, notes
