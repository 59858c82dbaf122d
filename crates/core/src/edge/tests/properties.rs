//! The machine against the model, whatever happens and in whatever order commits come back.

use std::time::Duration;

use proptest::prelude::*;

use super::model::World;

const WORKERS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Attach(usize),
    Detach(usize),
    Claim { worker: usize, of_run: bool },
    Commit { pick: usize, applied: bool },
    Read(usize),
    Start(usize, usize),
    Report { worker: usize, pick: usize, all: bool },
    Decide(usize),
    Cancel(usize),
    LetGo { worker: usize, says_so: bool },
    Forget(usize, usize),
    Beat(usize),
    Follow(bool),
    Drain(usize),
    SendAway(usize),
    Pass(u64),
    Tick,
    LoseLease,
}

fn step() -> impl Strategy<Value = Step> {
    let worker = || 0..WORKERS;
    prop_oneof![
        3 => worker().prop_map(Step::Attach),
        1 => worker().prop_map(Step::Detach),
        8 => (worker(), prop::bool::weighted(0.2)).prop_map(|(worker, of_run)| Step::Claim { worker, of_run }),
        8 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(pick, applied)| Step::Commit { pick, applied }),
        8 => worker().prop_map(Step::Read),
        2 => (worker(), any::<usize>()).prop_map(|(worker, pick)| Step::Start(worker, pick)),
        5 => (worker(), any::<usize>(), any::<bool>()).prop_map(|(worker, pick, all)| Step::Report { worker, pick, all }),
        5 => any::<usize>().prop_map(Step::Decide),
        2 => any::<usize>().prop_map(Step::Cancel),
        2 => (worker(), any::<bool>()).prop_map(|(worker, says_so)| Step::LetGo { worker, says_so }),
        1 => (worker(), any::<usize>()).prop_map(|(worker, pick)| Step::Forget(worker, pick)),
        5 => worker().prop_map(Step::Beat),
        4 => prop::bool::weighted(0.7).prop_map(Step::Follow),
        1 => worker().prop_map(Step::Drain),
        1 => worker().prop_map(Step::SendAway),
        3 => (1u64..8).prop_map(Step::Pass),
        2 => Just(Step::Tick),
        1 => Just(Step::LoseLease),
    ]
}

fn take(world: &mut World, step: &Step) {
    match *step {
        Step::Attach(worker) => world.attach(worker),
        Step::Detach(worker) => world.detach(worker),
        Step::Claim { worker, of_run } => world.claim(worker, of_run),
        Step::Commit { pick, applied } => world.commit(pick, applied),
        Step::Read(worker) => world.read(worker),
        Step::Start(worker, pick) => world.start(worker, pick),
        Step::Report { worker, pick, all } => world.report(worker, pick, all),
        Step::Decide(pick) => world.decide(pick),
        Step::Cancel(pick) => world.cancel(pick),
        Step::LetGo { worker, says_so } => world.let_go(worker, says_so),
        Step::Forget(worker, pick) => world.forget(worker, pick),
        Step::Beat(worker) => world.beat(worker),
        Step::Follow(allowed) => world.follow(allowed),
        Step::Drain(worker) => world.drain(worker),
        Step::SendAway(worker) => world.send_away(worker),
        Step::Pass(seconds) => world.advance(Duration::from_secs(seconds)),
        Step::Tick => world.tick(),
        Step::LoseLease => world.lose_lease(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Places, streams and losses are those of the model after every step, assignments go out in their order, results are
    /// acknowledged in theirs, and in the end every place is free.
    #[test]
    fn places_orders_and_losses_are_those_of_the_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new(WORKERS);
        for worker in 0..WORKERS {
            world.attach(worker);
        }
        for step in &steps {
            take(&mut world, step);
            world.check();
        }
        world.come_to_rest();
    }
}
