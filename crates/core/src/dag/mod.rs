//! Workflows: the definition of a DAG, one execution of it, and every decision about that.
//!
//! A [`Dag`] is a definition, immutable once it is stored. A [`Run`] is one execution of one version. [`plan`] holds the
//! decisions. Like those about jobs they are pure functions: from a run, messages about its jobs and the time to the next
//! run, jobs to start and jobs to stop.

mod any_run;
mod definition;
mod draw;
mod expression;
mod graph;
mod keys;
mod lint;
mod load;
mod node;
mod orphan;
mod params;
mod path;
pub(crate) mod pieces;
pub mod plan;
mod run;
pub mod saga;
mod template;
#[cfg(test)]
mod tests;

pub use any_run::AnyRun;
pub use definition::{
    Compensation, Dag, Delay, ForEach, JobTemplate, Join, MinSuccess, Node, NodeIx, NodeWork, OnFail, Param, ParamKind,
    SubDag,
};
pub use expression::{Expression, ExpressionScope};
pub use lint::OverruledJoin;
pub use node::{Items, JobTries, NodeKey, NodeRun, NodeState, NodeUndo, UndoState};
pub use orphan::{Standstill, Unmoved, end_without_plan, orphaned};
pub use run::{Closing, DagRef, Run, RunHead, RunParent, RunState, asked};
pub use template::Template;

/// The JSON Schema of definitions, for editors.
pub const SCHEMA: &str = include_str!("../../dag.schema.json");

/// The most nodes of one DAG.
pub const NODES_MAX: usize = 10_000;
/// The most items of one `for_each`.
pub const ITEMS_MAX: usize = 10_000;
/// The deepest nesting of runs inside of runs.
pub const DEPTH_MAX: u32 = 8;
