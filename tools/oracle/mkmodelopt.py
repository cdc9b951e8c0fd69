"""The forms of ModelOpt for mkmethods.py, and faults that only they can have."""
import re

from mkmethods import F8, F32, U8, Form, ceil, config, m_down, need, o_proj, plain, q_proj, qkv, retype, scale_name

PRODUCER = {"name": "modelopt", "version": "0.37.0"}
# Per cent of the faults, by base.
MANY, FEW = {"llama": 45, "qwen3moe": 12, "": 2}, {"llama": 14, "qwen3": 14, "qwen3moe": 8, "": 1}


def groups(bits, inputs=True, **kw):
    spec = dict(dynamic=False, num_bits=bits, type="float", **kw)
    return {"group_0": {"targets": ["Linear"], "weights": spec, "input_activations": spec if inputs else None}}


def inline(algo, g, **kw):
    """As config.json has it since ModelOpt 0.31."""
    return lambda ig: dict(quant_method="modelopt", quant_algo=algo, ignore=ig, producer=dict(PRODUCER), config_groups=g, **kw)


def beside(algo, **kw):
    """As hf_quant_config.json has it."""
    def move(w, d):
        d.config.pop("quantization_config")
        d.files["hf_quant_config.json"] = {"producer": dict(PRODUCER), "quantization": {
            "quant_algo": algo, "kv_cache_quant_algo": None, **kw, "exclude_modules": []}}
    return move


def fp8(o, i):
    return dict(weight=(F8, (o, i)), weight_scale=(F32, ()), input_scale=(F32, ()))


