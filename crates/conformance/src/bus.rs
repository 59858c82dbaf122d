//! What every Bus must do, by property.
//!
//! An adapter runs all of it with one line in its tests:
//!
//! ```ignore
//! lockgate_conformance::bus_conformance! { harness }
//! ```
//!
//! where `harness` is an async function that returns a [`BusHarness`].

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::worker::Load;

use lockgate_ports::bus::{Bell, Bus, Ear, Overheard};
use lockgate_ports::registry::{LEAVING_MAX, Sighting, Sightings};

/// One bus as seen by two processes.
pub struct BusHarness {
    pub near: Arc<dyn Bus>,
    pub far: Arc<dyn Bus>,
    _until_drop: Box<dyn Any + Send>,
}

impl BusHarness {
    /// `until_drop` lives as long as the harness: what the bus needs to run.
    pub fn new(near: Arc<dyn Bus>, far: Arc<dyn Bus>, until_drop: impl Any + Send) -> Self {
        Self { near, far, _until_drop: Box::new(until_drop) }
    }
}

/// One test per case for the adapter behind `$harness`.
#[macro_export]
macro_rules! bus_conformance {
    ($harness:ident) => {
        $crate::bus_conformance! { $harness:
            every_ear_of_a_bell_hears_it_and_others_do_not,
            rings_of_its_own_process_are_heard_at_once,
            rings_while_nobody_waits_are_kept_as_one,
            a_dropped_ear_disturbs_no_other,
            jobs_that_others_ring_for_can_be_overheard,
            nothing_is_heard_twice,
            a_listener_that_lags_delays_nobody,
            a_hundred_thousand_jobs_in_one_ring_are_all_heard,
            what_one_process_sees_of_its_workers_the_others_hear,
            ten_thousand_workers_are_all_heard_of,
            workers_with_much_to_let_go_of_are_all_heard_of,
        }
    };
    ($harness:ident: $($case:ident,)*) => {
        $(#[tokio::test]
        async fn $case() {
            $crate::bus::$case($harness().await).await;
        })*
    };
}

/// The timeout for events that must happen, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

async fn hears(ear: &Ear) {
    tokio::time::timeout(PATIENCE, ear.heard()).await.expect("a ring must be heard");
}

async fn overhears(jobs: &mut Overheard) -> Vec<JobId> {
    loop {
        let batch = tokio::time::timeout(PATIENCE, jobs.next()).await.expect("jobs must be overheard");
        if !batch.is_empty() {
            return batch.to_vec();
        }
    }
}

/// Whether a ring has arrived already.
async fn has_heard(ear: &Ear) -> bool {
    tokio::select! {
        biased;
        () = ear.heard() => true,
        () = std::future::ready(()) => false,
    }
}

fn job(id: &str) -> Bell {
    Bell::Job(id.into())
}

pub async fn every_ear_of_a_bell_hears_it_and_others_do_not(bus: BusHarness) {
    for side in [&bus.near, &bus.far] {
        let (first, second) = (side.listen(Bell::Lanes), side.listen(Bell::Lanes));
        let (rung, other) = (side.listen(job("a")), side.listen(job("b")));
        bus.near.ring(vec![Bell::Lanes, job("a")]).await;
        hears(&first).await;
        hears(&second).await;
        hears(&rung).await;
        assert!(!has_heard(&other).await);
    }
}

pub async fn rings_of_its_own_process_are_heard_at_once(bus: BusHarness) {
    let (lanes, rung) = (bus.near.listen(Bell::Lanes), bus.near.listen(job("a")));
    bus.near.ring(vec![Bell::Lanes, job("a")]).await;
    assert!(has_heard(&lanes).await && has_heard(&rung).await);
}

pub async fn rings_while_nobody_waits_are_kept_as_one(bus: BusHarness) {
    let ear = bus.near.listen(Bell::Lanes);
    bus.near.ring(vec![Bell::Lanes, Bell::Lanes]).await;
    bus.near.ring(vec![Bell::Lanes]).await;
    assert!(has_heard(&ear).await);
    assert!(!has_heard(&ear).await);
}

pub async fn a_dropped_ear_disturbs_no_other(bus: BusHarness) {
    let kept = bus.far.listen(job("a"));
    drop(bus.far.listen(job("a")));
    drop(bus.far.listen(job("b")));
    bus.near.ring(vec![job("b"), job("a")]).await;
    hears(&kept).await;
}

