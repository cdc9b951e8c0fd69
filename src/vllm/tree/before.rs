//! Generators in front of `AutoWeightsLoader`: what they do to names and shapes.

use super::Loader;
use crate::facts::{self, Aside, Outer, Scope};
use std::borrow::Cow;
use std::rc::Rc;

/// What a generator in front of `AutoWeightsLoader` does to names.
#[derive(Debug, Default)]
pub struct Before {
    /// Segments and their replacements.
    pub segments: Vec<(String, String)>,
    /// Elements that are left out.
    pub skip: Option<Skip>,
    /// A prefix for names that begin with none of the others.
    pub prefix: Option<(String, Vec<String>)>,
    /// Parts of names whose weights are stored the other way round.
    pub turned: Vec<String>,
    /// Part of names whose tensors of one dimension are one row.
    pub one_row: Option<String>,
    /// Part of names whose tensors lose a first dimension of 1.
    pub squeezed: Option<String>,
    /// Tensors of two projections.
    pub halves: Option<Halves>,
    /// Endings of names that come with a bias of zeros.
    pub zero_bias: Vec<String>,
    /// Two tensors for one parameter.
    pub joined: Option<facts::Joined>,
    /// Matrices that become kernels.
    pub patches: Option<Patches>,
    /// A head that gets a bias when one comes.
    pub head_bias: Option<String>,
    /// Tensors of one module.
    pub aside: Option<Aside>,
    /// Width of what is made for them.
    pub width: Option<u64>,
    /// A prefix for all names of a checkpoint.
    pub outer: Option<Outer>,
    /// A parameter that takes the values of another when nothing came for it.
    pub filled: Option<String>,
}

/// Matrices whose rows are the pixels of a patch.
#[derive(Debug)]
pub struct Patches {
    /// Part of their names.
    pub part: String,
    /// Channels of a pixel.
    pub channels: u64,
    /// Pixels along one side.
    pub size: u64,
}

/// Names that go to one part of the model.
#[derive(Debug)]
pub struct Route {
    /// What they begin with.
    pub from: Vec<String>,
    /// How many components are taken off.
    pub cut: usize,
    /// Path of the part.
    pub to: String,
    /// How they are loaded there; the part's own way when there is none.
    pub by: Option<Rc<Loader>>,
    /// They wait for everything else.
    pub late: bool,
    /// An assertion fails where there is no such part.
    pub asserted: bool,
}

impl Route {
    pub(super) fn read(r: &facts::Route, by: Option<Rc<Loader>>, scope: &Scope) -> Route {
        let asserted = r.asserted.as_ref().is_some_and(|w| w.truth(scope));
        Route { from: r.from.clone(), cut: r.cut, to: r.to.clone(), by, late: r.late, asserted }
    }

    /// What the part gets to see of the name, if it takes it.
    pub fn takes<'n>(&self, name: &'n str) -> Option<&'n str> {
        self.from
            .iter()
            .any(|p| name.starts_with(p.as_str()))
            .then(|| (0..self.cut).fold(name, |rest, _| rest.split_once('.').map_or("", |(_, rest)| rest)))
    }
}

/// Tensors of two projections whose heads take turns.
#[derive(Debug)]
pub struct Halves {
    /// Part of their names.
    pub from: String,
    /// What it becomes.
    pub to: [String; 2],
    /// Number of heads of each.
    pub heads: u64,
    /// Rows of a head.
    pub rows: u64,
}

impl Halves {
    /// Rows of each projection in a tensor with so many rows: slices end where the tensor ends, and nothing asks for the
    /// rows after the last head.
    pub fn of(&self, stored: u64) -> [u64; 2] {
        let pair = self.rows.saturating_mul(2);
        let full = stored.checked_div(pair).unwrap_or(0).min(self.heads);
        let rest = if full < self.heads { stored - full * pair } else { 0 };
        [rest.min(self.rows), rest.saturating_sub(self.rows)].map(|more| full * self.rows + more)
    }
}

