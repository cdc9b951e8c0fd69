//! Element types of safetensors.

use serde::Deserialize;

/// safetensors element types, in the format's own order (its error messages list them so).
#[allow(missing_docs, non_camel_case_types, reason = "the tags of the format are their own documentation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum Dtype {
    BOOL,
    F4,
    F6_E2M3,
    F6_E3M2,
    U8,
    I8,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    F8_E4M3FNUZ,
    F8_E5M2FNUZ,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

use Dtype::*;

impl Dtype {
    /// All of them.
    pub const ALL: [Dtype; 22] = [
        BOOL,
        F4,
        F6_E2M3,
        F6_E3M2,
        U8,
        I8,
        F8_E5M2,
        F8_E4M3,
        F8_E8M0,
        F8_E4M3FNUZ,
        F8_E5M2FNUZ,
        I16,
        U16,
        F16,
        BF16,
        I32,
        U32,
        F32,
        C64,
        F64,
        I64,
        U64,
    ];

    /// The tag in a header, e.g. `BF16`.
    pub fn tag(self) -> &'static str {
        match self {
            BOOL => "BOOL",
            F4 => "F4",
            F6_E2M3 => "F6_E2M3",
            F6_E3M2 => "F6_E3M2",
            U8 => "U8",
            I8 => "I8",
            F8_E5M2 => "F8_E5M2",
            F8_E4M3 => "F8_E4M3",
            F8_E8M0 => "F8_E8M0",
            F8_E4M3FNUZ => "F8_E4M3FNUZ",
            F8_E5M2FNUZ => "F8_E5M2FNUZ",
            I16 => "I16",
            U16 => "U16",
            F16 => "F16",
            BF16 => "BF16",
            I32 => "I32",
            U32 => "U32",
            F32 => "F32",
            C64 => "C64",
            F64 => "F64",
            I64 => "I64",
            U64 => "U64",
        }
    }

    /// The type with this tag.
    pub fn from_tag(tag: &str) -> Option<Dtype> {
        Self::from_tag_bytes(tag.as_bytes())
    }

    pub(crate) fn from_tag_bytes(tag: &[u8]) -> Option<Dtype> {
        Self::ALL.into_iter().find(|d| d.tag().as_bytes() == tag)
    }

    /// Bits of one element; 4 and 6 exist.
    pub fn bits(self) -> u64 {
        match self {
            F4 => 4,
            F6_E2M3 | F6_E3M2 => 6,
            BOOL | U8 | I8 | F8_E5M2 | F8_E4M3 | F8_E8M0 | F8_E4M3FNUZ | F8_E5M2FNUZ => 8,
            I16 | U16 | F16 | BF16 => 16,
            I32 | U32 | F32 => 32,
            C64 | F64 | I64 | U64 => 64,
        }
    }

    /// A type that plain, unquantized weights are stored in: F16, BF16, F32, F64.
    pub fn is_float16ish(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    /// One of the 8-bit floats (E8M0 scales not included).
    pub fn is_float8(self) -> bool {
        matches!(self, F8_E5M2 | F8_E4M3 | F8_E4M3FNUZ | F8_E5M2FNUZ)
    }

    /// Any floating-point type, of whatever width.
    pub fn is_float(self) -> bool {
        self.is_float16ish() || self.is_float8() || matches!(self, F4 | F6_E2M3 | F6_E3M2 | F8_E8M0)
    }

    /// An integer type (booleans not included).
    pub fn is_integer(self) -> bool {
        matches!(self, U8 | I8 | I16 | U16 | I32 | U32 | I64 | U64)
    }

    /// The torch name that vLLM's messages use, e.g. `torch.bfloat16`; `None` where torch has none.
    pub fn torch(self) -> Option<&'static str> {
        Some(match self {
            BOOL => "torch.bool",
            U8 => "torch.uint8",
            I8 => "torch.int8",
            F8_E5M2 => "torch.float8_e5m2",
            F8_E4M3 => "torch.float8_e4m3fn",
            F8_E8M0 => "torch.float8_e8m0fnu",
            F8_E4M3FNUZ => "torch.float8_e4m3fnuz",
            F8_E5M2FNUZ => "torch.float8_e5m2fnuz",
            F4 => "torch.float4_e2m1fn_x2",
            I16 => "torch.int16",
            U16 => "torch.uint16",
            F16 => "torch.float16",
            BF16 => "torch.bfloat16",
            I32 => "torch.int32",
            U32 => "torch.uint32",
            F32 => "torch.float32",
            C64 => "torch.complex64",
            F64 => "torch.float64",
            I64 => "torch.int64",
            U64 => "torch.uint64",
            F6_E2M3 | F6_E3M2 => return None,
        })
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.tag())
    }
}

impl std::str::FromStr for Dtype {
    type Err = String;

    fn from_str(tag: &str) -> Result<Self, String> {
        Self::from_tag(tag).ok_or_else(|| format!("unknown dtype `{tag}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crate knows the same tags with the same widths.
    #[test]
    fn agrees_with_safetensors() {
        for d in Dtype::ALL {
            let theirs: safetensors::Dtype = serde_json::from_str(&format!("\"{}\"", d.tag())).unwrap();
            assert_eq!(theirs.bitsize() as u64, d.bits(), "{d}");
            assert_eq!(Dtype::from_tag(d.tag()), Some(d));
        }
        let theirs = serde_json::from_str::<safetensors::Dtype>("\"F7\"").unwrap_err();
        let ours = serde_json::from_str::<Dtype>("\"F7\"").unwrap_err();
        assert_eq!(theirs.to_string(), ours.to_string());
    }
}
