//! The comparison as JSON. Version 1: fields may be added, none changes its meaning or goes.

use super::Diff;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Version of the format.
pub const VERSION: u32 = 1;

/// A comparison of ckpt-lint.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "ckpt-lint comparison")]
struct Document<'a> {
    /// Version of this format.
    version: u32,
    /// What made it.
    tool: Tool<'a>,
    #[serde(flatten)]
    diff: &'a Diff,
}

/// The program.
#[derive(Debug, Serialize, JsonSchema)]
struct Tool<'a> {
    name: &'a str,
    version: &'a str,
}

/// Renders a comparison.
///
/// # Errors
/// When writing fails.
pub fn render(diff: &Diff, out: &mut dyn Write) -> io::Result<()> {
    let tool = Tool { name: "ckpt-lint", version: env!("CARGO_PKG_VERSION") };
    serde_json::to_writer_pretty(&mut *out, &Document { version: VERSION, tool, diff })?;
    writeln!(out)
}

/// The JSON Schema of the format.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}
