//! Guarantees of a Store with a data folder when files of that folder are lost or damaged.
//!
//! An adapter brings the ways in which its own files break, and runs every case with one line in its tests:
//!
//! ```ignore
//! lockgate_conformance::loss_conformance! { folder_harness }
//! ```

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::request::Json;

use super::stage::{Found, Proof, StoreHarness, new_job, success};
use lockgate_model::ManualClock;
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{JobQuery, Store};

/// Jobs of each of the two processes that work in a folder before it is struck.
const JOBS: usize = 20;

/// A Store that was opened.
pub struct Opened {
    pub store: Arc<dyn Store>,
    /// The accepted loss, if no new timeline has begun since.
    pub loss: Option<String>,
}

/// How an operator opens the Store in a folder, with or without accepting a loss. The error is what the operator reads.
pub type Open = fn(&Path, Arc<ManualClock>, bool) -> Result<Opened, String>;

/// A damage to the files of a folder while no process has them open.
pub struct Strike {
    pub name: &'static str,
    pub strike: fn(&Path) -> std::io::Result<()>,
}

/// A Store in a folder, and the damages to test.
pub struct FolderHarness {
    /// An empty folder, for folders of the cases.
    place: PathBuf,
    open: Open,
    /// Each takes acknowledged commits away.
    losses: &'static [Strike],
    /// Each is something that a crash or a power cut may leave, or an older version; nothing that was acknowledged is missing.
    remains: &'static [Strike],
    clock: Arc<ManualClock>,
    /// Values that must outlive the cases.
    _ground: Box<dyn Any + Send + Sync>,
}

impl FolderHarness {
    pub fn new(
        ground: impl AsRef<Path> + Any + Send + Sync,
        open: Open,
        losses: &'static [Strike],
        remains: &'static [Strike],
    ) -> Self {
        let place = ground.as_ref().to_owned();
        Self { place, open, losses, remains, clock: Arc::new(ManualClock::default()), _ground: Box::new(ground) }
    }

    fn open(&self, folder: &Path, accept_loss: bool) -> Result<Opened, String> {
        (self.open)(folder, self.clock.clone(), accept_loss)
    }

    fn stage(&self, opened: Opened) -> StoreHarness {
        StoreHarness::new(opened.store, self.clock.clone(), ())
    }

    /// A folder in which one process ended cleanly and the next one was killed after its last commit was acknowledged.
    async fn killed(&self, name: &str) -> Found<PathBuf> {
        let (lived, killed) = (self.place.join(format!("{name}-lived")), self.place.join(name));
        let first = self.stage(self.open(&lived, false)?);
        work(&first, "first").await?;
        drop(first);
        let second = self.stage(self.open(&lived, false)?);
        work(&second, "second").await?;
        // What the operating system has when a process is gone is what another process reads now.
        copy(&lived, &killed)?;
        drop(second);
        Ok(killed)
    }

    async fn struck(&self, strike: &Strike) -> Found<PathBuf> {
        let folder = self.killed(&strike.name.replace(' ', "-")).await?;
        (strike.strike)(&folder)?;
        Ok(folder)
    }
}