/// Elements of a list that a loader leaves out.
#[derive(Debug)]
pub struct Skip {
    /// What stands before the index.
    pub prefix: String,
    /// First index.
    pub from: u64,
    /// First index after them.
    pub to: u64,
}

impl Skip {
    /// Whether the name belongs to one.
    pub fn hits(&self, name: &str) -> bool {
        let index = name.strip_prefix(self.prefix.as_str()).and_then(|r| r.split('.').next());
        index.and_then(|i| i.parse::<u64>().ok()).is_some_and(|i| (self.from..self.to).contains(&i))
    }
}

impl Before {
    /// Whether it does nothing to tensors of experts, or the same to those of all.
    pub fn even(&self) -> bool {
        self.segments.is_empty()
            && self.skip.as_ref().is_none_or(|skip| skip.prefix.ends_with("layers."))
            && self.prefix.is_none()
            && self.outer.is_none()
            && self.turned.is_empty()
            && self.one_row.is_none()
            && self.zero_bias.is_empty()
            && self.squeezed.is_none()
            && self.joined.is_none()
            && self.patches.is_none()
            && self.halves.is_none()
    }

    /// Name of the bias of zeros that comes with a weight of this name.
    pub fn zeros(&self, name: &str) -> Option<String> {
        let ending = self.zero_bias.iter().find(|e| name.ends_with(e.as_str()))?;
        let module = ending.strip_suffix("_packed").unwrap_or(ending).strip_suffix(".weight")?;
        Some(format!("{}{module}.bias", &name[..name.len() - ending.len()]))
    }

    /// The shape in which a tensor is handed on, where that is not the stored one.
    pub fn shape(&self, name: &str, shape: &[u64]) -> Option<Vec<u64>> {
        match shape {
            [rows, pixels]
                if self.patches.as_ref().is_some_and(|p| {
                    name.contains(p.part.as_str())
                        && p.size.checked_mul(p.size).and_then(|n| n.checked_mul(p.channels)) == Some(*pixels)
                }) =>
            {
                let patch = self.patches.as_ref()?;
                Some(vec![*rows, patch.channels, patch.size, patch.size])
            }
            [1, rest @ ..] if self.squeezed.as_ref().is_some_and(|p| name.contains(p.as_str())) => Some(rest.to_vec()),
            [n] if self.one_row.as_ref().is_some_and(|p| name.contains(p.as_str())) => Some(vec![1, *n]),
            [a, b] if name.ends_with(".weight") && self.turned.iter().any(|p| name.contains(p.as_str())) => {
                Some(vec![*b, *a])
            }
            _ => None,
        }
    }

    /// The name with its prefix, where one is missing.
    fn prefixed<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match &self.prefix {
            Some((add, unless)) if !unless.iter().any(|p| name.starts_with(p.as_str())) => {
                format!("{add}{name}").into()
            }
            _ => name.into(),
        }
    }

    /// `MistralForCausalLM.maybe_remap_mistral`: names of Mistral's own format as transformers has them; others stay.
    pub fn rename<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.segments.is_empty() {
            return self.prefixed(name);
        }
        let target = |item: &str| self.segments.iter().find(|(from, _)| from == item).map(|(_, to)| to.as_str());
        let mut out = Cow::Borrowed(name);
        let parts: Vec<&str> = name.split('.').collect();
        for (i, item) in parts.iter().enumerate() {
            let both = parts.get(i + 1).map(|next| format!("{item}.{next}"));
            if let Some((both, to)) = both.as_ref().and_then(|b| Some((b, target(b)?))) {
                out = out.replace(both.as_str(), to).into();
            } else if let Some(to) = target(item).filter(|to| !out.contains(to)) {
                out = out.replace(item, to).into();
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Halves;

    #[test]
    fn heads_that_take_turns() {
        let halves = Halves { from: String::new(), to: [String::new(), String::new()], heads: 2, rows: 4 };
        for (stored, parts) in [(16, [8, 8]), (24, [8, 8]), (14, [8, 6]), (11, [7, 4]), (0, [0, 0])] {
            assert_eq!(halves.of(stored), parts, "{stored} rows");
        }
    }
}
