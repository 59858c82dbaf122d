//! Configuration files: activated at the start and whenever they change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::config::ConfigError;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ConfigText, Engine};
use lockgate_ports::SnapshotKind;
use tokio::sync::watch;

use crate::commands::config::files::{ConfigLoader, LOAD_POLICY, LOAD_POOLS, LOAD_QUOTAS, LOAD_TIMEOUTS};
use crate::error::CliError;

/// How often a file is checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A kind of configuration file.
pub(super) struct FileKind {
    pub(super) flag: &'static str,
    kind: SnapshotKind,
    /// The actor of the activation, for the audit trail.
    actor: &'static str,
    load: ConfigLoader,
    /// The name of the task that watches the file.
    pub(super) name: &'static str,
}

pub(super) const POLICY: FileKind = FileKind {
    flag: "--policy",
    kind: SnapshotKind::Policy,
    actor: "policy-file",
    load: LOAD_POLICY,
    name: "the policy file",
};

pub(super) const POOLS: FileKind =
    FileKind { flag: "--pools", kind: SnapshotKind::Pools, actor: "pools-file", load: LOAD_POOLS, name: "the pools file" };

pub(super) const TIMEOUTS: FileKind = FileKind {
    flag: "--timeouts",
    kind: SnapshotKind::Timeouts,
    actor: "timeouts-file",
    load: LOAD_TIMEOUTS,
    name: "the timeouts file",
};

pub(super) const QUOTAS: FileKind = FileKind {
    flag: "--quotas",
    kind: SnapshotKind::Quotas,
    actor: "quotas-file",
    load: LOAD_QUOTAS,
    name: "the quotas file",
};

/// A file as it was last read.
pub(super) struct ConfigFile {
    pub(super) kind: &'static FileKind,
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Activates the file before the first job is accepted. An invalid file stops the start, because the server would
    /// otherwise run by other rules than its operator expects.
    pub(super) async fn import(kind: &'static FileKind, path: PathBuf, engine: &Engine) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| CliError::Usage(format!("{} {}: {error}", kind.flag, path.display())))?;
        let snapshot = (kind.load)(&path.display().to_string(), &text).map_err(|errors| faults(kind, &errors))?;
        let file = Self { kind, path, text };
        if Self::last_applied(kind, engine).await?.is_some_and(|last| last == snapshot) {
            // A policy that a person activated since then, such as an emergency deny, must survive a restart.
            tracing::info!(file = %file.path.display(), "unchanged since it was last put in force; what is in force stays");
            return Ok(file);
        }
        let unusable = |error: ApiError| CliError::Usage(format!("{} cannot be used: {error}", kind.flag));
        file.apply(engine).await.map_err(unusable)?;
        Ok(file)
    }

    /// Whether a found file is ignored: no file was ever active, and a person activated the present configuration.
    pub(super) async fn gives_way(kind: &'static FileKind, engine: &Engine) -> Result<bool, CliError> {
        let chosen = engine.active_config(kind.kind).await?.is_some();
        Ok(chosen && Self::last_applied(kind, engine).await?.is_none())
    }

    /// The last snapshot that was activated from a file.
    async fn last_applied(kind: &FileKind, engine: &Engine) -> Result<Option<Arc<str>>, CliError> {
        let known = engine.config_snapshots(kind.kind).await?;
        Ok(known.into_iter().find(|row| row.actor.as_str() == kind.actor).map(|row| row.id))
    }

    async fn apply(&self, engine: &Engine) -> Result<(), ApiError> {
        let caller = Caller::new("default", self.kind.actor);
        let file = self.path.display().to_string();
        let new = ConfigText { file, text: self.text.clone(), expected: None };
        engine.activate_config(&caller, self.kind.kind, new).await.map(|_| ())
    }

    /// Activates every new text. An invalid one is logged and changes nothing.
    pub(super) async fn watch(mut self, engine: Engine, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.look(&engine).await;
        }
    }

    async fn look(&mut self, engine: &Engine) {
        let file = self.path.display().to_string();
        let text = match tokio::fs::read_to_string(&self.path).await {
            Ok(text) if text != self.text => text,
            Ok(_) => return,
            Err(error) => return tracing::warn!(%file, %error, "the file cannot be read; what is in force stays"),
        };
        let before = std::mem::replace(&mut self.text, text);
        match self.apply(engine).await {
            Ok(()) => tracing::info!(%file, "the changed file is in force"),
            Err(error @ ApiError::Invalid(_)) => {
                tracing::error!(%file, %error, "the changed file is wrong; what is in force stays");
            }
            Err(error) => {
                // The file is not at fault, so it is tried again.
                self.text = before;
                tracing::warn!(%file, %error, "the changed file could not be put in force yet");
            }
        }
    }
}

/// One error per line.
fn faults(kind: &FileKind, errors: &[ConfigError]) -> CliError {
    let lines: String = errors.iter().map(|error| format!("\n  {error}")).collect();
    CliError::Usage(format!("{} cannot be used:{lines}", kind.flag))
}

