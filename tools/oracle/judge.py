#!/usr/bin/env python3
"""Ask the real vLLM: does it load this, does it refuse it, or does it damage it?

    judge.py [--platform cpu|cuda:N] PATH...     one JSON line each; PATH is a checkpoint directory or a case file
    judge.py --record CASE...                    write the verdict into the case files
    judge.py --check CASE...                     compare with the recorded verdict of this vLLM, exit 1 on a difference
    judge.py --report CASE...                    what each case records, without vLLM
    judge.py --releases CASE...                  where verdicts of several releases differ, without vLLM
    judge.py --sample 200 --record CASE...       only so many of them, spread over architectures, methods, good and faulty ones

Run it with the Python of the venv that setup.sh makes.  Fields of a verdict: tests/conformance/README.md.

Every path is judged in a forked child of one process that has vLLM imported already: fast, and neither
state, crash nor hang of one case reaches the next.  Nothing of vLLM is replaced on `cpu`; on `cuda:N` the
platform is made up (see README.md).  When the CPU build lacks a kernel for a scheme, the case is judged a second
time with the choice of kernels and the repacking after the load skipped (`kernels_stubbed`; the first
error stays in `cpu`).
"""
import argparse
import contextlib
import gzip
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _oracle import boot, captured_warnings, inspect_here
from _track import make_track
from materialize import load_case, materialize, minor, record, verdicts

LIST = 40               # names kept of each list; the count is always whole
GZIP_ABOVE = 100_000    # bytes

VOLATILE = re.compile(
    r"Loading weights took|Initializing model took|Using max model len|cudagraph|Chunked prefill|Asynchronous scheduling|"
    r"torch.compile|enforce_eager|VLLM_CPU_|Resolved architecture|world_size|rank 0 in world|Using .* backend\b|"
    r"model info file|Loaded model info|skip_tokenizer_init|auto-detected|OMP|libtcmalloc|max_num_batched|"
    r"min multimodal batched tokens|Inductor compilation|Triton|Model Runner V2|oneDNN|mm_device_do_normalize|"
    r"prefetch|IR op|[Ff]ilesystem|Prefix caching|memory|Casting torch|use_deterministic_algorithms")


# ---------------------------------------------------------------- words

def clean(s, d):
    """No trace of this machine: the directory, vLLM's place, links, addresses."""
    s = re.sub(r"\x1b\[[0-9;]*m", "", s)
    s = s.replace(os.path.realpath(d), "<dir>").replace(d, "<dir>")
    s = re.sub(r"/[A-Za-z0-9_./+-]*/site-packages/", "", s)
    s = re.sub(r"https?://[^\s'\"`)]+", "<url>", s)
    s = re.sub(r"(?<![\w>])/(?:[\w.-]+/)+[^\s'\",)]*", "<path>", s)
    return sort_sets(re.sub(r"0x[0-9a-f]{8,}", "0x..", s))


def sort_sets(s):
    """Sets of strings in messages come in hash order: sort them."""
    def f(m):
        items = re.findall(r"'[^']*'", m.group(1))
        if not items or re.sub(r"'[^']*'|[\s,]", "", m.group(1)):
            return m.group(0)
        return "{" + ", ".join(sorted(items)) + "}"
    return re.sub(r"\{([^{}]*)\}", f, s)


def root_message(e):
    """The words of the cause: pydantic's wrapping of a validator's error taken off."""
    if type(e).__name__ == "ValidationError" and hasattr(e, "errors"):
        out = []
        for x in e.errors(include_url=False):
            msg = x["msg"]
            for lead in ("Value error, ", "Assertion failed, "):
                if msg.startswith(lead):
                    msg = msg[len(lead):]
                    break
            else:
                if x["loc"]:
                    msg = ".".join(map(str, x["loc"])) + ": " + msg
            out.append(msg)
        return "; ".join(out)
    return str(e)