/// Each job in commits of its own, and every other one to its end.
async fn work(h: &StoreHarness, name: &str) -> Proof {
    for n in 0..JOBS {
        let job = h.submit(new_job(&format!("{name}-{n}"))).await?;
        if n % 2 == 0 {
            h.run(&job, success()).await?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

async fn jobs(store: &dyn Store) -> Found<usize> {
    Ok(store.list(JobQuery { limit: 1_000, ..JobQuery::default() }).await?.items.len())
}

async fn begin_timeline(h: &FolderHarness, opened: &Opened) -> Found<Option<u64>> {
    let audit = AuditEntry {
        at: h.clock.now(),
        tenant: "default".into(),
        actor: "lockgate".into(),
        action: AuditAction::LossAccepted,
        subject: opened.loss.clone().unwrap_or_default().into(),
        detail: Json::trusted("{}"),
    };
    Ok(opened.store.begin_timeline([9; 16], audit).await?)
}

pub async fn a_killed_process_costs_nothing_that_was_acknowledged(h: &FolderHarness) -> Proof {
    let opened = h.open(&h.killed("killed").await?, false)?;
    assert_eq!(opened.loss, None);
    assert_eq!(jobs(&*opened.store).await?, 2 * JOBS);
    Ok(())
}

pub async fn what_a_crash_may_leave_is_no_loss(h: &FolderHarness) -> Proof {
    for strike in h.remains {
        let folder = h.struck(strike).await?;
        // Twice: what the first start leaves behind must not look like a loss to the next one.
        for _ in 0..2 {
            let opened = h.open(&folder, false).map_err(|refused| format!("{}: {refused}", strike.name))?;
            assert_eq!((opened.loss.as_deref(), jobs(&*opened.store).await?), (None, 2 * JOBS), "{}", strike.name);
        }
    }
    Ok(())
}

pub async fn a_loss_is_refused_and_told_with_what_to_do(h: &FolderHarness) -> Proof {
    assert!(!h.losses.is_empty());
    for strike in h.losses {
        let folder = h.struck(strike).await?;
        let refused = h.open(&folder, false).err().ok_or_else(|| format!("{}: opened without a word", strike.name))?;
        for told in ["acknowledged work is missing", "docs/backup.md", "--accept-loss"] {
            assert!(refused.contains(told), "{}: {refused}", strike.name);
        }
        let again = h.open(&folder, false).err().ok_or_else(|| format!("{}: opened the second time", strike.name))?;
        assert_eq!(again, refused, "{}: a refusal changes nothing", strike.name);
    }
    Ok(())
}

pub async fn an_accepted_loss_is_owed_a_new_timeline_until_it_has_one(h: &FolderHarness) -> Proof {
    for strike in h.losses {
        let folder = h.struck(strike).await?;
        let accepted = h.open(&folder, true).map_err(|refused| format!("{}: {refused}", strike.name))?;
        let loss = accepted.loss.clone();
        assert!(loss.is_some(), "{}", strike.name);
        drop(accepted);
        // That process ended at once: the next one knows all the same.
        let owed = h.open(&folder, false)?;
        assert_eq!(owed.loss, loss, "{}", strike.name);
        let left = jobs(&*owed.store).await?;
        assert!(left <= 2 * JOBS, "{}: {left}", strike.name);
        assert!(begin_timeline(h, &owed).await?.is_some(), "{}: no process is at work", strike.name);
        drop(owed);
        let settled = h.open(&folder, false)?;
        assert_eq!((settled.loss.as_deref(), jobs(&*settled.store).await?), (None, left), "{}", strike.name);
        let stage = h.stage(settled);
        for n in 0..JOBS {
            stage.submit(new_job(&format!("third-{n}"))).await?;
        }
        drop(stage);
        let opened = h.open(&folder, false)?;
        assert_eq!((opened.loss.as_deref(), jobs(&*opened.store).await?), (None, left + JOBS), "{}", strike.name);
    }
    Ok(())
}

/// One test per case for the Store behind `$harness`, which returns a [`FolderHarness`].
#[macro_export]
macro_rules! loss_conformance {
    ($harness:ident) => {
        $crate::loss_conformance! { @each $harness
            a_killed_process_costs_nothing_that_was_acknowledged
            what_a_crash_may_leave_is_no_loss
            a_loss_is_refused_and_told_with_what_to_do
            an_accepted_loss_is_owed_a_new_timeline_until_it_has_one
        }
    };
    (@each $harness:ident $($case:ident)*) => {
        mod losses {
            $(#[tokio::test]
            async fn $case() -> $crate::store::Proof {
                $crate::store::losses::$case(&super::$harness()).await
            })*
        }
    };
}
