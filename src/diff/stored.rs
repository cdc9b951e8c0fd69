//! Stored tensors, with the pieces of a quantized weight put together again: `x.weight_packed`, `x.weight_scale` and
//! `x.weight_shape` are `x.weight`.

use super::part::Part;
use crate::checkpoint::{Checkpoint, Dtype, Tensor};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// A weight: a plain tensor, or the pieces that a quantization method made of one.
#[derive(Debug)]
pub(super) struct Weight<'c> {
    /// The name that it has, or had, as a plain tensor; after [`super::rename`] the one that it has in the source.
    pub(super) key: Cow<'c, str>,
    /// Part of the model.
    pub(super) part: Part,
    /// The tensor with its values; none when only its name is known.
    pub(super) carrier: Option<&'c Tensor>,
    /// How the values are packed.
    pub(super) packing: Packing,
    /// Parameters of the quantization method.
    pub(super) extras: Vec<Extra<'c>>,
    /// Bytes of the carrier.
    pub(super) bytes: u64,
    /// Bytes of the extras.
    pub(super) extra_bytes: u64,
    /// Tensors.
    pub(super) tensors: usize,
}

/// A parameter of a quantization method that belongs to a weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra<'c> {
    /// What it is, e.g. `scale`.
    pub(super) role: Role,
    /// None when only its name is known.
    pub(super) tensor: Option<&'c Tensor>,
}

/// How the values of a weight are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// In a tensor of the weight's own name.
    Own,
    /// `weight_packed` of compressed-tensors.
    Packed,
    /// `qweight` of GPTQ and AWQ.
    Qweight,
    /// `…_blocks` of MXFP4 checkpoints.
    Blocks,
    /// A parameter of a quantization method that belongs to no weight, such as the scale of a KV cache.
    Alone,
}

/// What a parameter of a quantization method is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Scales of the weight.
    Scale,
    /// `qzeros` of GPTQ and AWQ.
    Qzeros,
    /// Zero points of the weight.
    Zeros,
    /// A second, global scale of the weight.
    Global,
    /// `quant_state` and tables of bitsandbytes, 4 bits.
    Bnb4,
    /// The scales of bitsandbytes, 8 bits.
    Bnb8,
    /// Anything else: shapes, permutations, scales of activations.
    Rest,
}

/// One side.
#[derive(Debug, Default)]
pub(super) struct Stored<'c> {
    /// The weights, in order of the files.
    pub(super) weights: Vec<Weight<'c>>,
    /// Tensors.
    pub(super) tensors: usize,
    /// Tensors of which only the name is known.
    pub(super) by_name: usize,
    /// What the quantization config says, when it says one thing for all.
    pub(super) hints: Hints,
}

/// What a quantization config says of all weights that it is about.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Hints {
    /// Bits of a packed value.
    pub(super) bits: Option<u64>,
    /// Rows and columns of a block with a scale of its own.
    pub(super) block: Option<(u64, u64)>,
}

/// The last word of names that belong to `<module>.weight`, whatever else is stored.
const EXTRAS: &[(&str, Role)] = &[
    ("weight_scale", Role::Scale),
    ("weight_scale_inv", Role::Scale),
    ("weight_scale_2", Role::Global),
    ("weight_global_scale", Role::Global),
    ("weight_zero_point", Role::Zeros),
    ("weight_shape", Role::Rest),
    ("weight_g_idx", Role::Rest),
    ("weight_bitmask", Role::Rest),
    ("weight_format", Role::Rest),
    ("input_scale", Role::Rest),
    ("input_global_scale", Role::Rest),
    ("input_zero_point", Role::Rest),
    ("output_scale", Role::Rest),
    ("output_zero_point", Role::Rest),
    ("pre_quant_scale", Role::Rest),
    ("scales", Role::Scale),
    ("qzeros", Role::Qzeros),
    ("g_idx", Role::Rest),
    ("qscale_weight", Role::Scale),
    ("qscale_act", Role::Rest),
    ("SCB", Role::Bnb8),
];

/// Endings of a parameter's name that make another of it, if that one is stored: `gate_up_proj_scales`.
const ENDINGS: &[(&str, Role)] = &[
    ("_scale_inv", Role::Scale),
    ("_scale_2", Role::Global),
    ("_global_scale", Role::Global),
    ("_input_scale", Role::Rest),
    ("_zero_point", Role::Zeros),
    ("_scales", Role::Scale),
    ("_scale", Role::Scale),
    ("_shape", Role::Rest),
    ("_g_idx", Role::Rest),
];

/// Scales of queries, keys and values, which belong to no weight.
const ALONE: [&str; 7] = ["q_scale", "k_scale", "v_scale", "kv_scale", "prob_scale", "k_zero_point", "v_zero_point"];