def inner(e):
    """The exception that pydantic wrapped, if it did."""
    if type(e).__name__ == "ValidationError" and hasattr(e, "errors"):
        for x in e.errors(include_url=False):
            if isinstance(x.get("ctx", {}).get("error"), BaseException):
                return x["ctx"]["error"]
    return e


def frames(e):
    out = []
    for x in ([e] if inner(e) is e else [e, inner(e)]):
        tb = x.__traceback__
        while tb:
            out.append(tb.tb_frame)
            tb = tb.tb_next
    return out


BUILDERS = {"__init__", "get_quant_method", "_get_quant_method", "resolve_quant_method", "get_scheme", "get_scheme_dict",
            "create_weights", "make_layers", "get_layer"}


def blame(e, stage, seen, d):
    """What vLLM had in hand: the tensor streamed last and its file, or the layer under construction."""
    inside = [f for f in frames(e) if "/vllm/" in f.f_code.co_filename]
    rel = lambda p: os.path.relpath(os.path.realpath(str(p)), os.path.realpath(d)) if p else None
    for f in reversed(inside):
        if f.f_code.co_name == "parse_safetensors_file_metadata":
            return {"file": rel(f.f_locals.get("path"))}
        if f.f_code.co_name == "filter_duplicate_safetensors_files":
            return {"file": f.f_locals.get("index_file")}
    if stage == "init":
        for f in reversed(inside):
            if f.f_code.co_name in BUILDERS:
                for key in ("prefix", "layer_name"):
                    p = f.f_locals.get(key)
                    if isinstance(p, str) and p:
                        return {"layer": p}
    if stage == "load" and (seen["tensor"] or seen["file"]):
        return {"tensor": seen["tensor"], "file": rel(seen["file"])} if seen["tensor"] else {"file": rel(seen["file"])}
    if stage == "post":
        for f in reversed(inside):
            if f.f_code.co_name == "process_weights_after_loading" and isinstance(f.f_locals.get("name"), str):
                return {"layer": f.f_locals["name"]}
    return None


# ---------------------------------------------------------------- the child: one verdict

