//! The facts of one checkpoint folder. Reading never fails on content: what is broken is a fact too.

mod compact;
mod cores;
mod cursor;
mod digest;
mod dtype;
mod header;
mod index;
mod json;
mod kind;
mod order;
mod pyjson;
mod read;

use std::sync::Arc;

use serde_json::Value;

pub use compact::{Name, Shape};
pub use digest::Digest;
pub use dtype::Dtype;
pub use header::MAX_HEADER;
pub use order::natural;
pub use pyjson::escape_pointer;

pub use crate::source::FileEntry;

/// A part of a checkpoint that may be missing or unreadable.
#[derive(Debug, Clone, Default)]
pub enum Part<T> {
    /// No such file.
    #[default]
    Absent,
    /// The file is there and cannot be understood.
    Broken(Vec<Defect>),
    /// Read.
    Present(T),
}

impl<T> Part<T> {
    /// The value when present.
    pub fn get(&self) -> Option<&T> {
        match self {
            Part::Present(v) => Some(v),
            _ => None,
        }
    }

    /// What is wrong with the file; empty unless it is broken.
    pub fn defects(&self) -> &[Defect] {
        match self {
            Part::Broken(defects) => defects,
            _ => &[],
        }
    }

    /// There is no such file.
    pub fn is_absent(&self) -> bool {
        matches!(self, Part::Absent)
    }
}

/// One thing that is wrong with a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// What is wrong.
    pub kind: DefectKind,
    /// In words, with the numbers: lower case, no final period.
    pub text: String,
    /// The tensor it concerns, for header defects.
    pub tensor: Option<String>,
    /// What the reader that vLLM uses says of the file, on the defect at which it stops: the text of Python's
    /// `JSONDecodeError` or `UnicodeDecodeError`, or of the safetensors crate without
    /// `Error while deserializing header: `.
    pub said: Option<String>,
    /// Byte offset in a JSON file, when known.
    pub at: Option<usize>,
}

impl Defect {
    /// A defect of the whole file.
    pub fn new(kind: DefectKind, text: impl Into<String>) -> Self {
        Defect { kind, text: text.into(), tensor: None, said: None, at: None }
    }

    fn of(mut self, tensor: &str) -> Self {
        self.tensor = Some(tensor.to_owned());
        self
    }

    fn saying(mut self, said: impl Into<String>) -> Self {
        self.said = Some(said.into());
        self
    }

    fn at(mut self, offset: usize) -> Self {
        self.at = Some(offset);
        self
    }
}

/// Kinds of byte-level defects of JSON files and safetensors shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DefectKind {
    /// JSON that does not parse (text holds Python's `json` wording where known), or is not an object.
    Json,
    /// A JSON file that is a Git LFS pointer.
    JsonPointer,
    /// Zero bytes.
    Empty,
    /// Fewer than 8 bytes: no header length.
    HeaderTooSmall,
    /// Header length above 100,000,000.
    HeaderTooLarge,
    /// Header length beyond the end of the file.
    HeaderPastEnd,
    /// Header that is not UTF-8 or not JSON, or whose entries do not have the three fields.
    HeaderJson,
    /// The same tensor name twice in one header.
    DuplicateName,
    /// A dtype that safetensors does not know.
    UnknownDtype,
    /// Offsets that overlap, leave a hole, or run backwards.
    Offsets,
    /// Shape times dtype is not the number of bytes.
    ShapeBytes,
    /// The file ends before the last tensor does, or has bytes after it.
    Length,
    /// Arithmetic overflow in a shape.
    Overflow,
}

/// A JSON file, parsed, with its text for excerpts.
#[derive(Debug, Clone)]
pub struct Json {
    /// The file's text.
    pub text: String,
    /// The parsed value; key order is the file's; of duplicate keys the last one counts, as in Python.
    pub value: Value,
    /// JSON pointers of keys that occur twice in one object.
    pub duplicate_keys: Vec<String>,
    /// JSON pointers of `NaN`, `Infinity` and numbers as large, which Python reads and [`Value`] cannot hold: there
    /// stand the smallest positive number and the largest ones, so that they stay floats.
    pub non_finite: Vec<String>,
}

/// `model.safetensors.index.json`.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The file's text.
    pub text: Arc<String>,
    /// Tensor name → shard in file order; `None` when the key is missing or not an object of strings.
    pub weight_map: Option<Vec<(Name, Name)>>,
    /// `metadata.total_size`, when a number.
    pub total_size: Option<u64>,
    /// JSON pointers of keys that occur twice in one object.
    pub duplicate_keys: Vec<String>,
    /// Runs of `weight_map` with the same shard: the shard, and the names.
    pub runs: Vec<(Name, Digest)>,
}

/// One top-level `*.safetensors` file.
#[derive(Debug, Clone)]
pub struct Shard {
    /// File name.
    pub file: String,
    /// Size in bytes on disk.
    pub size: u64,
    /// Its header.
    pub state: ShardState,
}

