"""See what load_weights writes and what it reads, byte by byte, without changing a value.

A dispatch mode watches every operator while the model loads.  On the model's side it marks the bytes of
parameters and persistent buffers that are written; on the checkpoint's side the bytes of each stored tensor that
are read.  So it knows what stayed unwritten or half written, which tensors were used only in part ("cut"),
which not at all, and where a copy changed the kind of number ("cast").
"""
import re

# Left at their default without a kv_cache_scheme: by design, no damage.
KV_DEFAULT = re.compile(r"\.(_?[kqv]_scale|_?prob_scale|_?[kqv]_zero_point|_?[kqv]_range)(_float)?$")
# vLLM never reads it.
NEVER_READ = re.compile(r"(^|[._])weight_shape$")


def dropped(model):
    """Input scales of NVFP4 without activations: vLLM takes them from older exports, and drops them after the load."""
    def weights_only(q):
        return type(q).__name__ == "ModelOptLinearMethod" and q.spec.activation is None or type(q).__name__ == "ModelOptNvFp4FusedMoE" and q.use_a16
    return {f"{name}.{s}" for name, m in model.named_modules() if weights_only(getattr(m, "quant_method", None))
            for s in ("input_scale", "w13_input_scale", "w2_input_scale")}


def computed(model):
    """What a constructor gives its value and `load_weights` leaves alone whatever is stored (`RadioModel`, `VoxtralForConditionalGeneration`)."""
    own = {"RadioModel": ["summary_idxs"], "RadioVisionEncoderLayer": ["ls1", "ls2"], "VoxtralEncoderModel": ["whisper_encoder.embed_positions.weight"]}
    return {f"{name}.{s}" for name, m in model.named_modules() for s in own.get(type(m).__name__, ())}


def ranges(ids):
    out = []
    for i in ids:
        if out and out[-1][1] == i:
            out[-1][1] = i + 1
        else:
            out.append([i, i + 1])
    return out[:20]


