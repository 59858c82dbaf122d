//! The shape of a DAG: an order in which parents come first, the loops that prevent one, and who comes after whom.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An order in which each comes after all it needs; of those that could come next, the one with the lowest number. If there
/// is none: loops that stand in the way, each as a walk along the flow of work that returns to where it began.
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
        // Taken as done, so that loops elsewhere are found too.
        flow.ready.extend(around.iter().copied().map(Reverse));
        loops.push(around);
    }
}

/// Places nodes as what they need is placed.
struct NodeOrder {
    children: Vec<Vec<usize>>,
    /// How many of those that a node needs are not placed.
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
            // What was in a loop is ready a second time when all it needs is placed.
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

/// Whatever is not placed needs something that is not placed, so going back from it must come around.
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

/// For every node the set of nodes that come before it, one bit each.
pub(super) struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    /// `needs` in topological order.
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

    /// Whether `first` comes before `second`.
    pub(super) fn has(&self, second: u32, first: u32) -> bool {
        self.bits[second as usize * self.words + first as usize / 64] >> (first % 64) & 1 == 1
    }
}
