"""Stand-ins for what a config.json alone does not come with: tokenizers, processors, classes of remote configs.

A model's constructor asks them for the ids of special tokens, patch sizes and normalizations; none of that shapes the module tree,
so any answer of the right type will do.  What can be made from the directory is; only what cannot be is a mock.
"""
import functools
import importlib
import re
import sys
from unittest.mock import MagicMock


def mock_all():
    """Install every stand-in.  Before a model class is imported, or after: modules that hold a name already are seen to."""
    mock_tokenizers()
    mock_processors()
    remote_configs()


def guess(name):
    """A value for an attribute that nobody set, by its name."""
    if re.search(r"(^|_)(token_)?ids?$|_index$|_idx$", name):
        return 7
    if re.search(r"_token$|^(prompt|chat)_template$", name):
        return f"<{name}>"
    if re.search(r"mean$", name):
        return [0.5, 0.5, 0.5]
    if re.search(r"std$", name):
        return [0.5, 0.5, 0.5]
    if re.search(r"scale(_factor)?$", name):
        return 1 / 255
    if re.search(r"^(do|is|has|use|add)_|_only$", name):
        return False
    if name in ("size", "crop_size", "patch_size", "image_size"):
        return Size(height=14, width=14, shortest_edge=14, longest_edge=14)
    if re.search(r"(size|length|num_\w+|n_\w+|count|rate|max_\w+|min_\w+|factor|hop|ratio|pixels|tiles)$", name):
        return 4
    return None


class Size(dict):
    """Both a number and a dict, as processors of different makers have it."""
    __int__ = __index__ = lambda self: 14
    __getattr__ = lambda self, name: self[name] if name in self else missing(name)

    def __floordiv__(self, n):
        return 14 // n

    def __mul__(self, n):
        return 14 * n
    __rmul__ = __mul__


def missing(name):
    raise AttributeError(name)


def stand_in(cls):
    """An instance of `cls` made without its constructor; attributes that it would have set are guessed or mocks."""
    if cls.__name__ == "FakeTokenizer":
        return cls()

    def get(self, name):
        if name.startswith("__") or name in ("_processor_class", "hf_processor"):
            raise AttributeError(name)
        v = FakeTokenizer() if name == "tokenizer" else guess(name)
        v = MagicMock(name=name) if v is None else v
        try:
            object.__setattr__(self, name, v)
        except AttributeError:                  # a property that wants what the constructor would have set
            pass
        return v
    try:
        fake = type(cls.__name__, (cls,), {"__getattr__": get, "__init__": lambda self, *a, **k: None, "__module__": cls.__module__,
                                           "__hash__": object.__hash__})
        return object.__new__(fake)
    except TypeError:
        return MagicMock(spec=cls)


# ---------------------------------------------------------------- tokenizers

class Vocab(dict):
    """Has every token; the id of one that nobody gave is made from its text."""
    def __missing__(self, token):
        if not isinstance(token, str):
            raise KeyError(token)
        return sum(map(ord, token)) % 256

    def __contains__(self, token):
        return True

    def get(self, token, default=None):
        return self[token]


class FakeTokenizer:
    """Enough of a tokenizer for a constructor: any text is a token, any token has an id."""
    is_fast, padding_side, truncation_side, model_max_length = True, "left", "right", 1 << 20
    init_kwargs, added_tokens_decoder, name_or_path, max_token_id, max_chars_per_token = {}, {}, "", 511, 16

    def __init__(self):
        self.vocab = Vocab()
        self.added_tokens_encoder = Vocab()

    vocab_size = property(lambda self: 512)
    all_special_ids = property(lambda self: [0, 1, 2])
    all_special_tokens = property(lambda self: ["<unk>", "<s>", "</s>"])
    __len__ = lambda self: 512
    __bool__ = lambda self: True

    def get_vocab(self):
        return self.vocab

    get_added_vocab = get_vocab

    def convert_tokens_to_ids(self, tokens):
        return self.vocab[tokens] if isinstance(tokens, str) else [self.vocab[t] for t in tokens]

    def convert_ids_to_tokens(self, ids, **k):
        return f"<{ids}>" if isinstance(ids, int) else [f"<{i}>" for i in ids]

    def encode(self, text, *a, **k):
        return [self.vocab[text]]

    def decode(self, ids, *a, **k):
        return "".join(f"<{i}>" for i in (ids if isinstance(ids, (list, tuple)) else [ids]))

    batch_decode = lambda self, ids, *a, **k: [self.decode(i) for i in ids]
    add_tokens = add_special_tokens = lambda self, *a, **k: 0

    def __call__(self, text, *a, **k):
        from transformers import BatchEncoding
        ids = self.encode(text) if isinstance(text, str) else [self.encode(t) for t in text]
        return BatchEncoding(dict(input_ids=ids, attention_mask=ids))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        v = guess(name)
        v = MagicMock(name=name) if v is None else v
        self.__dict__[name] = v
        return v


@functools.cache
def fake_tokenizer():
    return FakeTokenizer()


def replace(old, new):
    """`new` wherever a vLLM module holds the function `old` under some name."""
    for name, mod in list(sys.modules.items()):
        if name.startswith("vllm") and mod is not None:
            for k, v in list(vars(mod).items()):
                if v is old:
                    setattr(mod, k, new)


