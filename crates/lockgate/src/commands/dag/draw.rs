//! A run as text: one line a node, indented by how far it is from the start.

use lockgate_api::view;

use std::collections::BTreeMap;
use std::time::Duration;

use super::runs::tone;
use crate::output::{Output, Tone, span};

/// Longest message beside a node.
const MESSAGE_CHARS_MAX: usize = 80;

/// The whole run. `percent` while it goes on.
pub(in crate::commands) fn run(run: &view::Run, out: Output, percent: Option<u32>) -> String {
    let of = match run.dag_version {
        // A workflow of plain jobs has no definition.
        0 => run.dag.clone(),
        version => format!("{} version {version}", run.dag),
    };
    let head = format!("{}  {of}", run.run_id);
    let progress = percent.map(|percent| format!("  {percent}%")).unwrap_or_default();
    let mut lines = vec![format!("{head}  {}{progress}{}", out.paint(&run.state, tone(&run.state)), took(run))];
    if let Some(error) = &run.error {
        lines.push(out.paint(&format!("  {}: {}", error.reason, error.message), Tone::Bad));
    }
    let nodes = run.nodes.as_deref().unwrap_or_default();
    let items = items(nodes);
    let depths = depths(nodes);
    let width = |node: &view::Node| node.name.chars().count() + 2 * depths[node.name.as_str()];
    let widest = nodes.iter().filter(|node| node.item.is_none()).map(width).max().unwrap_or(0);
    for node in nodes.iter().filter(|node| node.item.is_none()) {
        let indent = "  ".repeat(depths[node.name.as_str()]);
        let pad = " ".repeat(widest - width(node));
        let name = format!("{} {indent}{}{pad}", mark(&node.state), node.name);
        let line = format!("{}  {}", out.paint(&name, tone(&node.state)), facts(node, items.get(node.name.as_str()), out));
        lines.push(line.trim_end().to_owned());
    }
    if let Some(output) = &run.output {
        lines.push(format!("output {}", output.get()));
    }
    lines.join("\n")
}

/// What changed, a line each, for logs and pipes.
pub(super) fn changes(run: &view::Run, percent: u32) -> Vec<String> {
    let node = |node: &view::Node| {
        let item = node.item.map(|item| format!("[{item}]")).unwrap_or_default();
        let why = node.error.as_ref().map(|error| format!(": {}: {}", error.reason, error.message)).unwrap_or_default();
        let undo = node.undo.as_ref().map(|undo| format!(" undo {}", undo.state)).unwrap_or_default();
        let memo = node.memo_job_id.as_ref().map(|job| format!(" as {job}")).unwrap_or_default();
        let waits = node.waits_for_worker_until.map(|_| " waits for its worker").unwrap_or_default();
        format!("{percent:>3}%  {:<9}  {}{item}{memo}{waits}{undo}{why}", node.state, node.name)
    };
    run.nodes.iter().flatten().map(node).collect()
}

/// Items that are over, those of them that did not succeed, and all.
type Counts = (u32, u32, u32);

fn items(nodes: &[view::Node]) -> BTreeMap<&str, Counts> {
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for node in nodes {
        let (over, bad, all) = counts.entry(&node.name).or_default();
        match node.item {
            None => *all = node.items.unwrap_or(0),
            Some(_) => {
                let failed = matches!(&*node.state, "FAILED" | "CANCELED");
                *over += u32::from(failed || node.state == "SUCCEEDED");
                *bad += u32::from(failed);
            }
        }
    }
    counts.retain(|_, (_, _, all)| *all > 0);
    counts
}

/// Length of the longest way from a node without needs.
fn depths(nodes: &[view::Node]) -> BTreeMap<&str, usize> {
    let mut depths = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.item.is_none()) {
        let above = node.needs.iter().filter_map(|parent| depths.get(parent.as_str()).map(|depth: &usize| depth + 1));
        depths.insert(node.name.as_str(), above.max().unwrap_or(0));
    }
    depths
}

fn mark(state: &str) -> char {
    match state {
        "SUCCEEDED" => '✓',
        "FAILED" => '✗',
        "RUNNING" => '●',
        "CANCELED" => '⊘',
        "SKIPPED" => '–',
        _ => '○',
    }
}

