//! The Store's suite, on SQLite.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use lockgate_conformance::store::losses::{FolderHarness, Opened, Strike};
use lockgate_conformance::store::{Spoiling, Spoilt, StoreHarness};
use lockgate_model::ManualClock;
use lockgate_ports::Clock;
use lockgate_sqlite::{FolderOptions, SqliteStore};

fn harness() -> StoreHarness {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open(folder.path(), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    let database = folder.path().join("lockgate.db");
    let spoil = move |row: Spoilt| -> Spoiling {
        let conn = rusqlite::Connection::open(&database).unwrap();
        match row {
            Spoilt::Job(id) => {
                for table in ["jobs_hot", "jobs_done"] {
                    let sql = format!("UPDATE {table} SET life = '?' WHERE seq = (SELECT seq FROM jobs WHERE job_id = ?1)");
                    conn.execute(&sql, [id.as_str()]).unwrap();
                }
            }
            Spoilt::Text { job, old, new } => {
                for table in ["jobs_hot", "jobs_done"] {
                    let sql = format!(
                        "UPDATE {table} SET life = replace(life, ?2, ?3), events = replace(events, ?2, ?3) \
                         WHERE seq = (SELECT seq FROM jobs WHERE job_id = ?1)"
                    );
                    conn.execute(&sql, [job.as_str(), old, new]).unwrap();
                }
            }
            Spoilt::Schedule { tenant, name } => {
                let sql = "UPDATE schedules SET body = '?' WHERE tenant = ?1 AND name = ?2";
                conn.execute(sql, [tenant.as_str(), &*name]).unwrap();
            }
        }
        Box::pin(std::future::ready(()))
    };
    StoreHarness::new(Arc::new(store), clock, folder).spoiling(spoil)
}

lockgate_conformance::store_conformance! { harness }
lockgate_conformance::store_agrees_with_memory! { harness, cases: 24 }

const LOSSES: &[Strike] = &[
    Strike { name: "log cut by 3 percent", strike: |folder| cut(folder, 97) },
    Strike { name: "log cut in half", strike: |folder| cut(folder, 50) },
    Strike { name: "log header flipped", strike: |folder| flip(folder, |_| 17) },
    Strike { name: "log flipped in the middle", strike: |folder| flip(folder, |bytes| bytes / 2) },
    Strike { name: "log flipped at its end", strike: |folder| flip(folder, |bytes| bytes - 10) },
    Strike {
        name: "log flipped after a power cut",
        strike: |folder| remove(folder, "commit.mark").and_then(|()| flip(folder, |bytes| bytes / 2)),
    },
    Strike { name: "log removed", strike: |folder| remove(folder, "lockgate.db-wal") },
    Strike { name: "database cut to nothing", strike: |folder| File::create(folder.join("lockgate.db")).map(drop) },
    Strike { name: "database removed", strike: |folder| remove(folder, "lockgate.db") },
    Strike {
        name: "database and mark removed",
        strike: |folder| remove(folder, "lockgate.db").and_then(|()| remove(folder, "commit.mark")),
    },
    Strike {
        name: "database and log removed",
        strike: |folder| remove(folder, "lockgate.db").and_then(|()| remove(folder, "lockgate.db-wal")),
    },
    Strike { name: "another database", strike: another },
    Strike { name: "all but a key removed", strike: all_but_a_key },
];

const REMAINS: &[Strike] = &[
    Strike { name: "no mark as before marks", strike: |folder| remove(folder, "commit.mark") },
    Strike { name: "mark torn", strike: |folder| mark(folder)?.write_all_at(&[0xAA; 4], 26) },
    Strike { name: "mark torn in its other half", strike: |folder| mark(folder)?.write_all_at(&[0xAA; 4], 4096 + 26) },
    Strike { name: "mark cut", strike: |folder| mark(folder)?.set_len(10) },
    Strike { name: "the end of a torn commit", strike: tear },
    Strike { name: "no index of the log", strike: |folder| remove(folder, "lockgate.db-shm") },
    Strike {
        name: "half a frame at the end of the log",
        strike: |folder| log(folder).and_then(|(log, bytes)| log.write_all_at(&[7; 1_000], bytes)),
    },
];

/// Of a commit that a power cut tore, the last frame is on the disk and one before it is not.
fn tear(folder: &Path) -> io::Result<()> {
    const FRAME: usize = 24 + 4096;
    let (log, bytes) = log(folder)?;
    let mut last = [0; FRAME];
    log.read_exact_at(&mut last, bytes - FRAME as u64)?;
    log.write_all_at(&[0; FRAME], bytes)?;
    log.write_all_at(&last, bytes + FRAME as u64)
}

fn remove(folder: &Path, name: &str) -> io::Result<()> {
    std::fs::remove_file(folder.join(name))
}

fn mark(folder: &Path) -> io::Result<File> {
    File::options().write(true).open(folder.join("commit.mark"))
}

fn log(folder: &Path) -> io::Result<(File, u64)> {
    let log = File::options().read(true).write(true).open(folder.join("lockgate.db-wal"))?;
    let bytes = log.metadata()?.len();
    Ok((log, bytes))
}

fn cut(folder: &Path, percent: u64) -> io::Result<()> {
    let (log, bytes) = log(folder)?;
    log.set_len(bytes * percent / 100)
}

fn flip(folder: &Path, at: fn(u64) -> u64) -> io::Result<()> {
    let (log, bytes) = log(folder)?;
    let mut byte = [0];
    log.read_exact_at(&mut byte, at(bytes))?;
    log.write_all_at(&[byte[0] ^ 0xFF], at(bytes))
}

/// Of an installation of its own, without its mark.
fn another(folder: &Path) -> io::Result<()> {
    let other = tempfile::tempdir()?;
    drop(open(other.path(), Arc::new(ManualClock::default()), false).map_err(io::Error::other)?);
    remove(folder, "lockgate.db-wal")?;
    std::fs::copy(other.path().join("lockgate.db"), folder.join("lockgate.db")).map(drop)
}

fn all_but_a_key(folder: &Path) -> io::Result<()> {
    for name in ["lockgate.db", "lockgate.db-wal", "lockgate.db-shm", "commit.mark"] {
        remove(folder, name)?;
    }
    std::fs::write(folder.join("auth.key"), "x")
}

fn open(folder: &Path, clock: Arc<ManualClock>, accept_loss: bool) -> Result<Opened, String> {
    let options = FolderOptions { accept_loss, ..FolderOptions::default() };
    let store = SqliteStore::open_with(folder, clock, options).map_err(|error| error.to_string())?;
    let loss = store.loss().map(str::to_owned);
    Ok(Opened { store: Arc::new(store), loss })
}

fn folder_harness() -> FolderHarness {
    FolderHarness::new(tempfile::tempdir().unwrap(), open, LOSSES, REMAINS)
}

lockgate_conformance::loss_conformance! { folder_harness }