def judge(d, platform, stub, args, tell):
    """In the child.  `tell(stage)` reaches the parent even if this process dies."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.model_loader import base_loader, default_loader, get_model, weight_tying, weight_utils

    state = {"stage": "config", "report": None, "model": None, "tied": None, "retied": False}
    seen = {"tensor": None, "file": None}
    Track = make_track()

    def stage(name):
        state["stage"] = name
        tell(name)

    real_init, real_post = base_loader.initialize_model, base_loader.process_weights_after_loading
    Loader = default_loader.DefaultModelLoader
    real_load, real_all, real_check = Loader.load_weights, Loader.get_all_weights, Loader.track_weights_loading
    real_open, real_torch_load = weight_utils.safe_open, torch.load

    def safe_open(path, *a, **k):
        seen.update(tensor=None, file=path)
        return real_open(path, *a, **k)

    def torch_load(path, *a, **k):
        if isinstance(path, str):
            seen.update(tensor=None, file=path)
        return real_torch_load(path, *a, **k)

    def initialize_model(*a, **k):
        stage("init")
        state["model"] = real_init(*a, **k)
        return state["model"]

    def load_weights(loader, model, model_config):
        stage("load")
        state["tied"] = tied(model)         # null | own | tied | mixed
        loader.load_config.use_tqdm_on_load = False
        track = state["track"] = Track(model)
        inner = model.load_weights

        def watched(weights, *a, **k):
            with torch.no_grad(), track:
                out = inner(weights, *a, **k)
            state["report"] = track.report(model)
            return out
        model.__dict__["load_weights"] = watched
        try:
            return real_load(loader, model, model_config)
        finally:
            model.__dict__.pop("load_weights", None)

    def get_all_weights(loader, *a):
        for name, t in real_all(loader, *a):
            seen["tensor"] = name
            state["track"].stored(name, os.path.relpath(seen["file"], d) if seen["file"] else None, t)
            yield name, t

    def track_weights_loading(self, *a, **k):
        stage("track")
        return real_check(self, *a, **k)

    def process_weights_after_loading(model, model_config, *a, **k):
        stage("post")
        if not stub and platform == "cpu":
            return real_post(model, model_config, *a, **k)
        from vllm.model_executor.layers.quantization.kv_cache import BaseKVCacheMethod
        weight_tying.maybe_retie_word_embeddings(model, model_config)
        for name, module in model.named_modules():
            if isinstance(getattr(module, "quant_method", None), BaseKVCacheMethod):
                module.quant_method.process_weights_after_loading(module)

    real_tie = weight_tying._UntiedLMHead.tie

    def tie(self, model):
        state["retied"] = True
        return real_tie(self, model)

    base_loader.initialize_model = initialize_model
    base_loader.process_weights_after_loading = process_weights_after_loading
    Loader.load_weights, Loader.get_all_weights = load_weights, get_all_weights
    Loader.track_weights_loading = track_weights_loading
    weight_utils.safe_open, torch.load = safe_open, torch_load
    weight_tying._UntiedLMHead.tie = tie
    if stub:
        stub_kernels()

    out = {"platform": platform, "class": "loads", "stage": None, "error_type": None, "message": None, "blame": None}
    config = None
    with captured_warnings() as warned:
        try:
            stage("config")
            kw = dict(max_model_len=64, enforce_eager=True, disable_log_stats=True, skip_tokenizer_init=True) | args
            config = EngineArgs(model=d, **kw).create_engine_config()
            with set_current_vllm_config(config):
                stage("init")
                init_distributed_environment(world_size=1, rank=0, local_rank=0, backend="gloo",
                                             distributed_init_method="file://" + tempfile.mktemp(dir=os.path.dirname(d)))
                ensure_model_parallel_initialized(1, 1)
                get_model(vllm_config=config)
        except BaseException as e:
            out.update({"class": "refuses"}, stage=state["stage"], error_type=type(e).__name__,
                       message=clean(root_message(e), d)[:3000], blame=blame(e, state["stage"], seen, d))
            if inner(e) is not e:
                out["cause_type"] = type(inner(e)).__name__
            where = [f.f_code for f in frames(e) if "site-packages" in f.f_code.co_filename]
            out["raised_in"] = [re.sub(r".*/site-packages/", "", c.co_filename) + ":" + c.co_name for c in where[-4:]]
    model_config = getattr(config, "model_config", None)
    out["architecture"] = getattr(model_config, "architecture", None)
    out["quantization"] = getattr(model_config, "quantization", None)
    out["tied"] = state["tied"]
    if state["tied"] == "own":
        untied = getattr(model_config, "word_embeddings_untied_by_checkpoint", False)
        out["tied"] = "retied" if state["retied"] else "untied" if untied else "own"
    if state["report"] and out["class"] != "refuses":
        # After a refusal everything later in the files is unwritten too: that says nothing.
        r = state["report"]
        for key in ("damage", "unused", "overwritten"):
            if r[key]:
                out[key], out[key + "_count"] = r[key][:LIST], len(r[key])
        if r["damage"]:
            out["class"] = "damages"
        if r["kv_scales_defaulted"]:
            out["kv_scales_defaulted"] = r["kv_scales_defaulted"]
        read = {f for _, f in r["streamed"]}
        unread = sorted(f for f in os.listdir(d) if f.endswith(".safetensors") and f not in read)
        if unread:
            out["unread_files"] = unread[:LIST]
    words = []
    for w in warned:
        w = clean(w, d).replace("\n", "\\n")
        if w.strip() and not VOLATILE.search(w) and w[:600] not in words:
            words.append(w[:600])
    out["warnings"] = words[:LIST]
    return out


def tied(model):
    """Is lm_head the word embedding?  None without an lm_head; "mixed" when it shares the embedding's weight but has
    (quantized) parameters of its own besides."""
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
    modules = list(model.named_modules(remove_duplicate=False))
    heads = [m for n, m in modules if n.rpartition(".")[2] == "lm_head"]
    if not heads:
        return None
    theirs = {id(p) for n, m in modules if isinstance(m, VocabParallelEmbedding) and n.rpartition(".")[2] != "lm_head"
              for p in m.parameters()}
    own = [id(p) in theirs for m in heads for p in m.parameters()]
    return "tied" if own and all(own) else "mixed" if any(own) else "own"


def stub_kernels():
    """Kernel selection answers with a dummy.  What a GPU would choose decides only how the loaded bytes are
    repacked afterwards; parameters are created before and are vLLM's own."""
    import vllm.model_executor.layers.fused_moe.oracle.int8 as int8
    import vllm.model_executor.layers.fused_moe.oracle.int_wna16 as wn
    import vllm.model_executor.layers.fused_moe.oracle.mxfp4 as mx
    from vllm.model_executor.layers.quantization.utils.marlin_utils import check_moe_marlin_supports_config

    class StubKernel:
        apply_input_quant = True

        @classmethod
        def get_min_capability(cls):
            return -1

        def __init__(self, *a, **k):
            self.config = a[0] if a else None

        def process_weights_after_loading(self, layer):
            pass

        def __getattr__(self, n):
            if n.startswith("__"):
                raise AttributeError(n)
            return lambda *a, **k: None

    def wna16(config, weight_key=None, quant_config=None, **k):
        group = getattr(quant_config, "group_size", None) or -1
        if check_moe_marlin_supports_config(config, group, allow_tile_padding=True):
            return wn.WNA16MoEBackend.MARLIN, StubKernel
        return wn.WNA16MoEBackend.TRITON, StubKernel

    replaced = {"choose_mp_linear_kernel": lambda *a, **k: StubKernel, "select_wna16_moe_backend": wna16,
                "select_int8_moe_backend": lambda *a, **k: (int8.Int8MoeBackend.TRITON, StubKernel),
                "select_mxfp4_moe_backend": lambda *a, **k: (mx.Mxfp4MoeBackend.TRITON, StubKernel)}
    for fn in ("init_int8_linear_kernel", "init_fp8_linear_kernel", "init_fp8_block_linear_kernel",
               "init_nvfp4_linear_kernel", "init_mxfp4_linear_kernel", "init_mxfp8_linear_kernel"):
        replaced[fn] = lambda *a, **k: StubKernel()
    for name, mod in list(sys.modules.items()):
        if name.startswith("vllm") and mod is not None:
            for fn, new in replaced.items():
                if fn in getattr(mod, "__dict__", {}):
                    setattr(mod, fn, new)