fn facts(node: &view::Node, items: Option<&Counts>, out: Output) -> String {
    let mut facts = vec![out.paint(&format!("{:<9}", node.state), tone(&node.state))];
    facts.extend(lasted(node.began_at, node.ended_at));
    if let Some((over, bad, all)) = items {
        let bad = if *bad > 0 { format!(", {bad} failed") } else { String::new() };
        facts.push(format!("{over}/{all} items{bad}"));
    }
    if let Some(at) = node.wakes_at.filter(|_| node.state == "RUNNING") {
        facts.push(format!("until {}", out.relative(at)));
    }
    // One attempt without a loss is what is expected.
    if let (Some(attempts), Some(losses)) = (node.attempts, node.losses)
        && (attempts > 1 || losses > 0)
    {
        let lost = if losses > 0 { format!(", {losses} lost") } else { String::new() };
        facts.push(format!("{attempts} attempts{lost}"));
    }
    if let Some(job) = &node.memo_job_id {
        facts.push(out.paint(&format!("memoised, as {job}"), Tone::Faint));
    }
    if node.done_late {
        facts.push(out.paint("done late", Tone::Waiting));
    }
    if let Some(at) = node.waits_for_worker_until {
        let waits = format!("the rollback waits for its worker; the wait ends {}", out.relative(at));
        facts.push(out.paint(&waits, Tone::Waiting));
    }
    if let Some(undo) = &node.undo {
        let tone = if undo.state == "STUCK" { Tone::Bad } else { Tone::Waiting };
        facts.push(out.paint(&format!("undo {}", undo.state.to_lowercase()), tone));
    }
    if let Some(error) = &node.error {
        let short: String = error.message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS_MAX).collect();
        facts.push(out.paint(&format!("{}: {short}", error.reason), Tone::Faint));
    }
    facts.join("  ")
}

fn lasted(began: Option<view::Time>, ended: Option<view::Time>) -> Option<String> {
    let ms = ended?.0.as_millisecond() - began?.0.as_millisecond();
    Some(format!("{:>6}", span(Duration::from_millis(ms.unsigned_abs()))))
}

fn took(run: &view::Run) -> String {
    lasted(Some(run.began_at), run.ended_at).map(|span| format!("  in {}", span.trim())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lockgate_proto::v1;

    use super::*;
    use crate::output::Format;

    fn node(name: &str, needs: &[&str], state: v1::NodeState) -> v1::DagNode {
        v1::DagNode {
            name: name.to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            state: state.into(),
            ..v1::DagNode::default()
        }
    }

    #[test]
    fn nodes_are_indented_by_their_distance_and_items_are_counted() {
        let each = v1::DagNode { items: Some(3), ..node("each", &["a"], v1::NodeState::Running) };
        let item = |n: u32, state| v1::DagNode { item: Some(n), ..node("each", &["a"], state) };
        let a =
            v1::DagNode { began_at_ms: Some(1_000), ended_at_ms: Some(1_250), ..node("a", &[], v1::NodeState::Succeeded) };
        let late = v1::DagNode { waits_for_worker_until_ms: Some(90_000), ..node("late", &[], v1::NodeState::Canceled) };
        let wire = v1::DagRun {
            run_id: "run-1".to_owned(),
            dag: "etl".to_owned(),
            dag_version: 2,
            state: v1::RunState::Running.into(),
            nodes: vec![
                a,
                each,
                item(0, v1::NodeState::Succeeded),
                item(1, v1::NodeState::Failed),
                item(2, v1::NodeState::Running),
                node("join", &["each"], v1::NodeState::Pending),
                late,
            ],
            ..v1::DagRun::default()
        };
        let out = Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH);
        let expected = "\
run-1  etl version 2  RUNNING  33%
✓ a         SUCCEEDED   250ms
●   each    RUNNING    2/3 items, 1 failed
○     join  PENDING
⊘ late      CANCELED   the rollback waits for its worker; the wait ends in 1m30s";
        assert_eq!(run(&view::Run::from(wire), out, Some(33)), expected);
    }
}
