//! What a class says of configs that it cannot take.

use super::Expr;
use serde::Deserialize;
use serde_json::Value;

/// A config that a constructor cannot take.
#[derive(Debug, Deserialize)]
pub struct Refusal {
    /// When it refuses.
    #[serde(rename = "if")]
    pub when: Expr,
    /// Exception type.
    pub error: String,
    /// Its text.
    pub message: String,
    /// JSON pointer of the field in `config.json`.
    pub pointer: String,
    /// Before anything is constructed (`verify_and_update_model_config`).
    #[serde(default)]
    pub early: bool,
    /// Sub-config that the condition, the message and the pointer speak of.
    #[serde(default)]
    pub config: Option<String>,
}

impl Refusal {
    /// The config that it speaks of.
    pub fn of<'c>(&self, config: &'c Value) -> &'c Value {
        self.config.as_ref().and_then(|c| config.get(c)).filter(|c| c.is_object()).unwrap_or(config)
    }
}

/// Where a wrapper stops when it gets the config of another class (`tools/facts/traits.py`).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Foreign {
    /// It asks for an attribute that only configs for it have.
    Reads {
        /// The attribute.
        reads: String,
        /// Its processing info asks, before anything is constructed.
        #[serde(default)]
        early: bool,
    },
    /// Its processing info insists on a class (`InputProcessingContext.get_hf_config`).
    Expects {
        /// Full name of the class.
        expects: String,
        /// Model types that have it.
        types: Vec<String>,
    },
}
