//! What became of a source checkpoint on its way to a quantized or repacked one: precision, bytes, what is lost, and
//! config fields that should have stayed as they were.
//!
//! A pure function of two checkpoints. Nothing is known of architectures here: a tensor belongs to a part of the model
//! by the standard words in its name (`part`), to a weight by the suffixes that quantization methods give its pieces
//! (`stored`), and what the headers leave open (how many bits are packed into an integer) is said to be open.

mod causes;
mod fields;
pub mod json;
mod layout;
mod part;
mod precision;
mod rename;
mod stored;
pub mod text;
mod weights;

use crate::checkpoint::{Checkpoint, Part as File};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use stored::Stored;

pub use part::Part;

/// All that is to be said of two checkpoints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Diff {
    /// The source.
    pub before: Side,
    /// What was made of it.
    pub after: Side,
    /// Nothing is lost, cut or renamed to something else, no field that must not change did, and all could be compared:
    /// exit code 0.
    pub intact: bool,
    /// Weights by part and kind, with the precision that they are stored in.
    pub weights: Vec<Weights>,
    /// Stored bytes by part.
    pub bytes: Vec<Bytes>,
    /// Names that differ by a prefix only.
    pub renamed: Vec<Renamed>,
    /// Weights that are stored in one tensor on one side and in several on the other.
    pub layouts: Vec<Layout>,
    /// What the source has and the other has not.
    pub lost: Vec<Cause>,
    /// What the other has and the source has not.
    pub gained: Vec<Cause>,
    /// Weights whose shape is another one.
    pub reshaped: Vec<Reshaped>,
    /// Fields of the config files that differ. Those of no consequence are in `harmless`.
    pub fields: Vec<Field>,
    /// Fields that differ and change nothing.
    pub harmless: Vec<String>,
    /// Files that a server reads besides the weights, and that only the source has.
    pub files_lost: Vec<String>,
}

/// One of the two checkpoints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Side {
    /// As given or found.
    pub path: String,
    /// Stored tensors; of absent shards those that the index names.
    pub tensors: usize,
    /// Bytes of the stored tensors.
    pub bytes: u64,
    /// Of these tensors only the names are known: their shard is not here.
    pub by_name: usize,
    /// What could not be compared, and why.
    pub unread: Vec<String>,
}

/// Dimensions of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Two dimensions or more: linears, embeddings, convolutions, stacked experts.
    Matrix,
    /// Fewer: norms, biases, scalars.
    Vector,
    /// Only the name is known.
    Unknown,
}

/// Weights of one part and kind.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Weights {
    /// Part of the model.
    pub part: Part,
    /// Kind of weight.
    pub kind: Kind,
    /// Of the source, most first.
    pub before: Vec<Count>,
    /// Of the other, most first.
    pub after: Vec<Count>,
    /// What became of which; weights that are on both sides only.
    pub changes: Vec<Change>,
}

/// A number of weights of one precision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// E.g. `BF16` or `int4 group 128`.
    pub precision: String,
    /// Weights.
    pub weights: usize,
}

/// Weights that went from one precision to another, or stayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Change {
    /// Precision in the source.
    pub before: String,
    /// Precision in the other.
    pub after: String,
    /// Weights.
    pub weights: usize,
    /// Their names, numbers collapsed: `model.layers.{0-47}.mlp.down_proj.weight`.
    pub names: Vec<String>,
}

/// Bytes of one part.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Bytes {
    /// Part of the model.
    pub part: Part,
    /// In the source.
    pub before: u64,
    /// In the other.
    pub after: u64,
    /// After by before, to three digits; none when there was nothing before, or when not all sizes are known.
    pub ratio: Option<f64>,
}

/// A prefix that became another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Renamed {
    /// In the source; may be empty.
    pub before: String,
    /// In the other; may be empty.
    pub after: String,
    /// Weights so renamed.
    pub weights: usize,
}

/// The same weights in fewer or more tensors.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Layout {
    /// The module, numbers collapsed.
    pub name: String,
    /// How the source stores it, e.g. `gate_up_proj`.
    pub before: String,
    /// How the other does, e.g. `128 experts, gate_proj, up_proj`.
    pub after: String,
    /// Modules.
    pub modules: usize,
}

