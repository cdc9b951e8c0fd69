//! `QuantizationArgs` of compressed-tensors 0.17.0 (quantization/quant_args.py): what it accepts, in which order it
//! checks, and its `repr`, which vLLM prints.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::fields::Fields;
use crate::vllm::method::py::{self, Issue, raised, validation_error};
use crate::vllm::trace::Raised;

const MODEL: &str = "QuantizationArgs";

/// `QuantizationStrategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Tensor,
    Channel,
    Group,
    Block,
    Token,
    TensorGroup,
    AttnHead,
}

impl Strategy {
    const ALL: [Strategy; 7] = [
        Strategy::Tensor,
        Strategy::Channel,
        Strategy::Group,
        Strategy::Block,
        Strategy::Token,
        Strategy::TensorGroup,
        Strategy::AttnHead,
    ];

    /// Its value.
    pub(super) fn name(self) -> &'static str {
        match self {
            Strategy::Tensor => "tensor",
            Strategy::Channel => "channel",
            Strategy::Group => "group",
            Strategy::Block => "block",
            Strategy::Token => "token",
            Strategy::TensorGroup => "tensor_group",
            Strategy::AttnHead => "attn_head",
        }
    }

    /// `QuantizationStrategy(name)`.
    pub(super) fn of(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Name of the enum's member.
    pub(super) fn member(self) -> String {
        self.name().to_uppercase()
    }
}

/// `dynamic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dynamic {
    No,
    Yes,
    Local,
}

/// Parsed arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Args {
    pub(super) num_bits: i64,
    pub(super) float: bool,
    pub(super) symmetric: bool,
    pub(super) group_size: Option<i64>,
    pub(super) strategy: Option<Strategy>,
    pub(super) block: Option<Vec<i64>>,
    pub(super) dynamic: Dynamic,
    pub(super) actorder: Option<&'static str>,
    pub(super) scale_dtype: Option<&'static str>,
    pub(super) zp_dtype: Option<&'static str>,
    pub(super) observer: Option<String>,
    pub(super) observer_kwargs: Map<String, Value>,
    /// Whether the file says so, or the library filled it in: the `repr` differs.
    pub(super) type_given: bool,
    pub(super) strategy_given: bool,
}

/// Why arguments are refused: the field (empty for the whole) and the exception.
pub(super) type Refused = (String, Raised);

impl Args {
    /// `QuantizationArgs.model_validate(value)`.
    pub(super) fn parse(value: &Value) -> Result<Args, Refused> {
        let Some(map) = value.as_object() else {
            let text = format!("Input should be a valid dictionary or instance of {MODEL}");
            return Err((String::new(), validation_error(MODEL, &[Issue::new(&[], "model_type", text, value)])));
        };
        let mut fields = Fields::default();
        let mut args = fields.all(map)?;
        if let Some(first) = fields.issues.first() {
            let field = first.loc.first().cloned().unwrap_or_default();
            return Err((field, validation_error(MODEL, &fields.issues)));
        }
        match args.settle() {
            Ok(()) => Ok(args),
            Err(Unsettled::Value(field, text)) => {
                Err((field.to_owned(), validation_error(MODEL, &[Issue::value(&[], &text, value)])))
            }
            Err(Unsettled::NotImplemented(text)) => Err(("num_bits".to_owned(), raised("NotImplementedError", text))),
        }
    }

    /// The strategy, given or inferred.
    pub(super) fn strategy(&self) -> Strategy {
        self.strategy.unwrap_or(Strategy::Tensor)
    }

    /// Whether `scale_dtype` is `torch.uint8`.
    pub(super) fn scales_are_bytes(&self) -> bool {
        self.scale_dtype == Some("torch.uint8")
    }

    /// Equality as Python sees it: a member of an enum equals its value.
    pub(super) fn same(&self, other: &Args) -> bool {
        let alike = |args: &Args| Args { type_given: true, strategy_given: true, ..args.clone() };
        alike(self) == alike(other)
    }