pub async fn jobs_that_others_ring_for_can_be_overheard(bus: BusHarness) {
    let mut jobs = bus.far.overhear();
    bus.near.ring(vec![job("a"), Bell::Lanes, job("b")]).await;
    assert_eq!(overhears(&mut jobs).await, ["a".into(), "b".into()]);
}

/// The answer of the far side arrives after any echo of the near side's own ring; there must be no echo.
pub async fn nothing_is_heard_twice(bus: BusHarness) {
    let (mut near, mut far) = (bus.near.overhear(), bus.far.overhear());
    bus.near.ring(vec![job("question")]).await;
    assert_eq!(overhears(&mut far).await, ["question".into()]);
    bus.far.ring(vec![job("answer")]).await;
    assert_eq!(overhears(&mut near).await, ["answer".into()]);
    bus.near.ring(vec![job("thanks")]).await;
    assert_eq!(overhears(&mut far).await, ["thanks".into()]);
}

pub async fn a_listener_that_lags_delays_nobody(bus: BusHarness) {
    let mut lagging = bus.far.overhear();
    let mut quick = bus.far.overhear();
    for n in 0..3_000 {
        bus.near.ring(vec![job(&format!("job-{n}"))]).await;
        assert_eq!(overhears(&mut quick).await, [JobId::from(format!("job-{n}"))]);
    }
    // It continues with what is still kept, which is not the oldest.
    assert_ne!(overhears(&mut lagging).await, ["job-0".into()]);
}

pub async fn a_hundred_thousand_jobs_in_one_ring_are_all_heard(bus: BusHarness) {
    let mut far = bus.far.overhear();
    let last = bus.far.listen(job("job-99999"));
    let ids: Vec<JobId> = (0..100_000).map(|n| JobId::from(format!("job-{n}"))).collect();
    bus.near.ring(ids.iter().cloned().map(Bell::Job).collect()).await;
    hears(&last).await;
    let mut heard = BTreeSet::new();
    while heard.len() < ids.len() {
        heard.extend(overhears(&mut far).await);
    }
    assert_eq!(heard, ids.into_iter().collect());
}

fn sighting(session: &str) -> Sighting {
    Sighting {
        session: session.into(),
        epoch: 3,
        busy: 2,
        active_jobs: 1,
        load: Load { cpu: Some(97), gpu: None, memory: Some(0) },
        attached: true,
        draining: false,
        heard_ms_ago: 1_250,
        slots: 16,
        said: 7,
        claimed: Some(7),
        leaving: Vec::new(),
    }
}

async fn hears_of(seen: &mut Sightings) -> Vec<Sighting> {
    tokio::time::timeout(PATIENCE, seen.next()).await.expect("workers must be heard of").to_vec()
}

/// The answer arrives after any echo of the near side's own post; there must be no echo.
pub async fn what_one_process_sees_of_its_workers_the_others_hear(bus: BusHarness) {
    let (mut near, mut far) = (bus.near.sightings(), bus.far.sightings());
    let leaving = vec!["stopped".into(), "recalled".into()];
    let away = Sighting { attached: false, draining: true, load: Load::default(), leaving, ..sighting("b") };
    bus.near.post(vec![sighting("a"), away.clone()]).await;
    assert_eq!(hears_of(&mut far).await, [sighting("a"), away]);
    bus.far.post(vec![sighting("c")]).await;
    assert_eq!(hears_of(&mut near).await, [sighting("c")]);
}

/// However much there is to say of each.
pub async fn workers_with_much_to_let_go_of_are_all_heard_of(bus: BusHarness) {
    let mut far = bus.far.sightings();
    let leaving: Vec<AttemptToken> = (0..LEAVING_MAX).map(|n| format!("{n:032}").into()).collect();
    let busy = |n: usize| Sighting { leaving: leaving.clone(), ..sighting(&format!("session-{n}")) };
    let all: Vec<Sighting> = (0..20).map(busy).collect();
    bus.near.post(all.clone()).await;
    let mut heard = Vec::new();
    while heard.len() < all.len() {
        heard.extend(hears_of(&mut far).await);
    }
    assert_eq!(heard, all);
}

pub async fn ten_thousand_workers_are_all_heard_of(bus: BusHarness) {
    let mut far = bus.far.sightings();
    let all: Vec<Sighting> = (0..10_000).map(|n| sighting(&format!("session-{n:036}"))).collect();
    bus.near.post(all.clone()).await;
    let mut heard = Vec::new();
    while heard.len() < all.len() {
        heard.extend(hears_of(&mut far).await);
    }
    assert_eq!(heard, all);
}
