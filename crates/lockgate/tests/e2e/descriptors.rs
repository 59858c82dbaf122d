//! Few file descriptors: clients cannot take the last ones, and jobs do not pay for a lack of them.

use lockgate_proto::v1;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::harness::{Server, job, submit, until};

/// What an HTTP/2 client says before it asks anything: such a connection may be idle for as long as it likes.
const IDLE_CLIENT: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn beside_sixty_idle_connections_and_few_descriptors_no_job_pays() {
    let server = Server::start_with_descriptors(64, &["--allow-exec"]).await;
    let address = server.api.trim_start_matches("http://");
    let mut idle = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(IDLE_CLIENT).await.expect("sent");
        idle.push(stream);
    }
    let mut client = server.client().await;
    let ids: Vec<String> = (0..20).map(|n| format!("exec-{n}")).collect();
    let payload = r#"{"command": ["sh", "-c", "sleep 0.1"]}"#;
    submit(&mut client, ids.iter().map(|id| job(id, "job.exec", payload)).collect()).await.expect("submitted");
    for id in &ids {
        let ended = until(&mut client, id, |job| job.ended_at_ms.is_some()).await;
        assert_eq!(ended.state(), v1::JobState::Succeeded, "{ended:?}");
        assert_eq!(ended.failures, 0, "{ended:?}");
    }
}
