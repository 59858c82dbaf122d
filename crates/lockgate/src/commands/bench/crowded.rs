//! The duration of submits beside a thousand silent connections and two hundred slow ones.

use std::time::Duration;

use lockgate_proto::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::report::{BenchReport, percentile};
use super::server::{Bed, BenchServer};
use super::traffic::TrafficClient;
use crate::error::CliError;

const IDLE: usize = 1_000;
const SLOW: usize = 200;
/// Submits a second.
const RATE: u64 = 200;
/// The pause between two bytes of a slow body.
const DRIP: Duration = Duration::from_millis(100);

pub(super) async fn measure(bed: &Bed, quick: bool, report: &mut BenchReport) -> Result<(), CliError> {
    // The server closes a silent connection after ten seconds, so each round is shorter and opens its own connections.
    let (rounds, seconds) = if quick { (1, 1) } else { (4, 4) };
    report
        .note(&format!("crowded: {RATE} submits/s beside {IDLE} idle and {SLOW} slow connections, {rounds} × {seconds} s"));
    let server = BenchServer::start_on(bed).await?;
    let client = server.client().await?;
    submits(&client, seconds).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.extend(submits(&client, seconds).await?);
        let crowd = IdleCrowd::gather(&server.api).await?;
        beside.extend(submits(&client, seconds).await?);
        crowd.must_be_there()?;
    }
    for samples in [&mut alone, &mut beside] {
        samples.sort_by(f64::total_cmp);
    }
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let (alone, beside) = (percentile(&alone, share), percentile(&beside, share));
        report.add(format!("{}.crowded_submit_{name}_ms", bed.name), beside, "ms, beside the crowd");
        report.add(format!("{}.crowded_submit_{name}_ratio", bed.name), beside / alone.max(0.001), "times that without it");
    }
    Ok(())
}

/// How long each submit took, in milliseconds.
async fn submits(client: &TrafficClient, seconds: u64) -> Result<Vec<f64>, CliError> {
    let (start, mut calls) = (Instant::now(), JoinSet::new());
    for n in 0..RATE * seconds {
        let due = start + Duration::from_secs_f64(n as f64 / RATE as f64);
        tokio::time::sleep_until(due).await;
        let job = v1::NewJob { topic: "bench.crowded".to_owned(), ..v1::NewJob::default() };
        let (mut stub, request) = (client.stub(), client.request(v1::SubmitJobRequest { job: Some(job) }));
        calls.spawn(async move { (stub.submit_job(request).await, due.elapsed()) });
    }
    let mut taken = Vec::new();
    while let Some(call) = calls.join_next().await {
        let (answer, took) = call.map_err(|error| CliError::Server(error.to_string()))?;
        answer.map_err(|status| CliError::Server(status.to_string()))?;
        taken.push(took.as_secs_f64() * 1e3);
    }
    Ok(taken)
}

struct IdleCrowd {
    idle: Vec<TcpStream>,
    slow: Vec<JoinHandle<()>>,
}

impl IdleCrowd {
    async fn gather(api: &str) -> Result<Self, CliError> {
        let address = api.strip_prefix("http://").unwrap_or(api);
        let (mut idle, mut slow) = (Vec::with_capacity(IDLE), Vec::with_capacity(SLOW));
        for _ in 0..IDLE {
            let mut stream = connect(address).await?;
            stream.write_all(format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
            let mut answer = [0; 512];
            let read = stream.read(&mut answer).await?;
            if !answer[..read].starts_with(b"HTTP/1.1 200") {
                return Err(CliError::Server("a connection of the crowd was not answered".to_owned()));
            }
            idle.push(stream);
        }
        for _ in 0..SLOW {
            let mut stream = connect(address).await?;
            let head = "content-type: application/json\r\ncontent-length: 100000\r\n\r\n{";
            stream.write_all(format!("POST /v1/jobs HTTP/1.1\r\nhost: {address}\r\n{head}").as_bytes()).await?;
            slow.push(tokio::spawn(async move {
                while stream.write_all(b" ").await.is_ok() {
                    tokio::time::sleep(DRIP).await;
                }
            }));
        }
        Ok(Self { idle, slow })
    }

    /// Without the connections the figures would prove nothing.
    fn must_be_there(&self) -> Result<(), CliError> {
        let quiet = |stream: &TcpStream| {
            stream.try_read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let idle = self.idle.iter().filter(|stream| quiet(stream)).count();
        let slow = self.slow.iter().filter(|task| !task.is_finished()).count();
        match (idle, slow) {
            (IDLE, SLOW) => Ok(()),
            _ => Err(CliError::Server(format!("only {idle} idle and {slow} slow connections were left"))),
        }
    }
}

impl Drop for IdleCrowd {
    fn drop(&mut self) {
        self.slow.iter().for_each(JoinHandle::abort);
    }
}

async fn connect(address: &str) -> Result<TcpStream, CliError> {
    let told = |error| {
        CliError::Server(format!("a connection of the crowd: {error}; `ulimit -n` must allow {} files", 2 * (IDLE + SLOW)))
    };
    TcpStream::connect(address).await.map_err(told)
}
