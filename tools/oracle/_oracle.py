"""Shared by judge.py, skeleton.py and hfnames.py: start the real vLLM without a GPU.

`boot("cpu")` takes vLLM's own CPU platform; `boot("cuda:89")` installs a made-up CUDA platform
(see README.md, "Faithful and patched").  Call it before anything imports vllm.
"""
import contextlib
import logging
import os
import re
import sys
import tempfile
import types
import warnings

NOISE = re.compile(r"Triton|Inductor compilation|oneDNN|environment variable|CPU backend|max_model_len|KV cache|scheduler|chunked|"
                   r"enforce.eager|torch\.compile|cudagraph|_moe_C|_C_stable|jit monitor|async", re.I)


# Where `torch.empty(…, device="cuda")` goes; whoever builds models of every size for their shapes alone says "meta".
EMPTY = "cpu"


def boot(platform="cpu"):
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1",
                      VLLM_NO_USAGE_STATS="1", VLLM_PLUGINS="", TOKENIZERS_PARALLELISM="false")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"
    warnings.filterwarnings("ignore")
    if platform != "cpu":
        fake_cuda(int(platform.partition(":")[2] or 89))
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    # torch.empty gives NaN / the largest integer instead of whatever the memory held.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True


def fake_cuda(cap):
    """Answer as a CUDA machine of compute capability `cap` (89 = L4, 90 = H100, 100 = B200)
    while every tensor stays on the CPU."""
    import importlib.machinery
    import torch
    for name in ("vllm._C_stable_libtorch", "vllm._moe_C_stable_libtorch", "vllm.vllm_flash_attn._vllm_fa2_C",
                 "vllm.vllm_flash_attn._vllm_fa3_C"):
        stub = types.ModuleType(name)
        stub.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = stub
    sys.meta_path.append(Stubs())
    import vllm.platforms as platforms
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.cpu import CpuPlatform
    from vllm.platforms.interface import DeviceCapability

    class FakeCuda(CudaPlatformBase):
        device_type = device_name = "cpu"      # where tensors are made
        dispatch_key = "CPU"
        dist_backend = "gloo"
        get_device_capability = classmethod(lambda c, device_id=0: DeviceCapability(*divmod(cap, 10)))
        get_device_name = classmethod(lambda c, device_id=0: f"fake sm_{cap}")
        get_device_total_memory = classmethod(lambda c, device_id=0: 80 << 30)
        is_fully_connected = classmethod(lambda c, ids: True)
        device_count = classmethod(lambda c: 1)
        num_compute_units = classmethod(lambda c, device_id=0: 128)
        is_integrated_gpu = classmethod(lambda c, device_id=0: False)
        is_pin_memory_available = classmethod(lambda c: False)
        get_device_communicator_cls = CpuPlatform.get_device_communicator_cls
        set_device = classmethod(lambda c, device: None)
        manual_seed_all = classmethod(lambda c, seed: None)
        import_kernels = classmethod(lambda c: None)
        log_warnings = classmethod(lambda c: None)
        get_current_memory_usage = classmethod(lambda c, device=None: 0.0)
        get_device_uuid = classmethod(lambda c, device_id=0: "fake")

        @classmethod
        def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
            try:
                return super().get_attn_backend_cls(selected_backend, attn_selector_config, num_heads)
            except ValueError:
                # Kernels that the CPU wheel does not ship; attention backends own no weights.
                return CpuPlatform.get_attn_backend_cls(None, attn_selector_config, num_heads)

        @classmethod
        def get_mla_prefill_backend_cls(cls, mla_selector_config):
            try:
                return super().get_mla_prefill_backend_cls(mla_selector_config)
            except ValueError:          # dimensions that no kernel has, as in tiny test checkpoints
                from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum
                return MLAPrefillBackendEnum.FLASH_ATTN.get_class()

        @classmethod
        def get_vit_attn_backend(cls, head_size, dtype, backend=None):
            from vllm.v1.attention.backends.registry import AttentionBackendEnum
            return backend or AttentionBackendEnum.TORCH_SDPA

    platforms._current_platform = FakeCuda()
    platforms.vllm_version_matches_substr = lambda text: False     # "not the CPU wheel": keeps Triton on
    os.environ["CUDA_VISIBLE_DEVICES"] = ""                        # Triton then needs no active driver
    props = types.SimpleNamespace(major=cap // 10, minor=cap % 10, multi_processor_count=128,
                                  total_memory=80 << 30, name=f"fake sm_{cap}", is_integrated=False,
                                  shared_memory_per_block_optin=232448, warp_size=32, L2_cache_size=50 << 20)
    torch.cuda.get_device_capability = lambda d=None: divmod(cap, 10)
    torch.cuda.get_device_properties = lambda d=None: props
    torch.cuda.get_device_name = lambda d=None: props.name
    torch.cuda.current_device = lambda: 0
    torch.cuda.Stream = torch.cuda.Event = type("Inert", (), {"__init__": lambda self, *a, **k: None})
    torch.accelerator.current_device_index = lambda: 0

    class CudaToCpu(torch.overrides.TorchFunctionMode):
        """A few kernels' wrappers ask for device="cuda" by name."""
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if kwargs.get("device") is not None and str(kwargs["device"]).startswith("cuda"):
                kwargs["device"] = EMPTY if func is torch.empty else "cpu"
            return func(*args, **kwargs)
    CudaToCpu().__enter__()

    from vllm.v1.attention.backends.mla.prefill import registry, selector
    if auto := getattr(selector, "_auto_select_mla_prefill_backend", None):     # vLLM 0.30 asks no platform
        def auto_select(*a, **k):
            try:
                return auto(*a, **k)
            except ValueError:
                return registry.MLAPrefillBackendEnum.FLASH_ATTN.get_class()
        selector._auto_select_mla_prefill_backend = auto_select

    import vllm._custom_ops                 # noqa: F401  (registers fakes only for the operators that exist)
    # Operators of the CUDA wheel that the CPU wheel lacks: there, but never to be run.
    for ns in ("_C", "_moe_C", "_C_cache_ops", "_flashkda_C"):
        real = getattr(torch.ops, ns)
        cls = type(real)
        setattr(torch.ops, ns, type("Ops", (cls,), {
            "__getattr__": lambda self, op, _get=cls.__getattr__, _ns=ns: _op(_get, self, op, _ns)})(ns))


