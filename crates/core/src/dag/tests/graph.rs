//! Order, loops and ancestors, against slow and plain ways to find them.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::graph::{Ancestors, order};

/// For each node those it needs, in any order of the numbers.
fn acyclic() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1_usize..60).prop_flat_map(|count| {
        let edges = prop::collection::vec((0..count, 0..count), 0..count * 2);
        let names = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (edges, names).prop_map(move |(edges, names)| {
            let mut needs = vec![BTreeSet::new(); count];
            for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
                needs[names[a.max(b)]].insert(names[a.min(b)]);
            }
            needs.into_iter().map(|parents| parents.into_iter().collect()).collect()
        })
    })
}

fn any_graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1_usize..20).prop_flat_map(|count| {
        let parents = prop::collection::btree_set(0..count, 0..4);
        prop::collection::vec(parents, count).prop_map(|needs| {
            let others = |(node, parents): (usize, BTreeSet<usize>)| parents.into_iter().filter(|p| *p != node).collect();
            needs.into_iter().enumerate().map(others).collect()
        })
    })
}

/// All that come before a node, by asking again until nothing is added.
fn closure(needs: &[Vec<usize>], node: usize) -> BTreeSet<usize> {
    let mut known = BTreeSet::new();
    let mut open = needs[node].clone();
    while let Some(next) = open.pop() {
        if known.insert(next) {
            open.extend(&needs[next]);
        }
    }
    known
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parents_come_first_and_the_lowest_that_can_is_next(needs in acyclic()) {
        let order = order(&needs).unwrap();
        let mut placed = BTreeSet::new();
        for node in &order {
            let free = |node: &usize| !placed.contains(node) && needs[*node].iter().all(|parent| placed.contains(parent));
            prop_assert_eq!((0..needs.len()).find(free), Some(*node));
            placed.insert(*node);
        }
        prop_assert_eq!(placed.len(), needs.len());
    }

    #[test]
    fn ancestors_are_all_that_come_before(needs in acyclic()) {
        let order = order(&needs).unwrap();
        let index = |node: &usize| order.iter().position(|other| other == node).unwrap() as u32;
        let sorted: Vec<Vec<u32>> = order.iter().map(|node| needs[*node].iter().map(index).collect()).collect();
        let ancestors = Ancestors::of(sorted.iter().map(Vec::as_slice));
        for node in 0..needs.len() {
            let before = closure(&needs, node);
            for other in 0..needs.len() {
                prop_assert_eq!(ancestors.has(index(&node), index(&other)), before.contains(&other));
            }
        }
    }

    #[test]
    fn there_is_an_order_or_a_loop_that_prevents_it(needs in any_graph()) {
        let looped = (0..needs.len()).any(|node| closure(&needs, node).contains(&node));
        match order(&needs) {
            Ok(order) => prop_assert!(!looped && order.len() == needs.len()),
            Err(loops) => {
                prop_assert!(looped);
                for around in loops {
                    prop_assert!(around.len() > 2 && around.first() == around.last());
                    prop_assert!(around.windows(2).all(|hop| needs[hop[1]].contains(&hop[0])));
                }
            }
        }
    }
}
