//! Which entry takes a module: `get_scheme_dict`, `should_ignore_layer`, `find_matched_target`.

use super::entries::Entries;
use super::{By, CompressedTensors, Failure};
use crate::vllm::method::py;
use crate::vllm::trace::{Kind, Raised};

/// What `get_scheme_dict` finds.
pub(super) enum Found {
    /// An entry of the ignore list.
    Ignored(usize),
    /// A target.
    Target(usize),
    /// No entry.
    Nothing,
}

impl CompressedTensors {
    /// `get_scheme_dict`.
    pub(super) fn find(&mut self, name: &str, class: &str) -> Result<Found, Failure> {
        if let Some(at) = self.ignored(name)? {
            return Ok(Found::Ignored(at));
        }
        Ok(self.target(name, class)?.map_or(Found::Nothing, Found::Target))
    }

    /// `should_ignore_layer`.
    fn ignored(&mut self, name: &str) -> Result<Option<usize>, Failure> {
        tell(&mut self.told, self.ignore.trouble(None))?;
        let direct = self.ignore.scan(name);
        if direct.is_some() && !self.ignore.any_unused() {
            return Ok(direct);
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let Some((_, shards)) = self.packed.iter().find(|(key, _)| key == last) else { return Ok(direct) };
        let hits: Vec<_> = shards.iter().map(|shard| self.ignore.scan(&name.replace(last, shard))).collect();
        if direct.is_some() {
            return Ok(direct);
        }
        match (hits.iter().any(Option::is_some), hits.iter().all(Option::is_some)) {
            (true, false) => {
                let text = format!(
                    "Found different quantization schemes for the shards of {name}. vLLM requires all to use the same \
                     scheme."
                );
                Err((Kind::FusedMixture, py::raised("ValueError", text)))
            }
            // Python's `all` of nothing is true: a mapping to no shards ignores the layer.
            (false, true) => Ok(Some(0).filter(|_| !self.ignore.list().is_empty())),
            _ => Ok(hits.first().copied().flatten()),
        }
    }

    /// `find_matched_target`.
    fn target(&mut self, name: &str, class: &str) -> Result<Option<usize>, Failure> {
        if self.targets.list().is_empty() {
            return Ok(None);
        }
        let by_class = self.by_class(class);
        let told = &mut self.told;
        let mut step = |targets: &mut Entries, name: &str| {
            let at = targets.scan(name);
            tell(told, targets.trouble(at)).map(|()| at)
        };
        if let Some(at) = step(&mut self.targets, name)?.filter(|at| !self.targets.get(*at).mapped.is_empty()) {
            return Ok(Some(at));
        }
        if let Some((key, shards)) = self.packed.iter().find(|(key, _)| name.ends_with(key.as_str())) {
            let mut first = None;
            let mut all = !shards.is_empty();
            for shard in shards {
                let at = step(&mut self.targets, &name.replace(key.as_str(), shard))?;
                all &= at.is_some_and(|at| !self.targets.get(at).mapped.is_empty());
                first = first.or(at);
            }
            if all {
                return Ok(first);
            }
        }
        tell(&mut self.told, self.targets.trouble(by_class))?;
        if let Some(linear) = by_class.and_then(|at| self.alias_of(at)) {
            self.targets.mark(linear);
        }
        Ok(by_class)
    }

    /// `Linear`, where it is its alias that reaches experts.
    pub(super) fn alias_of(&self, target: usize) -> Option<usize> {
        let alias = self.targets.named("RoutedExperts").filter(|at| self.aliased && *at == target);
        alias.and_then(|_| self.targets.named("Linear"))
    }

    /// The first target that matches a class. All that do count as used: a module of the class was offered.
    fn by_class(&mut self, class: &str) -> Option<usize> {
        if let Some(known) = self.classes.get(class) {
            return *known;
        }
        let lowered = class.to_lowercase();
        let all: Vec<_> =
            (0..self.targets.list().len()).filter(|at| self.targets.matches_class(*at, class, &lowered)).collect();
        for at in &all {
            self.targets.mark(*at);
        }
        let first = all.first().copied();
        self.classes.insert(class.to_owned(), first);
        first
    }

    /// The target of a name, with no trace left.
    pub(super) fn reached(&self, name: &str, class: &str) -> Option<(usize, By)> {
        if let Some(at) = self.targets.first(name) {
            return Some((at, By::Name));
        }
        if let Some((key, shards)) = self.packed.iter().find(|(key, _)| name.ends_with(key.as_str())) {
            let hits: Option<Vec<_>> =
                shards.iter().map(|shard| self.targets.first(&name.replace(key.as_str(), shard))).collect();
            if let Some(at) = hits.and_then(|hits| hits.first().copied()) {
                return Some((at, By::Shards));
            }
        }
        let lowered = class.to_lowercase();
        let mut all = 0..self.targets.list().len();
        all.find(|at| self.targets.matches_class(*at, class, &lowered)).map(|at| (at, By::Class))
    }
}

/// An entry that raises when it is reached: said once, since vLLM stops there.
fn tell(told: &mut bool, trouble: Option<(bool, Raised)>) -> Result<(), Failure> {
    match trouble.filter(|_| !*told) {
        None => Ok(()),
        Some((pattern, raised)) => {
            *told = true;
            Err((if pattern { Kind::PatternBroken } else { Kind::QuantConfigRejected }, raised))
        }
    }
}
