//! The API over TLS.

use std::path::PathBuf;

use lockgate_gateway::{GatewaySettings, ListenerTls};
use lockgate_proto::v1::ListJobsRequest;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use crate::support::Server;
use crate::support::tls::{Authority, Folder, client, get};

struct Stage {
    folder: Folder,
    authority: Authority,
    tls: ListenerTls,
    server: Server,
}

impl Stage {
    async fn start() -> Self {
        let (folder, authority) = (Folder::new(), Authority::new());
        let (cert, key): (PathBuf, PathBuf) = folder.write_pair(&authority.server());
        let tls = ListenerTls::load(cert, key, None).expect("a good pair");
        let server = Server::start_with(GatewaySettings { tls: Some(tls.clone()), ..GatewaySettings::default() }).await;
        Self { folder, authority, tls, server }
    }

    async fn grpc(&self, authority: &Authority) -> Result<SchedulerClient<Channel>, tonic::transport::Error> {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem()));
        let endpoint = Channel::from_shared(format!("https://localhost:{}", self.server.address.port())).expect("a URL");
        Ok(SchedulerClient::new(endpoint.tls_config(config)?.connect().await?))
    }

    async fn rest(&self, authority: &Authority) -> std::io::Result<String> {
        get(self.server.address, client(authority, None), "/v1/jobs").await
    }
}

#[tokio::test]
async fn grpc_and_rest_share_one_port_over_tls() {
    let stage = Stage::start().await;
    let listed = stage.grpc(&stage.authority).await.expect("connects").list_jobs(ListJobsRequest::default()).await;
    assert!(listed.expect("an answer").into_inner().jobs.is_empty());
    let answer = stage.rest(&stage.authority).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_believes_another_authority_does_not_talk() {
    let stage = Stage::start().await;
    let other = Authority::new();
    assert!(stage.grpc(&other).await.is_err());
    let error = stage.rest(&other).await.expect_err("no trust");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_new_certificate_is_taken_up_and_open_connections_stay() {
    let stage = Stage::start().await;
    let mut open = stage.grpc(&stage.authority).await.expect("connects");
    open.list_jobs(ListJobsRequest::default()).await.expect("an answer");
    assert!(!stage.tls.reload().expect("the same files"));

    stage.folder.write("cert.pem", "nonsense");
    assert!(stage.tls.reload().is_err());
    stage.rest(&stage.authority).await.expect("the old certificate is still in use");

    let next = Authority::new();
    stage.folder.write_pair(&next.server());
    assert!(stage.tls.reload().expect("a good pair"));
    stage.rest(&next).await.expect("the new certificate is in use");
    assert!(stage.rest(&stage.authority).await.is_err(), "and the old one is not");
    open.list_jobs(ListJobsRequest::default()).await.expect("what was open is still");
}

#[tokio::test]
async fn metrics_are_served_over_tls_too() {
    let stage = Stage::start().await;
    let settings = GatewaySettings { tls: Some(stage.tls.clone()), ..GatewaySettings::default() };
    let address = stage.server.metrics(settings).await;
    let answer = get(address, client(&stage.authority, None), "/metrics").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("# TYPE lockgate_"), "{answer}");
}
