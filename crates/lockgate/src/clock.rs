//! The clocks of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockgate_core::clock_guard::ClockGuard;
use lockgate_core::time::Timestamp;
use lockgate_ports::clock::{Clock, GuardedClock, Steady};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The guard's state for the next process on this machine, in the data folder.
const FILE: &str = "clock.json";
const KEEP_EVERY: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one production implementation")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The time since the machine was started, including sleep.
#[derive(Clone, Copy, Debug, Default)]
struct SinceBoot;

impl Steady for SinceBoot {
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let clock = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = ClockId::Monotonic;
        Duration::try_from(clock_gettime(clock)).unwrap_or_default()
    }
}

/// The guarded clock of a server, and the file of its state.
pub(crate) struct KeptClock {
    pub(crate) clock: Arc<GuardedClock>,
    path: PathBuf,
    /// Identifies the start of the machine, from which the steady clock counts. Without it the state is not kept.
    boot: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct GuardedBoot {
    boot: String,
    guard: ClockGuard,
}

impl KeptClock {
    /// Continues with the state of an earlier process on this folder, if the machine has not been restarted since.
    pub(crate) fn open(folder: &Path, settle: Duration) -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned());
        Self::of(folder, settle, boot, Arc::new(SystemClock), Arc::new(SinceBoot))
    }

    fn of(folder: &Path, settle: Duration, boot: Option<String>, wall: Arc<dyn Clock>, steady: Arc<dyn Steady>) -> Self {
        let path = folder.join(FILE);
        // Without the file the wall clock is trusted, as at the first start: an unreadable file must not prevent a start.
        let kept = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<GuardedBoot>(&bytes).ok());
        let kept = kept.filter(|kept| boot.as_ref() == Some(&kept.boot)).map(|kept| kept.guard);
        Self { clock: Arc::new(GuardedClock::new(wall, steady, settle, kept)), path, boot }
    }

    /// Writes the guard's state whenever it changes.
    pub(crate) async fn keep(self, mut stop: watch::Receiver<bool>) {
        let mut kept = None;
        loop {
            let guard = self.clock.guard();
            if kept.is_none_or(|kept| guard.differs(&kept)) {
                match self.write(guard) {
                    Ok(()) => kept = Some(guard),
                    Err(error) => {
                        tracing::warn!(%error, path = %self.path.display(), "clock state could not be saved; trying again");
                    }
                }
            }
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(KEEP_EVERY) => {}
            }
        }
    }

    /// Replaces the file atomically. The state is valid only until the machine stops, so the file is not synced.
    fn write(&self, guard: ClockGuard) -> std::io::Result<()> {
        let Some(boot) = self.boot.clone() else { return Ok(()) };
        let aside = self.path.with_extension(format!("json-{}", std::process::id()));
        std::fs::write(&aside, serde_json::to_vec(&GuardedBoot { boot, guard })?)?;
        std::fs::rename(aside, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use lockgate_model::ManualClock;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const SETTLE: Duration = Duration::from_secs(600);

    struct FixedSteady;

    impl Steady for FixedSteady {
        fn elapsed(&self) -> Duration {
            HOUR
        }
    }

    fn opened(folder: &Path, boot: &str, wall: &Arc<ManualClock>) -> KeptClock {
        KeptClock::of(folder, SETTLE, Some(boot.to_owned()), wall.clone(), Arc::new(FixedSteady))
    }

    #[test]
    fn a_clock_that_was_set_between_two_processes_is_noticed_until_the_machine_starts_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let wall = Arc::new(ManualClock::default());
        let right = wall.now();
        let first = opened(folder.path(), "boot-1", &wall);
        first.write(first.clock.guard()).expect("kept");
        wall.advance(HOUR);
        let second = opened(folder.path(), "boot-1", &wall);
        assert_eq!(second.clock.now(), right);
        assert_eq!(second.clock.state().jump.map(|jump| jump.ahead_ms), Some(3_600_000));
        second.write(second.clock.guard()).expect("kept");
        let third = opened(folder.path(), "boot-2", &wall);
        assert_eq!((third.clock.now(), third.clock.state().jump), (right + HOUR, None));
    }

    #[test]
    fn a_file_that_is_damaged_or_not_there_is_no_reason_not_to_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let wall = Arc::new(ManualClock::default());
        assert_eq!(opened(folder.path(), "boot", &wall).clock.now(), wall.now());
        std::fs::write(folder.path().join(FILE), b"{\"boot\":\"bo").expect("written");
        assert_eq!(opened(folder.path(), "boot", &wall).clock.now(), wall.now());
    }

    #[test]
    fn the_steady_clock_of_this_machine_moves_on() {
        let before = SinceBoot.elapsed();
        assert!(before > Duration::ZERO && SinceBoot.elapsed() >= before);
    }
}
