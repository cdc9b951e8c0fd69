//! From symbolic places to bytes, lines and short excerpts.
//!
//! An index may have 9 MB on one line, so nothing here scans a text more than once, and nothing that leaves here holds
//! more than a few cut lines, without control characters.

mod excerpt;
mod lines;
mod spans;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::checkpoint::{Checkpoint, Name, Part};
use crate::finding::Place;

pub use excerpt::{Excerpt, clean};
use lines::Lines;
use spans::Spans;

const INDEX: &str = "model.safetensors.index.json";

/// Where a finding is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// File name relative to the folder, `/` as separator. For a tensor that an index names, the index.
    pub file: String,
    /// The part of it, for files with text.
    pub region: Option<Region>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Byte offsets in the file.
    pub bytes: Range<usize>,
    /// First line, from 1.
    pub line: usize,
    /// First column, from 1, in characters.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
    /// A few lines around, with the region's first line marked.
    pub excerpt: Excerpt,
}

/// Finds places in one checkpoint; remembers what it learned of each text.
#[derive(Debug)]
pub struct Locator<'a> {
    checkpoint: &'a Checkpoint,
    texts: HashMap<&'a str, Text<'a>>,
}

#[derive(Debug)]
struct Text<'a> {
    text: &'a str,
    spans: OnceCell<Spans<'a>>,
    lines: Lines<'a>,
}

impl<'a> Locator<'a> {
    /// Nothing is scanned before it is asked for.
    pub fn new(checkpoint: &'a Checkpoint) -> Self {
        Locator { checkpoint, texts: HashMap::new() }
    }

    /// Where `place` is. `None` for the folder itself and for files that are not there.
    ///
    /// A key that the file does not have is found at the nearest one above it that it has. What is marked fits on a
    /// line: of a scalar the key and the value, of a list or an object the key alone. A tensor is where the index
    /// names it, else its shard without a region. A JSON file that does not parse is marked where parsing stopped.
    pub fn locate(&mut self, place: &Place) -> Option<Spot> {
        match place {
            Place::Folder => None,
            Place::File { file } => {
                self.listed(file)?;
                let at = self.broken_at(file);
                let region = at.and_then(|at| self.text(file)?.point(at));
                Some(Spot { file: file.clone(), region })
            }
            Place::Key { file, pointer } => {
                self.listed(file)?;
                let region = self.text(file).and_then(|text| {
                    let found = text.spans().find(pointer)?;
                    text.region(found)
                });
                Some(Spot { file: file.clone(), region })
            }
            Place::Tensor { file, name } => {
                let in_index = self.named(file, name);
                if in_index.is_some() {
                    return Some(Spot { file: INDEX.to_owned(), region: in_index });
                }
                self.listed(file)?;
                Some(Spot { file: file.clone(), region: None })
            }
        }
    }

    /// Where the index names a tensor, most likely of this shard. An index of the usual shape was read where it stands, so
    /// its names know their place.
    fn named(&mut self, file: &str, name: &str) -> Option<Region> {
        let index = self.checkpoint.index.get();
        let read = index.and_then(|index| {
            let map = index.weight_map.as_ref()?;
            let runs = map.chunk_by(|a, b| a.1 == b.1);
            let mut likely = runs.filter(|run| run[0].1 == file).flatten();
            let named = |entry: &&(Name, Name)| entry.0 == name;
            let (key, value) = likely.find(named).or_else(|| map.iter().find(named))?;
            let key = key.place_in(&index.text)?;
            let key = key.start.checked_sub(1)?..key.end + 1;
            let start = key.end + index.text.get(key.end..)?.find('"')?;
            Some(spans::Found { key: Some(key), value: start..start + value.len() + 2, scalar: true })
        });
        let text = self.text(INDEX)?;
        let found = read.or_else(|| text.spans().child("/weight_map", name))?;
        text.region(found)
    }

    fn listed(&self, file: &str) -> Option<()> {
        self.checkpoint.file(file).map(drop)
    }

    fn text(&mut self, file: &str) -> Option<&Text<'a>> {
        let (name, text) = text_of(self.checkpoint, file)?;
        Some(self.texts.entry(name).or_insert_with(|| Text::new(text)))
    }

    fn broken_at(&self, file: &str) -> Option<usize> {
        let c = self.checkpoint;
        let defects = match file {
            "config.json" => c.config.defects(),
            "generation_config.json" => c.generation_config.defects(),
            INDEX => c.index.defects(),
            _ => c.quant_files.iter().find(|(name, _)| name == file)?.1.defects(),
        };
        defects.iter().find_map(|d| d.at)
    }
}

/// The text of a file, when the checkpoint holds it, with a name that lives as long.
fn text_of<'a>(c: &'a Checkpoint, file: &str) -> Option<(&'a str, &'a str)> {
    let json = |name, part: &'a Part<crate::checkpoint::Json>| Some((name, part.get()?.text.as_str()));
    let whole = match file {
        "config.json" => json("config.json", &c.config),
        "generation_config.json" => json("generation_config.json", &c.generation_config),
        INDEX => c.index.get().map(|i| (INDEX, i.text.as_str())),
        _ => c.quant_files.iter().find(|(name, _)| name == file).and_then(|(name, part)| json(name, part)),
    };
    whole.or_else(|| c.broken_texts.iter().find(|(name, _)| name == file).map(|(n, t)| (n.as_str(), t.as_str())))
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Self {
        Text { text, spans: OnceCell::new(), lines: Lines::new(text) }
    }

    fn spans(&self) -> &Spans<'a> {
        self.spans.get_or_init(|| Spans::of(self.text))
    }

    fn column(&self, at: usize) -> Option<usize> {
        let start = self.lines.start(self.lines.holding(at))?;
        Some(self.text.get(start..at)?.chars().count() + 1)
    }

    fn point(&self, at: usize) -> Option<Region> {
        let at = at.min(self.text.len());
        let len = self.text.get(at..)?.chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        self.mark(at..at + len)
    }

    /// What to mark of a key and its value.
    fn region(&self, found: spans::Found) -> Option<Region> {
        let spans::Found { key, value, scalar } = found;
        let bytes = match key {
            Some(key) if scalar && self.lines.holding(key.start) == self.lines.holding(value.end) => {
                key.start..value.end
            }
            Some(key) => key,
            None if scalar => value,
            None => value.start..value.start + 1,
        };
        self.mark(bytes)
    }

    fn mark(&self, bytes: Range<usize>) -> Option<Region> {
        let line = self.lines.holding(bytes.start);
        let end_line = self.lines.holding(bytes.end.saturating_sub(1).max(bytes.start));
        Some(Region {
            line: line + 1,
            column: self.column(bytes.start)?,
            end_line: end_line + 1,
            end_column: self.text.get(self.lines.start(end_line)?..bytes.end)?.chars().count() + 1,
            excerpt: self.excerpt(line, &bytes)?,
            bytes,
        })
    }

    fn excerpt(&self, line: usize, bytes: &Range<usize>) -> Option<Excerpt> {
        let marked = self.lines.range(line)?;
        let mark = bytes.start.min(marked.end) - marked.start..bytes.end.min(marked.end) - marked.start;
        let around = |i: usize| self.lines.range(i).and_then(|r| self.text.get(r));
        let before = line.checked_sub(1).and_then(around);
        // The empty line after a final line break is none.
        let after = around(line + 1).filter(|l| !l.is_empty() || line + 2 < self.lines.count());
        Some(Excerpt::new(line + 1, before, self.text.get(marked)?, mark, after))
    }
}

#[cfg(test)]
mod tests;
