//! `CompressedTensorsMoEMethod.get_moe_method` (spec C.9): expert 0 decides for all.

use super::args::{Dynamic, Numbers, Strategy};
use super::scheme::{Scheme, refused};
use super::{CompressedTensors, Layer};
use crate::vllm::method::{Built, Element, Load, Param};
use crate::vllm::trace::Kind;

pub(super) fn build(ct: &CompressedTensors, layer: &Layer) -> Built {
    let [gate, down, up] = layer.expert_names;
    let names = [gate, up, down].map(|p| format!("{}.0.{p}", layer.prefix));
    // A `Linear` target stands for the experts too (`_add_fused_moe_to_target_scheme_map`).
    let alias = !ct.targets.iter().any(|t| t.0.name == "RoutedExperts");
    let linear = ct.targets.iter().position(|t| t.0.name == "Linear").filter(|_| alias);
    let mut found: Vec<Result<usize, Option<usize>>> = Vec::new();
    for name in &names {
        found.push(match ct.ignored(name) {
            Err(built) => return built,
            Ok(Some(entry)) => Err(Some(entry)),
            Ok(None) => ct.target(name, layer.class).or(linear).ok_or(None),
        });
    }
    let same = found.iter().all(|f| match (f, &found[0]) {
        (Ok(a), Ok(b)) => {
            a == b || ct.targets[*a].1.as_ref().map(Scheme::words) == ct.targets[*b].1.as_ref().map(Scheme::words)
        }
        (Err(_), Err(_)) => true,
        _ => false,
    });
    if !same {
        return refused(
            Kind::FusedMixture,
            "ValueError",
            "All MoE projections need to have same quantization scheme but found multiple".into(),
        );
    }
    let scheme = match found[0] {
        Err(entry) => return Built::Plain { entry },
        Ok(i) => {
            ct.targets[i].0.used.set(true);
            match &ct.targets[i].1 {
                Some(s) => s,
                None => return Built::Plain { entry: None },
            }
        }
    };
    params(scheme, layer)
}

