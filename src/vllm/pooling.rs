//! What the adapters make of a class that generates text when it is served for pooling (vllm/model_executor/models/adapters.py).

use super::config::Resolved;
use super::files::Selection;
use super::registry::Found;
use super::tree::Tree;
use crate::checkpoint::Checkpoint;
use crate::facts::{ClassFile, Node, NodeKind};
use serde_json::{Value, json};

/// `PreTrainedConfig.num_labels` where nothing says another number.
const LABELS: u64 = 2;

/// Whether an adapter is at work (`_get_default_runner_type`): classes of vLLM's own for pooling stay as they are, and one that
/// generates text does so under its registered names, however they end.
pub(super) fn adapts(cp: &Checkpoint, found: &Found, class: &ClassFile) -> bool {
    let by_name = found.pooling && (found.listed != found.architecture || class.base);
    !class.pooling && (by_name || cp.sentence_transformers)
}

/// `StageMissingLayer` in place of every head: what is stored for it is dropped, and nothing misses it.
pub(super) fn take_heads(tree: &mut Tree, found: &Found) {
    for (head, _) in tree.heads.clone() {
        tree.modules[head].kind = NodeKind::Placeholder;
        tree.modules[head].slots.clear();
    }
    // Its own adapters have names of their own.
    if let Some(root) = tree.modules.first_mut().filter(|_| !found.class.starts_with("Transformers")) {
        root.cls = found.pooling_class().into();
    }
}

/// The `score` of `as_seq_cls_model`, or why there is no telling.
pub(super) fn score(resolved: &Resolved) -> Result<Node, &'static str> {
    let given = |config: &Value, field: &str| config.get(field).is_some_and(|v| !v.is_null());
    let configs = [&resolved.value, resolved.text()];
    if configs.iter().any(|c| given(c, "classifier_from_token") || given(c, "method")) {
        return Err(
            "its score is made from the head of the language model (`classifier_from_token`, `method`), which is not simulated yet",
        );
    }
    let hidden =
        resolved.text().get("hidden_size").and_then(Value::as_u64).ok_or("the config gives no `hidden_size`")?;
    let own = labels(&resolved.value).filter(|n| *n != LABELS);
    let labels = own.or_else(|| labels(resolved.text())).unwrap_or(LABELS);
    let node = json!({
        "name": "score", "cls": "ReplicatedLinear", "kind": "replicated", "quant": "=",
        "in": hidden.to_string(), "out": labels.to_string(),
    });
    serde_json::from_value(node).map_err(|_| "its score cannot be built")
}

/// `num_labels`: as many as `id2label` has, else the number itself.
fn labels(config: &Value) -> Option<u64> {
    match config.get("id2label") {
        Some(Value::Object(names)) => u64::try_from(names.len()).ok(),
        _ => config.get("num_labels").and_then(Value::as_u64),
    }
}

/// How far a loader reads before it loads anything.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// What all names get in front: they are relative to the model inside.
    pub(super) prefix: &'static str,
    /// Tensors that are read by then.
    pub(super) read: usize,
    /// The last of them, which vLLM blames for what is wrong with the others.
    pub(super) in_hand: Option<String>,
    /// `auto_set_score_bias`: the score gets a bias when one comes.
    pub(super) score_bias: bool,
}

impl Ahead {
    /// `_load_pooling_model_weights`: up to the first name that a parameter has, as it is or below `model.`.
    pub(super) fn of_adapter(
        cp: &Checkpoint,
        selection: &Selection,
        tree: &Tree,
        rename: &dyn Fn(&str) -> String,
        found: &Found,
    ) -> Ahead {
        let score_bias = found.classifies();
        let mut last = Ahead { score_bias, ..Ahead::default() };
        for (i, name) in names(cp, selection).filter(|n| !(score_bias && *n == "score.bias")).enumerate() {
            let looked_up = rename(name);
            let hit = ["", "model."].into_iter().find(|prefix| has(tree, &format!("{prefix}{looked_up}")));
            last.read = i + 1;
            last.in_hand = Some(name.to_owned());
            if let Some(prefix) = hit {
                return Ahead { prefix, ..last };
            }
        }
        last
    }

    /// Everything (`list(weights)`).
    pub(super) fn all(cp: &Checkpoint, selection: &Selection) -> Ahead {
        Ahead { read: usize::MAX, in_hand: names(cp, selection).last().map(str::to_owned), ..Ahead::default() }
    }
}

/// Names in the order in which vLLM reads them.
fn names<'c>(cp: &'c Checkpoint, selection: &'c Selection) -> impl Iterator<Item = &'c str> {
    let stored = selection.shards.iter().flat_map(|i| cp.shards[*i].tensors()).map(|t| &*t.name);
    stored.chain(selection.names.iter().map(|n| &*n.0))
}

/// Whether `named_parameters` has the name.
fn has(tree: &Tree, name: &str) -> bool {
    let Some((path, leaf)) = name.rsplit_once('.') else { return false };
    let Some(module) = tree.find(path) else { return false };
    let m = &tree.modules[module];
    m.slots.iter().any(|s| s.name == leaf && !s.buffer)
}