KERNEL = re.compile(r"kernels/linear/|fused_moe/oracle/|torch/_ops.py|_custom_ops.py|fused_moe/experts/|cpu_fused_moe")


def lacks_kernel(v):
    return v["class"] == "refuses" and v["stage"] in ("init", "post") and any(KERNEL.search(x) for x in v.get("raised_in", ()))


# ---------------------------------------------------------------- the parent

def preload():
    import importlib
    import torch
    torch.set_num_threads(1)
    models = ("llama qwen2 qwen3 qwen3_moe mixtral gemma2 gemma3 gemma3_mm gemma4 gemma4_mm gemma4_unified qwen2_5_vl qwen3_vl phi3 "
              "granite deepseek_v2 mllama4 llama4 gpt_oss glm4_moe transformers").split()
    for m in ["vllm.engine.arg_utils", "vllm.config", "vllm.distributed", "vllm.model_executor.model_loader",
              "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors",
              "vllm.v1.attention.backends.cpu_attn"] + ["vllm.model_executor.models." + m for m in models]:
        try:
            importlib.import_module(m)
        except Exception as e:
            print("preload", m, type(e).__name__, e, file=sys.stderr)
    stand_ins()
    inspect_here()
    from vllm.plugins import load_general_plugins
    load_general_plugins()      # reads the metadata of every package; once is enough
    import gc
    gc.collect()
    gc.freeze()         # keeps the children from copying the whole heap


def stand_ins():
    """A checkpoint without tokenizer or processor files is judged all the same: what asks for one gets a mock."""
    from _mocks import mock_processors, mock_tokenizers
    mock_tokenizers()
    mock_processors()


