//! What a backup says of itself, so that a damaged or strange one is told from a whole one.

use std::io::Read;
use std::path::Path;

use lockgate_core::hex;
use lockgate_core::time::Timestamp;
use lockgate_sqlite::backup::CopyFacts;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file;
use crate::error::CliError;

pub(super) const MANIFEST: &str = "backup.json";
/// Of the folder, not of the databases in it: those have schemas of their own.
const FORMAT: u32 = 1;
const CHUNK: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Made of what is in it: two backups of one id are the same.
    pub(super) id: String,
    pub(super) lockgate: String,
    pub(super) schema: i64,
    pub(super) made_at_ms: i64,
    pub(super) live: u64,
    /// Of those, with a worker.
    pub(super) held: u64,
    pub(super) ended: u64,
    pub(super) live_runs: u64,
    pub(super) schedules: u64,
    /// What the installation had lost before this copy was made, each as it was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) losses: Vec<String>,
    pub(super) files: Vec<ManifestFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Manifest {
    pub(super) fn of(folder: &Path, files: &[&str], facts: &CopyFacts, now: Timestamp) -> Result<Self, CliError> {
        let files: Vec<ManifestFile> = files.iter().map(|name| ManifestFile::of(folder, name)).collect::<Result<_, _>>()?;
        let mut all = Sha256::new();
        for file in &files {
            all.update(&file.name);
            all.update(&file.sha256);
        }
        Ok(Self {
            format: FORMAT,
            id: hex::write(&all.finalize()[..8]),
            lockgate: env!("CARGO_PKG_VERSION").to_owned(),
            schema: facts.schema,
            made_at_ms: now.as_millis(),
            live: facts.live,
            held: facts.held,
            ended: facts.ended,
            live_runs: facts.live_runs,
            schedules: facts.schedules,
            losses: facts.losses.clone(),
            files,
        })
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| CliError::Usage(error.to_string()))?;
        let written = std::fs::write(path, text + "\n").and_then(|()| std::fs::File::open(path)?.sync_all());
        written.map_err(|error| file(path, &error))
    }

    /// Reads every byte of the backup.
    pub(super) fn read(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| CliError::Usage(format!("{} is no backup: {}: {error}", folder.display(), path.display())))?;
        let wrong = |what: String| CliError::Usage(format!("{} is no whole backup: {what}", folder.display()));
        let manifest: Self = serde_json::from_str(&text).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
        if manifest.format > FORMAT {
            return Err(wrong(format!("its form {} is of a newer lockgate, this one knows {FORMAT}", manifest.format)));
        }
        for said in &manifest.files {
            // A name that leads elsewhere was not written by us.
            if said.name.contains('/') || said.name.starts_with('.') {
                return Err(wrong(format!("{:?} is not the name of a file of it", said.name)));
            }
            if ManifestFile::of(folder, &said.name)? != *said {
                return Err(wrong(format!("{} is not as it was written", said.name)));
            }
        }
        Ok(manifest)
    }
}

impl ManifestFile {
    fn of(folder: &Path, name: &str) -> Result<Self, CliError> {
        let path = folder.join(name);
        let hashed = hash(&path).map_err(|error| file(&path, &error))?;
        Ok(Self { name: name.to_owned(), bytes: hashed.0, sha256: hashed.1 })
    }
}

fn hash(path: &Path) -> std::io::Result<(u64, String)> {
    let (mut file, mut digest) = (std::fs::File::open(path)?, Sha256::new());
    let (mut chunk, mut total) = (vec![0; CHUNK], 0);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((total, hex::write(&digest.finalize())));
        }
        digest.update(&chunk[..read]);
        total += read as u64;
    }
}