def nvfp4(o, i):
    return dict(weight=(U8, (o, i // 2)), weight_scale=(F8, (o, i // 16)), weight_scale_2=(F32, ()), input_scale=(F32, ()))


def nvfp4a16(o, i):
    return {k: v for k, v in nvfp4(o, i).items() if k != "input_scale"}


def mxfp8(o, i):
    return dict(weight=(F8, (o, i)), weight_scale=(U8, (o, i // 32)))


class Mixed(Form):
    """Attention in FP8, all else in NVFP4; what is what stands in `quantized_layers`."""

    def store(self, d, m):
        attention = ".self_attn." in m
        self.tensors = fp8 if attention else nvfp4
        super().store(d, m)
        layers = d.config["quantization_config"].setdefault("quantized_layers", {})
        layers[m] = {"quant_algo": "FP8"} if attention else {"quant_algo": "NVFP4", "group_size": 16}


def nothing(ig):
    return dict(quant_method="modelopt")


FORMS = [
    Form("mo-fp8", fp8, inline("FP8", groups(8)), "ignore", share=MANY),
    Form("mo-fp8hf", fp8, nothing, "exclude_modules", prepare=beside("FP8"), bases=["llama", "gemma3mm"], share=FEW),
    Form("mo-pc", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (o,))), inline("FP8_PER_CHANNEL_PER_TOKEN", groups(8)),
         "ignore", bases=["llama", "phi3"], share=FEW),
    Form("mo-pbwo", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (ceil(o, 128), 1, i // 128, 1))), inline("FP8_PB_WO", groups(8)),
         "ignore", bases=["qwen3", "phi3"], share=FEW, needs=(1, 128)),
    Form("mo-fp4", nvfp4, inline("NVFP4", groups(4, group_size=16), group_size=16), "ignore", share=MANY),
    Form("mo-fp4hf", nvfp4, nothing, "exclude_modules", prepare=beside("NVFP4", group_size=16), bases=["llama", "qwen25vl"], share=FEW),
    Form("mo-fp4a16", nvfp4a16, inline("W4A16_NVFP4", groups(4, False, group_size=16), group_size=16), "ignore", bases=["llama", "qwen3moe"], share=FEW),
    Form("mo-mx8", mxfp8, inline("MXFP8", groups(8)), "ignore", bases=["llama", "qwen3moe", "phi3"], share=FEW),
    Form("mx8", mxfp8, lambda ig: dict(quant_method="mxfp8", weight_block_size=[1, 32], ignored_layers=ig), "ignored_layers",
         bases=["llama", "mixtral"], share=FEW),
    Mixed("mo-mix", fp8, inline("MIXED_PRECISION", groups(8)), "ignore", bases=["llama", "qwen3moe", "gemma3mm"], share=FEW),
]
for form in FORMS:
    if form.key != "ignored_layers":
        form.odd = ("listnull",)


def layer0(w):
    return [m for m in w.linears if m.startswith(w.at + "0.")]


def outs(w):
    return need([m for m in w.linears if m.endswith("o_proj")])


def top(**kw):
    """Sets top-level keys of hf_quant_config.json; `...` takes one away."""
    def change(f, w, d):
        q = d.files["hf_quant_config.json"]
        for k, v in kw.items():
            q.pop(k, None) if v is ... else q.update({k: v})
        return d
    return change


def layers(change):
    """Changes `quantized_layers` by a function of it and the base."""
    def of(f, w, d):
        q = f.holder(d)
        q["quantized_layers"] = change(q["quantized_layers"], w)
        return d
    return of


def nested(f, w, d):
    q = d.config["quantization_config"]
    inner = {"quant_algo": q.pop("quant_algo"), "exclude_modules": q.pop("ignore")}
    q["quantization"] = inner
    return d


def beside_mixed(f, w, d):
    q = d.config["quantization_config"]
    inner = {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": None, "exclude_modules": q["ignore"], "quantized_layers": q.pop("quantized_layers")}
    d.files["hf_quant_config.json"] = {"producer": dict(PRODUCER), "quantization": inner}
    return d


OWN = {
    "mo-fp8": [
        ("noalgo", "quant-config", "no quant_algo", False, config(quant_algo=...)),
        ("algoword", "quant-config", "an algorithm that vLLM does not know", False, config(quant_algo="INT4_AWQ")),
        ("algolower", "quant-config", "the algorithm in small letters", True, config(quant_algo="fp8")),
        ("algonumber", "quant-config", "the algorithm is a number", False, config(quant_algo=8)),
        ("algofp4", "scheme", "NVFP4 in the config, FP8 in the files", False, config(quant_algo="NVFP4")),
        ("algopc", "scheme", "per channel in the config, per tensor in the files", False, config(quant_algo="FP8_PER_CHANNEL_PER_TOKEN")),
        ("method4", "quant-config", "quant_method modelopt_fp4, vLLM goes by the algorithm", False, config(quant_method="modelopt_fp4")),
        ("method4-pc", "quant-config", "quant_method modelopt_fp4, which has no such algorithm", False,
         config(quant_method="modelopt_fp4", quant_algo="FP8_PER_CHANNEL_PER_TOKEN")),
        ("star", "ignore-syntax", "layer 0 16-bit, listed with a star at the end", True, lambda f, w, d: f.list(plain(f, d, *layer0(w)), [w.at + "0*"])),
        ("starmid", "ignore-syntax", "all o_proj 16-bit, listed with a star in the middle", True,
         lambda f, w, d: f.list(plain(f, d, *outs(w)), [w.at + "*.self_attn.o_proj"])),
        ("starq", "ignore-syntax", "all q, k, v 16-bit, listed with stars", False,
         lambda f, w, d: f.list(plain(f, d, *[m for m in w.linears if re.search(r"\.[qkv]_proj$", m)]), [w.at + "*.self_attn." + p for p in ("q_proj", "k_proj", "v_proj")])),
        ("bracket", "ignore-syntax", "o_proj of layer 0 16-bit, listed with a bracket", True,
         lambda f, w, d: f.list(plain(f, d, outs(w)[0]), [w.at + "[!1-9].self_attn.o_pro?"])),
        ("staronly", "ignored-but-packed", "a star for all", False, lambda f, w, d: f.list(d, ["*"])),
        ("empty", "ignored-but-packed", "an empty entry", False, lambda f, w, d: f.list(d, [""])),
        ("within", "ignored-but-packed", "v_proj in the list, which is part of the name qkv_proj", False, lambda f, w, d: f.list(d, ["v_proj"])),
        ("entrynumber", "quant-config", "an entry that is a number", False, lambda f, w, d: f.list(d, [5])),
        ("kvscheme", "kv-cache", "a KV cache in FP8", True, config(kv_cache_scheme={"dynamic": False, "num_bits": 8, "type": "float"})),
        ("kvint", "kv-cache", "a KV cache in int4, which vLLM leaves alone", False, config(kv_cache_scheme={"dynamic": False, "num_bits": 4, "type": "int"})),
        ("producernull", "quant-config", "producer is null", False, config(producer=None)),
        ("nested", "quant-config", "the older layout inside config.json", False, nested),
        ("nestedword", "quant-config", "quantization is a word", False, config(quantization="FP8")),
        ("groupword", "quant-config", "group_size is a word", False, config(group_size="many")),
        ("noinputs", "missing-tensors", "no input scale anywhere", False, lambda f, w, d: d.drop(r"input_scale$")),
    ],
    "mo-fp8hf": [
        ("noproducer", "quant-config", "no producer", False, top(producer=...)),
        ("producer", "quant-config", "another producer", False, top(producer={"name": "someone"})),
        ("mx8", "quant-config", "MXFP8, which vLLM takes only from config.json", False, config(quant_algo="MXFP8")),
        ("noalgo", "quant-config", "no quant_algo", False, config(quant_algo=...)),
        ("kvalgo", "kv-cache", "a KV cache in FP8", True, config(kv_cache_quant_algo="FP8")),
        ("kvnumber", "kv-cache", "kv_cache_quant_algo is a number", False, config(kv_cache_quant_algo=8)),
        ("confignull", "quant-config", "quantization_config is null in config.json", True, lambda f, w, d: d.config.update(quantization_config=None) or d),
        ("star", "ignore-syntax", "layer 0 16-bit, listed with a star at the end", True, lambda f, w, d: f.list(plain(f, d, *layer0(w)), [w.at + "0*"])),
        ("listword", "quant-config", "the list is a string", False, config(exclude_modules="lm_head")),
    ],
    "mo-fp4": [
        ("group32", "scheme", "groups of 32 in the config, of 16 in the files", False, config(group_size=32)),
        ("group0", "scheme", "groups of 0", False, config(group_size=0)),
        ("groupdefault", "quant-config", "no group_size", True, config(group_size=...)),
        ("weightonly", "scheme", "no input activations in the groups: W4A16", False, config(config_groups=groups(4, False))),
        ("algofp8", "scheme", "FP8 in the config, NVFP4 in the files", False, config(quant_algo="FP8")),
        ("noscale2-q", "missing-tensors", "the global scale of q_proj is missing", False, lambda f, w, d: d.drop("^" + re.escape(scale_name(d, q_proj(w), 1)) + "$")),
        ("scale2vector", "shapes", "a global scale of one element each", True, lambda f, w, d: [t.update(shape=[1]) for _, t in d.all() if t["name"].endswith("scale_2")] and d),
        ("head-scales", "lm-head", "lm_head quantized and not in the list", True, lambda f, w, d: need("lm_head.weight" in d.names()) and (f.store(d, "lm_head"), f.unlist(d, "lm_head"))[0] or d),
        ("nvfp4kv", "kv-cache", "a KV cache in NVFP4", False, config(kv_cache_scheme={"dynamic": True, "num_bits": 4, "type": "float"})),
    ],
    "mo-fp4hf": [
        ("nogroup", "quant-config", "no group_size", False, config(group_size=...)),
        ("nokv", "quant-config", "no kv_cache_quant_algo", False, config(kv_cache_quant_algo=...)),
        ("nolists", "quant-config", "neither group_size nor list", False, config(group_size=..., exclude_modules=...)),
        ("a16", "quant-config", "W4A16_NVFP4, which vLLM takes only from config.json", False, config(quant_algo="W4A16_NVFP4")),
    ],
    "mo-fp4a16": [
        ("inputs", "surplus", "input scales, as older exports have them", False,
         lambda f, w, d: [d.add(m + ".input_scale", F32, []) for m in w.linears] and d),
    ],
    "mo-mx8": [
        ("e8m0", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, r"weight_scale$", "F8_E8M0")),
        ("f16config", "dtype", "the config says float16", False, lambda f, w, d: d.config.update(dtype="float16") or d),
        ("nested", "quant-config", "the older layout inside config.json", False, nested),
    ],
    "mx8": [
        ("nolists", "quant-config", "no list", False, config(ignored_layers=...)),
        ("ignore", "quant-config", "the list under ignore, which is not read", False, lambda f, w, d: config(ignore=f.holder(d)["ignored_layers"], ignored_layers=...)(f, w, d)),
    ],
    "mo-mix": [
        ("nolayers", "quant-config", "no quantized_layers", False, config(quantized_layers=...)),
        ("emptylayers", "quant-config", "quantized_layers is empty", False, config(quantized_layers={})),
        ("beside", "quant-config", "quantized_layers in hf_quant_config.json only", True, beside_mixed),
        ("unnamed", "scheme", "o_proj is not among the quantized layers", False, layers(lambda q, w: {k: v for k, v in q.items() if k != o_proj(w)})),
        ("unknown", "scheme", "an algorithm that vLLM does not know", False, layers(lambda q, w: {k: (v if k != o_proj(w) else {"quant_algo": "INT4"}) for k, v in q.items()})),
        ("codec", "scheme", "block codes, which need other hardware", False,
         layers(lambda q, w: q | {m_down(w): {"quant_algo": "q8_0", "group_size": 32, "block_payload_bytes": 34, "packing": "ggml"}})),
        ("codecbad", "quant-config", "block codes with another size", False, layers(lambda q, w: q | {m_down(w): {"quant_algo": "Q8_0", "group_size": 64}})),
        ("mixedq", "scheme", "q_proj NVFP4 and its siblings FP8 by the config", False, layers(lambda q, w: q | {q_proj(w): {"quant_algo": "NVFP4"}})),
        ("noalgo", "quant-config", "a layer without quant_algo", False, layers(lambda q, w: q | {o_proj(w): {"group_size": 16}})),
        ("parent", "scheme", "the attention is named, not its linears", False,
         layers(lambda q, w: {k: v for k, v in q.items() if ".self_attn." not in k} | {k.rpartition(".")[0]: v for k, v in q.items() if ".self_attn." in k})),
        ("blocks", "quant-config", "blocks of two sizes", False,
         layers(lambda q, w: q | {"a": {"quant_algo": "FP8_PB_WO", "group_size": 64}, "b": {"quant_algo": "fp8_block_scales"}})),
        ("layerslist", "quant-config", "quantized_layers is a list", False, layers(lambda q, w: list(q))),
        ("one-q", "scheme", "only q_proj of the fused layer is named", False, layers(lambda q, w: {k: v for k, v in q.items() if k not in qkv(w)[1:]})),
    ],
}