def in_child(make, platform, stub, args, timeout):
    """make(dir) fills or names the directory; the verdict comes back through a pipe."""
    work = tempfile.mkdtemp(prefix="judge.")
    try:
        d = make(os.path.join(work, "checkpoint"))
        r, w = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(r)
            log = os.open(os.path.join(work, "log"), os.O_CREAT | os.O_WRONLY)
            os.dup2(log, 1)
            os.dup2(log, 2)
            say = lambda x: os.write(w, json.dumps(x).encode() + b"\n")
            try:
                with os.fdopen(os.dup(w), "w") as f:
                    f.write(json.dumps(judge(d, platform, stub, args, say)) + "\n")
            except BaseException:
                say({"harness": traceback.format_exc()[-3000:]})
            os._exit(0)
        os.close(w)
        data, dead, until = b"", None, time.time() + timeout
        while True:
            if time.time() >= until:
                os.kill(pid, signal.SIGKILL)
                dead = "Timeout"
                break
            if select.select([r], [], [], 1)[0]:
                got = os.read(r, 1 << 16)
                if not got:
                    break
                data += got
        os.close(r)
        _, status = os.waitpid(pid, 0)
        said = [json.loads(x) for x in data.decode().split("\n") if x]
        stages = [x for x in said if isinstance(x, str)]
        last = said[-1] if said else None
        if isinstance(last, dict) and "harness" in last:
            raise RuntimeError(last["harness"])
        if isinstance(last, dict) and "class" in last:
            return last
        return {"platform": platform, "class": "refuses", "stage": stages[-1] if stages else "config",
                "error_type": dead or f"Signal{status & 127}", "message": None, "blame": None, "warnings": []}
    finally:
        shutil.rmtree(work, ignore_errors=True)


def verdict(make, platform, args, timeout, stub="auto"):
    import vllm
    out = in_child(make, platform, stub == "always", args, timeout)
    if stub == "always":
        out["kernels_stubbed"] = True
    elif stub == "auto" and platform == "cpu" and lacks_kernel(out):
        first = out
        out = in_child(make, platform, True, args, timeout)
        out["kernels_stubbed"] = True
        out["cpu"] = {k: first[k] for k in ("stage", "error_type", "message", "blame")}
    return {"vllm": vllm.__version__.split("+")[0], **out}


ORDER = ("id", "arch", "family", "description", "good", "expect", "twin_of", "platform", "args", "files", "shards", "raw", "oracle")


def save_case(path, case):
    """One top-level field a line; gzipped above 100 kB.  Returns the path, which may have changed."""
    keys = [k for k in ORDER if k in case] + sorted(k for k in case if k not in ORDER)
    body = ",\n".join(json.dumps(k) + ":" + json.dumps(case[k], separators=(",", ":"), ensure_ascii=False) for k in keys)
    data = ("{" + body + "}\n").encode()
    plain = path[:-3] if path.endswith(".gz") else path
    new = plain + ".gz" if len(data) > GZIP_ABOVE else plain
    with contextlib.suppress(FileNotFoundError):
        if path != new:
            os.remove(path)
    with open(new, "wb") as raw:
        if new.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as f:
                f.write(data)
        else:
            raw.write(data)
    return new


# Not what vLLM does, but how its code is laid out.
LAYOUT = {"vllm", "raised_in", "warnings", "cpu", "kernels_stubbed"}


def releases(paths):
    """Each field in which two releases' verdicts differ."""
    both = 0
    for p in paths:
        case = load_case(p)
        new, *others = verdicts(case).items()
        for version, old in others:
            both += 1
            for k in sorted((new[1].keys() | old.keys()) - LAYOUT):
                if new[1].get(k) != old.get(k):
                    print(case["id"], k, version, json.dumps(old.get(k))[:300], new[0], json.dumps(new[1].get(k))[:300], sep="\t")
    print(f"{both} pairs of verdicts compared", file=sys.stderr)


