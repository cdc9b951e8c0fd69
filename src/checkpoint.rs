//! The facts of one checkpoint folder. Reading never fails on content: what is broken is a fact too.

use serde_json::Value;

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
}

/// `model.safetensors.index.json`.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The file's text.
    pub text: String,
    /// Tensor name → shard in file order; `None` when the key is missing or not an object of strings.
    pub weight_map: Option<Vec<(String, String)>>,
    /// `metadata.total_size`, when a number.
    pub total_size: Option<u64>,
}

/// A file of the folder (sub-folders included, hidden ones not).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path relative to the folder, `/` as separator.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
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
    /// `__metadata__`.
    pub metadata: Vec<(String, String)>,
}

/// One tensor of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name as stored.
    pub name: Box<str>,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Box<[u64]>,
    /// Offsets of its bytes in the data section.
    pub span: (u64, u64),
}

/// safetensors element types.
#[allow(missing_docs, non_camel_case_types, reason = "the tags of the format are their own documentation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    BOOL,
    F4,
    F6_E2M3,
    F6_E3M2,
    U8,
    I8,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    F8_E4M3FNUZ,
    F8_E5M2FNUZ,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
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
}