def make_track():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten

    short = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
             torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
             torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.uint16: "U16", torch.uint32: "U32",
             torch.uint64: "U64", torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ"}
    e8m0 = getattr(torch, "float8_e8m0fnu", None)
    if e8m0:
        short[e8m0] = "F8_E8M0"

    def kind(dtype):
        """Numbers of one kind are converted with rounding at most; between kinds the meaning changes."""
        if dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            return "float"
        if dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
            return "int"
        return short.get(dtype, str(dtype))

    def changes_meaning(src, dst, to):
        if kind(src) == kind(dst):
            return kind(src) == "int" and dst.itemsize < src.itemsize
        if {kind(src), kind(dst)} <= {"int", "U8", "U16", "U32", "U64"}:
            return dst.itemsize < src.itemsize      # of one width: the same bits
        # A scale in an 8-bit float widened to a float keeps its value, and is meant so.
        return not (kind(dst) == "float" and kind(src).startswith("F8") and to and "scale" in to.rpartition(".")[2])

    class Stored:
        """One tensor as streamed, or a temporary made from streamed tensors."""
        __slots__ = ("ids", "mask", "direct", "numel", "nbytes", "cast", "children")

        def __init__(self, ids, t, cast=None):
            n = t.untyped_storage().nbytes()
            self.ids, self.numel, self.nbytes, self.cast, self.children = ids, t.numel(), n, cast, []
            self.mask = torch.zeros(n, dtype=torch.uint8)      # bytes read by anything
            self.direct = torch.zeros(n, dtype=torch.uint8)    # bytes read by a write into the model

    def view(mask, t):
        k = t.itemsize
        return mask.as_strided(t.shape + (k,), tuple(s * k for s in t.stride()) + (1,), t.storage_offset() * k)

    def ptr(t):
        return t.untyped_storage().data_ptr()

    class Track(TorchDispatchMode):
        def __init__(self, model):
            super().__init__()
            self.mask, self.keep, self.twice = {}, [], {}
            self.entries, self.source, self.used, self.into, self.casts = [], {}, set(), {}, {}
            self.scalar, self.param_of = None, {}
            for name, _, t in self.tensors(model):
                if t.device.type == "meta" or not t.numel():
                    continue
                s = t.untyped_storage()
                self.keep.append(s)
                self.mask.setdefault(s.data_ptr(), torch.zeros(s.nbytes(), dtype=torch.uint8))
                self.param_of.setdefault(s.data_ptr(), name)

        @staticmethod
        def tensors(model):
            for n, p in model.named_parameters():
                yield n, "parameter", p
            for mname, m in model.named_modules():
                for n, b in m.named_buffers(recurse=False):
                    if n not in m._non_persistent_buffers_set:
                        yield (f"{mname}.{n}" if mname else n), "buffer", b

        def stored(self, name, file, t):
            with torch._C._DisableTorchDispatch():
                self.keep.append(t)
                i = len(self.entries)
                node = Stored({i}, t) if t.numel() else None
                self.entries.append((name, file, t.dtype, list(t.shape), node))
                if node:
                    self.source[ptr(t)] = node

        def note_cast(self, ids, src, dst, to):
            if changes_meaning(src, dst, to):
                for i in ids:
                    self.casts.setdefault(i, (short.get(src, str(src)), short.get(dst, str(dst)), to))

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            out = func(*args, **kwargs)
            with torch._C._DisableTorchDispatch():
                self.look(func, args, kwargs, out)
            return out

        def look(self, func, args, kwargs, out):
            op = func._schema.name
            flat = [x for x in tree_flatten((args, kwargs))[0]
                    if isinstance(x, torch.Tensor) and x.device.type != "meta" and x.numel()]
            outs = [x for x in tree_flatten(out)[0] if isinstance(x, torch.Tensor) and x.device.type != "meta" and x.numel()]
            written = []
            for i, a in enumerate(func._schema.arguments):
                if a.alias_info is None or not a.alias_info.is_write:
                    continue
                t = args[i] if i < len(args) else kwargs.get(a.name)
                written += [x for x in (t if isinstance(t, (list, tuple)) else [t])
                            if isinstance(x, torch.Tensor) and x.device.type != "meta" and x.numel()]
            wrote = {ptr(t) for t in written}
            shares = {ptr(t) for t in outs}
            nodes, ids, srcs = [], set(), []
            for x in flat:
                node = self.source.get(ptr(x))
                if node and ptr(x) not in wrote:
                    nodes.append(node)
                    srcs.append(x)
                    ids |= node.ids
            if op == "aten::_local_scalar_dense" and ids:
                self.used |= ids
                self.scalar = (ids, srcs[0].dtype)
            filled = None
            if op == "aten::fill_" and self.scalar and not nodes:
                filled, self.scalar = self.scalar, None
            into_model = False
            for t in written:
                mask = self.mask.get(ptr(t))
                if mask is None:
                    if ids:                     # a scratch tensor filled from stored tensors
                        node = self.source.get(ptr(t))
                        if node:
                            node.ids |= ids
                        else:
                            self.keep.append(t)
                            self.source[ptr(t)] = Stored(set(ids), t)
                        if op == "aten::copy_":
                            self.source[ptr(t)].cast = self.carried(nodes, srcs, t.dtype)
                    continue
                into_model = True
                m = view(mask, t)
                value = 2 if ids or filled else 1
                if op == "aten::index_put_":
                    m.index_put_(tuple(args[1]), torch.tensor(value, dtype=torch.uint8))
                else:
                    if ids and bool((m == 2).any()):
                        self.twice.setdefault(ptr(t), set()).update(ids)
                    m.fill_(value)
                who = ids or (filled[0] if filled else set())
                to = self.param_of.get(ptr(t))
                for i in who:
                    self.into.setdefault(i, set()).add(to)
                self.used |= who
                if op == "aten::copy_" and srcs:
                    carried = next((n.cast for n in nodes if n.cast), None)
                    self.note_cast(ids, carried or srcs[0].dtype, t.dtype, to)
                elif filled:
                    self.note_cast(filled[0], filled[1], t.dtype, to)
            for node, x in zip(nodes, srcs):
                if ptr(x) in shares and not written:
                    continue                    # a view reads nothing
                view(node.mask, x).fill_(1)
                if into_model:
                    view(node.direct, x).fill_(1)
            if ids:
                for t in outs:
                    p = ptr(t)
                    if p in self.mask or p in self.source:
                        continue
                    self.keep.append(t)
                    cast = self.carried(nodes, srcs, t.dtype) if op in ("aten::_to_copy", "aten::clone", "aten::contiguous") else None
                    child = self.source[p] = Stored(set(ids), t, cast)
                    if len(nodes) == 1 and t.numel() == nodes[0].numel:
                        nodes[0].children.append(child)

        @staticmethod
        def carried(nodes, srcs, dtype):
            """The dtype before a conversion that is still on its way into the model."""
            if len(nodes) != 1:
                return None
            return nodes[0].cast or (srcs[0].dtype if srcs[0].dtype != dtype else None)

        def share_read(self, node):
            """The share of the stored bytes that reached the model, as far as copies let us follow."""
            whole = float(node.mask.float().mean())
            if whole < 1 or bool(node.direct.all()) or not node.children:
                return whole
            return max([float(node.direct.float().mean())] + [self.share_read(c) for c in node.children])

        def pad(self, model):
            """What lies beyond the model's own sizes in experts that vLLM rounds up for its kernels: zeros, and nobody's to store."""
            for module in model.modules():
                c = getattr(module, "moe_config", None)
                if c is None:
                    continue
                hidden, inner = (c.hidden_dim_unpadded, c.hidden_dim), (c.intermediate_size_per_partition_unpadded, c.intermediate_size_per_partition)
                split = type(module).__name__ != "GptOssRoutedExperts"      # there gate and up alternate
                for name, p in module.named_parameters(recurse=False):
                    mask = self.mask.get(ptr(p))
                    if mask is None:
                        continue
                    m, w13 = view(mask, p), name.startswith("w13")
                    for dim, (own, whole) in enumerate((inner, hidden) if w13 else (hidden, inner), 1):
                        if dim >= p.dim() or own == whole:
                            continue
                        parts = 2 if split and w13 and dim == 1 else 1
                        n = p.shape[dim] // parts
                        for k in range(parts):
                            start = n * k + n * own // whole
                            m.narrow(dim, start, n * (k + 1) - start).clamp_(min=1)

        def report(self, model):
            self.pad(model)
            damage, kv, twice, never = [], 0, [], dropped(model) | computed(model)
            for name, what, t in self.tensors(model):
                if t.device.type == "meta" or not t.numel():
                    continue
                mask = self.mask.get(ptr(t))
                if mask is None:                # the loader put a new tensor there
                    node = self.source.get(ptr(t))
                    if node:
                        self.used |= node.ids
                        for i in node.ids:
                            self.into.setdefault(i, set()).add(name)
                            self.note_cast({i}, self.entries[i][2], t.dtype, name)
                        node.direct.fill_(1)
                        node.mask.fill_(1)
                    continue
                if NEVER_READ.search(name) or name in never or spare_bias(model, name):
                    continue
                m = view(mask, t)[..., 0] > 0
                if ptr(t) in self.twice:
                    twice.append(name)
                if bool(m.all()):
                    continue
                if KV_DEFAULT.search(name):
                    kv += what == "parameter"
                elif what == "buffer":
                    damage.append({"kind": "buffer", "name": name, "unwritten": int((~m).sum()), "total": t.numel(), "holds": holds(t)})
                elif not bool(m.any()):
                    damage.append({"kind": "unwritten", "name": name, "total": t.numel(), "holds": holds(t)})
                else:
                    rows = (~m).reshape(m.shape[0], -1).any(1) if m.dim() else ~m.reshape(1)
                    damage.append({"kind": "partial", "name": name, "unwritten": int((~m).sum()), "total": t.numel(),
                                   "shape": list(t.shape), "rows": ranges(rows.nonzero().flatten().tolist())})
            unused = []
            for i, (name, file, dtype, shape, node) in enumerate(self.entries):
                if node is None:
                    continue
                if i not in self.used:
                    unused.append(name)
                elif not NEVER_READ.search(name) and (share := self.share_read(node)) < 1:
                    damage.append({"kind": "cut", "name": name, "file": file, "shape": shape, "used": round(share, 4),
                                   "into": sorted(x for x in self.into.get(i, ()) if x)[:4]})
            for i, (src, dst, to) in self.casts.items():
                name, file = self.entries[i][:2]
                if not NEVER_READ.search(name):
                    damage.append({"kind": "cast", "name": name, "file": file, "from": src, "to": dst, "into": to})
            order = ("unwritten", "partial", "buffer", "cut", "cast")
            damage.sort(key=lambda x: (order.index(x["kind"]), x["name"], x.get("file") or ""))
            return dict(damage=damage, unused=sorted(set(unused)), overwritten=sorted(set(twice)), kv_scales_defaulted=kv,
                        streamed=[(e[0], e[1]) for e in self.entries])

    def spare_bias(model, name):
        """GPTQ's experts get biases of zeros in any case, which are taken away after the load unless some were stored."""
        owner, _, leaf = name.rpartition(".")
        if leaf not in ("w13_bias", "w2_bias"):
            return False
        layer = model.get_submodule(owner)
        return type(getattr(layer, "quant_method", None)).__name__ == "AutoGPTQMoEMethod" and leaf not in layer._loaded_expert_biases

    def holds(t):
        """What an unwritten tensor holds: garbage, or the constant that vLLM set.  boot() has torch.empty
        filled with NaN (floats) or the largest value (integers)."""
        x = t.detach().flatten()
        raw = x.view(torch.uint8) if x.itemsize == 1 else x
        first = x[0].item() if x.dtype not in (e8m0,) else raw[0].item()
        if x.dtype != torch.bool and (first != first or (not x.dtype.is_floating_point and first == torch.iinfo(x.dtype).max)):
            return "garbage"
        if first in (float("inf"), -float("inf")):
            first = str(first)
        return first if bool((raw == raw[0]).all()) else "garbage"

    return Track
