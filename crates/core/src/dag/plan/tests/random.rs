//! Random graphs and random choices, repeatable by their seed.

use serde_json::json;

use super::super::super::MinSuccess;
use super::*;
use crate::request::ApprovalGate;
use crate::verdict::ApprovalTerms;

/// Enough randomness for a test; the same for the same seed.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// What kinds of nodes a graph has.
#[derive(Clone, Copy)]
pub(super) enum Flavour {
    Everything,
    /// Jobs whose failures stop nothing.
    OnlyJobs,
}

pub(super) fn graph(draw: &mut Draw, size: usize, flavour: Flavour) -> Dag {
    let mut dag = dag((0..size).map(|at| node(draw, at, flavour)).collect());
    if matches!(flavour, Flavour::Everything) {
        dag.max_parallelism = draw.percent(50).then(|| 1 + draw.below(5) as u32);
        dag.timeout_ms = draw.percent(20).then_some(5_000);
    }
    dag
}

fn node(draw: &mut Draw, at: usize, flavour: Flavour) -> Node {
    let mut needs: Vec<NodeIx> = (0..draw.below(4).min(at)).map(|_| (at - 1 - draw.below(at.min(6))) as NodeIx).collect();
    needs.sort_unstable();
    needs.dedup();
    let joins = [Join::AllSuccess, Join::AllSuccess, Join::AnySuccess, Join::AllDone, Join::OneFailed, Join::NoneFailed];
    let mut node = job(&format!("n{at}"), &needs).joined(*draw.pick(&joins).unwrap()).on_fail(OnFail::Continue);
    if matches!(flavour, Flavour::OnlyJobs) {
        return node;
    }
    node.read = draw.percent(50);
    node = match draw.below(10) {
        0 => Node { work: NodeWork::Delay(Delay::For { millis: draw.below(3_000) as u64 }), ..node },
        1 => {
            let gate = ApprovalGate { reason: "go?".into(), terms: ApprovalTerms::default(), only: true };
            Node { work: NodeWork::Approval(gate), ..node }
        }
        2 => Node { work: sub_dag("", &[]).work, ..node },
        3 | 4 => many(draw, node),
        _ => node,
    };
    node = match draw.below(20) {
        0 | 1 => node.on_fail(OnFail::Compensate),
        2 => node.on_fail(OnFail::Stop),
        3 => node.when("false"),
        4 => node.when("3"),
        _ => node,
    };
    match draw.below(5) {
        0 => node.undone_on_failure(),
        1..=3 => node.undone(),
        _ => node,
    }
}

fn many(draw: &mut Draw, node: Node) -> Node {
    let list: Vec<usize> = (0..draw.below(5)).collect();
    let mut node = node.each(&json!(list));
    let each = node.for_each.as_mut().unwrap();
    each.concurrency = draw.percent(50).then(|| 1 + draw.below(3) as u32);
    each.min_success = draw.percent(50).then_some(MinSuccess::Percent(50));
    node
}