    /// vLLM refuses these orderings.
    pub(super) fn refused_ordering(&self) -> Option<&'static str> {
        self.actorder.filter(|a| matches!(*a, "'group'" | "'dynamic'"))
    }

    /// `validate_model_after`.
    fn settle(&mut self) -> Result<(), Unsettled> {
        use Strategy::{Block, Channel, Group, Tensor, TensorGroup, Token};
        let size = self.group_size;
        let strategy = match (self.strategy, size) {
            (Some(strategy), _) => strategy,
            (None, None) => Tensor,
            (None, Some(n)) if n > 0 => Group,
            (None, Some(-1)) => Channel,
            (None, Some(n)) => return Err(Unsettled::Value("group_size", invalid_group_size(&n.to_string()))),
        };
        let value = |field, text: &str| Err(Unsettled::Value(field, text.to_owned()));
        if strategy == Token && self.dynamic == Dynamic::No {
            return value("dynamic", "Cannot perform static token quantization, please use `dynamic=True`");
        }
        let grouped = matches!(strategy, Group | TensorGroup);
        if grouped && size.is_none_or(|n| n <= 0) {
            let name = strategy.name();
            let text = format!("strategy {name} requires group_size to be set to a positive value");
            return value(if size.is_some() { "group_size" } else { "strategy" }, &text);
        }
        if size.is_some_and(|n| n > 0) && !grouped {
            return value("group_size", "group_size requires strategy to be set to 'group'");
        }
        if strategy == Block && self.block.is_none() {
            return value("strategy", &format!("Block strategy requires block structure\n{}", self.words()));
        }
        if strategy != Block && self.block.is_some() {
            return value("block_structure", &format!("Block structure requires block strategy\n{}", self.words()));
        }
        if self.refused_ordering().is_some() && !grouped {
            let text =
                "Must use group or tensor_group quantization strategy in order to apply group activation ordering";
            return value("actorder", text);
        }
        if self.dynamic != Dynamic::No {
            let supported = [Token, Tensor, TensorGroup, Group];
            if !supported.contains(&strategy) {
                let names = supported.map(enum_repr).join(", ");
                return value("dynamic", &format!("One of ({names}) must be used for dynamic quant."));
            }
            if self.dynamic == Dynamic::Local && strategy != TensorGroup {
                return value("dynamic", "local is only supported for strategy tensor_group");
            }
            match (self.dynamic, &self.observer) {
                (Dynamic::Yes, Some(_)) => self.observer = None,
                (Dynamic::Local, None) => self.observer = Some("minmax".into()),
                _ => {}
            }
        } else if self.observer.is_none() {
            self.observer = Some("memoryless_minmax".into());
        }
        if self.zp_dtype.is_none() {
            self.zp_dtype = Some(match (self.float, self.num_bits) {
                (true, 4 | 8) => "torch.float8_e4m3fn",
                (true, _) => return Err(Unsettled::NotImplemented("Only num_bits in (8) are supported")),
                (false, ..=8) => "torch.int8",
                (false, ..=16) => "torch.int16",
                (false, _) => "torch.int32",
            });
        }
        self.strategy = Some(strategy);
        Ok(())
    }

    /// `repr(args)`.
    pub(super) fn repr(&self) -> String {
        format!("{MODEL}({})", self.fields(", "))
    }

    /// `str(args)`.
    pub(super) fn words(&self) -> String {
        self.fields(" ")
    }

    fn fields(&self, separator: &str) -> String {
        let kind = match (self.type_given, self.float) {
            (false, _) => "<QuantizationType.INT: 'int'>",
            (true, false) => "'int'",
            (true, true) => "'float'",
        };
        let none = || "None".to_owned();
        let strategy = match self.strategy {
            None => none(),
            Some(s) if self.strategy_given => format!("'{}'", s.name()),
            Some(s) => enum_repr(s),
        };
        let block = self
            .block
            .as_ref()
            .map_or_else(none, |b| format!("[{}]", b.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")));
        let dynamic = match self.dynamic {
            Dynamic::No => "False",
            Dynamic::Yes => "True",
            Dynamic::Local => "'local'",
        };
        let symmetric = if self.symmetric { "True" } else { "False" };
        let parts: [(&str, &str); 12] = [
            ("num_bits", &self.num_bits.to_string()),
            ("type", kind),
            ("symmetric", symmetric),
            ("group_size", &self.group_size.map_or_else(none, |n| n.to_string())),
            ("strategy", &strategy),
            ("block_structure", &block),
            ("dynamic", dynamic),
            ("actorder", self.actorder.unwrap_or("None")),
            ("scale_dtype", self.scale_dtype.unwrap_or("None")),
            ("zp_dtype", self.zp_dtype.unwrap_or("None")),
            ("observer", &self.observer.as_deref().map_or_else(none, py::repr_str)),
            ("observer_kwargs", &py::repr_map(&self.observer_kwargs)),
        ];
        let mut out = String::with_capacity(300);
        for (i, (name, text)) in parts.into_iter().enumerate() {
            let _ = write!(out, "{}{name}={text}", if i > 0 { separator } else { "" });
        }
        out
    }
}

enum Unsettled {
    /// Field to blame, and the text of the `ValueError`.
    Value(&'static str, String),
    NotImplemented(&'static str),
}

fn enum_repr(strategy: Strategy) -> String {
    format!("<QuantizationStrategy.{}: '{}'>", strategy.member(), strategy.name())
}

pub(super) fn invalid_group_size(size: &str) -> String {
    format!("Invalid group size {size}. Use group_size > 0 for strategy='group' and group_size = -1 for 'channel'")
}
