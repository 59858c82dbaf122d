//! Orders the nodes of a file and connects them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::graph::{self, Ancestors};
use super::super::template::TemplateUses;
use super::super::{Dag, Join, Node, NodeIx, OnFail};
use super::node::Draft;
use super::references::{References, Viewer};
use crate::config::{ConfigReport, SourcePosition};

/// The topological order of the nodes, once each has a position in it.
pub(super) struct FileOrder {
    /// Positions in the file, in topological order.
    files: Vec<usize>,
    /// Index in the order, by position in the file.
    indexes: Vec<NodeIx>,
    /// Parents of each node, by index.
    needs: Vec<Vec<NodeIx>>,
    ancestors: Ancestors,
}

impl FileOrder {
    fn new(files: Vec<usize>, needs: &[Vec<usize>]) -> Self {
        let mut indexes = vec![0; files.len()];
        for (index, file) in (0..).zip(&files) {
            indexes[*file] = index;
        }
        let sorted = |file: &usize| {
            let mut parents: Vec<NodeIx> = needs[*file].iter().map(|parent| indexes[*parent]).collect();
            parents.sort_unstable();
            parents
        };
        let needs: Vec<Vec<NodeIx>> = files.iter().map(sorted).collect();
        let ancestors = Ancestors::of(needs.iter().map(Vec::as_slice));
        Self { files, indexes, needs, ancestors }
    }

    /// Whether `first` is always over when `second` may start; both are positions in the file.
    pub(super) fn is_before(&self, first: usize, second: usize) -> bool {
        self.ancestors.has(self.indexes[second], self.indexes[first])
    }

    fn sorted(&self, files: &BTreeSet<usize>) -> Vec<NodeIx> {
        let mut indexes: Vec<NodeIx> = files.iter().map(|file| self.indexes[*file]).collect();
        indexes.sort_unstable();
        indexes
    }
}

/// Adds the nodes to a DAG that is complete but for them. `output` are the references of the run's output.
pub(super) fn wire(dag: &mut Dag, mut drafts: Vec<Draft<'_>>, output: TemplateUses, report: &mut ConfigReport) {
    let names: BTreeMap<&str, usize> = drafts.iter().enumerate().map(|(file, draft)| (draft.name, file)).collect();
    let needs: Vec<Vec<usize>> = drafts.iter().map(|draft| known_needs(draft, &names, report)).collect();
    let order = match graph::order(&needs) {
        Ok(files) => Some(FileOrder::new(files, &needs)),
        Err(loops) => {
            loops.iter().for_each(|around| refuse_loop(around, &drafts, report));
            None
        }
    };
    check_ends(&drafts, &needs, report);
    let params = dag.params.iter().map(|param| &*param.name).collect();
    let references = References { names: &names, params, order: order.as_ref() };
    let mut read = references.resolve(output, Viewer::Run, report);
    let mut views = Vec::with_capacity(drafts.len());
    for (file, draft) in drafts.iter_mut().enumerate() {
        let items = draft.node.as_ref().is_some_and(|node| node.for_each.is_some());
        let mut seen = references.resolve(std::mem::take(&mut draft.start), Viewer::Start { file }, report);
        seen.extend(references.resolve(std::mem::take(&mut draft.body), Viewer::Body { file, items }, report));
        let undo = references.resolve(std::mem::take(&mut draft.undo), Viewer::Undo { file, items }, report);
        read.extend(seen.iter().chain(&undo));
        views.push((seen, undo));
    }
    let nodes: Option<Vec<Node>> = drafts.into_iter().map(|draft| draft.node).collect();
    if let (Some(order), Some(nodes)) = (order, nodes) {
        dag.nodes = connect(nodes, &order, &views, &read);
    }
}

/// `views` are the nodes that each node reads, by position in the file: for its work, and for its compensation.
fn connect(
    nodes: Vec<Node>,
    order: &FileOrder,
    views: &[(BTreeSet<usize>, BTreeSet<usize>)],
    read: &BTreeSet<usize>,
) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut placed = Vec::with_capacity(nodes.len());
    for (file, needs) in order.files.iter().zip(&order.needs) {
        let Some(mut node) = nodes[*file].take() else { continue };
        let (seen, undo) = &views[*file];
        node.needs.clone_from(needs);
        node.reads = order.sorted(seen);
        node.read = read.contains(file);
        if let Some(compensation) = &mut node.compensation {
            compensation.reads = order.sorted(undo);
        }
        placed.push(node);
    }
    for (index, needs) in (0..).zip(&order.needs) {
        needs.iter().for_each(|parent| placed[*parent as usize].children.push(index));
    }
    placed
}

/// Parents by position in the file. Names that do not exist are reported and left out.
fn known_needs(draft: &Draft<'_>, names: &BTreeMap<&str, usize>, report: &mut ConfigReport) -> Vec<usize> {
    let mut known = Vec::new();
    for (name, at) in &draft.needs {
        match names.get(name) {
            _ if *name == draft.name => report.refuse(*at, format!("node {name:?} needs itself; remove that")),
            Some(file) => known.push(*file),
            None => {
                let message = format!("node {:?} needs {name:?}, which is not in this DAG", draft.name);
                report.unknown(*at, message, name, names.keys().copied());
            }
        }
    }
    known
}

/// Reports a cycle. `around` are positions in the file along the edges; the last is the first.
fn refuse_loop(around: &[usize], drafts: &[Draft<'_>], report: &mut ConfigReport) {
    let names: Vec<&str> = around.iter().map(|file| drafts[*file].name).collect();
    let [first, .., last, _] = around else { return };
    let draft = &drafts[*first];
    let back: Option<SourcePosition> = draft.needs.iter().find(|(name, _)| *name == drafts[*last].name).map(|(_, at)| *at);
    let message = format!("these nodes wait for each other: {}; remove one of the needs", names.join(" → "));
    report.refuse(back.unwrap_or(draft.at), message);
}

/// Refuses nodes that can never run, whatever the ends of their parents, and `on_fail: compensate` where no node has a
/// compensation.
fn check_ends(drafts: &[Draft<'_>], needs: &[Vec<usize>], report: &mut ConfigReport) {
    let nodes = || drafts.iter().filter_map(|draft| draft.node.as_ref());
    let undoes = nodes().any(|node| node.compensation.is_some());
    for (draft, needs) in drafts.iter().zip(needs) {
        let Some(node) = &draft.node else { continue };
        if node.on_fail == OnFail::Compensate && !undoes {
            let message = "on_fail: compensate undoes nothing, for no node has a compensation; add one or write stop";
            report.refuse(draft.at, message);
        }
        let ends_run = |file: &usize| drafts[*file].node.as_ref().is_some_and(|parent| parent.on_fail != OnFail::Continue);
        if node.join == Join::OneFailed && !needs.is_empty() && needs.iter().all(ends_run) {
            let message = format!(
                "node {:?} can never run: a failure of what it needs ends the run; write on_fail: continue there",
                draft.name
            );
            report.refuse(draft.at, message);
        }
    }
}
