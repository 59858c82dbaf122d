//! How this process is: its Store, its loops, who leads, and what it stands on.

mod component;
mod finding;
mod leaders;
mod outcomes;
mod probe;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::{BreakerView, Condition, Pinned, StoreError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use component::Component;
pub use finding::{HealthProblem, ProblemKind};
pub use leaders::LeaderView;
pub use outcomes::Failing;
pub(crate) use outcomes::{Outcomes, StoreCall};
pub use probe::StoreState;
pub use pulse::{Leads, LoopView};
pub(crate) use pulse::{Pulse, beating, idle, jittered, leading, progress};

use crate::error::ApiError;
use crate::{Engine, Inner, Roles};

/// How far a process is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProcessStage {
    #[default]
    Starting,
    Up,
    /// Told to end.
    Leaving,
}

/// What this process watches about itself.
pub(crate) struct ProcessHealth {
    began: Instant,
    stage: Mutex<ProcessStage>,
    pulses: Mutex<Vec<Arc<Pulse>>>,
    probe: probe::StoreProbe,
    /// What became of the calls that clients and workers wait for.
    pub(crate) outcomes: Outcomes,
    /// What held on to an old state of the Store when it was last asked.
    pinned: Mutex<Option<Pinned>>,
}

impl Default for ProcessHealth {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            stage: Mutex::default(),
            pulses: Mutex::default(),
            probe: probe::StoreProbe::default(),
            outcomes: Outcomes::default(),
            pinned: Mutex::default(),
        }
    }
}

impl ProcessHealth {
    /// A pulse for a loop that is about to start.
    pub(crate) fn pulse(&self, name: &'static str, seed: u64) -> Arc<Pulse> {
        let pulse = Pulse::new(name, seed);
        self.pulses.lock().push(pulse.clone());
        pulse
    }

    /// Leases of loops that have not given them up.
    pub(crate) fn led(&self) -> Vec<&'static str> {
        self.pulses.lock().iter().flat_map(|pulse| pulse.take_led()).collect()
    }

    /// What an earlier life left has been seen to, and the loops run.
    pub(crate) fn started(&self) {
        let mut stage = self.stage.lock();
        if *stage == ProcessStage::Starting {
            *stage = ProcessStage::Up;
        }
    }

    fn leaving(&self) {
        *self.stage.lock() = ProcessStage::Leaving;
    }
}

/// Starts what watches the others: before them, for a process that cannot start must be able to say so.
pub(crate) fn spawn(inner: &Arc<Inner>, running: &mut JoinSet<()>, stop: &watch::Receiver<bool>) {
    running.spawn(probe::run(inner.clone(), stop.clone()));
    running.spawn(feel(inner.clone(), stop.clone()));
}

async fn feel(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut felt = Instant::now();
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(pulse::FEEL_EVERY) => {}
        }
        let passed = felt.elapsed();
        felt = Instant::now();
        for pulse in inner.watch.pulses.lock().iter() {
            pulse.feel(passed);
        }
        inner.clocks.watch(&*inner.ports.clock, &inner.metrics.clocks);
        // Told from here, for any loop may be the one that hangs.
        inner.metrics.health.found(&inner.view(inner.watch.probe.known()).findings);
    }
}

/// Everything at once, for people and for programs.
#[derive(Clone, Debug)]
pub struct HealthView {
    /// The most serious first; none when all is well.
    pub findings: Vec<HealthProblem>,
    pub roles: Roles,
    /// Works alone on its Store.
    pub alone: bool,
    pub up_for: Duration,
    pub store: StoreView,
    /// A row that could not be read lately, and why.
    pub unreadable: Option<Arc<str>>,
    /// A row that the Store did not take lately, and why.
    pub refused: Option<Arc<str>>,
    pub lanes: Condition,
    /// The version of the pools in the Store, if shared lanes have been following a later one for too long.
    pub lanes_ahead_of: Option<u64>,
    /// Why rings do not reach other processes, if they do not.
    pub bus_away: Option<String>,
    /// Why messages for outside are late, if they are and this process relays for all.
    pub outbox_late: Option<String>,
    /// What holds on to an old state of the Store, however long.
    pub pinned: Option<Pinned>,
    /// Clocks that jumped and are not followed: this machine's, the Store's.
    pub clocks: Vec<String>,
    pub kernel: KernelView,
    pub loops: Vec<LoopView>,
    pub leaders: Vec<LeaderView>,
}

