//! The fact files in the binary: unpacked and parsed when asked for.

use super::{ClassFile, ConfigFile, Names, Registry};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

include!(concat!(env!("OUT_DIR"), "/facts.rs"));

/// Several files, compressed as one; kept once unpacked.
struct Block {
    packed: Range<usize>,
    size: usize,
    text: OnceLock<String>,
}

impl Block {
    const fn new(packed: Range<usize>, size: usize) -> Block {
        Block { packed, size, text: OnceLock::new() }
    }

    fn text(&self) -> &str {
        static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/facts.bin"));
        self.text.get_or_init(|| {
            // A block that is not as build.rs made it is our own fault; a test reads them all.
            let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(&PACKED[self.packed.clone()], self.size);
            bytes.ok().and_then(|b| String::from_utf8(b).ok()).unwrap_or_default()
        })
    }
}

/// The text of a fact file of a vLLM version, e.g. `("0.32", "classes/LlamaForCausalLM.json")`.
pub fn text(version: &str, file: &str) -> Option<&'static str> {
    let key = format!("{version}/{file}");
    let (_, block, place) = &EMBEDDED[EMBEDDED.binary_search_by(|row| row.0.cmp(key.as_str())).ok()?];
    BLOCKS[*block].text().get(place.clone())
}

/// What is asked of a version again and again, parsed once.
struct Release {
    version: &'static str,
    registry: OnceLock<Option<Registry>>,
    names: OnceLock<Option<Names>>,
}

/// Oldest first.
static RELEASES: LazyLock<Vec<Release>> = LazyLock::new(|| {
    let mut v: Vec<&str> = EMBEDDED.iter().filter_map(|row| row.0.strip_suffix("/registry.json")).collect();
    v.sort_by_key(|v| v.split('.').map(|n| n.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>());
    v.into_iter().map(|version| Release { version, registry: OnceLock::new(), names: OnceLock::new() }).collect()
});

fn release(version: &str) -> Option<&'static Release> {
    RELEASES.iter().find(|r| r.version == version)
}

/// Versions that there are facts for, oldest first.
pub fn versions() -> Vec<&'static str> {
    RELEASES.iter().map(|r| r.version).collect()
}

/// The newest of them: what a run is about when nothing else is said.
pub fn newest() -> &'static str {
    versions().last().copied().unwrap_or_default()
}

/// The version with the facts for a release: those of `0.32` are for `0.32.1`, too.
pub fn version(release: &str) -> Option<&'static str> {
    versions()
        .into_iter()
        .find(|v| release.strip_prefix(v).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The class file of a version.
pub fn class(version: &str, class: &str) -> Option<ClassFile> {
    load(version, &format!("classes/{class}.json"))
}

/// The config program of a version.
pub fn config(version: &str, model_type: &str) -> Option<ConfigFile> {
    load(version, &format!("configs/{model_type}.json"))
}

/// The names of a version.
pub fn names(version: &str) -> Option<&'static Names> {
    release(version)?.names.get_or_init(|| load(version, "names.json")).as_ref()
}

/// The registry of a version.
pub fn registry(version: &str) -> Option<&'static Registry> {
    release(version)?.registry.get_or_init(|| load(version, "registry.json")).as_ref()
}

fn load<T: serde::de::DeserializeOwned>(version: &str, file: &str) -> Option<T> {
    // A fact file that does not parse is our own fault; a test loads them all.
    serde_json::from_str(text(version, file)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_file_parses() {
        let broken: Vec<String> = EMBEDDED
            .iter()
            .filter_map(|(key, ..)| {
                let (version, file) = key.split_once('/').unwrap();
                let text = text(version, file).unwrap();
                let r = if key.contains("/classes/") {
                    serde_json::from_str::<ClassFile>(text).map(drop)
                } else if key.contains("/configs/") {
                    serde_json::from_str::<ConfigFile>(text).map(drop)
                } else if key.ends_with("/registry.json") {
                    serde_json::from_str::<Registry>(text).map(drop)
                } else {
                    serde_json::from_str::<Names>(text).map(drop)
                };
                r.err().map(|e| format!("{key}: {e}"))
            })
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