/// Weights that are on one side only, for one cause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cause {
    /// What they have in common, numbers collapsed: a weight, a module, or a whole tower.
    pub name: String,
    /// Weights.
    pub weights: usize,
    /// Part of the model.
    pub part: Part,
    /// Why it is no loss, where it is none.
    pub reason: Option<String>,
}

/// Weights whose shape changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reshaped {
    /// Their names, numbers collapsed.
    pub name: String,
    /// Shape in the source.
    pub before: Vec<u64>,
    /// Shape in the other, as stored.
    pub after: Vec<u64>,
    /// What it is stored as.
    pub stored: String,
    /// Weights.
    pub weights: usize,
}

/// What became of a config field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Another value.
    Changed,
    /// Only the source has it.
    Gone,
    /// Only the other has it.
    New,
}

/// A config field that differs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Field {
    /// The file.
    pub file: String,
    /// The field, e.g. `text_config.hidden_size`.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
    /// It must not: exit code 1.
    pub breaks: bool,
    /// Value in the source.
    pub before: Option<Value>,
    /// Value in the other.
    pub after: Option<Value>,
}

/// Files besides weights and configs that nothing else takes the place of.
const FILES: [&str; 9] = [
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
];

impl Diff {
    /// Compares a source with what was made of it.
    pub fn of(before: &Checkpoint, after: &Checkpoint) -> Diff {
        let (a, mut b) = (Stored::read(before), Stored::read(after));
        let renamed = rename::undo(&a, &mut b);
        let pairs = stored::Pairs::of(&a, &b);
        let layouts = layout::find(&a, &b, &pairs);
        let tied = fields::tied(before) && fields::tied(after);
        let mut lost = causes::one_sided(&a, &b, &pairs.left, &layouts.left, tied);
        let gained = causes::one_sided(&b, &a, &pairs.right, &layouts.right, tied);
        let weights::Compared { weights, reshaped, scaleless } = weights::compare(&a, &b, &pairs);
        lost.extend(scaleless);
        let (fields, harmless) = fields::compare(before, after);
        let has = |c: &Checkpoint, name: &str| c.file(name).is_some();
        let files_lost = FILES.iter().filter(|f| has(before, f) && !has(after, f)).map(|f| (*f).to_owned()).collect();
        let (one, other) = (side(before, &a), side(after, &b));
        let intact = lost.iter().all(|c| c.reason.is_some())
            && reshaped.is_empty()
            && !fields.iter().any(|f| f.breaks)
            && one.unread.is_empty()
            && other.unread.is_empty();
        Diff {
            before: one,
            after: other,
            intact,
            weights,
            bytes: weights::bytes(&a, &b),
            renamed,
            layouts: layouts.told,
            lost,
            gained,
            reshaped,
            fields,
            harmless,
            files_lost,
        }
    }
}

fn side(cp: &Checkpoint, stored: &Stored) -> Side {
    let mut unread = Vec::new();
    match &cp.config {
        File::Present(_) => {}
        File::Absent => unread.push("there is no config.json".to_owned()),
        File::Broken(defects) => {
            let why = defects.first().map_or("", |d| d.text.as_str());
            unread.push(format!("config.json cannot be read: {why}"));
        }
    }
    if let Some(defect) = cp.generation_config.defects().first() {
        unread.push(format!("generation_config.json cannot be read: {}", defect.text));
    }
    for shard in &cp.shards {
        if let Some(defect) = shard.defects().first() {
            unread.push(format!("the header of {} has defects: {}", shard.file, defect.text));
        }
    }
    if stored.tensors == 0 {
        unread.push("there are neither safetensors nor an index that names some".to_owned());
    }
    Side {
        path: cp.path.clone(),
        tensors: stored.tensors,
        bytes: stored.weights.iter().fold(0, |n, w| n.saturating_add(w.bytes).saturating_add(w.extra_bytes)),
        by_name: stored.by_name,
        unread,
    }
}
