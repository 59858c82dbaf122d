//! `lockgate backup` and `lockgate restore`: a data folder, copied while its server runs, and brought back.

mod manifest;
mod restore;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use lockgate_ports::Clock;
use lockgate_sqlite::backup;
use serde::Serialize;

use crate::clock::SystemClock;
use crate::error::{CliError, Exit};
use crate::output::{Output, Tone, bytes};
use crate::size;
use manifest::{MANIFEST, Manifest};
pub(crate) use restore::{Restore, new_timeline};

/// Secrets that belong to what the databases say: without them API keys and findings mean nothing.
const SECRETS: [&str; 2] = ["auth.key", "finding.key"];

/// Copy the data folder of a server, running or not, into a new folder
#[derive(Args, Debug)]
#[command(after_long_help = "Example: lockgate backup --data lockgate-data --to backups/$(date +%F)

The copy is one state of the database, checked after it is written. It holds the keys auth.key and finding.key: keep it as safe as \
the folder itself. docs/backup.md says what a restore means.")]
pub(crate) struct Backup {
    /// Folder to copy, on this machine
    #[arg(long, env = "LOCKGATE_DATA", hide_env_values = true, default_value = "lockgate-data", value_name = "FOLDER")]
    data: PathBuf,

    /// Folder to make; it must not exist
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,

    /// Most bytes to write a second, such as 20M; as fast as it goes without
    #[arg(long, value_parser = size::bytes, value_name = "BYTES")]
    rate: Option<u64>,
}

#[derive(Serialize)]
struct BackupSummary {
    backup: String,
    id: String,
    bytes: u64,
    live: u64,
    ended: u64,
    runs: u64,
    schedules: u64,
    /// What the installation had lost before, each as it was accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<String>,
}

impl Backup {
    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        // Files and threads, nothing that could be awaited.
        let made = tokio::task::spawn_blocking(move || self.make());
        let (manifest, to) = made.await.map_err(|error| CliError::Usage(error.to_string()))??;
        let size: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        if out.is_json() {
            out.json(&BackupSummary {
                backup: to.display().to_string(),
                id: manifest.id,
                bytes: size,
                live: manifest.live,
                ended: manifest.ended,
                runs: manifest.live_runs,
                schedules: manifest.schedules,
                losses: manifest.losses,
            })?;
            return Ok(Exit::Success);
        }
        let Manifest { live, ended, live_runs, schedules, losses, .. } = manifest;
        out.line(&format!(
            "{}: {}, whole: {live} live and {ended} ended jobs, {live_runs} live runs, {schedules} schedules",
            to.display(),
            bytes(size)
        ))?;
        for loss in losses {
            out.line(&out.paint(&format!("  of an installation that lost work before: {loss}"), Tone::Bad))?;
        }
        Ok(Exit::Success)
    }

    /// Beside its place until it is whole: whatever has the name of a backup is one.
    fn make(self) -> Result<(Manifest, PathBuf), CliError> {
        if self.to.exists() {
            return Err(CliError::Usage(format!("{} is there already; name a folder to be made", self.to.display())));
        }
        let aside = aside(&self.to);
        let made = self.fill(&aside);
        if made.is_err() {
            // The reason it failed is worth more than why it could not be cleared away.
            let _ = std::fs::remove_dir_all(&aside);
        }
        let manifest = made?;
        std::fs::rename(&aside, &self.to).map_err(|error| file(&self.to, &error))?;
        sync_folder(self.to.parent())?;
        Ok((manifest, self.to))
    }

    fn fill(&self, aside: &Path) -> Result<Manifest, CliError> {
        make_private(aside)?;
        let databases = backup::copy(&self.data, aside, self.rate).map_err(|error| no_backup(&error, &self.data))?;
        let secrets = SECRETS.into_iter().filter(|name| self.data.join(name).exists());
        let files: Vec<&str> = databases.into_iter().chain(secrets).collect();
        for name in SECRETS.into_iter().filter(|name| files.contains(name)) {
            copy_file(&self.data.join(name), &aside.join(name))?;
        }
        let facts = backup::examine(aside).map_err(|error| CliError::Usage(error.to_string()))?;
        let manifest = Manifest::of(aside, &files, &facts, SystemClock.now())?;
        manifest.write(&aside.join(MANIFEST))?;
        for name in files {
            let private = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(aside.join(name), private).map_err(|error| file(&aside.join(name), &error))?;
        }
        sync_folder(Some(aside))?;
        Ok(manifest)
    }
}

fn no_backup(error: &backup::BackupError, data: &Path) -> CliError {
    let text = match error {
        backup::BackupError::Nothing(_) => format!(
            "{error}: {} is no data folder of a server on its own; a cluster keeps its jobs in PostgreSQL, see docs/backup.md",
            data.display()
        ),
        error => error.to_string(),
    };
    CliError::Usage(text)
}

fn file(path: &Path, error: &std::io::Error) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    path.with_file_name(name)
}

/// For its owner only.
fn make_private(folder: &Path) -> Result<(), CliError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| file(folder, &error))
}

fn copy_file(from: &Path, to: &Path) -> Result<(), CliError> {
    let copied = std::fs::copy(from, to).and_then(|_| std::fs::File::open(to)?.sync_all());
    copied.map_err(|error| file(from, &error))
}

/// So that the names in it survive a power cut.
fn sync_folder(folder: Option<&Path>) -> Result<(), CliError> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| file(folder, &error))
}
