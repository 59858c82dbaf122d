//! An outage of the control plane while workers live on and finish their work: no attempt may be declared lost for it.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, JobState};
use lockgate_core::request::{Caller, NewJob};
use lockgate_engine::Roles;
use lockgate_ports::JobStore;
use tokio::task::JoinSet;

use crate::check::{self, Violation};
use crate::client::TOPICS;
use crate::plan::JobScript;
use crate::process::SimProcess;
use crate::story::Story;
use crate::worker;
use crate::world::SimWorld;

/// Which part is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageKind {
    /// Every process dies at one moment and comes back later.
    Processes,
    /// No Store call succeeds, while processes and workers reach each other.
    Store,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub seed: u64,
    pub away: OutageKind,
    pub processes: u64,
    pub down: Duration,
}

/// The outcomes of the jobs that workers held during the outage, and of those that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub jobs: usize,
    pub succeeded: usize,
    /// Attempts that were declared lost or overdue although their worker went on.
    pub reaped: usize,
    /// Executions beyond one per job.
    pub repeated: usize,
    /// Executions that ended while no process could receive the report.
    pub ended_unheard: usize,
}

const JOBS: u64 = 40;
/// The first jobs may last longer than the outage.
const LONG_JOBS: u64 = 15;
const WORKERS: u64 = 3;
/// By then every job that fits is running.
const BEFORE: Duration = Duration::from_secs(20);

impl Outage {
    pub fn tell(self) -> Result<Ends, Violation> {
        crate::on_paused_time(async { self.run().await })
    }

    async fn run(self) -> Result<Ends, Violation> {
        let story = Story { processes: Some(self.processes), ..Story::of(self.seed) };
        let world = Arc::new(SimWorld::new(&story));
        world.faults.stop();
        let mut tasks = JoinSet::new();
        for number in 0..WORKERS {
            tasks.spawn(worker::run(world.clone(), number));
        }
        let running = self.start(&world);
        let ids = self.submit(&world, &running[0]).await?;
        tokio::time::sleep(BEFORE).await;
        let heard = world.ledger.lock().finished.len();
        match self.away {
            OutageKind::Processes => {
                for (place, process) in running.iter().enumerate() {
                    process.kill();
                    world.occupy(place, None);
                }
                tokio::time::sleep(self.down).await;
                self.start(&world);
            }
            OutageKind::Store => {
                world.faults.take_store_away(self.down);
                tokio::time::sleep(self.down).await;
            }
        }
        let ended_unheard = world.ledger.lock().finished.len() - heard;
        world.come_to_rest().await?;
        tasks.shutdown().await;
        let summary = check::all(&world).await?;
        let ends = Ends { jobs: ids.len(), ended_unheard, repeated: summary.executions - ids.len(), ..Ends::default() };
        count(&world, &ids, ends).await
    }

    fn start(self, world: &SimWorld) -> Vec<SimProcess> {
        let processes = (0..self.processes).map(|_| SimProcess::start(&world.ground, &world.faults, Roles::default()));
        let processes: Vec<SimProcess> = processes.collect();
        for (place, process) in processes.iter().enumerate() {
            world.occupy(place, Some(process.clone()));
        }
        processes
    }

    /// Some jobs end before the outage, some during it and some after it. None may take much longer than planned.
    async fn submit(self, world: &SimWorld, process: &SimProcess) -> Result<Vec<JobId>, Violation> {
        let longest = u64::try_from((BEFORE + self.down).as_millis()).unwrap_or(u64::MAX) + 30_000;
        let job = |serial: u64| {
            let takes = 1_000 + world.faults.below(if serial < LONG_JOBS { longest } else { 20_000 });
            NewJob {
                job_id: Some(format!("outage.{serial}")),
                topic: TOPICS[usize::try_from(serial % 3).unwrap_or(0)].to_owned(),
                payload: Some(JobScript::Take(u32::try_from(takes).unwrap_or(u32::MAX)).encode()),
                timeout_ms: Some(takes + 5_000),
                ..NewJob::default()
            }
        };
        let jobs = (0..JOBS).map(job).collect();
        let refused = |error: String| Violation::new("a submit without faults is acknowledged", error);
        let answers = process.engine.submit(&Caller::new("t", "client"), jobs).await.map_err(|e| refused(e.to_string()))?;
        let ids =
            answers.into_iter().map(|answer| answer.map(|submitted| submitted.job_id).map_err(|e| refused(e.to_string())));
        let ids: Vec<JobId> = ids.collect::<Result<_, _>>()?;
        world.ledger.lock().acknowledged.extend(ids.iter().cloned());
        Ok(ids)
    }
}

async fn count(world: &SimWorld, ids: &[JobId], mut ends: Ends) -> Result<Ends, Violation> {
    for id in ids {
        let detail = world.disk.detail(id).await.ok().flatten();
        let detail = detail.ok_or_else(|| Violation::new("nothing acknowledged is lost", id.to_string()))?;
        ends.succeeded += usize::from(detail.job.state() == JobState::Succeeded);
        let reaped = |kind| matches!(kind, EventKind::AttemptLost | EventKind::AttemptFailed | EventKind::TimedOut);
        ends.reaped += detail.events.iter().filter(|event| reaped(event.kind)).count();
    }
    Ok(ends)
}