impl Shard {
    /// What could be read of the header; `None` for a pointer.
    pub fn header(&self) -> Option<&Header> {
        match &self.state {
            ShardState::Good(header) | ShardState::Broken(_, header) => Some(header),
            ShardState::Pointer { .. } => None,
        }
    }

    /// The tensors that could be read, sorted bytewise.
    pub fn tensors(&self) -> &[Tensor] {
        self.header().map_or(&[], |h| &h.tensors)
    }

    /// What is wrong with the header.
    pub fn defects(&self) -> &[Defect] {
        match &self.state {
            ShardState::Broken(defects, _) => defects,
            _ => &[],
        }
    }

    /// The text with which safetensors refuses the file, `Error while deserializing header: ` included.
    pub fn refusal(&self) -> Option<String> {
        let said = match &self.state {
            ShardState::Good(_) => return None,
            ShardState::Broken(defects, _) => defects.iter().find_map(|d| d.said.as_deref())?,
            // The letters `version ` make a header length of 7 * 10^18.
            ShardState::Pointer { .. } => "header too large",
        };
        Some(format!("Error while deserializing header: {said}"))
    }

    /// A Git LFS pointer instead of the weights.
    pub fn is_pointer(&self) -> bool {
        matches!(self.state, ShardState::Pointer { .. })
    }
}

/// What the first bytes of a shard say.
#[derive(Debug, Clone)]
pub enum ShardState {
    /// A valid header (the safetensors crate would accept the file).
    Good(Header),
    /// A header with defects; tensors are what could still be read.
    Broken(Vec<Defect>, Header),
    /// A Git LFS pointer: the weights are elsewhere, `size` bytes of them.
    Pointer {
        /// Size that the pointer states.
        size: u64,
    },
}

/// Tensors of one shard, sorted bytewise by name: the order of `safe_open(...).keys()`.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// The tensors.
    pub tensors: Vec<Tensor>,
    /// `__metadata__`, in file order.
    pub metadata: Vec<(String, String)>,
    /// Names that occur more than once. The safetensors crate takes that and keeps the last, and so does `tensors`.
    pub duplicates: Vec<String>,
    /// Of the names of `tensors`.
    pub names: Digest,
}

impl Header {
    /// The tensor with this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        let at = self.tensors.binary_search_by(|t| t.name.as_str().cmp(name)).ok()?;
        self.tensors.get(at)
    }
}

/// One tensor of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name as stored.
    pub name: Name,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Shape,
    /// Offsets of its bytes in the data section.
    pub span: (u64, u64),
}

impl Tensor {
    /// Bytes that it takes in the file.
    pub fn bytes(&self) -> u64 {
        self.span.1.saturating_sub(self.span.0)
    }

    /// Elements by shape; `None` when that overflows.
    pub fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }
}

/// What a folder is, judged by its files, before anything else is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FolderKind {
    /// A model checkpoint (or something broken that should have been one).
    #[default]
    Model,
    /// `adapter_config.json` and adapter weights only.
    LoraAdapter,
    /// `*.gguf` only.
    Gguf,
    /// `model_index.json` of diffusers.
    Diffusers,
}

/// One checkpoint folder.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    /// As given or found, for display.
    pub path: String,
    /// What the folder is.
    pub kind: FolderKind,
    /// Every file, sorted by name.
    pub files: Vec<FileEntry>,
    /// `config.json`.
    pub config: Part<Json>,
    /// `generation_config.json`.
    pub generation_config: Part<Json>,
    /// The other places of a quantization config that exist: `hf_quant_config.json`, `quantize_config.json`,
    /// `quant_config.json`, `quantization_config.json`, by file name.
    pub quant_files: Vec<(String, Part<Json>)>,
    /// `model.safetensors.index.json`.
    pub index: Part<Index>,
    /// Every top-level `*.safetensors`, in vLLM's natural order (digit runs compared as numbers).
    pub shards: Vec<Shard>,
    /// A chat template is there: a file of its own, or a key of `tokenizer_config.json`.
    pub chat_template: bool,
    /// `modules.json` has a pooling module: vLLM serves it for pooling, whatever its class.
    pub sentence_transformers: bool,
    /// `bos_token`, `eos_token` and whether they are added, of `tokenizer_config.json`, as far as they are there. Only
    /// [`Checkpoint::read_special_tokens`] fills it: nothing else asks, and the file may be large.
    pub special_tokens: Vec<(&'static str, Value)>,
    /// The Python file of the config class that `auto_map` names, when the folder has it.
    pub config_code: Option<String>,
    /// There is no folder: the config was given alone, and nothing that is not here is missing.
    pub config_only: bool,
    /// Texts of JSON files that are broken, by file name: for excerpts only.
    pub broken_texts: Vec<(String, String)>,
}
