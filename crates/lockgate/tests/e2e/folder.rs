//! The data folder belongs to one process.

use super::harness::{Server, binary};

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused_with_a_clear_error() {
    let server = Server::start(&["--no-worker"]).await;
    let second = binary()
        .args(["serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"])
        .arg(server.folder())
        .output()
        .await
        .expect("it runs");
    assert!(!second.status.success());
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains("another lockgate process uses this data folder"), "{text}");
}

#[tokio::test]
async fn other_machines_are_kept_out_until_somebody_insists() {
    let refused = binary()
        .args(["serve", "--listen", "0.0.0.0:0", "--metrics", "127.0.0.1:0", "--data", "never-made"])
        .output()
        .await
        .expect("it runs");
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("--insecure-no-auth"), "{text}");
    assert!(!std::path::Path::new("never-made").exists());
}
