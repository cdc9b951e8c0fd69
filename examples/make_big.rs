//! Writes a checkpoint of the size of DeepSeek-V3 (sparse, about 20 MB of disk):
//! `cargo run --release --example make_big -- DIR`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

#[path = "../benches/support/deepseek.rs"]
mod deepseek;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: make_big DIR");
        return ExitCode::from(2);
    };
    match deepseek::generate(&dir) {
        Ok(bytes) => {
            println!("{}: {} tensors, {} shards, {bytes} bytes", dir.display(), deepseek::TENSORS, deepseek::SHARDS);
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{}: {e}", dir.display());
            ExitCode::FAILURE
        }
    }
}
