//! Workflows: what is to be done in which order, one execution of it, and every decision about that.
//!
//! A [`Dag`] is a definition, immutable once it is stored. A [`Run`] is one execution of one version. [`plan`] holds the
//! decisions; like those about jobs they are pure: run + news + time → next run, jobs to start and jobs to stop.

mod definition;
mod draw;
mod expression;
mod flow;
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

pub use definition::{
    Compensation, Dag, Delay, ForEach, JobTemplate, Join, MinSuccess, Node, NodeIx, OnFail, Param, ParamKind, SubDag, Work,
};
pub use expression::{Expression, Scope};
pub use flow::Flow;
pub use lint::OverruledJoin;
pub use node::{Items, NodeKey, NodeRun, NodeState, Undo, UndoState};
pub use orphan::{Standstill, Unmoved, end_without_plan, orphaned};
pub use run::{Closing, DagRef, Parent, Run, RunHead, RunState, asked};
pub use template::Template;

/// The JSON Schema of definitions, for editors.
pub const SCHEMA: &str = include_str!("../../dag.schema.json");

/// Nodes of one DAG.
pub const NODES_MAX: usize = 10_000;
/// Items of one `for_each`.
pub const ITEMS_MAX: usize = 10_000;
/// Runs inside of runs.
pub const DEPTH_MAX: u32 = 8;
