//! Checks that the nodes and parameters which expressions read exist and are visible there.

use std::collections::{BTreeMap, BTreeSet};

use super::super::expression::Uses;
use super::super::template::TemplateUses;
use super::wiring::FileOrder;
use crate::config::{ConfigReport, SourcePosition};

pub(super) struct References<'a> {
    /// Positions in the file by node name.
    pub(super) names: &'a BTreeMap<&'a str, usize>,
    pub(super) params: BTreeSet<&'a str>,
    /// None if the nodes have no topological order: then visibility by order is not checked.
    pub(super) order: Option<&'a FileOrder>,
}

/// Where an expression is evaluated, which decides what it may read. Nodes are positions in the file.
#[derive(Clone, Copy)]
pub(super) enum Viewer {
    /// The output of the run, once every node is over.
    Run,
    /// Whether a node starts, and for which items.
    Start { file: usize },
    /// What a node does, per item if it has items.
    Body { file: usize, items: bool },
    /// How a node is compensated, per item if it has items.
    Undo { file: usize, items: bool },
}

impl References<'_> {
    /// Reports references that do not exist or are not visible, and returns the positions of the nodes that are read.
    pub(super) fn resolve(&self, found: TemplateUses, viewer: Viewer, report: &mut ConfigReport) -> BTreeSet<usize> {
        found.faults.into_iter().for_each(|(at, fault)| fault.tell(at, report));
        let mut read = BTreeSet::new();
        for (at, uses) in found.uses {
            self.params(&uses, at, report);
            if uses.item && !viewer.has_items() {
                report.refuse(at, viewer.without_items());
            }
            for name in &uses.nodes {
                read.extend(self.node(name, viewer, at, report));
            }
        }
        read
    }

    fn params(&self, uses: &Uses, at: SourcePosition, report: &mut ConfigReport) {
        for name in uses.params.iter().filter(|name| !self.params.contains(&***name)) {
            let message = format!("parameter {name:?} is not declared; add it under params");
            report.unknown(at, message, name, self.params.iter().copied());
        }
    }

    fn node(&self, name: &str, viewer: Viewer, at: SourcePosition, report: &mut ConfigReport) -> Option<usize> {
        let Some(read) = self.names.get(name).copied() else {
            let message = format!("node {name:?} is not in this DAG");
            report.unknown(at, message, name, self.names.keys().copied());
            return None;
        };
        let own = match viewer {
            Viewer::Run => return Some(read),
            Viewer::Undo { file, .. } if file == read => return Some(read),
            Viewer::Start { file } | Viewer::Body { file, .. } | Viewer::Undo { file, .. } => file,
        };
        if own == read {
            report.refuse(at, format!("node {name:?} reads its own output, which is not there before it ends"));
        } else if self.order.is_some_and(|order| !order.is_before(read, own)) {
            report.refuse(at, format!("node {name:?} may not have ended by then; add {name:?} to needs"));
        }
        Some(read)
    }
}

impl Viewer {
    fn has_items(self) -> bool {
        matches!(self, Self::Body { items: true, .. } | Self::Undo { items: true, .. })
    }

    fn without_items(self) -> &'static str {
        match self {
            Self::Start { .. } => "item and index are not there yet: when and for_each are evaluated once for all items",
            _ => "item and index are there only in a node with for_each",
        }
    }
}
