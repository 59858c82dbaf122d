//! The restore drill: a server under load is backed up, dies, and goes on from its backup.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockgate_proto::v1;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use super::harness::{Client, Server, all_jobs, binary, get, job, submit, until_idle, wait_for_jobs};

async fn command(arguments: &[&str]) -> std::process::Output {
    binary().args(arguments).output().await.expect("the command runs")
}

async fn json(arguments: &[&str]) -> Value {
    let output = command(&[&["--json"], arguments].concat()).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Jobs of several kinds, until it is told to stop or the server is gone. Those that were acknowledged.
async fn load(mut client: Client, stop: Arc<AtomicBool>, acknowledged: Arc<Mutex<Vec<String>>>) {
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let one = |n: usize| match n % 10 {
            0 => job(&format!("r{round}-{n}"), "job.flaky", "1"),
            1 => job(&format!("r{round}-{n}"), "job.sleep", "{\"ms\": 300}"),
            _ => job(&format!("r{round}-{n}"), "job.echo", "1"),
        };
        let Ok(ids) = submit(&mut client, (0..40).map(one).collect()).await else { return };
        acknowledged.lock().extend(ids);
    }
}

async fn events(client: &mut Client, id: &str) -> Vec<v1::JobEvent> {
    let request = v1::WatchJobRequest { job_id: id.to_owned(), after: 0 };
    let mut stream = client.watch_job(request).await.expect("there").into_inner();
    let mut events = Vec::new();
    while let Some(message) = stream.message().await.expect("unbroken") {
        if let Some(v1::watch_job_response::Item::Event(event)) = message.item {
            events.push(event);
        }
    }
    events
}

#[tokio::test]
async fn a_server_under_load_goes_on_from_its_backup() {
    let mut server = Server::start(&["--no-worker", "--lost-after", "3s"]).await;
    // It lives on through everything, with whatever it holds.
    let _worker = server.worker("old-hand", 8, &[]);
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let client = server.client().await;
    let loading = tokio::spawn(load(client.clone(), stop.clone(), acknowledged.clone()));
    wait_for_jobs(&mut client.clone(), 400).await;

    let before: BTreeSet<String> = acknowledged.lock().iter().cloned().collect();
    let place = TempDir::new().expect("a folder");
    let backup = place.path().join("backup");
    let made = json(&["backup", "--data", text(server.folder()), "--to", text(&backup)]).await;
    let in_backup = made["live"].as_u64().expect("a number") + made["ended"].as_u64().expect("a number");
    assert!(in_backup >= before.len() as u64, "{made}");
    wait_for_jobs(&mut client.clone(), in_backup + 200).await;
    server.crash().await;
    stop.store(true, Ordering::Relaxed);
    loading.await.expect("ended");

    // What is there is not overwritten, what is damaged is not taken.
    let used = command(&["restore", text(&backup), "--data", text(server.folder())]).await;
    assert!(!used.status.success() && String::from_utf8_lossy(&used.stderr).contains("is not empty"), "{used:?}");
    let fresh = TempDir::new().expect("a folder");
    let restored = json(&["restore", text(&backup), "--data", text(fresh.path())]).await;
    assert_eq!(restored["jobs"], made["live"], "what lived goes on");
    server.move_to(fresh);
    server.start_again().await;

    let mut client = server.client().await;
    until_idle(&mut client).await;
    let there: BTreeSet<String> = all_jobs(&mut client).await.into_iter().map(|job| job.job_id).collect();
    assert_eq!(
        before.difference(&there).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "nothing from before the backup is lost"
    );
    assert_eq!(there.len() as u64, in_backup);
    for id in &there {
        let ends = events(&mut client, id).await.into_iter().filter(|event| event.kind == "succeeded").count();
        assert_eq!(ends, 1, "{id} ends once");
        assert_eq!(get(&mut client, id).await.state(), v1::JobState::Succeeded, "{id}");
    }
    let trail = server.cli(&["audit", "verify"]).await;
    assert!(trail.status.success(), "{trail:?}");
    let told = server.cli(&["audit", "list"]).await;
    assert!(String::from_utf8_lossy(&told.stdout).contains("store_restored"), "{told:?}");
    submit(&mut client, vec![job("after", "job.echo", "1")]).await.expect("and it takes more");
    until_idle(&mut client).await;
}

#[tokio::test]
async fn a_backup_keeps_what_belongs_to_it_and_a_damaged_one_is_refused() {
    let mut server = Server::start(&["--auth"]).await;
    let place = TempDir::new().expect("a folder");
    let (backup, data) = (place.path().join("backup"), place.path().join("data"));
    let (from, to, back) = (server.folder().to_owned(), text(&backup).to_owned(), text(&data).to_owned());
    json(&["backup", "--data", text(&from), "--to", &to, "--rate", "100M"]).await;
    let again = command(&["backup", "--data", text(&from), "--to", &to]).await;
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already"), "{again:?}");
    for (file, kept) in
        [("lockgate.db", true), ("effects.db", true), ("auth.key", true), ("finding.key", true), ("admin.key", false)]
    {
        assert_eq!(backup.join(file).exists(), kept, "{file}");
        if kept {
            use std::os::unix::fs::PermissionsExt;
            for file in [from.join(file), backup.join(file)] {
                let mode = std::fs::metadata(&file).expect("there").permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{file:?} is for its owner only");
            }
        }
    }
    // The keys that were given out still open the door.
    let key = std::fs::read_to_string(server.folder().join("admin.key")).expect("the admin's key");
    server.crash().await;
    let fresh = TempDir::new().expect("a folder");
    json(&["restore", &to, "--data", text(fresh.path())]).await;
    server.move_to(fresh);
    server.start_again().await;
    let who = server.cli(&["--api-key", key.trim(), "auth", "whoami"]).await;
    assert!(who.status.success(), "{who:?}");

    let path = backup.join("lockgate.db");
    let mut bytes = std::fs::read(&path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let damaged = command(&["restore", &to, "--data", &back]).await;
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("not as it was written"), "{damaged:?}");
    assert!(!data.exists(), "nothing is left of it");
    let nothing = command(&["backup", "--data", &back, "--to", text(&place.path().join("other"))]).await;
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("docs/backup.md"), "{nothing:?}");
}
