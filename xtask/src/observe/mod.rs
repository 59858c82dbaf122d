//! What an operator would see: a cluster under load and in trouble, a real Prometheus that scrapes it, every question that a
//! dashboard asks, and every alert. A question without an answer is a broken picture; so is an alert that stays silent when it is
//! time, or fires when it is not.

mod alarms;
mod rules;
mod story;
mod voice;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use lockgate_testbed::{Prometheus, http_get, wait_until};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use self::alarms::Alarms;
use self::story::{NOT_PROVOKED, ObservedStory};
use crate::cluster::{Build, Cluster, ProcessLogs, build};
use crate::dashboards;
use crate::servers::runtime;
use crate::tools::program;

const RULES: [&str; 2] = ["recording.yaml", "alerts.yaml"];

/// Whether every question had an answer and every alert its time.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        // Nearly everything goes wrong on purpose: what the processes say of it would hide what is said here.
        let mut cluster = Cluster::new(build(root, Build::Development).await?, ProcessLogs::Dropped)?;
        let story = ObservedStory::begin(root, &mut cluster).await?;
        let folder = tempfile::tempdir()?;
        let prometheus = Prometheus::start(&configuration(root, folder.path(), &cluster.metrics())?)?;
        println!("Prometheus scrapes {} processes at {}", cluster.metrics().len(), prometheus.url());
        let mut alarms = Alarms::new(&prometheus);
        story.happen(&mut cluster, &mut alarms).await?;
        let clean = check_metrics(root, &cluster).await?;
        let answered = look(&prometheus);
        story.end(&mut cluster, &mut alarms).await?;
        let text = std::fs::read_to_string(root.join("deploy/prometheus/alerts.yaml"))?;
        println!("alerts: {} of {} fired when it was time", alarms.fired().len(), rules::alerts(&text).count());
        NOT_PROVOKED.iter().for_each(|(alert, why)| println!("  not tried: {alert}: {why}"));
        cluster.stop().await;
        Ok(clean && answered)
    })
}

fn configuration(root: &Path, folder: &Path, targets: &[String]) -> anyhow::Result<String> {
    let mut rules = String::new();
    for file in RULES {
        let text = std::fs::read_to_string(root.join("deploy/prometheus").join(file))?;
        std::fs::write(folder.join(file), rules::quick(&text))?;
        rules += &format!("  - {}\n", folder.join(file).display());
    }
    let targets: String = targets.iter().map(|target| format!("          - {target}\n")).collect();
    Ok(format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files:\n{rules}scrape_configs:\n  - job_name: lockgate\n    \
         static_configs:\n      - targets:\n{targets}",
    ))
}

/// What promtool thinks of the text that every process shows.
async fn check_metrics(root: &Path, cluster: &Cluster) -> anyhow::Result<bool> {
    let mut clean = true;
    for address in cluster.metrics() {
        let text = http_get(&address, "/metrics")?;
        let mut promtool = Command::new(program(root, "promtool"));
        promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut promtool = promtool.spawn().context("promtool does not run; `make servers` gets it")?;
        promtool.stdin.take().context("promtool does not listen")?.write_all(text.as_bytes()).await?;
        let said = promtool.wait_with_output().await?;
        if !said.status.success() {
            clean = false;
            println!("promtool on {address}: {}", String::from_utf8_lossy(&[said.stdout, said.stderr].concat()));
        }
    }
    println!("promtool check metrics: {}", if clean { "clean" } else { "not clean" });
    Ok(clean)
}

/// Asks everything the dashboards ask, and shows what had no answer.
fn look(prometheus: &Prometheus) -> bool {
    let queries = dashboards::queries();
    let mut silent = Vec::new();
    // A rate needs two scrapes, and the last act of the story may be younger than that.
    let _ = wait_until("every query has data", Duration::from_secs(20), || {
        silent = queries.iter().filter(|(_, query)| !has_answer(prometheus, query).unwrap_or(false)).collect();
        silent.is_empty()
    });
    silent.iter().for_each(|(dashboard, query)| println!("no data: {dashboard}: {query}"));
    println!("dashboards: {} of {} queries have data", queries.len() - silent.len(), queries.len());
    silent.is_empty()
}

fn has_answer(prometheus: &Prometheus, query: &str) -> anyhow::Result<bool> {
    Ok(!question(prometheus, &query.replace("$__rate_interval", "5m"))?.is_empty())
}

/// The rows of an answer.
fn question(prometheus: &Prometheus, query: &str) -> anyhow::Result<Vec<Value>> {
    let answer: Value = serde_json::from_str(&prometheus.get(&format!("/api/v1/query?query={}", escaped(query)))?)?;
    Ok(answer["data"]["result"].as_array().context("an answer without a result")?.clone())
}

/// For an address.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped_for_an_address() {
        assert_eq!(escaped("sum by (le) (a_b[5m]) > 0.5"), "sum%20by%20%28le%29%20%28a_b%5B5m%5D%29%20%3E%200.5");
    }

    #[test]
    fn every_alert_is_brought_about_or_says_why_not() {
        let root = crate::root().expect("a root");
        let alerts = std::fs::read_to_string(root.join("deploy/prometheus/alerts.yaml")).expect("the alerts");
        let story = include_str!("story.rs");
        for alert in rules::alerts(&alerts) {
            assert_eq!(story.matches(&format!("\"{alert}\"")).count(), 1, "{alert} is neither expected nor excused");
        }
    }
}
