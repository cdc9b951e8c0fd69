//! One folder, read once: config files, the index, and every header, side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use super::cores::Core;
use super::{Checkpoint, FileEntry, Index, Json, Part, Shard, header, index, json, kind, natural};
use crate::source::{Source, SourceError};

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const TOKENIZER: &str = "tokenizer_config.json";
const INDEX: &str = "model.safetensors.index.json";
/// Of sentence-transformers.
const MODULES: &str = "modules.json";
/// `_ST_POOLING_MODULE_TYPES` (vllm/transformers_utils/config.py).
const POOLING: [&str; 2] =
    ["sentence_transformers.models.Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"];
/// Config classes are a few kilobytes.
const MAX_CODE: u64 = 1 << 20;
/// In the order in which their names are listed in [`Checkpoint::quant_files`].
const QUANT: [&str; 4] =
    ["hf_quant_config.json", "quantize_config.json", "quant_config.json", "quantization_config.json"];

enum Job<'a> {
    Json(&'static str, &'a FileEntry),
    Index(&'a FileEntry),
    Shard(&'a FileEntry),
    Tokenizer(&'a FileEntry),
}

enum Done {
    Json(&'static str, Part<Json>, Option<String>),
    Index(Part<Index>, Option<String>),
    Shard(Shard),
    /// Whether it has a chat template.
    Tokenizer(bool),
}

impl Checkpoint {
    /// Reads the metadata of a folder. `path` is for display.
    ///
    /// Content never fails: what is broken is in the result. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// When a listed file cannot be read.
    pub fn read(source: &dyn Source, path: &str) -> Result<Checkpoint, SourceError> {
        let files = source.list();
        let find = |name: &str| files.iter().find(|f| f.name == name);
        // The index first: it is the longest of them.
        let mut jobs: Vec<Job> = find(INDEX).map(Job::Index).into_iter().collect();
        let named = [CONFIG, GENERATION].into_iter().chain(QUANT);
        jobs.extend(named.filter_map(|name| Some(Job::Json(name, find(name)?))));
        jobs.extend(find(TOKENIZER).map(Job::Tokenizer));
        let mut shards: Vec<&FileEntry> =
            files.iter().filter(|f| f.name.ends_with(".safetensors") && !f.name.contains('/')).collect();
        shards.sort_by(|a, b| natural(&a.name, &b.name));
        jobs.extend(shards.into_iter().map(Job::Shard));

        let mut out =
            Checkpoint { path: path.to_owned(), kind: kind::of(files), files: files.to_vec(), ..Checkpoint::default() };
        out.chat_template = files.iter().any(|f| {
            matches!(f.name.as_str(), "chat_template.jinja" | "chat_template.json")
                || f.name.starts_with("additional_chat_templates/")
        });
        for done in work(source, &jobs)? {
            match done {
                Done::Tokenizer(template) => out.chat_template |= template,
                Done::Shard(shard) => out.shards.push(shard),
                Done::Index(part, text) => {
                    out.index = part;
                    out.broken_texts.extend(text.map(|t| (INDEX.to_owned(), t)));
                }
                Done::Json(name, part, text) => {
                    out.broken_texts.extend(text.map(|t| (name.to_owned(), t)));
                    match name {
                        CONFIG => out.config = part,
                        GENERATION => out.generation_config = part,
                        _ => out.quant_files.push((name.to_owned(), part)),
                    }
                }
            }
        }
        if let Some(file) = out.config_class().and_then(|class| find(&class?)).filter(|f| f.size <= MAX_CODE) {
            out.config_code = String::from_utf8(source.read(&file.name, MAX_CODE)?).ok();
        }
        if let Some(file) = find(MODULES).filter(|f| f.size <= MAX_CODE) {
            let modules: Vec<Module> = serde_json::from_slice(&source.read(&file.name, MAX_CODE)?).unwrap_or_default();
            out.sentence_transformers = modules.iter().any(|m| POOLING.contains(&m.kind.as_str()));
        }
        Ok(out)
    }

    /// The Python file of the config class that `auto_map` names: none inside when it is not one of this folder.
    pub fn config_class(&self) -> Option<Option<String>> {
        let class = self.config.get()?.value.pointer("/auto_map/AutoConfig")?.as_str()?;
        let parts = class.split_once('.').filter(|(_, name)| !class.contains("--") && !name.contains('.'));
        Some(parts.map(|(module, _)| format!("{module}.py")))
    }
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
}

/// What is asked of a tokenizer. All else is skipped without being kept.
#[derive(Deserialize)]
struct Tokenizer {
    bos_token: Option<Value>,
    eos_token: Option<Value>,
    add_bos_token: Option<Value>,
    add_eos_token: Option<Value>,
}

impl Checkpoint {
    /// Reads the special tokens. A file that does not parse has none.
    ///
    /// # Errors
    /// When the file is listed and cannot be read.
    pub fn read_special_tokens(&mut self, source: &dyn Source) -> Result<(), SourceError> {
        let Some(file) = source.list().iter().find(|f| f.name == TOKENIZER && f.size <= json::MAX_JSON) else {
            return Ok(());
        };
        let bytes = source.read(&file.name, json::MAX_JSON)?;
        let Ok(t) = serde_json::from_slice::<Tokenizer>(&bytes) else { return Ok(()) };
        // `{"content": "</s>", "lstrip": false, …}` is another spelling of `"</s>"`.
        let plain = |v: Value| v.get("content").cloned().unwrap_or(v);
        let all = [
            ("bos_token", t.bos_token),
            ("eos_token", t.eos_token),
            ("add_bos_token", t.add_bos_token),
            ("add_eos_token", t.add_eos_token),
        ];
        self.special_tokens = all.into_iter().filter_map(|(name, v)| Some((name, plain(v?)))).collect();
        Ok(())
    }
}

/// Does all jobs on all cores; results in job order, and of several errors the first job's.
fn work(source: &dyn Source, jobs: &[Job]) -> Result<Vec<Done>, SourceError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    // A thread costs more than a header; network folders profit from more, but not without end.
    let threads = cores.min(16).min(jobs.len().div_ceil(4));
    let next = AtomicUsize::new(0);
    let run = || {
        let mut scratch = header::Scratch::new();
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            done.push((at, one(source, job, &mut scratch)));
        }
        done
    };
    let mut done = if threads <= 1 {
        run()
    } else {
        thread::scope(|scope| {
            let here = Core::here();
            let beside = |nth| {
                scope.spawn(move || {
                    here.leave(nth);
                    run()
                })
            };
            let others: Vec<_> = (1..threads).map(beside).collect();
            let mut done = run();
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    // Never swallow a bug: let it surface where the caller expects one.
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        })
    };
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn one(source: &dyn Source, job: &Job, scratch: &mut header::Scratch) -> Result<Done, SourceError> {
    let bytes = |file: &FileEntry| {
        if file.size > json::MAX_JSON {
            return Ok(Err(json::too_large(file.size)));
        }
        source.read(&file.name, json::MAX_JSON).map(Ok)
    };
    Ok(match job {
        Job::Tokenizer(file) => {
            // A megabyte of added tokens at times, and all we ask is whether one key is there.
            let text = bytes(file)?.unwrap_or_default();
            Done::Tokenizer(memchr::memmem::find(&text, b"\"chat_template\"").is_some())
        }
        Job::Shard(file) => Done::Shard(header::read(source, file, scratch)?),
        Job::Index(file) => match bytes(file)? {
            Ok(bytes) => {
                let (part, text) = index::parse(bytes);
                Done::Index(part, text)
            }
            Err(defect) => Done::Index(Part::Broken(vec![defect]), None),
        },
        Job::Json(name, file) => match bytes(file)? {
            Ok(bytes) => {
                let (part, text) = json::parse(bytes);
                Done::Json(name, part, text)
            }
            Err(defect) => Done::Json(name, Part::Broken(vec![defect]), None),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{DefectKind, FolderKind, ShardState};
    use crate::source::MemorySource;

    fn shard(tensors: &[&str]) -> Vec<u8> {
        let entries: Vec<_> = tensors
            .iter()
            .enumerate()
            .map(|(i, n)| format!("\"{n}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{i},{}]}}", i + 1))
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.into_bytes());
        bytes.extend(vec![0; tensors.len()]);
        bytes
    }

    #[test]
    fn a_whole_folder() {
        let mut s = MemorySource::new();
        for i in [10, 2, 1] {
            s.add(&format!("model-{i}.safetensors"), shard(&["b", "a", "B"]));
        }
        s.add("config.json", "{\"a\": 1}")
            .add("quant_config.json", "{,")
            .add("hf_quant_config.json", "{}")
            .add("original/consolidated.safetensors", "x")
            .add("pytorch_model.bin", "x");
        let c = Checkpoint::read(&s, "m").unwrap();
        let names: Vec<_> = c.shards.iter().map(|s| s.file.as_str()).collect();
        assert_eq!(names, ["model-1.safetensors", "model-2.safetensors", "model-10.safetensors"]);
        let tensors: Vec<_> = c.shards[0].tensors().iter().map(|t| &*t.name).collect();
        assert_eq!(tensors, ["B", "a", "b"]);
        assert_eq!(c.shards[0].header().unwrap().get("a").unwrap().span, (1, 2));
        assert_eq!(c.kind, FolderKind::Model);
        assert!(c.config.get().is_some() && c.generation_config.is_absent() && c.index.is_absent());
        let quant: Vec<_> = c.quant_files.iter().map(|(n, p)| (n.as_str(), p.get().is_some())).collect();
        assert_eq!(quant, [("hf_quant_config.json", true), ("quant_config.json", false)]);
        assert_eq!(c.broken_texts, [("quant_config.json".to_owned(), "{,".to_owned())]);
        assert_eq!(c.tensors().count(), 9);
        assert!(!c.weights_absent());
    }

    #[test]
    fn weights_that_are_not_here() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 77\n";
        let mut s = MemorySource::new();
        s.add("config.json", pointer);
        s.add("model.safetensors.index.json", "{\"weight_map\": {\"a\": \"m.safetensors\"}}");
        assert!(Checkpoint::read(&s, "").unwrap().weights_absent());
        s.add("m.safetensors", pointer);
        let c = Checkpoint::read(&s, "").unwrap();
        assert!(c.weights_absent());
        assert!(matches!(c.shards[0].state, ShardState::Pointer { size: 77 }));
        assert_eq!(c.config.defects()[0].kind, DefectKind::JsonPointer);
        s.add("other.safetensors", shard(&["a"]));
        assert!(!Checkpoint::read(&s, "").unwrap().weights_absent());
    }

    #[test]
    fn huge_json_is_not_read() {
        let mut s = MemorySource::new();
        s.add_sized("config.json", "{}", json::MAX_JSON + 1);
        let c = Checkpoint::read(&s, "").unwrap();
        assert_eq!(c.config.defects()[0].kind, DefectKind::Json);
    }
}
