//! The fact files in the binary, parsed when asked for.

use super::{ClassFile, ConfigFile, Names, Registry};

include!(concat!(env!("OUT_DIR"), "/facts.rs"));

/// The text of a fact file of a vLLM version, e.g. `("0.32", "classes/LlamaForCausalLM.json")`.
pub fn text(version: &str, file: &str) -> Option<&'static str> {
    let key = format!("{version}/{file}");
    EMBEDDED.binary_search_by(|(k, _)| (*k).cmp(key.as_str())).ok().map(|i| *EMBEDDED[i].1)
}

/// Versions that there are facts for, oldest first.
pub fn versions() -> Vec<&'static str> {
    let mut v: Vec<&str> = EMBEDDED.iter().filter_map(|(k, _)| k.strip_suffix("/registry.json")).collect();
    v.sort_by_key(|v| v.split('.').map(|n| n.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>());
    v
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
pub fn names(version: &str) -> Option<Names> {
    load(version, "names.json")
}

/// The registry of a version.
pub fn registry(version: &str) -> Option<Registry> {
    load(version, "registry.json")
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
            .filter_map(|(key, text)| {
                let r = if key.contains("/classes/") {
                    serde_json::from_str::<ClassFile>(text).map(drop)
                } else if key.contains("/configs/") {
                    serde_json::from_str::<ConfigFile>(text).map(drop)
                } else if key.ends_with("/registry.json") {
                    serde_json::from_str::<Registry>(text).map(drop)
                } else {
                    Ok(())
                };
                r.err().map(|e| format!("{key}: {e}"))
            })
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
