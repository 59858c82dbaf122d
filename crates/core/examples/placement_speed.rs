//! How fast a job finds its worker: `cargo run --release -p lockgate-core --example placement_speed`.
//!
//! A decision is the plan for one job and the note that the worker holds one more. The rows differ in how many workers there
//! are, how many of them fit, and how many other shapes are asked for beside the measured one.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;

use lockgate_core::ids::{PoolName, SessionId};
use lockgate_core::lane::Shape;
use lockgate_core::placement::{Candidate, Roster};
use lockgate_core::pools::{DEFAULT_POOL, Routing};
use lockgate_core::worker::{Load, WorkerProfile};

const ROUNDS: usize = 50_000;
const BURST: usize = 1_000;
/// What the measured shape asks for. Exactly the feasible workers have it.
const NEEDED: &str = "needed";
const CAPABILITIES: [&str; 8] = ["gpu", "ssd", "avx", "ffmpeg", "docker", "python", "java", "browser"];

/// Xorshift: the same fleet in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn percent(&mut self) -> Option<u32> {
        Some(self.below(101) as u32)
    }
}

fn worker(n: usize, fits: bool, dice: &mut Dice) -> Candidate {
    let mut capabilities: BTreeSet<Arc<str>> =
        CAPABILITIES.iter().filter(|_| dice.below(2) == 0).map(|c| (*c).into()).collect();
    capabilities.extend(fits.then(|| Arc::from(NEEDED)));
    let labels = [("host", format!("host-{n}")), ("zone", format!("zone-{}", dice.below(8)))];
    let profile = WorkerProfile {
        worker: format!("worker-{n}").into(),
        pool: DEFAULT_POOL.into(),
        topics: vec!["job.*".into()],
        capabilities,
        labels: labels.map(|(label, value)| (label.into(), value.into())).into(),
        slots: 64,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    };
    let load = Load { cpu: dice.percent(), gpu: dice.percent(), memory: dice.percent() };
    Candidate { capacity: 1 + dice.below(64) as u32, profile: Arc::new(profile), spare: 0, active: 0, load, away: None }
}

fn session(n: usize) -> SessionId {
    // As random ids: neighbours in number are no neighbours in order.
    format!("{:016x}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).into()
}

fn fleet(workers: usize, feasible: usize, dice: &mut Dice) -> Roster<SessionId> {
    let mut roster = Roster::new(Arc::new(Routing::default()));
    for n in 0..workers {
        roster.insert(session(n), worker(n, n * feasible % workers < feasible, dice));
    }
    roster
}

/// Other shapes that are in use: each keeps its own order of the workers that fit.
fn others(count: usize) -> Vec<Arc<Shape>> {
    let shape = |n: usize| Shape {
        requires: BTreeSet::from([CAPABILITIES[n % CAPABILITIES.len()].into()]),
        placement: BTreeMap::from([("node.zone".into(), format!("zone-{}", n / CAPABILITIES.len()).into())]),
        ..Shape::of("job.other")
    };
    (0..count).map(|n| Arc::new(shape(n))).collect()
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the real clock")]
fn micros<R>(run: impl FnOnce() -> R) -> (R, f64) {
    let start = std::time::Instant::now();
    let result = run();
    (result, start.elapsed().as_secs_f64() * 1e6)
}

fn report(mut taken: Vec<f64>) -> String {
    taken.sort_by(f64::total_cmp);
    format!("{:>6.2} µs (p99 {:>6.2})", taken[taken.len() / 2], taken[taken.len() * 99 / 100])
}

fn measure(workers: usize, feasible: usize, beside: usize) {
    let mut dice = Dice(0x5eed);
    let mut roster = fleet(workers, feasible, &mut dice);
    let shape = Arc::new(Shape { requires: BTreeSet::from([NEEDED.into()]), ..Shape::of("job.measured") });
    let pool = PoolName::from(DEFAULT_POOL);
    for other in others(beside) {
        roster.plan(&other, &pool, 1, false);
    }
    let (_, first) = micros(|| roster.plan(&shape, &pool, 1, false));
    let (mut decisions, mut beats, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (chosen, taken) = micros(|| {
            let chosen = roster.plan(&shape, &pool, 1, false).pop();
            if let Some((key, _)) = &chosen {
                roster.change(key, |worker| worker.active += 1);
            }
            chosen
        });
        decisions.push(taken);
        held.extend(chosen.map(|(key, _)| key));
        if held.len() > feasible {
            let done = held.swap_remove(dice.below(held.len()));
            roster.change(&done, |worker| worker.active -= 1);
        }
        let beating = session(dice.below(workers));
        let load = Load { cpu: dice.percent(), gpu: dice.percent(), memory: dice.percent() };
        beats.push(micros(|| roster.change(&beating, |worker| worker.load = load)).1);
    }
    let (_, burst) = micros(|| black_box(roster.plan(&shape, &pool, BURST, false)));
    println!(
        "{feasible:>6} of {workers:>6} fit, {beside:>2} shapes beside: decision {}, beat {}, first look {:>6.0} µs, plan for {BURST} {:>5.0} µs",
        report(decisions),
        report(beats),
        first,
        burst
    );
}

fn main() {
    for feasible in [100, 1_000, 10_000] {
        measure(10_000, feasible, 0);
    }
    for workers in [100, 1_000, 100_000] {
        measure(workers, 100, 0);
    }
    measure(10_000, 1_000, 64);
}
