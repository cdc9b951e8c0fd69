//! A finding: what is wrong, where, what vLLM would say, and how to mend it.

pub mod words;

mod identity;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use identity::fingerprints;

/// How much a finding matters, by its consequence for whoever serves the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Hygiene, or something that could not be looked at.
    Note,
    /// vLLM loads it, but not as meant, or it wastes memory, or it fails elsewhere.
    Warning,
    /// vLLM refuses the checkpoint, or loads it and something holds garbage.
    Error,
}

/// A symbolic place inside a checkpoint folder; [`crate::locate`] alone turns it into bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Place {
    /// The folder itself.
    Folder,
    /// A file, by its name relative to the folder.
    File {
        /// File name relative to the folder, `/` as separator.
        file: String,
    },
    /// A key of a JSON file, by JSON pointer (RFC 6901).
    Key {
        /// File name relative to the folder.
        file: String,
        /// JSON pointer, e.g. `/quantization_config/ignore/3`; empty for the whole document.
        pointer: String,
    },
    /// A tensor, by shard and name.
    Tensor {
        /// Shard file name relative to the folder.
        file: String,
        /// Tensor name as stored.
        name: String,
    },
}

impl Place {
    /// The file, when it is in one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Place::Folder => None,
            Place::File { file } | Place::Key { file, .. } | Place::Tensor { file, .. } => Some(file),
        }
    }
}

/// What a finding is about: how many things, and the first few names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Subjects {
    /// How many there are in all.
    pub count: usize,
    /// All of them, sorted as found (reports cut the list, JSON keeps it).
    pub names: Vec<String>,
}

/// An exception that vLLM would raise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VllmMessage {
    /// Python exception type, e.g. `ValueError`.
    pub error_type: String,
    /// Root-cause text, sets sorted, the checkpoint's folder written as `<dir>`.
    pub text: String,
}

/// A repair as data. Nothing is ever applied by ckpt-lint itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Fix {
    /// Append entries to a JSON list.
    Append {
        /// File to edit.
        file: String,
        /// JSON pointer of the list.
        pointer: String,
        /// Entries to add, in order.
        entries: Vec<String>,
    },
    /// Remove entries from a JSON list.
    Remove {
        /// File to edit.
        file: String,
        /// JSON pointer of the list.
        pointer: String,
        /// Entries to remove.
        entries: Vec<String>,
    },
    /// Replace entries of a JSON list, `[old, new]` each.
    Replace {
        /// File to edit.
        file: String,
        /// JSON pointer of the list.
        pointer: String,
        /// Pairs of old and new entry.
        entries: Vec<(String, String)>,
    },
    /// Set a JSON key to a value.
    Set {
        /// File to edit.
        file: String,
        /// JSON pointer of the key.
        pointer: String,
        /// The value to write.
        value: Value,
    },
    /// Remove a file from the folder.
    DeleteFile {
        /// The file.
        file: String,
    },
    /// Drop tensors from the shards (and the index).
    DropTensors {
        /// Tensor names as stored.
        names: Vec<String>,
    },
}

/// One finding: one cause, however many tensors it touches.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Rule name, e.g. `quant-unlisted-linear`.
    pub rule: &'static str,
    /// Level after policy.
    pub level: Level,
    /// Lower case, no final period, under 120 columns.
    pub message: String,
    /// Where it is best mended.
    pub place: Place,
    /// Words under the excerpt's marker, e.g. "no entry matches `x`".
    pub label: Option<String>,
    /// What it is about.
    pub subjects: Subjects,
    /// Lines of evidence, e.g. `vision_embedder.patch_dense.weight   BF16 [3840, 6912]   model-rest-000.safetensors`.
    pub evidence: Vec<String>,
    /// What vLLM would print, when it refuses because of this.
    pub vllm: Option<VllmMessage>,
    /// What to do next, ready to paste.
    pub help: Option<String>,
    /// The same as data.
    pub fix: Option<Fix>,
}