fn params(s: &Scheme, layer: &Layer) -> Built {
    let (e, h) = (layer.experts, layer.input);
    let m = layer.outputs.first().copied().unwrap_or(0);
    let w = &s.weights;
    let group = w.group_size();
    let static_weights = w.dynamic == Dynamic::No;
    let pair = |name: [&'static str; 2], k13: u64, k2: u64, element, load| {
        [
            Param { name: name[0], shape: vec![e, m.saturating_mul(2), k13], element, load, unread: false },
            Param { name: name[1], shape: vec![e, h, k2], element, load, unread: false },
        ]
    };
    let flat = |name: [&'static str; 2], per: u64| {
        [
            Param {
                name: name[0],
                shape: if per == 2 { vec![e, 2] } else { vec![e] },
                element: Element::F32,
                load: Load::Whole,
                unread: false,
            },
            Param { name: name[1], shape: vec![e], element: Element::F32, load: Load::Whole, unread: false },
        ]
    };
    let fp4 = w.numbers == Numbers::Float && w.bits == 4 && w.symmetric;
    let packed = ["w13_weight_packed", "w2_weight_packed"];
    let scale = ["w13_weight_scale", "w2_weight_scale"];
    let weight = ["w13_weight", "w2_weight"];
    let mut out: Vec<Param> = Vec::new();
    if fp4 && w.strategy == Strategy::Group && w.group == Some(32) {
        out.extend(pair(packed, h / 2, m / 2, Element::U8, Load::Both));
        out.extend(pair(scale, h / 32, m / 32, Element::U8, Load::Both));
    } else if w.numbers == Numbers::Float
        && w.bits == 8
        && w.group == Some(32)
        && w.scale_dtype.as_deref() == Some("uint8")
    {
        out.extend(pair(weight, h, m, Element::F8E4M3, Load::Both));
        out.extend(pair(scale, h / 32, m / 32, Element::U8, Load::Both));
    } else if matches!(w.strategy, Strategy::Channel | Strategy::Group) && static_weights && s.input.is_none() {
        if s.format.as_deref() != Some("pack-quantized") || !(2..=8).contains(&w.bits) {
            let text = "For Fused MoE layers, only format: pack-quantized and bits: [2, 3, 4, 5, 6, 7, 8] is supported but got format: pack-quantized and bits: ";
            return refused(Kind::SchemeUnsupported, "ValueError", format!("{text}{}", w.bits));
        }
        if let Some(g) = group.filter(|g| !m.is_multiple_of(*g)) {
            let text = format!(
                "requires the MoE intermediate size per tensor-parallel partition ({m}) to be divisible by group_size ({g})"
            );
            return refused(Kind::SchemeShape, "ValueError", text);
        }
        let bits = u64::try_from(w.bits).unwrap_or(4);
        out.extend(pair(packed, h * bits / 32, m * bits / 32, Element::I32, Load::Both));
        let (g13, g2) = group.map_or((1, 1), |g| (h / g, m / g));
        out.extend(pair(scale, g13, g2, Element::Model, Load::Both));
        for name in ["w13_weight_shape", "w2_weight_shape"] {
            out.push(Param { name, shape: vec![e, 2], element: Element::I64, load: Load::Whole, unread: true });
        }
        if !w.symmetric {
            let zero = |name, n: u64, g| Param {
                name,
                shape: vec![e, n * bits / 32, g],
                element: Element::I32,
                load: Load::Both,
                unread: false,
            };
            out.push(zero("w13_weight_zero_point", m * 2, g13));
            out.push(zero("w2_weight_zero_point", h, g2));
        }
    } else if fp4 && w.strategy == Strategy::TensorGroup {
        out.extend(pair(packed, h / 2, m / 2, Element::U8, Load::Both));
        out.extend(pair(scale, h / 16, m / 16, Element::F8E4M3, Load::Both));
        out.extend(flat(["w13_weight_global_scale", "w2_weight_global_scale"], 2));
        if s.input.is_some() {
            out.extend(flat(["w13_input_global_scale", "w2_input_global_scale"], 2));
        }
    } else if w.numbers == Numbers::Float && w.bits == 8 && w.symmetric && static_weights {
        let Some(input) = &s.input else {
            return refused(
                Kind::SchemeUnsupported,
                "AttributeError",
                "'NoneType' object has no attribute 'num_bits'".into(),
            );
        };
        out.extend(pair(weight, h, m, Element::F8E4M3, Load::Both));
        match w.strategy {
            Strategy::Block => {
                let (bn, bk) = w.block.unwrap_or((128, 128));
                out.push(Param {
                    name: scale[0],
                    shape: vec![e, 2 * m.div_ceil(bn.max(1)), h.div_ceil(bk.max(1))],
                    element: Element::F32,
                    load: Load::Both,
                    unread: false,
                });
                out.push(Param {
                    name: scale[1],
                    shape: vec![e, h.div_ceil(bn.max(1)), m.div_ceil(bk.max(1))],
                    element: Element::F32,
                    load: Load::Both,
                    unread: false,
                });
            }
            Strategy::Channel => out.extend(pair(scale, 1, 1, Element::F32, Load::Both)),
            _ => out.extend(flat(scale, 2)),
        }
        if input.dynamic == Dynamic::No {
            out.extend(flat(["w13_input_scale", "w2_input_scale"], 1));
        }
    } else if w.numbers == Numbers::Int && w.bits == 8 && s.input.is_some() {
        out.extend(pair(weight, h, m, Element::I8, Load::Both));
        out.extend(pair(scale, 1, 1, Element::F32, Load::Both));
    } else {
        return refused(
            Kind::SchemeUnsupported,
            "RuntimeError",
            format!("Unsupported FusedMoe scheme: {w}, {}", s.input.as_ref().map_or("None".into(), |i| i.to_string())),
        );
    }
    Built::Quantized { scheme: s.words(), params: out, nones: Vec::new() }
}
