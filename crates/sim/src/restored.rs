//! The Store is restored to an earlier state while workers live on with later work.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::job::EventKind;
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_engine::Roles;
use lockgate_ports::{JobStore, Timelines};
use tokio::task::JoinSet;

use crate::check::{Violation, ensure};
use crate::client::TOPICS;
use crate::plan::JobScript;
use crate::process::{DurableParts, SimProcess};
use crate::story::Story;
use crate::worker;
use crate::world::SimWorld;

/// A backup is made while jobs run, more happens, and then only the backup is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    pub seed: u64,
    /// The time between the backup and the loss.
    pub lost: Duration,
    /// Whether a new timeline begins, as a restore must.
    pub renewed: bool,
}

/// The outcomes of the jobs in the backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondEnds {
    pub jobs: usize,
    pub ended: usize,
    /// Jobs that ended in the lost time and again in the new one, which at-least-once allows.
    pub again: usize,
}

const JOBS: u64 = 40;
const WORKERS: u64 = 3;
/// By then some jobs have ended, some are running, and some wait.
const BEFORE: Duration = Duration::from_secs(12);

impl Restored {
    pub fn tell(self) -> Result<SecondEnds, Violation> {
        crate::on_paused_time(async { self.run().await })
    }

    async fn run(self) -> Result<SecondEnds, Violation> {
        let story = Story { processes: Some(1), ..Story::of(self.seed) };
        let world = SimWorld::new(&story);
        world.faults.stop();
        let world = Arc::new(world);
        let mut tasks = JoinSet::new();
        for number in 0..WORKERS {
            tasks.spawn(worker::run(world.clone(), number));
        }
        let process = SimProcess::start(&world.ground, &world.faults, Roles::default());
        world.occupy(0, Some(process.clone()));
        self.submit(&world, &process).await?;
        tokio::time::sleep(BEFORE).await;
        let backup = world.disk.backup();
        tokio::time::sleep(self.lost).await;
        let first: Vec<_> = ended(&world).await?;
        process.kill();
        world.occupy(0, None);

        world.disk.restore(&backup);
        if self.renewed {
            self.renew(&world).await?;
        }
        // The record of the lost time does not apply to the new one.
        let witness = world.ground.witness.after_restore().await?;
        let ground = DurableParts { witness: Arc::new(witness), ..world.ground.same() };
        world.occupy(0, Some(SimProcess::start(&ground, &world.faults, Roles::default())));
        world.come_to_rest().await?;
        tasks.shutdown().await;
        ground.witness.testify().await?;
        if let Some(broken) = world.ledger.lock().broken.first() {
            return Err(broken.clone());
        }
        let second = ended(&world).await?;
        let again = second.iter().filter(|id| first.contains(id)).count();
        Ok(SecondEnds { jobs: usize::try_from(JOBS).unwrap_or(usize::MAX), ended: second.len(), again })
    }

    async fn renew(self, world: &SimWorld) -> Result<(), Violation> {
        let mut salt = [7; 16];
        salt[..8].copy_from_slice(&self.seed.to_be_bytes());
        let audit = AuditEntry {
            at: world.clock.now(),
            tenant: "default".into(),
            actor: "lockgate".into(),
            action: AuditAction::StoreRestored,
            subject: "backup".into(),
            detail: Json::null(),
        };
        let renewed = world.disk.begin_timeline(salt, audit).await.ok().flatten();
        ensure(renewed.is_some(), "A-8 a new timeline begins when nobody is at work", String::new)
    }

    async fn submit(self, world: &SimWorld, process: &SimProcess) -> Result<(), Violation> {
        let job = |serial: u64| {
            let takes = 1_000 + world.faults.below(25_000);
            NewJob {
                job_id: Some(format!("restored.{serial}")),
                topic: TOPICS[usize::try_from(serial % 3).unwrap_or(0)].to_owned(),
                payload: Some(JobScript::Take(u32::try_from(takes).unwrap_or(u32::MAX)).encode()),
                ..NewJob::default()
            }
        };
        let jobs = (0..JOBS).map(job).collect();
        let refused = |error: String| Violation::new("a submit without faults is acknowledged", error);
        let answers = process.engine.submit(&Caller::new("t", "client"), jobs).await.map_err(|e| refused(e.to_string()))?;
        answers.into_iter().try_for_each(|answer| answer.map(|_| ()).map_err(|error| refused(error.to_string())))
    }
}

/// Jobs that have ended, each once.
async fn ended(world: &SimWorld) -> Result<Vec<String>, Violation> {
    let mut ended = Vec::new();
    for serial in 0..JOBS {
        let id = format!("restored.{serial}");
        let detail = world.disk.detail(&id.as_str().into()).await.ok().flatten();
        let detail = detail.ok_or_else(|| Violation::new("nothing that was in the backup is lost", id.clone()))?;
        let ends = detail.events.iter().filter(|event| event.kind == EventKind::Succeeded).count();
        ensure(ends <= 1, "J-2 a job ends once in a timeline", || id.clone())?;
        if detail.job.state().is_terminal() {
            ended.push(id);
        }
    }
    Ok(ended)
}
