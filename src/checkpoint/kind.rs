//! Questions about a folder that only need its listing and its parts.

use super::{Checkpoint, FileEntry, FolderKind, Shard, Tensor};

/// Judges a folder by the names in it.
pub(super) fn of(files: &[FileEntry]) -> FolderKind {
    let top = || files.iter().map(|f| f.name.as_str()).filter(|n| !n.contains('/'));
    let has = |name: &str| top().any(|n| n == name);
    let weights = || top().filter(|n| is_weights(n));
    if has("model_index.json") {
        FolderKind::Diffusers
    } else if has("adapter_config.json") && weights().all(|n| n.starts_with("adapter")) {
        // Full weights beside an adapter make it a model; `config.json` alone does not, trainers copy it along.
        FolderKind::LoraAdapter
    } else if top().any(|n| n.ends_with(".gguf")) && weights().next().is_none() {
        FolderKind::Gguf
    } else {
        FolderKind::Model
    }
}

/// A file that one of vLLM's load formats would take for weights: `*.safetensors`, `*.bin`, `*.pt`.
fn is_weights(name: &str) -> bool {
    let ends = |e: &str| name.ends_with(e);
    // What `filter_files_not_needed_for_inference` drops.
    let trainer = ["training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt"];
    ends(".safetensors") || ((ends(".bin") || ends(".pt")) && !trainer.iter().any(|t| ends(t)))
}

impl Checkpoint {
    /// The file with this name, relative to the folder.
    pub fn file(&self, name: &str) -> Option<&FileEntry> {
        // `files` is sorted, but hand-made checkpoints of tests need not be.
        self.files.iter().find(|f| f.name == name)
    }

    /// The shard with this file name.
    pub fn shard(&self, file: &str) -> Option<&Shard> {
        self.shards.iter().find(|s| s.file == file)
    }

    /// Every tensor that could be read, in the order in which vLLM meets them when it loads every shard.
    pub fn tensors(&self) -> impl Iterator<Item = (&Shard, &Tensor)> {
        self.shards.iter().flat_map(|s| s.tensors().iter().map(move |t| (s, t)))
    }

    /// The weights are not here: every shard is a Git LFS pointer, or there is none and the index names some.
    ///
    /// False when any real shard is here, even one that the index does not name: vLLM then refuses for good. False
    /// without index and shards: there is nothing that says that weights exist.
    pub fn weights_absent(&self) -> bool {
        if self.shards.is_empty() {
            let named = self.index.get().and_then(|i| i.weight_map.as_ref());
            return named.is_some_and(|map| !map.is_empty());
        }
        self.shards.iter().all(Shard::is_pointer)
    }

    /// Top-level `*.bin` and `*.pt` that vLLM would read when there are no safetensors.
    pub fn pickles(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(|f| !f.name.contains('/') && !f.name.ends_with(".safetensors") && is_weights(&f.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(names: &[&str]) -> FolderKind {
        of(&names.iter().map(|n| FileEntry { name: (*n).to_owned(), size: 1 }).collect::<Vec<_>>())
    }

    #[test]
    fn folders_by_their_names() {
        assert_eq!(kind(&["adapter_config.json", "adapter_model.safetensors"]), FolderKind::LoraAdapter);
        assert_eq!(kind(&["adapter_config.json", "adapter_model.bin", "config.json"]), FolderKind::LoraAdapter);
        assert_eq!(kind(&["adapter_config.json", "config.json", "model.safetensors"]), FolderKind::Model);
        assert_eq!(kind(&["config.json", "q4.gguf"]), FolderKind::Gguf);
        assert_eq!(kind(&["config.json", "q4.gguf", "model.safetensors"]), FolderKind::Model);
        assert_eq!(kind(&["model_index.json", "unet/config.json"]), FolderKind::Diffusers);
        assert_eq!(kind(&["sub/q4.gguf", "config.json"]), FolderKind::Model);
    }

    #[test]
    fn pickles_without_the_trainers_files() {
        let entry = |n: &str| FileEntry { name: n.to_owned(), size: 1 };
        let files = ["pytorch_model.bin", "training_args.bin", "optimizer.pt", "sub/x.bin", "m.safetensors"];
        let c = Checkpoint { files: files.map(entry).to_vec(), ..Checkpoint::default() };
        assert_eq!(c.pickles().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["pytorch_model.bin"]);
    }
}
