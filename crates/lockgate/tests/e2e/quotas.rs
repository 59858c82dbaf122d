//! Quotas and tenants on a real data folder.

use std::path::Path;

use serde_json::Value;

use super::harness::Server;

const QUOTAS: &str = "defaults: {jobs: 3}\nceilings: {jobs: 1000, pools: {gpus: 10}}\n";
const SECRET: &str = "the-payload-nobody-may-find-again";

/// Whether any file below says this.
fn found_in(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).any(|path| {
        if path.is_dir() {
            return found_in(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[tokio::test]
async fn a_quota_holds_over_a_crash_and_an_erased_tenant_is_not_on_the_disk_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("quotas.yaml");
    std::fs::write(&file, QUOTAS).expect("written");
    let mut server = Server::start(&["--no-worker"]).await;
    let applied = server.cli(&["quotas", "apply", &file.display().to_string()]).await;
    assert!(applied.status.success(), "{applied:?}");
    let said = String::from_utf8_lossy(&applied.stderr).into_owned();
    assert!(said.contains("ceilings.pools.gpus: there is no such pool"), "{said}");
    let payload = format!("\"{SECRET}\"");
    let submit = ["--tenant", "acme", "submit", "job.echo", "--payload", &payload];
    for _ in 0..3 {
        assert!(server.cli(&submit).await.status.success());
    }
    server.crash_and_restart().await;
    let refused = server.cli(&submit).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("quota of 3 jobs"), "{said}");
    let tenants = server.cli(&["tenants"]).await;
    let tenants = String::from_utf8_lossy(&tenants.stdout).into_owned();
    assert!(tenants.contains("acme") && tenants.contains("3 of 3"), "{tenants}");
    assert!(found_in(server.folder(), SECRET), "it is there before it is gone");

    let unsure = server.cli(&["tenants", "erase", "acme"]).await;
    assert!(!unsure.status.success(), "{unsure:?}");
    let erased = server.cli(&["--json", "tenants", "erase", "acme", "--yes"]).await;
    let erased: Value = serde_json::from_slice(&erased.stdout).expect("JSON");
    assert_eq!((&erased["ended"], &erased["jobs"]), (&Value::from(3), &Value::from(3)), "{erased}");
    assert!(!found_in(server.folder(), SECRET), "deleted bytes are overwritten");
    let verified = server.cli(&["audit", "verify"]).await;
    assert!(verified.status.success(), "{verified:?}");
}