#[cfg(test)]
mod tests {
    use lockgate_core::scan::FindingKey;
    use lockgate_engine::{LocalKernel, Metrics, Ports, Settings};
    use lockgate_memory::{MemoryBus, MemoryLanes};
    use lockgate_model::{ManualClock, MemoryStore, SeededEntropy};
    use prometheus_client::registry::Registry;

    use super::*;

    fn engine() -> Engine {
        let clock = Arc::new(ManualClock::default());
        let ports = Ports {
            store: Arc::new(MemoryStore::new(clock.clone())),
            lanes: Arc::new(MemoryLanes::default()),
            bus: Arc::new(MemoryBus::default()),
            kernel: Arc::new(LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None)),
            counters: None,
            clock,
            entropy: Arc::new(SeededEntropy::new(7)),
            spans: None,
            outlets: Vec::new(),
        };
        Engine::new(ports, Settings::default(), Metrics::new(&mut Registry::default()))
    }

    const POOL_A: &str = "topics: {job.x: a}\npools: {a: {}}\n";
    const POOL_B: &str = "topics: {job.x: b}\npools: {b: {}}\n";

    async fn version(engine: &Engine) -> u64 {
        let active = engine.active_config(SnapshotKind::Pools).await.expect("read");
        active.map_or(0, |active| active.version)
    }

    #[tokio::test]
    async fn a_faulty_edit_changes_nothing_and_the_next_good_one_counts() {
        let (engine, folder) = (engine(), tempfile::tempdir().expect("a folder"));
        let path = folder.path().join("pools.yaml");
        let write = |text: &str| std::fs::write(&path, text).expect("written");
        write(POOL_A);
        let mut file = ConfigFile::import(&POOLS, path.clone(), &engine).await.expect("in force");
        for (text, expected) in [("pools: {a: {}}\ntopics: {job.x: nowhere}\n", 1), (POOL_B, 2), (POOL_B, 2)] {
            write(text);
            file.look(&engine).await;
            assert_eq!(version(&engine).await, expected, "{text}");
        }
        std::fs::remove_file(&path).expect("removed");
        file.look(&engine).await;
        assert_eq!(version(&engine).await, 2, "a file that is gone takes nothing away");
    }

    #[tokio::test]
    async fn a_start_with_an_unchanged_file_keeps_what_a_person_put_in_force_since() {
        let (engine, folder) = (engine(), tempfile::tempdir().expect("a folder"));
        let path = folder.path().join("pools.yaml");
        std::fs::write(&path, POOL_A).expect("written");
        ConfigFile::import(&POOLS, path.clone(), &engine).await.expect("in force");
        let by_hand = ConfigText { file: "by-hand".to_owned(), text: POOL_B.to_owned(), expected: None };
        engine.activate_config(&Caller::new("default", "ann"), SnapshotKind::Pools, by_hand).await.expect("in force");
        ConfigFile::import(&POOLS, path, &engine).await.expect("read");
        let active = engine.active_config(SnapshotKind::Pools).await.expect("read").expect("in force");
        assert_eq!((active.actor.as_str(), &*active.text), ("ann", POOL_B));
    }

    #[tokio::test]
    async fn a_file_that_is_only_found_does_not_replace_what_a_person_put_in_force() {
        let (engine, folder) = (engine(), tempfile::tempdir().expect("a folder"));
        assert!(!ConfigFile::gives_way(&POOLS, &engine).await.expect("read"), "nothing was chosen");
        let by_hand = ConfigText { file: "by-hand".to_owned(), text: POOL_B.to_owned(), expected: None };
        engine.activate_config(&Caller::new("default", "ann"), SnapshotKind::Pools, by_hand).await.expect("in force");
        assert!(ConfigFile::gives_way(&POOLS, &engine).await.expect("read"));
        let path = folder.path().join("pools.yaml");
        std::fs::write(&path, POOL_A).expect("written");
        ConfigFile::import(&POOLS, path, &engine).await.expect("named by an option");
        assert!(!ConfigFile::gives_way(&POOLS, &engine).await.expect("read"), "files count here");
    }

    #[tokio::test]
    async fn a_faulty_file_stops_the_start_with_every_fault_on_its_line() {
        let (engine, folder) = (engine(), tempfile::tempdir().expect("a folder"));
        let path = folder.path().join("pools.yaml");
        std::fs::write(&path, "topics: {job.x: a}\npools: {a: {dispatch: push}}\nlimit: []\n").expect("written");
        let refused = ConfigFile::import(&POOLS, path, &engine).await.err().expect("refused").to_string();
        let lines: Vec<&str> = refused.lines().collect();
        assert!(lines[0].ends_with("--pools cannot be used:"), "{refused}");
        assert!(lines[1].contains("pools.yaml:2: ") && lines[2].contains("pools.yaml:3: "), "{refused}");
        assert_eq!(version(&engine).await, 0);
    }
}