class Stubs:
    """Packages of a CUDA machine that hold kernels only, as empty shells: importable, not to be run."""
    NAMES = ("cutlass", "deep_gemm", "vllm.third_party.deep_gemm", "vllm.third_party.flashmla", "vllm._flashmla_C",
             "vllm._flashmla_extension_C", "vllm._flashkda_C")

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery
        if any(name == n or name.startswith(n + ".") for n in self.NAMES):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        from unittest.mock import MagicMock

        class Shell(types.ModuleType):
            def __getattr__(self, name):
                if name.startswith("__"):
                    raise AttributeError(name)
                return MagicMock(name=name)
        return Shell(spec.name)

    def exec_module(self, module):
        pass


# Queries among the missing operators, answered as the CUDA wheel does for a capability.
ANSWERS = {
    "cutlass_scaled_mm_supports_fp8": lambda c: c >= 89,
    "cutlass_scaled_mm_supports_block_fp8": lambda c: c >= 90,
    "cutlass_group_gemm_supported": lambda c: 90 <= c < 110,
    "cutlass_scaled_mm_supports_fp4": lambda c: 100 <= c < 130,
    "mxfp4_experts_quant_supported": lambda c: 100 <= c < 130,
    "get_workspace_size": lambda *a, **k: 0,
}


def _op(get, self, op, ns):
    try:
        return get(self, op)
    except AttributeError:
        if op.startswith("__"):
            raise
        return ANSWERS.get(op) or _Missing(f"{ns}::{op}")


class _Missing:
    """An operator of the CUDA wheel: can be passed around, not run."""
    def __init__(self, name):
        self.name = self.__name__ = name

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(overload)
        return self

    def __call__(self, *a, **k):
        raise NotImplementedError(f"CUDA operator {self.name} is not in the CPU wheel")


def inspect_here():
    """vLLM looks at a model class in a process of its own, to leave CUDA alone, and keeps what it saw in a cache that two releases would take
    from each other; here there is no CUDA."""
    import vllm.model_executor.models.registry as registry
    registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(self.load_model_cls())


def parallel_groups():
    """One-process groups, with the expert-parallel one that vLLM only makes for MoE configs."""
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import parallel_state as ps
    from vllm.v1.worker import workspace
    if torch.distributed.is_initialized():
        return
    # The model runner makes it before the model; a few attention layers ask it for scratch when they are built.
    workspace.init_workspace_manager(torch.device("meta"))
    with set_current_vllm_config(VllmConfig()):      # no model_config: vLLM makes every group
        ps.init_distributed_environment(world_size=1, rank=0, local_rank=0, backend="gloo",
                                        distributed_init_method="file://" + tempfile.mktemp())
        ps.ensure_model_parallel_initialized(1, 1)


def engine_config(path, **kw):
    from vllm.engine.arg_utils import EngineArgs
    kw = dict(max_model_len=64, enforce_eager=True, disable_log_stats=True) | kw
    return EngineArgs(model=path, tokenizer=path, skip_tokenizer_init=True, **kw).create_engine_config()


@contextlib.contextmanager
def captured_warnings():
    """The warnings that vLLM's config and model code logs, each once a checkpoint."""
    import vllm.logger as vl
    for name in ("_print_debug_once", "_print_info_once", "_print_warning_once", "_print_error_once"):
        getattr(vl, name).cache_clear()
    out, real = [], logging.Logger.handle

    def handle(self, record):       # not a handler: vLLM configures its logger anew and would drop it
        if record.name.startswith("vllm") and record.levelno >= logging.WARNING:
            msg = record.getMessage()
            if not NOISE.search(msg) and msg not in out:
                out.append(msg)
        return real(self, record)
    logging.Logger.handle = handle
    try:
        yield out
    finally:
        logging.Logger.handle = real