#[derive(Clone, Debug)]
pub struct StoreView {
    pub state: StoreState,
    /// How long the latest question took, or has been taking.
    pub took: Duration,
    /// Calls that fail although the Store answers questions.
    pub failing: Option<Failing>,
}

#[derive(Clone, Debug)]
pub struct KernelView {
    pub elsewhere: bool,
    /// Whether asking it makes sense now.
    pub ready: bool,
    pub snapshot: Arc<str>,
    pub breakers: Vec<BreakerView>,
}

impl HealthView {
    /// Whether calls should be sent here.
    pub fn is_ready(&self) -> bool {
        !self.findings.iter().any(|finding| finding.trouble.is_serious())
    }

    /// One word for all of it.
    pub fn status(&self) -> &'static str {
        match (self.is_ready(), self.findings.is_empty()) {
            (false, _) => "not_ready",
            (true, false) => "degraded",
            (true, true) => "ready",
        }
    }
}

impl Engine {
    /// How this process is. Answers within two seconds, whatever hangs.
    pub async fn health(&self) -> HealthView {
        let seen = self.inner.watch.probe.look().await;
        self.inner.view(seen)
    }

    /// This process is about to end: it goes on as before, but says that calls are better sent elsewhere.
    pub fn leave(&self) {
        self.inner.watch.leaving();
    }
}

impl Inner {
    /// Refuses new jobs while the Store is known to be damaged: it might take them and then not take their results.
    pub(crate) fn refuse_if_damaged(&self) -> Result<(), ApiError> {
        // Only results count among the calls: a submit that fails says so by itself, and the next one may go through.
        let why = match (self.watch.probe.known().state, self.watch.outcomes.failing_of(StoreCall::Result)) {
            (StoreState::Refuses(StoreError::Corrupt(why)), _) => why,
            (_, Some(Failing { error: StoreError::Corrupt(why), .. })) => why,
            _ => return Ok(()),
        };
        Err(ApiError::Unavailable(format!(
            "new jobs are not accepted: the Store is damaged ({why}), and their results might not be stored; restore it as \
             docs/backup.md says"
        )))
    }

    /// By what is known; asks nobody.
    fn view(&self, seen: probe::ProbeResult) -> HealthView {
        let leaders = self.leaders(&seen.leases);
        let mut loops: Vec<LoopView> =
            self.watch.pulses.lock().iter().map(|pulse| pulse.view(self.settings.stuck_after)).collect();
        loops.sort_by_key(|view| view.name);
        let kernel = &self.ports.kernel;
        let mut view = HealthView {
            findings: Vec::new(),
            roles: self.settings.roles,
            alone: self.settings.exclusive_store,
            up_for: self.watch.began.elapsed(),
            store: StoreView { took: seen.took(), state: seen.state, failing: self.watch.outcomes.failing() },
            unreadable: self.health.damage(),
            pinned: self.watch.pinned.lock().clone(),
            refused: self.health.refusal(),
            lanes: self.lanes.lock().clone(),
            lanes_ahead_of: self.config.behind_the_lanes(),
            bus_away: self.ports.bus.away(),
            outbox_late: self.outbox.late(),
            clocks: self.clocks.told(&*self.ports.clock),
            kernel: KernelView {
                elsewhere: kernel.is_elsewhere(),
                ready: kernel.ready(),
                snapshot: kernel.snapshot(),
                breakers: kernel.breakers(),
            },
            loops,
            leaders,
        };
        view.findings = finding::all(&view, *self.watch.stage.lock());
        view
    }
}
