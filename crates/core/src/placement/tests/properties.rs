//! The roster against the model, whatever happens to the workers and the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::model::Model;
use super::{candidate, labels, names, profile, routing};
use crate::lane::Shape;
use crate::placement::memory::Bounds;
use crate::placement::{Candidate, Refusal, Roster, Unavailable};
use crate::pools::Closed;
use crate::worker::{Load, WorkerProfile};

const POOLS: [&str; 3] = ["a", "b", "c"];
const KEYS: u32 = 10;
const FILES: [&str; 2] = [
    "
topics: {job.*: [a, b, c], solo.*: c, direct.*: [a, c]}
pools:
  a: {dispatch: direct, capabilities: [ssd], labels: {zone: eu}}
  b: {}
  c: {dispatch: direct, overload: {active: 100, cpu: 50}}
",
    "
topics: {job.*: [c, a], solo.*: b}
pools:
  a: {dispatch: direct, labels: {zone: us}}
  b: {overload: {cpu: 50}}
  c: {capabilities: [gpu]}
",
];

#[derive(Clone, Debug)]
enum Step {
    Insert(u32, Candidate),
    Remove(u32),
    Active(u32, u32),
    Beat(u32, Load),
    Away(u32, Option<Unavailable>),
    Adopt(usize, Vec<(&'static str, Closed)>),
    Place { shape: usize, pool: usize, want: usize },
    Ask(usize),
}

fn shapes() -> Vec<Arc<Shape>> {
    let plain = |topic: &str| Shape::of(topic);
    [
        plain("job.x"),
        plain("job.y"),
        plain("solo.x"),
        plain("direct.x"),
        plain("unknown"),
        Shape { requires: names(&["gpu"]), ..plain("job.x") },
        Shape { requires: names(&["gpu", "ssd"]), ..plain("direct.x") },
        Shape { placement: labels(&[("placement.zone", "eu")]), ..plain("job.x") },
        Shape { placement: labels(&[("constraint.gpu", "true"), ("node.zone", "us")]), ..plain("job.y") },
        Shape { preferred_worker: Some("w1".into()), ..plain("job.x") },
        Shape { preferred_pool: Some("b".into()), concurrency_key: Some("k".into()), ..plain("job.x") },
        Shape { allowed_pools: Some(names(&["c"])), ..plain("job.x") },
    ]
    .map(Arc::new)
    .into()
}

fn profiles() -> impl Strategy<Value = WorkerProfile> {
    let lists: [&[&str]; 5] = [&["*"], &["job.*"], &["job.x", "solo.*"], &["job.y"], &["direct.*", "job.y"]];
    let zones = [None, Some(("zone", "eu")), Some(("zone", "us")), Some(("placement.zone", "eu"))];
    let able = [&[][..], &["gpu"], &["gpu", "ssd"]];
    (0..3u32, 0..POOLS.len(), 0..lists.len(), 0..zones.len(), 0..able.len()).prop_map(move |(n, pool, list, zone, can)| {
        let mut worker = profile(&format!("w{n}"), POOLS[pool], lists[list]);
        worker.labels = labels(zones[zone].as_slice());
        worker.capabilities = names(able[can]);
        worker
    })
}

fn loads() -> impl Strategy<Value = Load> {
    // Few values, so that ties are common.
    let percent = || proptest::sample::select(&[None, None, Some(0), Some(40), Some(60), Some(100)][..]);
    (percent(), percent()).prop_map(|(cpu, gpu)| Load { cpu, gpu, memory: None })
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    let away = prop_oneof![2 => Just(None), 1 => Just(Some(Unavailable::Detached)), 1 => Just(Some(Unavailable::Draining)), 2 => Just(Some(Unavailable::Elsewhere)), 1 => Just(Some(Unavailable::Unheard))];
    let closed = proptest::collection::vec(
        (proptest::sample::select(&POOLS[..]), prop_oneof![Just(Closed::Paused), Just(Closed::Draining)]),
        0..2,
    );
    let capacity = proptest::sample::select(&[0, 1, 4, 4, 4, 10][..]);
    let shape = || 0..shapes().len();
    prop_oneof![
        8 => (key(), profiles(), capacity, 0..4u32, loads()).prop_map(|(key, worker, capacity, active, load)| {
            Step::Insert(key, Candidate { active, load, ..candidate(worker, capacity) })
        }),
        3 => key().prop_map(Step::Remove),
        4 => (key(), 0..8u32).prop_map(|(key, active)| Step::Active(key, active)),
        4 => (key(), loads()).prop_map(|(key, load)| Step::Beat(key, load)),
        2 => (key(), away).prop_map(|(key, away)| Step::Away(key, away)),
        1 => (0..FILES.len(), closed).prop_map(|(file, closed)| Step::Adopt(file, closed)),
        10 => (shape(), 0..POOLS.len(), 0..9usize).prop_map(|(shape, pool, want)| Step::Place { shape, pool, want }),
        4 => shape().prop_map(Step::Ask),
    ]
}

struct Pair {
    roster: Roster<u32>,
    model: Model,
}

impl Pair {
    fn new(bounds: Bounds) -> Self {
        let routing = routing(FILES[0], &[]);
        let mut roster = Roster::new(routing.clone());
        roster.bounds = bounds;
        Self { roster, model: Model { routing, workers: BTreeMap::new(), given: 0 } }
    }

    fn change(&mut self, key: u32, change: impl Fn(&mut Candidate)) {
        self.roster.change(&key, &change);
        if let Some((worker, given)) = self.model.workers.get_mut(&key) {
            let before = worker.active;
            change(worker);
            if worker.active > before {
                self.model.given += 1;
                *given = self.model.given;
            }
        }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Insert(key, worker) => {
                self.roster.insert(key, worker.clone());
                self.model.workers.insert(key, (worker, 0));
            }
            Step::Remove(key) => {
                self.roster.remove(&key);
                self.model.workers.remove(&key);
            }
            Step::Active(key, active) => self.change(key, |worker| worker.active = active),
            Step::Beat(key, load) => self.change(key, |worker| worker.load = load),
            Step::Away(key, away) => self.change(key, |worker| worker.away = away),
            Step::Adopt(file, closed) => {
                let routing = routing(FILES[file], &closed);
                self.roster.adopt(routing.clone());
                self.model.routing = routing;
            }
            Step::Place { shape, pool, want } => return self.place(&shapes()[shape], POOLS[pool], want),
            Step::Ask(shape) => return self.ask(&shapes()[shape]),
        }
        Ok(())
    }

    /// Equal to the model's choice, which passes every filter, has the least score and keeps to the capacity.
    fn place(&mut self, shape: &Arc<Shape>, pool: &str, want: usize) -> Result<(), TestCaseError> {
        let expected = self.model.plan(shape, &pool.into(), want);
        let places = self.roster.plan(shape, &pool.into(), want, false);
        prop_assert_eq!(&places.iter().copied().collect::<BTreeMap<_, _>>(), &expected, "{} in {}", shape, pool);
        prop_assert_eq!(places.len(), expected.len(), "nobody is named twice");
        for (key, jobs) in places {
            self.change(key, |worker| worker.active += jobs);
            let worker = &self.model.workers[&key].0;
            prop_assert!(worker.active <= worker.capacity);
        }
        Ok(())
    }

    fn ask(&mut self, shape: &Arc<Shape>) -> Result<(), TestCaseError> {
        let placement = self.roster.explain(shape);
        let code = placement.refusal.as_ref().map(ToString::to_string);
        prop_assert_eq!(&code, &self.model.refusal(shape));
        let closed = |reason: &Option<Refusal>| {
            matches!(reason, Some(Refusal::PoolPaused | Refusal::PoolDraining | Refusal::BehindPaused))
        };
        let open = placement.pools.iter().filter(|look| !closed(&look.reason)).flat_map(|look| &look.workers);
        let mut shown: Vec<_> = open.map(|worker| worker.reason().map(|reason| reason.to_string())).collect();
        shown.sort();
        prop_assert_eq!(shown, self.model.shown(shape));
        // Workers of other processes may go before those of this one, so that more jobs are asked for than all can hold.
        let mut places = POOLS.iter().flat_map(|pool| self.roster.plan(shape, &(*pool).into(), 1_000, false));
        let placed = places.any(|(key, _)| self.model.workers[&key].0.away.is_none());
        prop_assert_eq!(code.is_none(), placed, "{}: a reason exists if and only if nobody takes it", shape);
        let hopeless = self.roster.is_hopeless(shape).map(|refusal| refusal.to_string());
        prop_assert_eq!(hopeless, self.model.hopeless(shape));
        let free = self.model.free(shape);
        prop_assert!(!self.roster.has_slot(shape, free), "{}: no more than {}", shape, free);
        prop_assert!(free == 0 || self.roster.has_slot(shape, free - 1), "{}: {}", shape, free);
        Ok(())
    }

    /// A roster that never saw the history, only where it led.
    fn built_anew(&self) -> Roster<u32> {
        let mut roster = Roster::new(self.model.routing.clone());
        for (key, (worker, given)) in &self.model.workers {
            roster.insert(*key, worker.clone());
            let slot = roster.by_key[key];
            roster.workers.get_mut(slot).unwrap().given = *given;
        }
        roster.given = self.model.given;
        roster.adopt(self.model.routing.clone());
        roster
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_roster_equals_the_model_and_one_built_anew(
        steps in proptest::collection::vec(steps(), 1..80),
        forgetful in any::<bool>(),
    ) {
        let bounds = if forgetful { Bounds { shapes: 4, seats: 12 } } else { Bounds::default() };
        let mut pair = Pair::new(bounds);
        for step in steps {
            pair.step(step)?;
        }
        let mut anew = pair.built_anew();
        for shape in shapes() {
            for pool in POOLS {
                for want in [1, 3, 20] {
                    let pool = pool.into();
                    prop_assert_eq!(pair.roster.plan(&shape, &pool, want, false), anew.plan(&shape, &pool, want, false));
                }
            }
            pair.ask(&shape)?;
        }
    }
}
