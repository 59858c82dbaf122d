//! Graph algorithms over a DAG: a topological order, the cycles that prevent one, and the ancestors of each node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A topological order; among the candidates for the next position the lowest number comes first, so that the order is
/// stable. If there is none, the cycles: each a walk along the edges that returns to its start.
pub(super) fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<Vec<usize>>> {
    let mut flow = NodeOrder::new(needs);
    let (mut loops, mut stuck) = (Vec::new(), 0);
    loop {
        flow.run();
        while stuck < needs.len() && flow.placed[stuck] {
            stuck += 1;
        }
        if stuck == needs.len() {
            return if loops.is_empty() { Ok(flow.order) } else { Err(loops) };
        }
        let around = walk_back(stuck, needs, &flow.placed);
        // Treat the cycle's nodes as placed, so that independent cycles are found too.
        flow.ready.extend(around.iter().copied().map(Reverse));
        loops.push(around);
    }
}

/// Places each node once all the nodes that it needs are placed (Kahn's algorithm).
struct NodeOrder {
    children: Vec<Vec<usize>>,
    /// For each node, how many of the nodes that it needs are not placed yet.
    open: Vec<usize>,
    ready: BinaryHeap<Reverse<usize>>,
    placed: Vec<bool>,
    order: Vec<usize>,
}

impl NodeOrder {
    fn new(needs: &[Vec<usize>]) -> Self {
        let mut children = vec![Vec::new(); needs.len()];
        for (node, parents) in needs.iter().enumerate() {
            parents.iter().for_each(|parent| children[*parent].push(node));
        }
        Self {
            children,
            open: needs.iter().map(Vec::len).collect(),
            ready: (0..needs.len()).filter(|node| needs[*node].is_empty()).map(Reverse).collect(),
            placed: vec![false; needs.len()],
            order: Vec::with_capacity(needs.len()),
        }
    }

    fn run(&mut self) {
        while let Some(Reverse(node)) = self.ready.pop() {
            // A node of a cycle was released early and becomes ready a second time once all that it needs is placed.
            if std::mem::replace(&mut self.placed[node], true) {
                continue;
            }
            self.order.push(node);
            for child in &self.children[node] {
                self.open[*child] -= 1;
                if self.open[*child] == 0 {
                    self.ready.push(Reverse(*child));
                }
            }
        }
    }
}

/// Finds a cycle. Each unplaced node needs another unplaced node, so walking back from one must return to a node already
/// seen.
fn walk_back(from: usize, needs: &[Vec<usize>], placed: &[bool]) -> Vec<usize> {
    let mut seen = vec![None; needs.len()];
    let (mut walk, mut node) = (Vec::new(), from);
    loop {
        if let Some(begin) = seen[node] {
            let mut around: Vec<usize> = walk.split_off(begin);
            around.reverse();
            let lowest = (0..around.len()).min_by_key(|at| around[*at]).unwrap_or(0);
            around.rotate_left(lowest);
            around.push(around[0]);
            return around;
        }
        seen[node] = Some(walk.len());
        walk.push(node);
        match needs[node].iter().find(|parent| !placed[**parent]) {
            Some(parent) => node = *parent,
            None => return vec![node],
        }
    }
}

/// The ancestors of every node, as a bit set per node.
pub(super) struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    /// `needs` lists each node's parents, in topological order.
    pub(super) fn of<'a>(needs: impl ExactSizeIterator<Item = &'a [u32]>) -> Self {
        let count = needs.len();
        let words = count.div_ceil(64);
        let mut bits = vec![0; words * count];
        for (node, parents) in needs.enumerate() {
            let (before, own) = bits.split_at_mut(node * words);
            for parent in parents {
                let parent = *parent as usize;
                let inherited = &before[parent * words..][..words];
                own[..words].iter_mut().zip(inherited).for_each(|(word, more)| *word |= more);
                own[parent / 64] |= 1 << (parent % 64);
            }
        }
        Self { words, bits }
    }

    /// Whether `first` is an ancestor of `second`.
    pub(super) fn has(&self, second: u32, first: u32) -> bool {
        self.bits[second as usize * self.words + first as usize / 64] >> (first % 64) & 1 == 1
    }
}
