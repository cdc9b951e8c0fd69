//! `QuarkW4A16Int4` and `QuarkW4A16Int4MoEMethod`: 4-bit integers, weights only, the input dimension first.

use super::super::params::{Sizes, param};
use super::super::py::{raised, repr};
use super::super::{Element, Layer, Load, Param};
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

const W13: [&str; 3] = ["w13_weight", "w13_weight_scale", "w13_weight_zero_point"];
const W2: [&str; 3] = ["w2_weight", "w2_weight_scale", "w2_weight_zero_point"];

/// Values in 32 bits.
const FACTOR: u64 = 8;

/// What `parse_w4a16_int4_weight_config` returns: values under one scale, and whether zero points are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Int4 {
    group: i64,
    symmetric: bool,
}

impl Int4 {
    /// `parse_w4a16_int4_weight_config`.
    pub(super) fn parse(weight: &Value) -> Result<Int4, Raised> {
        let error = |text: String| Err(raised("ValueError", text));
        let Some(group) = weight.get("group_size") else {
            return error("Quark W4A16 INT4/UINT4 configs must specify weight.group_size".into());
        };
        let Some(symmetric) = weight.get("symmetric") else {
            return error("Quark W4A16 INT4/UINT4 configs must specify weight.symmetric".into());
        };
        // A bool is an int.
        let size = if *group == Value::Bool(true) { Some(1) } else { group.as_i64() };
        let Some(group) = size.filter(|g| *g > 0) else {
            return error(format!("Quark W4A16 weight.group_size must be a positive int, got {}", repr(group)));
        };
        let Some(symmetric) = symmetric.as_bool() else {
            return error(format!("Quark W4A16 weight.symmetric must be a bool, got {}", repr(symmetric)));
        };
        Ok(Int4 { group, symmetric })
    }

    /// For messages.
    pub(super) fn label(self) -> String {
        format!("W4A16 ({}, group {})", if self.symmetric { "int4" } else { "uint4" }, self.group)
    }

    /// On a linear layer.
    pub(super) fn linear(self, layer: &Layer<'_>) -> Result<Vec<Param>, (Kind, Raised)> {
        let k = layer.input;
        let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
        let error = |text: String| Err((Kind::SchemeShape, raised("ValueError", text)));
        let group = self.group.unsigned_abs();
        if !k.is_multiple_of(group) {
            return error(format!(
                "The input size is not aligned with the quantized weight shape. This can be caused by too large tensor \
                 parallel size. input_size_per_partition={k}, group_size={group}."
            ));
        }
        // Marlin, or else Triton, which wants whole words.
        let triton = n.is_multiple_of(FACTOR) && (group == 256 || group == k);
        if !matches!(group, 32 | 64 | 128) && !triton {
            return error("Failed to find a kernel that can implement the WNA16 linear layer. Reasons: ".into());
        }
        let (groups, words) = (k / group, n.div_ceil(FACTOR));
        Ok(vec![
            param("weight", &[k, words], Element::I32, Load::Turned { per: FACTOR }),
            param("weight_zero_point", &[groups, words], Element::I32, Load::Turned { per: FACTOR }),
            param("weight_scale", &[groups, words.saturating_mul(FACTOR)], Element::Model, Load::TurnedPadded),
        ])
    }

    /// On experts, which are turned and repacked as they come.
    pub(super) fn experts(self, layer: &Layer<'_>) -> Result<Vec<Param>, (Kind, Raised)> {
        let s = Sizes::of(layer);
        let (mut group, mut repeat) = (self.group.unsigned_abs(), 1);
        while !s.m.is_multiple_of(group) || !s.h.is_multiple_of(group) {
            (group, repeat) = (group / 2, repeat * 2);
            if group < 32 {
                return Err((Kind::SchemeShape, raised("AssertionError", "")));
            }
        }
        let mut params = Vec::new();
        for (names, n, k) in [(W13, s.w13(), s.h), (W2, s.h, s.m)] {
            let load = |rows, halved, repeat| Load::Repacked { rows, halved, repeat };
            params.extend([
                param(names[0], &[s.e, n, k / 2], Element::I32, load(8, true, 1)),
                param(names[1], &[s.e, n, k / group], Element::Model, load(1, false, repeat)),
                param(names[2], &[s.e, n / 2, k / group], Element::I32, load(4, false, repeat)),
            ]);
        }
        Ok(params)
    }
}