def mock_tokenizers():
    """The engine is started without a tokenizer; ask for one and there is a stand-in."""
    import vllm.tokenizers
    from vllm.tokenizers import registry
    real = registry.cached_tokenizer_from_config

    def from_config(model_config, **k):
        return real(model_config, **k) or fake_tokenizer()

    def get(*a, **k):
        return fake_tokenizer()
    replace(real, from_config)
    replace(registry.cached_get_tokenizer, get)
    replace(registry.get_tokenizer, get)


# ---------------------------------------------------------------- processors

def mock_processors():
    """Image, video and audio processors: the real one where the directory has what it takes, else a stand-in of its class."""
    import transformers
    from vllm.multimodal.processing.context import InputProcessingContext
    from vllm.transformers_utils import processor as P
    for name in ("AutoProcessor", "AutoImageProcessor", "AutoFeatureExtractor", "AutoVideoProcessor"):
        cls = getattr(transformers, name)

        def from_pretrained(*a, _real=cls.from_pretrained, **k):
            try:
                return _real(*a, **k)
            except Exception:           # noqa: BLE001  files, packages, classes: all may be lacking
                return MagicMock()
        cls.from_pretrained = staticmethod(from_pretrained)

    real_get = P.get_processor

    def get_processor(processor_name, *a, processor_cls=transformers.ProcessorMixin, **k):
        try:
            return real_get(processor_name, *a, processor_cls=processor_cls, **k)
        except Exception:               # noqa: BLE001
            return stand_in(processor_cls[0] if isinstance(processor_cls, tuple) else processor_cls)
    replace(P.cached_get_processor, get_processor)
    replace(real_get, get_processor)

    def without_dynamic(processor_name, *a, processor_cls=transformers.ProcessorMixin, **k):
        return get_processor(processor_name, processor_cls=processor_cls)
    replace(P.cached_get_processor_without_dynamic_kwargs, without_dynamic)

    for name in ("get_image_processor", "get_video_processor", "get_feature_extractor"):
        def get_part(*a, _real=getattr(P, name), **k):
            try:
                return _real(*a, **k)
            except Exception:           # noqa: BLE001
                return MagicMock()
        replace(getattr(P, "cached_" + name), get_part)
        replace(getattr(P, name), get_part)

    from vllm.model_executor.models import vision
    if hasattr(vision, "FusedInputNorm"):       # vLLM 0.30: a buffer of the processor's numbers; mocks have none
        real_norm = vision.FusedInputNorm.from_model_config.__func__

        def from_model_config(cls, model_config):
            try:
                return real_norm(cls, model_config)
            except TypeError:
                return cls.identity()
        vision.FusedInputNorm.from_model_config = classmethod(from_model_config)

    real_init = InputProcessingContext.init_processor

    def init_processor(self, typ, /, **k):
        try:
            return real_init(self, typ, **k)
        except Exception:               # noqa: BLE001
            return stand_in(typ)
    InputProcessingContext.init_processor = init_processor


# ---------------------------------------------------------------- configs that are remote code

def remote_configs():
    """Register a config class for each model type of _remote.py, as trusted remote code would be."""
    from vllm.transformers_utils.config import _CONFIG_REGISTRY
    from _remote import REMOTE
    for mt in REMOTE:
        _CONFIG_REGISTRY[mt] = remote_class(mt)


@functools.cache
def remote_class(model_type):
    """A config class that keeps what the file says, sub-configs as objects; `_base` names the model type whose class it extends."""
    from transformers import PreTrainedConfig
    from _remote import NAMES, OBJECTS, RAW, REMOTE
    entry = REMOTE.get(model_type, {})
    base = entry.get("_base")
    if "_class" in entry:               # a class of vLLM that it registers under no name
        module, _, name = entry["_class"].partition(":")
        return getattr(importlib.import_module(module), name)
    parent = real_class(base) if base else PreTrainedConfig
    objects, raw = OBJECTS.get(model_type, ()), RAW.get(model_type, ())

    def __init__(self, **k):
        k = {n: sub_config(v) if isinstance(v, dict) and is_sub(n, v) and n not in raw else Attr.of(v) if n in objects else v for n, v in k.items()}
        parent.__init__(self, **k)
        for n, v in k.items():          # what the parent took for itself, as rope_theta
            if not hasattr(self, n) and not n.startswith("_"):
                setattr(self, n, v)
    name = NAMES.get(model_type) or "".join(p[:1].upper() + p[1:] for p in re.split(r"\W|_", model_type)) + "Config"
    return type(name, (parent,), {"__init__": __init__, "model_type": model_type, "has_no_defaults_at_init": True})


class Attr(dict):
    """A dict whose keys are attributes too."""
    __getattr__ = lambda self, name: self[name] if name in self else missing(name)

    @classmethod
    def of(cls, v):
        if isinstance(v, dict):
            return cls({k: cls.of(x) for k, x in v.items()})
        return [cls.of(x) for x in v] if isinstance(v, (list, tuple)) else v


def is_sub(name, v):
    return name != "quantization_config" and (name.endswith("_config") or "model_type" in v)


def sub_config(v):
    mt = v.get("model_type", "")
    try:
        cls = real_class(mt)
    except KeyError:
        cls = remote_class(mt)
    return cls(**{k: x for k, x in v.items() if k != "model_type"} if cls.__dict__.get("model_type", mt) == mt else v)


def real_class(mt):
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from vllm.transformers_utils.config import _CONFIG_REGISTRY
    return _CONFIG_REGISTRY[mt] if mt in _CONFIG_REGISTRY else CONFIG_MAPPING[mt]
