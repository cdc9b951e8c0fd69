//! The parameters of linear layers, heads and embeddings: `create_weights` of every scheme, at tensor-parallel size 1,
//! where no scale is repeated on ranks.

use super::args::{Args, Strategy};
use super::scheme::Scheme;
use crate::vllm::method::params::{block_scale, divided, floor, groups, packed, param, unread};
use crate::vllm::method::py::raised;
use crate::vllm::method::{Element, Layer, Load, Param};
use crate::vllm::trace::Raised;

/// Parameters and the attributes registered as `None`.
pub(super) type Made = (Vec<Param>, Vec<&'static str>);

fn weight_shape() -> Param {
    unread("weight_shape", &[2], Element::I64, Load::Whole)
}

/// What a scheme creates on a linear layer or a head.
pub(super) fn linear(scheme: &Scheme, layer: &Layer<'_>) -> Result<Made, Raised> {
    use Element::{F8E4M3, F32, I8, I32, Model, U8};
    let k = layer.input;
    let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let parts = layer.outputs.len() as u64;
    let name = layer.prefix;
    let only = |params| Ok((params, Vec::new()));
    match scheme {
        Scheme::Nvfp4 { a16 } => {
            let mut params = vec![
                param("weight_packed", &[n, k / 2], U8, Load::Both),
                param("weight_global_scale", &[parts], F32, Load::PerTensor),
                param("weight_scale", &[n, k / 16], F8E4M3, Load::Both),
            ];
            if !a16 {
                params.push(param("input_global_scale", &[parts], F32, Load::PerTensor));
            }
            only(params)
        }
        Scheme::Mxfp4 { .. } => only(vec![
            param("weight_packed", &[n, k / 2], U8, Load::Both),
            param("weight_scale", &[n, k / 32], U8, Load::Both),
        ]),
        Scheme::Mxfp8 => only(vec![
            param("weight", &[n, k], F8E4M3, Load::Both),
            param("weight_scale", &[n, k / 32], U8, Load::Both),
        ]),
        Scheme::W4A8Fp8 => {
            let columns = divided(k, Some(128), "")?;
            only(vec![
                param("weight_packed", &[n, k / 8], I32, Load::PackedInput),
                param("weight_scale", &[n, columns], Model, Load::Both),
                weight_shape(),
            ])
        }
        Scheme::Wna8o8 { bits, group, packed } => {
            let mut params = if *packed {
                let width = floor(k, 32 / (*bits).max(1))?;
                vec![param("weight_packed", &[n, width], I32, Load::PackedInput), weight_shape()]
            } else {
                vec![param("weight", &[n, k], I8, Load::Both)]
            };
            params.push(param("weight_scale", &[n, divided(k, *group, name)?], Model, Load::Both));
            params.push(param("input_scale", &[1], F32, Load::Whole));
            params.push(param("output_scale", &[1], F32, Load::Whole));
            only(params)
        }
        Scheme::WnaInt { bits, group, symmetric, .. } => {
            let (columns, whole) = groups(k, *group)?;
            if !whole {
                return Err(raised("AssertionError", ""));
            }
            only(wna16(n, k, *bits, columns, *symmetric))
        }
        Scheme::Wna16 { bits, group, symmetric } => only(wna16(n, k, *bits, divided(k, *group, name)?, *symmetric)),
        Scheme::Fp8 { strategy, block, static_input, .. } => {
            let scale = match strategy {
                Strategy::Block => {
                    block_scale("weight_scale", layer.outputs, n, k, block.as_deref().unwrap_or_default())?
                }
                Strategy::Channel => param("weight_scale", &[n, 1], F32, Load::Output),
                _ => param("weight_scale", &[parts], F32, Load::PerTensor),
            };
            let mut params = vec![param("weight", &[n, k], F8E4M3, Load::Both), scale];
            if *static_input {
                params.push(param("input_scale", &[parts], F32, Load::PerTensor));
            }
            only(params)
        }
        Scheme::Int8 { channel, static_input, symmetric_input } => {
            let scale = if *channel {
                param("weight_scale", &[n, 1], F32, Load::Output)
            } else {
                param("weight_scale", &[parts], F32, Load::PerTensor)
            };
            let mut params = vec![param("weight", &[n, k], I8, Load::Both), scale];
            let mut nones = vec!["azp_adj"];
            if *static_input {
                params.push(param("input_scale", &[1], F32, Load::Whole));
            } else {
                nones.push("input_scale");
            }
            if *static_input && !symmetric_input {
                params.push(param("input_zero_point", &[1], I8, Load::Whole));
            } else {
                nones.push("input_zero_point");
            }
            Ok((params, nones))
        }
        // One parameter under two names: a tensor of either name fills both.
        Scheme::W4A8Int { group } => {
            let columns = divided(k, *group, "")?;
            only(vec![
                param("weight", &[n, k], I8, Load::Both),
                param("weight_scale", &[n, columns], Model, Load::Both),
                unread("weight_packed", &[n, k], I8, Load::Both),
            ])
        }
    }
}

fn wna16(n: u64, k: u64, bits: i64, columns: u64, symmetric: bool) -> Vec<Param> {
    let mut params = vec![
        param("weight_packed", &[n, packed(k, bits)], Element::I32, Load::PackedInput),
        param("weight_scale", &[n, columns], Element::Model, Load::Both),
        weight_shape(),
    ];
    if !symmetric {
        let load = Load::PackedOutput { both: true, num: 32, den: u32::try_from(bits).unwrap_or(1) };
        params.push(param("weight_zero_point", &[packed(n, bits), columns], Element::I32, load));
    }
    params
}

/// `CompressedTensorsEmbeddingWNA16Int`: on an embedding, and on a head whose scheme could not be made.
pub(super) fn embedding(args: &Args, layer: &Layer<'_>) -> Result<Vec<Param>, Raised> {
    let rows = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let hidden = layer.input;
    if args.num_bits == 0 {
        return Err(raised("ZeroDivisionError", "integer division or modulo by zero"));
    }
    let width = floor(hidden, 32i64.div_euclid(args.num_bits))?;
    let scale = match (args.strategy(), args.group_size) {
        (Strategy::Group, Some(size)) => {
            let (columns, whole) = groups(hidden, Some(size))?;
            if !whole {
                return Err(raised("AssertionError", ""));
            }
            param("weight_scale", &[rows, columns], Element::Model, Load::Both)
        }
        _ => param("weight_scale", &[rows, 1], Element::Model, Load::Output),
    };
    Ok(vec![param("weight_packed", &[rows, width], Element::I32, Load::PackedInput), scale, weight_shape()])
}