def sample(paths, n):
    """n paths: in turn one of each architecture and method, good and faulty, from a fixed shuffle."""
    groups = {}
    for p in sorted(paths, key=lambda p: zlib.crc32(os.path.basename(p).encode())):
        c = load_case(p)
        o = next(iter(verdicts(c).values()), {})
        groups.setdefault((c["arch"], o.get("quantization"), bool(c.get("good"))), []).append(p)
    queues = sorted(groups.values(), key=lambda g: zlib.crc32(os.path.basename(g[0]).encode()))
    turns = [p for row in itertools.zip_longest(*queues) for p in row if p]
    return sorted(turns[:n])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("paths", nargs="+")
    ap.add_argument("--platform", default=None, help="cpu (default), cuda:75|80|89|90|100|120; overrides the case's own")
    what = ap.add_mutually_exclusive_group()
    what.add_argument("--record", action="store_true")
    what.add_argument("--check", action="store_true")
    what.add_argument("--report", action="store_true")
    what.add_argument("--releases", action="store_true")
    ap.add_argument("--sample", type=int, help="only so many of the cases, the same ones each time")
    ap.add_argument("--stub", choices=("auto", "always", "never"), default="auto", help="skip the choice of kernels")
    ap.add_argument("--timeout", type=float, default=180, help="seconds a path")
    ap.add_argument("--json", default="{}", help="more EngineArgs, e.g. '{\"quantization\": \"fp8\"}'")
    a = ap.parse_args()

    if a.sample:
        a.paths = sample(a.paths, a.sample)
    if a.releases:
        return releases(a.paths)
    if a.report:
        for p in a.paths:
            c = load_case(p)
            o = c.get("oracle") or {}
            b = o.get("blame") or {}
            print("\t".join(str(x) for x in (
                c["id"], c["family"], "good" if c.get("good") else "", o.get("class"), o.get("stage") or "", o.get("error_type") or "",
                b.get("tensor") or b.get("layer") or b.get("file") or "", o.get("damage_count", 0), o.get("unused_count", 0),
                (o.get("message") or "")[:120].replace("\n", "\\n"))))
        return

    jobs = []
    for p in a.paths:
        case = None if os.path.isdir(p) else load_case(p)
        jobs.append((p, case, a.platform or (case or {}).get("platform") or "cpu"))
    platforms = sorted({j[2] for j in jobs})
    if len(platforms) > 1:          # a platform is chosen before vLLM is imported: one process each
        rc = 0
        for pf in platforms:
            flags = [f for f, on in (("--record", a.record), ("--check", a.check)) if on]
            rc |= subprocess.call([sys.executable, __file__, *flags, "--platform", pf, "--stub", a.stub, "--timeout", str(a.timeout),
                                   "--json", a.json, *[j[0] for j in jobs if j[2] == pf]])
        sys.exit(rc)

    boot(platforms[0])
    preload()
    bad = 0
    for path, case, platform in jobs:
        started = time.time()
        args = json.loads(a.json)
        if case is None:
            make = lambda _, p=path: os.path.abspath(p)
        else:
            args = (case.get("args") or {}) | args
            make = lambda d, c=case: (materialize(c, d), d)[1]
        out = verdict(make, platform, args, a.timeout, a.stub)
        took = f"{time.time() - started:.1f}s"
        name = case["id"] if case else path
        if a.record and case:
            record(case, out)
            save_case(path, case)
            print(name, out["class"], out["stage"] or "", out["error_type"] or "", took, flush=True)
        elif a.check and case:
            old = verdicts(case).get(minor(out)) or {}
            diff = [k for k in sorted(old.keys() | out.keys()) if old.get(k) != out.get(k)]
            bad += bool(diff)
            for k in diff:
                print("DIFF", name, k, json.dumps(old.get(k))[:500], "->", json.dumps(out.get(k))[:500], flush=True)
            if not diff:
                print("same", name, took, flush=True)
        else:
            print(json.dumps({"id" if case else "dir": name, **out}, ensure_ascii=False), flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
