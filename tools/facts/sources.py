"""What of vLLM's code is read by people rather than measured: which functions src/vllm follows, and the loaders of hand.py.

    python tools/facts/sources.py       writes rules/facts/vllm/<version>/sources.json: file → function → fingerprint of its code

A fingerprint says nothing of comments, docstrings and layout. release.py compares two releases'.
"""
import ast
import fnmatch
import hashlib
import importlib
import os
import re

import registry
import where

# Files whose behaviour is written down in src/vllm.
FILES = [
    "config/model.py", "transformers_utils/config.py", "model_executor/parameter.py", "model_executor/model_loader/*.py",
    "model_executor/models/utils.py", "model_executor/models/registry.py", "model_executor/models/adapters.py",
    "model_executor/layers/linear.py", "model_executor/layers/vocab_parallel_embedding.py", "model_executor/layers/fused_moe/routed_experts.py",
    "model_executor/layers/fused_moe/unquantized_fused_moe_method.py",
    "model_executor/layers/quantization/*.py", "model_executor/layers/quantization/compressed_tensors/*.py",
    "model_executor/layers/quantization/compressed_tensors/schemes/*.py", "model_executor/layers/quantization/compressed_tensors/compressed_tensors_moe/*.py",
    "model_executor/layers/quantization/quark/*.py", "model_executor/layers/quantization/quark/schemes/*.py",
    "model_executor/layers/quantization/inc/*.py", "model_executor/layers/quantization/inc/schemes/*.py", "model_executor/layers/quantization/online/*.py",
]
# What runs after a load, or has no say in it.
LATER = re.compile(r"(^|\.)(apply|forward|process_weights|_?log|_?download|maybe_download|tie_weights$|embedding$|__repr__|extra_repr|get_fused_moe_quant|"
                   r"select_gemm|maybe_make|_?setup_kernel|get_throughput|supports_|is_monolithic|get_min_cap|get_supported_act)")


def table():
    import vllm
    root = os.path.dirname(vllm.__file__)
    out = {}
    for folder, _, names in os.walk(root):
        for n in names:
            path = os.path.relpath(os.path.join(folder, n), root)
            if any(fnmatch.fnmatch(path, g) and path.count("/") == g.count("/") for g in FILES):
                with open(os.path.join(root, path)) as f:
                    out[path] = dict(functions(ast.parse(f.read())))
    return {k: v for k, v in sorted(out.items()) if v}


def functions(tree, inside=""):
    """(qualified name, fingerprint) of each function; of a class or module the statements besides."""
    rest = []
    for n in tree.body:
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not LATER.search(inside + n.name):
                yield inside + n.name, code([n])
        elif isinstance(n, ast.ClassDef):
            yield from functions(n, f"{inside}{n.name}.")
        elif not isinstance(n, (ast.Import, ast.ImportFrom)) and not docstring(n):
            rest.append(n)
    if rest:
        yield inside + "…", code(rest)


def docstring(n):
    return isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)


def code(nodes):
    for top in nodes:
        for n in ast.walk(top):
            if isinstance(getattr(n, "body", None), list):
                n.body = [x for x in n.body if not docstring(x)] or [ast.Pass()]
    return hashlib.sha256("\n".join(map(ast.unparse, nodes)).encode()).hexdigest()[:8]


def changed(new, old):
    """File → functions that are others, or there in one release only."""
    out = {}
    for path in sorted(new.keys() | old.keys()):
        a, b = new.get(path, {}), old.get(path, {})
        names = ["the file"] if not a or not b else sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))
        if names:
            out[path] = names
    return out


def unread():
    """Loaders of hand.py that this vLLM has otherwise."""
    from hand import LOADERS
    from real import source
    out = []
    for name, known in LOADERS.items():
        module, cls, method = name.rsplit(".", 2)
        found = [fn for m in modules(module) if (fn := getattr(getattr(m, cls, None), method, None))]
        hashes = [source(fn) for fn in found]
        if not found:
            out.append(f"`{name}`: not there")
        elif known[0] not in hashes:
            out.append(f"`{name}`: {', '.join(map(str, hashes))}, read was {known[0]}")
    return out


def modules(name):
    import vllm.model_executor.models as models
    root = os.path.dirname(models.__file__)
    for folder, _, names in os.walk(root):
        if f"{name}.py" in names:
            inside = os.path.relpath(folder, root).replace(os.sep, ".").strip(".")
            try:
                yield importlib.import_module(".".join(x for x in (models.__name__, inside, name) if x))
            except ImportError:
                pass


if __name__ == "__main__":
    registry.write(f"{where.folder()}/sources.json", table())
