//! What a step costs does not depend on how large the run is.

use super::*;
use crate::job::JobState;

const WIDTH: u32 = 100;

/// Layers of a hundred nodes, each with two parents in the layer before.
fn layered(layers: u32) -> Dag {
    let node = |at: u32| {
        let (layer, place) = (at / WIDTH, at % WIDTH);
        let before = |place: u32| (layer - 1) * WIDTH + place % WIDTH;
        let needs: Vec<NodeIx> = if layer == 0 { Vec::new() } else { vec![before(place), before(place + 1)] };
        job(&format!("n{at}"), &needs)
    };
    dag((0..layers * WIDTH).map(node).collect())
}

/// Runs it to the end, one piece of news a step, and says how much was looked at.
fn looked_at(layers: u32) -> usize {
    let mut world = World::begin_large(layered(layers));
    while let Some(id) = world.jobs.keys().next().cloned() {
        let ordered = world.jobs.remove(&id).unwrap();
        let next = world.live.step(&[world::news(&ordered.request, JobState::Succeeded)], world.now).unwrap();
        world.commit(next);
    }
    assert_eq!(world.run_state(), RunState::Succeeded);
    world.live.looked
}

#[test]
fn the_work_per_node_is_the_same_for_a_thousand_and_ten_thousand() {
    let (small, large) = (looked_at(10), looked_at(100));
    let nodes = 100 * WIDTH as usize;
    // Three states a node, and each of its two edges from both sides.
    assert!(large <= 7 * nodes, "{large} looks for {nodes} nodes");
    assert!(large <= small * 10 + small, "{small} looks for a tenth, {large} for all");
}

#[test]
fn a_wide_fan_out_starts_in_bounded_steps() {
    let mut nodes = vec![job("root", &[])];
    nodes.extend((0..1_200).map(|at| job(&format!("n{at}"), &[0])));
    nodes.push(job("sink", &(1..=1_200).collect::<Vec<_>>()));
    let mut world = World::begin_large(dag(nodes));
    let next = world.live.step(&[world.news_of("root", JobState::Succeeded)], world.now).unwrap();
    assert_eq!((next.jobs.len(), next.more), (super::super::STARTS_MAX, true));
    world.take(Some(next));
    assert_eq!(world.jobs.len(), 1_201);
    assert_eq!(world.state("n1199"), NodeState::Running);
    let news: Vec<_> = (0..1_200).map(|at| world.news_of(&format!("n{at}"), JobState::Succeeded)).collect();
    world.hear(&news);
    assert_eq!(world.state("sink"), NodeState::Running);
}
