//! `cargo bench`: how long each phase takes on a checkpoint of the size of DeepSeek-V3 that is in the page cache.
//!
//! Generates it in a temporary folder, or takes the one that `BIG_CHECKPOINT` names.

#![allow(clippy::print_stdout, reason = "a tool for the terminal")]

#[path = "support/deepseek.rs"]
mod deepseek;

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ckpt_lint::checkpoint::Checkpoint;
use ckpt_lint::facts;
use ckpt_lint::finding::Place;
use ckpt_lint::locate::Locator;
use ckpt_lint::pattern::PatternSet;
use ckpt_lint::rule;
use ckpt_lint::rules;
use ckpt_lint::source::LocalSource;
use ckpt_lint::vllm::{Plan, Target};

/// The one of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints median and extremes of `rounds` rounds.
fn time<T>(what: &str, rounds: usize, mut run: impl FnMut() -> T) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let out = run();
            let took = start.elapsed();
            drop(std::hint::black_box(out));
            took
        })
        .collect();
    times.sort();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let (low, median, high) = (times[0], times[rounds / 2], times[rounds - 1]);
    println!("{what:<44} {:>8.2} ms  ({:.2} to {:.2}, {rounds} rounds)", ms(median), ms(low), ms(high));
}

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let dir = match std::env::var_os("BIG_CHECKPOINT") {
        Some(dir) => PathBuf::from(dir),
        None => {
            deepseek::generate(temporary.path())?;
            temporary.path().to_path_buf()
        }
    };
    time("list and read everything", 20, || Checkpoint::read(&LocalSource::open(&dir)?, "big"));
    let c = Checkpoint::read(&LocalSource::open(&dir)?, "big")?;
    assert_eq!(c.tensors().count(), deepseek::TENSORS);

    let target = Target::default();
    time("facts of its class, unpacked before", 20, || facts::class(&target.vllm, "DeepseekV3ForCausalLM"));
    let absent = Checkpoint { shards: Vec::new(), index: Default::default(), ..c.clone() };
    time("plan up to the first tensor", 20, || Plan::of(&absent, &target));
    time("whole plan", 20, || Plan::of(&c, &target));
    let plan = Plan::of(&c, &target);
    let all: Vec<_> = rules::all().collect();
    time("rules", 20, || rule::check(&all, &c, &plan));

    let last = c.index.get().and_then(|i| i.weight_map.as_ref()?.last()).ok_or("no index")?;
    let place = Place::Tensor { file: last.1.to_string(), name: last.0.to_string() };
    time("first place in the index", 10, || Locator::new(&c).locate(&place));
    let mut locator = Locator::new(&c);
    locator.locate(&place);
    time("each further place in the index", 50, || locator.locate(&place));

    let set = PatternSet::new(["lm_head", "re:.*mlp.gate$", "re:.*self_attn.*", "re:^model\\.layers\\.[0-2]\\..*"]);
    let modules: Vec<&str> = c.tensors().filter_map(|(_, t)| t.name.strip_suffix(".weight")).collect();
    time("46,000 modules against four entries", 10, || {
        modules.iter().filter(|m| matches!(set.first(m), Ok(Some(_)))).count()
    });
    Ok(())
}
