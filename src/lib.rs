//! ckpt-lint: what vLLM would do with a checkpoint, told from its metadata alone.
//!
//! The data goes one way, and each room imports only from rooms before it:
//!
//! ```text
//! argument → source → checkpoint → vllm (plan) → rules → policy → locate → report → exit code
//! ```
//!
//! * [`source`] lists files and reads byte ranges; it knows nothing of models.
//! * [`checkpoint`] turns bytes into facts and never fails on content.
//! * [`vllm`] simulates the load of one vLLM version and leaves a trace.
//! * [`rules`] turn the trace into findings: words, places, fixes.
//! * [`policy`] selects rules and levels; [`locate`] turns places into lines; [`report`] renders.
//! * [`diff`] compares two checkpoints; it needs neither plan nor rules.
//! * [`run`] alone knows the order.
//!
//! [`finding`], [`pattern`] and [`facts`] are used from all sides and import nothing of ours.

pub mod checkpoint;
pub mod cli;
pub mod diff;
pub mod facts;
pub mod finding;
pub mod locate;
pub mod pattern;
pub mod policy;
pub mod report;
pub mod rule;
#[path = "../rules/mod.rs"]
pub mod rules;
pub mod run;
pub mod source;
pub mod vllm;