/// What a name says.
enum Named<'n> {
    /// Values of this weight.
    Carrier(Cow<'n, str>, Packing),
    /// A parameter of this weight, if that is stored.
    Extra(Cow<'n, str>, Role),
}

fn read_name(name: &str) -> Named<'_> {
    let at = name.rfind('.').map_or(0, |i| i + 1);
    let (module, last) = name.split_at(at);
    let weight = || Cow::Owned(format!("{module}weight"));
    match last {
        "weight_packed" => {
            return Named::Carrier(Cow::Borrowed(name.strip_suffix("_packed").unwrap_or(name)), Packing::Packed);
        }
        "qweight" => return Named::Carrier(weight(), Packing::Qweight),
        _ => {}
    }
    if let Some((_, role)) = EXTRAS.iter().find(|e| e.0 == last) {
        return Named::Extra(weight(), *role);
    }
    // `x.weight.absmax`, `x.weight.quant_state.bitsandbytes__nf4`
    if let Some((before, after)) = name.rsplit_once(".weight.") {
        let bnb = ["absmax", "quant_map", "nested_absmax", "nested_quant_map"];
        if bnb.contains(&after) || after.starts_with("quant_state.") {
            let end = before.len() + ".weight".len();
            return Named::Extra(Cow::Borrowed(name.get(..end).unwrap_or(name)), Role::Bnb4);
        }
    }
    for (ending, packing) in [("_packed", Packing::Packed), ("_blocks", Packing::Blocks)] {
        if let Some(base) = last.strip_suffix(ending).filter(|b| !b.is_empty()) {
            let end = at + base.len();
            return Named::Carrier(Cow::Borrowed(name.get(..end).unwrap_or(name)), packing);
        }
    }
    for (ending, role) in ENDINGS {
        if let Some(base) = last.strip_suffix(ending).filter(|b| !b.is_empty()) {
            let end = at + base.len();
            return Named::Extra(Cow::Borrowed(name.get(..end).unwrap_or(name)), *role);
        }
    }
    Named::Carrier(Cow::Borrowed(name), Packing::Own)
}

impl<'c> Stored<'c> {
    /// All tensors of a checkpoint.
    pub(super) fn read(cp: &'c Checkpoint) -> Stored<'c> {
        let mut out = Stored { hints: hints(cp), ..Stored::default() };
        let mut places: HashMap<Cow<'c, str>, usize> = HashMap::new();
        let mut extras = Vec::new();
        let named = elsewhere(cp);
        out.by_name = named.len();
        let here = cp.tensors().map(|(_, t)| (t.name.as_str(), Some(t)));
        for (name, tensor) in here.chain(named.into_iter().map(|n| (n, None))) {
            out.tensors += 1;
            match read_name(name) {
                Named::Carrier(key, packing) => {
                    let next = out.weights.len();
                    let at = *places.entry(key.clone()).or_insert(next);
                    match out.weights.get_mut(at) {
                        // `x.weight` and `x.weight_packed`, or a name in two shards: the bytes of both.
                        Some(w) => {
                            w.tensors += 1;
                            w.bytes = w.bytes.saturating_add(tensor.map_or(0, Tensor::bytes));
                            if packing != Packing::Own {
                                w.packing = packing;
                                w.carrier = tensor;
                            }
                        }
                        None => out.weights.push(Weight::new(key, tensor, packing)),
                    }
                }
                Named::Extra(key, role) => extras.push((name, key, role, tensor)),
            }
        }
        for (name, key, role, tensor) in extras {
            let owner = places.get(&key).and_then(|at| out.weights.get_mut(*at));
            if let Some(w) = owner {
                w.extras.push(Extra { role, tensor });
                w.extra_bytes = w.extra_bytes.saturating_add(tensor.map_or(0, Tensor::bytes));
                w.tensors += 1;
                continue;
            }
            let last = name.rsplit('.').next().unwrap_or(name);
            let quantization = ALONE.contains(&last) || EXTRAS.iter().any(|e| e.0 == last);
            let packing = if quantization { Packing::Alone } else { Packing::Own };
            out.weights.push(Weight::new(Cow::Borrowed(name), tensor, packing));
        }
        out
    }
}

impl<'c> Weight<'c> {
    fn new(key: Cow<'c, str>, carrier: Option<&'c Tensor>, packing: Packing) -> Self {
        let part = if packing == Packing::Alone { Part::Quantization } else { Part::of(&key) };
        let bytes = carrier.map_or(0, Tensor::bytes);
        Weight { key, part, carrier, packing, extras: Vec::new(), bytes, extra_bytes: 0, tensors: 1 }
    }

