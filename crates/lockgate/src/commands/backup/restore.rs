//! Bringing back a data folder, and what that means for everything that happened since.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::request::Json;
use lockgate_engine::{ApiError, verify_trail};
use lockgate_ports::{Clock, Entropy, Store, Timelines};
use lockgate_postgres::PostgresStore;
use lockgate_sqlite::{SqliteStore, backup};
use serde::Serialize;

use super::manifest::Manifest;
use super::{aside, copy_file, file, make_private, sync_folder};
use crate::clock::SystemClock;
use crate::entropy::SystemEntropy;
use crate::error::{CliError, Exit};
use crate::output::{Output, Tone};
use crate::servers::{self, ClearArgs, DatabaseTlsArgs};

/// Bring back a backup into a new data folder, or open a new timeline in a database that was brought back
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:
  lockgate restore backups/2030-01-31 --data lockgate-data
  DATABASE_URL=postgres://… lockgate restore --cluster --point \"2030-01-31 08:00\"

What happened after the backup has not happened. Jobs that were waiting or running then run again, keys used since are free again, \
times of schedules since then are made up for as their misfire says. Every attempt gets a new token, so that workers who still hold \
work of the other timeline are told to stop. docs/backup.md has the whole story.")]
pub(crate) struct Restore {
    /// Folder that `lockgate backup` made
    #[arg(value_name = "BACKUP", required_unless_present = "cluster", conflicts_with = "cluster")]
    backup: Option<PathBuf>,

    /// Folder to bring it back into; it must not exist, or be empty
    #[arg(long, env = "LOCKGATE_DATA", hide_env_values = true, default_value = "lockgate-data", value_name = "FOLDER")]
    data: PathBuf,

    /// The database of a cluster was brought back to an earlier point by its own means, and no process uses it
    #[arg(long, requires = "database_url")]
    cluster: bool,

    /// Which point that was, for the audit trail
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT", requires = "cluster")]
    point: String,

    /// The database, with --cluster
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,

    #[command(flatten)]
    tls: DatabaseTlsArgs,

    #[command(flatten)]
    clear: ClearArgs,
}

#[derive(Serialize)]
struct RestoreSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Jobs that go on, with new tokens.
    jobs: u64,
    /// Of those, with a worker when the backup was made: they run again.
    held: Option<u64>,
    audit_rows: u64,
}

impl Restore {
    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let restored = match &self.backup {
            Some(backup) => self.bring_back(backup).await?,
            None => self.cluster().await?,
        };
        if out.is_json() {
            out.json(&restored)?;
            return Ok(Exit::Success);
        }
        let RestoreSummary { data, jobs, held, audit_rows } = restored;
        out.line(&format!("{}: {jobs} jobs go on, each with a new token", data.as_deref().unwrap_or("the database")))?;
        if let Some(held) = held.filter(|held| *held > 0) {
            out.line(&format!("  {held} of them were with a worker when the backup was made: they run again"))?;
        }
        out.line(&format!("  the audit trail is whole ({audit_rows} rows) and says that this is a restore"))?;
        if data.is_none() {
            let care = "Empty Redis before any process starts: its ready queues are of the other timeline (docs/backup.md).";
            out.line(&out.paint(care, Tone::Waiting))?;
        }
        let care = "Never let the other installation go on beside this one: both would run the same jobs.";
        out.line(&out.paint(care, Tone::Waiting))?;
        Ok(Exit::Success)
    }

    async fn bring_back(&self, from: &Path) -> Result<RestoreSummary, CliError> {
        refuse_used(&self.data)?;
        let manifest = Manifest::read(from)?;
        let aside = aside(&self.data);
        let filled = fill(from, &aside, &manifest).await;
        if filled.is_err() {
            // The reason it failed is worth more than why it could not be cleared away.
            let _ = std::fs::remove_dir_all(&aside);
        }
        let (jobs, audit_rows) = filled?;
        if self.data.exists() {
            std::fs::remove_dir(&self.data).map_err(|error| file(&self.data, &error))?;
        }
        std::fs::rename(&aside, &self.data).map_err(|error| file(&self.data, &error))?;
        sync_folder(self.data.parent())?;
        Ok(RestoreSummary { data: Some(self.data.display().to_string()), jobs, held: Some(manifest.held), audit_rows })
    }

    async fn cluster(&self) -> Result<RestoreSummary, CliError> {
        let Some(url) = &self.database_url else {
            return Err(CliError::Usage("--cluster needs --database-url or DATABASE_URL".to_owned()));
        };
        let options = servers::database(url, &self.tls.read()?, self.clear.clear()).await?;
        servers::migrate(&options).await?;
        let store = PostgresStore::connect(options).await.map_err(|error| CliError::Usage(error.to_string()))?;
        let point = if self.point.is_empty() { "a point in time" } else { &self.point };
        let detail = serde_json::json!({ "point": point });
        let (jobs, audit_rows) = new_timeline(&store, AuditAction::StoreRestored, point, &detail).await?;
        Ok(RestoreSummary { data: None, jobs, held: None, audit_rows })
    }
}

/// Existing files are never overwritten, because they may be needed.
fn refuse_used(data: &Path) -> Result<(), CliError> {
    let mut entries = match std::fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(file(data, &error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(CliError::Usage(format!(
            "{} is not empty; move it away first, or name another folder with --data",
            data.display()
        ))),
    }
}

/// Everything is checked before the folder gets its name.
async fn fill(from: &Path, aside: &Path, manifest: &Manifest) -> Result<(u64, u64), CliError> {
    make_private(aside)?;
    for part in &manifest.files {
        copy_file(&from.join(&part.name), &aside.join(&part.name))?;
    }
    let wrong = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    backup::examine(aside).map_err(|error| wrong(&error))?;
    backup::abandon(aside).map_err(|error| wrong(&error))?;
    let store = SqliteStore::open(aside, Arc::new(SystemClock)).map_err(|error| wrong(&error))?;
    let detail = serde_json::json!({ "backup": manifest.id, "made_at_ms": manifest.made_at_ms, "by": manifest.lockgate });
    let told = new_timeline(&store, AuditAction::StoreRestored, &manifest.id, &detail).await?;
    drop(store);
    sync_folder(Some(aside))?;
    Ok(told)
}

/// Jobs that go on, and rows of the audit trail.
pub(crate) async fn new_timeline<S: Store>(
    store: &S,
    action: AuditAction,
    subject: &str,
    detail: &serde_json::Value,
) -> Result<(u64, u64), CliError> {
    let verified = verify_trail(store).await.map_err(ApiError::from)?;
    if let Some(broken) = verified.broken {
        return Err(CliError::Conflict(format!("the audit trail of what was brought back is broken: {broken}")));
    }
    let mut salt = [0; 16];
    SystemEntropy::default().fill(&mut salt);
    let audit = AuditEntry {
        at: SystemClock.now(),
        tenant: "default".into(),
        actor: "lockgate".into(),
        action,
        subject: subject.into(),
        detail: Json::trusted(detail.to_string()),
    };
    match Timelines::begin_timeline(store, salt, audit).await.map_err(ApiError::from)? {
        Some(jobs) => Ok((jobs, verified.rows + verified.unsealed + 1)),
        None => Err(CliError::Conflict(
            "a process is at work on this database; stop all of them, wait ten seconds, and try again".to_owned(),
        )),
    }
}
