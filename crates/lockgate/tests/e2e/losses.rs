//! Files of the data folder that are lost or damaged after kill -9: told at the next start, never passed over.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::TempDir;

use super::harness::{Server, all_jobs, binary, job, submit};

const BATCHES: usize = 30;
const BATCH: usize = 10;

/// What happens to a folder, and what the next start says of it.
type Fault = (&'static str, fn(&Path), &'static str);

const FAULTS: [Fault; 6] = [
    ("the log is cut by 3 %", |folder| cut(folder, 97), "acknowledged commits are missing"),
    ("the log is flipped in its header", |folder| flip(folder, 17), "acknowledged commits are missing"),
    ("the log is flipped in the middle", |folder| flip(folder, log(folder).1 / 2), "acknowledged commits are missing"),
    ("the log is removed", |folder| remove(folder, "lockgate.db-wal"), "acknowledged commits are missing"),
    ("the database is cut to 0 bytes", |folder| drop(File::create(folder.join("lockgate.db")).expect("cut")), EMPTY),
    ("the database is removed", |folder| remove(folder, "lockgate.db"), EMPTY),
];
const EMPTY: &str = "lockgate.db is missing or empty";

fn log(folder: &Path) -> (File, u64) {
    let log = File::options().read(true).write(true).open(folder.join("lockgate.db-wal")).expect("a log");
    let bytes = log.metadata().expect("its size").len();
    (log, bytes)
}

fn cut(folder: &Path, percent: u64) {
    let (log, bytes) = log(folder);
    log.set_len(bytes * percent / 100).expect("cut");
}

fn flip(folder: &Path, at: u64) {
    let (log, mut byte) = (log(folder).0, [0]);
    log.read_exact_at(&mut byte, at).expect("read");
    log.write_all_at(&[!byte[0]], at).expect("written");
}

fn remove(folder: &Path, name: &str) {
    std::fs::remove_file(folder.join(name)).expect("removed");
}

/// A server with acknowledged jobs, some of them of a process before it, that was killed with -9.
async fn killed_server() -> Server {
    let mut server = Server::start(&["--no-worker"]).await;
    for half in ["first", "second"] {
        let mut client = server.client().await;
        for batch in 0..BATCHES {
            let jobs = (0..BATCH).map(|n| job(&format!("{half}-{batch}-{n}"), "job.noop", "null")).collect();
            submit(&mut client, jobs).await.expect("acknowledged");
        }
        if half == "first" {
            server.restart().await;
        }
    }
    server.crash().await;
    server
}

fn copied(from: &Path) -> TempDir {
    let copy = TempDir::new().expect("a folder");
    for entry in std::fs::read_dir(from).expect("read") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
    }
    copy
}

fn struck(original: &Path, (_, strike, _): &Fault) -> TempDir {
    let copy = copied(original);
    strike(copy.path());
    copy
}

async fn backup(folder: &Path, to: &Path) -> std::process::Output {
    binary().args(["backup", "--data"]).arg(folder).arg("--to").arg(to).output().await.expect("it runs")
}

#[tokio::test]
async fn a_start_on_a_folder_that_lost_acknowledged_work_is_refused_with_what_is_missing() {
    let mut server = killed_server().await;
    let original = copied(server.folder());
    for fault in &FAULTS {
        server.move_to(struck(original.path(), fault));
        let told = server.refused_start().await;
        for expected in ["acknowledged work is missing in the data folder", fault.2, "docs/backup.md", "--accept-loss"] {
            assert!(told.contains(expected), "{}: {told}", fault.0);
        }
    }
    // Neither is a backup of such a folder one, and to try it takes nothing more away.
    server.move_to(struck(original.path(), &FAULTS[2]));
    let made = backup(server.folder(), &original.path().join("backup")).await;
    let told = String::from_utf8_lossy(&made.stderr);
    assert!(!made.status.success() && told.contains("acknowledged work is missing"), "{made:?}");
    assert!(server.refused_start().await.contains(FAULTS[2].2));
    // A database that cannot be read at all points to the page about restoring it.
    server.move_to(copied(original.path()));
    remove(server.folder(), "lockgate.db-wal");
    let database = File::options().write(true).open(server.folder().join("lockgate.db")).expect("a database");
    database.write_all_at(&[0xAA; 100], 0).expect("written");
    let told = server.refused_start().await;
    assert!(told.contains("is not a database") && told.contains("docs/backup.md says how to restore it"), "{told}");
    // And without a fault all of it is there.
    server.move_to(original);
    server.start_again().await;
    assert_eq!(all_jobs(&mut server.client().await).await.len(), 2 * BATCHES * BATCH);
}

#[tokio::test]
async fn an_accepted_loss_is_told_by_the_audit_trail_and_by_every_backup() {
    let mut server = killed_server().await;
    let original = copied(server.folder());
    for fault in [&FAULTS[0], &FAULTS[4]] {
        server.move_to(struck(original.path(), fault));
        server.ask_for(&["--no-worker", "--accept-loss"]);
        server.start_again().await;
        let left = all_jobs(&mut server.client().await).await.len();
        assert!(left < 2 * BATCHES * BATCH, "{}: {left}", fault.0);
        submit(&mut server.client().await, vec![job("after", "job.noop", "null")]).await.expect("it goes on");
        let verified = server.cli(&["audit", "verify"]).await;
        let told = String::from_utf8_lossy(&verified.stdout);
        assert!(told.contains("loss accepted") && told.contains(fault.2), "{}: {verified:?}", fault.0);
        let place = TempDir::new().expect("a folder");
        let made = backup(server.folder(), &place.path().join("backup")).await;
        let told = String::from_utf8_lossy(&made.stdout);
        assert!(told.contains("an installation that lost work before") && told.contains(fault.2), "{}: {made:?}", fault.0);

        // Accepted once, and no longer a reason to refuse: not after a kill either.
        server.ask_for(&["--no-worker"]);
        server.crash_and_restart().await;
        assert_eq!(all_jobs(&mut server.client().await).await.len(), left + 1, "{}", fault.0);
        server.crash().await;
    }
}