    /// The shape, when the weight is stored unquantized.
    pub(super) fn plain(&self) -> Option<(&'c [u64], Dtype)> {
        let quantized = self.extras.iter().any(|e| e.role != Role::Rest);
        let tensor = self.carrier.filter(|_| self.packing == Packing::Own && !quantized)?;
        tensor.dtype.is_float16ish().then_some((&*tensor.shape, tensor.dtype))
    }
}

/// Names in the index whose shard is not here.
fn elsewhere(cp: &Checkpoint) -> Vec<&str> {
    let map = cp.index.get().and_then(|i| i.weight_map.as_deref()).unwrap_or_default();
    let here: HashSet<&str> = cp.shards.iter().filter(|s| !s.is_pointer()).map(|s| s.file.as_str()).collect();
    let mut known: HashSet<&str> = HashSet::new();
    if here.len() < cp.shards.len() || !map.iter().all(|(_, f)| here.contains(f.as_str())) {
        known.extend(cp.tensors().map(|(_, t)| t.name.as_str()));
    }
    let away = map.iter().filter(|(_, file)| !here.contains(file.as_str())).map(|(name, _)| name.as_str());
    away.filter(|name| known.insert(name)).collect()
}

/// What the quantization config says of all that it quantizes.
fn hints(cp: &Checkpoint) -> Hints {
    let config = cp.config.get().map(|c| &c.value);
    let nested = |key: &str| config?.get("text_config").and_then(|t| t.get(key)).filter(|v| v.is_object());
    let own = |key: &str| config?.get(key).filter(|v| v.is_object());
    let beside = || cp.quant_files.iter().find_map(|(_, f)| f.get()).map(|j| &j.value);
    let places = [own("quantization_config"), own("compression_config"), nested("quantization_config")];
    let Some(quant) = places.into_iter().flatten().next().or_else(beside) else { return Hints::default() };
    let number = |key: &str| quant.get(key).and_then(Value::as_u64);
    let groups = quant.get("config_groups").and_then(Value::as_object);
    let mut bits = groups.into_iter().flatten().map(|(_, g)| g.pointer("/weights/num_bits").and_then(Value::as_u64));
    let first = bits.next().flatten();
    let one = first.filter(|f| bits.all(|b| b == Some(*f)));
    let block = quant.get("weight_block_size").and_then(Value::as_array);
    let side = |i: usize| block?.get(i)?.as_u64().filter(|n| *n > 0);
    Hints { bits: one.or(number("bits")).or(number("w_bit")), block: side(0).zip(side(1)) }
}

/// Which weight of one side is which of the other.
#[derive(Debug)]
pub(super) struct Pairs {
    /// Indices on both sides.
    pub(super) both: Vec<(usize, usize)>,
    /// On the left only.
    pub(super) left: Vec<usize>,
    /// On the right only.
    pub(super) right: Vec<usize>,
}

impl Pairs {
    /// By key.
    pub(super) fn of(a: &Stored, b: &Stored) -> Pairs {
        let places: HashMap<&str, usize> = b.weights.iter().enumerate().map(|(i, w)| (&*w.key, i)).collect();
        let mut found = vec![false; b.weights.len()];
        let mut out = Pairs { both: Vec::new(), left: Vec::new(), right: Vec::new() };
        for (i, w) in a.weights.iter().enumerate() {
            match places.get(&*w.key) {
                Some(&j) => {
                    out.both.push((i, j));
                    if let Some(f) = found.get_mut(j) {
                        *f = true;
                    }
                }
                None => out.left.push(i),
            }
        }
        out.right = found.iter().enumerate().filter(|(_, f)| !**f).map(|(j, _)| j).collect();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> (String, bool) {
        match read_name(name) {
            Named::Carrier(k, _) => (k.into_owned(), true),
            Named::Extra(k, _) => (k.into_owned(), false),
        }
    }

    #[test]
    fn pieces_belong_to_their_weight() {
        for (name, weight, carrier) in [
            ("a.weight", "a.weight", true),
            ("a.bias", "a.bias", true),
            ("a.weight_packed", "a.weight", true),
            ("a.weight_scale", "a.weight", false),
            ("a.qweight", "a.weight", true),
            ("a.g_idx", "a.weight", false),
            ("experts.gate_up_proj_blocks", "experts.gate_up_proj", true),
            ("experts.gate_up_proj_scales", "experts.gate_up_proj", false),
            ("a.weight.quant_state.bitsandbytes__nf4", "a.weight", false),
            ("qweight", "weight", true),
            ("_packed", "_packed", true),
            ("", "", true),
        ] {
            assert_eq!(key(name), (weight.to_owned(), carrier), "{name}");
        }
    }
}
