//! A made-up checkpoint of exactly the size of DeepSeek-V3: 91,991 tensors over 163 shards. The data is a hole in the
//! file, so 688 GB take some ten megabytes of disk.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Tensors in all, as on the Hub.
pub(crate) const TENSORS: usize = 91_991;
/// Shards, as on the Hub.
pub(crate) const SHARDS: usize = 163;

const LAYERS: u64 = 61;
const DENSE_LAYERS: u64 = 3;
const EXPERTS: u64 = 256;
const HIDDEN: u64 = 7168;
const HEADS: u64 = 128;
const VOCAB: u64 = 129_280;
/// Side of the blocks that share a scale.
const BLOCK: u64 = 128;

const CONFIG: &str = r#"{
  "architectures": ["DeepseekV3ForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 0,
  "eos_token_id": 1,
  "ep_size": 1,
  "first_k_dense_replace": 3,
  "hidden_act": "silu",
  "hidden_size": 7168,
  "initializer_range": 0.02,
  "intermediate_size": 18432,
  "kv_lora_rank": 512,
  "max_position_embeddings": 163840,
  "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048,
  "moe_layer_freq": 1,
  "n_group": 8,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "norm_topk_prob": true,
  "num_attention_heads": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 61,
  "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "quantization_config": {
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "quant_method": "fp8",
    "weight_block_size": [128, 128]
  },
  "rms_norm_eps": 1e-06,
  "rope_scaling": {
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 40,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
    "type": "yarn"
  },
  "rope_theta": 10000,
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "tie_word_embeddings": false,
  "topk_group": 4,
  "topk_method": "noaux_tc",
  "torch_dtype": "bfloat16",
  "use_cache": true,
  "v_head_dim": 128,
  "vocab_size": 129280
}
"#;

struct Tensor {
    name: String,
    dtype: &'static str,
    shape: Vec<u64>,
}

impl Tensor {
    fn bytes(&self) -> u64 {
        let width = match self.dtype {
            "F32" => 4,
            "BF16" => 2,
            _ => 1,
        };
        self.shape.iter().product::<u64>() * width
    }
}

/// The tensors in the order of the layers.
fn tensors() -> Vec<Tensor> {
    let mut all = Vec::with_capacity(TENSORS);
    let mut plain = |name: String, dtype: &'static str, shape: &[u64]| {
        all.push(Tensor { name, dtype, shape: shape.to_vec() });
    };
    plain("model.embed_tokens.weight".to_owned(), "BF16", &[VOCAB, HIDDEN]);
    // Layer 61 predicts the next token but one.
    for layer in 0..=LAYERS {
        let at = format!("model.layers.{layer}");
        let mut fp8 = |name: &str, rows: u64, columns: u64| {
            plain(format!("{at}.{name}.weight"), "F8_E4M3", &[rows, columns]);
            let scales = [rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
            plain(format!("{at}.{name}.weight_scale_inv"), "F32", &scales);
        };
        fp8("self_attn.q_a_proj", 1536, HIDDEN);
        fp8("self_attn.q_b_proj", HEADS * 192, 1536);
        fp8("self_attn.kv_a_proj_with_mqa", 576, HIDDEN);
        fp8("self_attn.kv_b_proj", HEADS * 256, 512);
        fp8("self_attn.o_proj", HIDDEN, HEADS * 128);
        let mut mlp = |name: &str, inner: u64| {
            fp8(&format!("mlp{name}.gate_proj"), inner, HIDDEN);
            fp8(&format!("mlp{name}.up_proj"), inner, HIDDEN);
            fp8(&format!("mlp{name}.down_proj"), HIDDEN, inner);
        };
        if layer < DENSE_LAYERS {
            mlp("", 18432);
        } else {
            (0..EXPERTS).for_each(|e| mlp(&format!(".experts.{e}"), 2048));
            mlp(".shared_experts", 2048);
            plain(format!("{at}.mlp.gate.weight"), "BF16", &[EXPERTS, HIDDEN]);
            plain(format!("{at}.mlp.gate.e_score_correction_bias"), "F32", &[EXPERTS]);
        }
        plain(format!("{at}.self_attn.q_a_layernorm.weight"), "BF16", &[1536]);
        plain(format!("{at}.self_attn.kv_a_layernorm.weight"), "BF16", &[512]);
        plain(format!("{at}.input_layernorm.weight"), "BF16", &[HIDDEN]);
        plain(format!("{at}.post_attention_layernorm.weight"), "BF16", &[HIDDEN]);
        if layer == LAYERS {
            plain(format!("{at}.embed_tokens.weight"), "BF16", &[VOCAB, HIDDEN]);
            plain(format!("{at}.enorm.weight"), "BF16", &[HIDDEN]);
            plain(format!("{at}.hnorm.weight"), "BF16", &[HIDDEN]);
            plain(format!("{at}.eh_proj.weight"), "BF16", &[HIDDEN, 2 * HIDDEN]);
            plain(format!("{at}.shared_head.norm.weight"), "BF16", &[HIDDEN]);
            plain(format!("{at}.shared_head.head.weight"), "BF16", &[VOCAB, HIDDEN]);
        }
    }
    plain("model.norm.weight".to_owned(), "BF16", &[HIDDEN]);
    plain("lm_head.weight".to_owned(), "BF16", &[VOCAB, HIDDEN]);
    all
}

/// Writes one shard as the safetensors library would: wide types first, then by name; header padded to 8 bytes.
fn write_shard(path: &Path, tensors: &mut [&Tensor]) -> io::Result<()> {
    let rank = |t: &Tensor| ["F32", "BF16", "F8_E4M3"].iter().position(|d| *d == t.dtype);
    tensors.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
    let mut header = String::from("{\"__metadata__\":{\"format\":\"pt\"}");
    let mut at = 0;
    for t in tensors.iter() {
        let shape = t.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let end = at + t.bytes();
        let _ = write!(
            header,
            ",\"{}\":{{\"dtype\":\"{}\",\"shape\":[{shape}],\"data_offsets\":[{at},{end}]}}",
            t.name, t.dtype
        );
        at = end;
    }
    header.push('}');
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut file = File::create(path)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    file.set_len(8 + header.len() as u64 + at)
}

/// Writes the whole checkpoint into `dir`, which is created. Returns the bytes of all tensors.
pub(crate) fn generate(dir: &Path) -> io::Result<u64> {
    fs::create_dir_all(dir)?;
    let all = tensors();
    assert_eq!(all.len(), TENSORS, "the generator has lost count");
    let total: u64 = all.iter().map(Tensor::bytes).sum();
    let mut shards: Vec<Vec<&Tensor>> = (0..SHARDS).map(|_| Vec::new()).collect();
    let mut index = format!("{{\n  \"metadata\": {{\n    \"total_size\": {total}\n  }},\n  \"weight_map\": {{");
    let mut at = 0u64;
    for (i, t) in all.iter().enumerate() {
        let shard = (u128::from(at) * SHARDS as u128 / u128::from(total)) as usize;
        at += t.bytes();
        shards[shard].push(t);
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(index, "{comma}\n    \"{}\": \"{}\"", t.name, shard_name(shard));
    }
    index.push_str("\n  }\n}\n");
    for (i, tensors) in shards.iter_mut().enumerate() {
        write_shard(&dir.join(shard_name(i)), tensors)?;
    }
    fs::write(dir.join("model.safetensors.index.json"), index)?;
    fs::write(dir.join("config.json"), CONFIG)?;
    Ok(total)
}

fn shard_name(i: usize) -> String {
    format!("model-{:05}-of-{:06}.safetensors", i + 1, SHARDS)
}
