//! Pools to run in, and questions about what waits.

use std::time::Duration;

use serde_json::Value;

use super::rest::Reply;
use super::{PATIENCE, Server};

/// `job.echo` runs in `echo`, or else in `spare`; `job.scan` in `scan`, where the scheduler picks the worker; one tenant may
/// run one `job.one` at a time; `job.mail` may start once an hour.
pub(crate) const POOLS: &str = "\
topics:
  job.echo: [echo, spare]
  job.scan: scan
  job.one: one
  job.mail: spare
pools:
  echo: {description: says it again}
  spare: {}
  scan: {dispatch: direct, capabilities: [git]}
  one: {tenant_max_concurrent: 1}
limits:
  - {name: mails, topics: [job.mail], rate: 1/h}
";

impl Server {
    /// A server with [`POOLS`].
    pub(crate) async fn with_pools() -> Self {
        let server = Self::start().await;
        server.configure("pools", POOLS).await;
        server
    }

    /// Puts pools or timeouts in force that must be accepted.
    pub(crate) async fn configure(&self, kind: &str, text: &str) -> Value {
        let reply = self.put_config(kind, "", text).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json
    }

    pub(crate) async fn put_config(&self, kind: &str, query: &str, text: &str) -> Reply {
        let request = self.request("PUT", &format!("/v1/config/{kind}{query}")).header("content-type", "application/yaml");
        self.send(request, text.to_owned()).await
    }

    /// One pool as the list has it.
    pub(crate) async fn pool(&self, name: &str) -> Value {
        let listed = self.get("/v1/pools").await.json;
        let pools = listed["pools"].as_array().expect("a list");
        pools.iter().find(|pool| pool["name"] == name).unwrap_or_else(|| panic!("no pool {name} in {listed}")).clone()
    }

    pub(crate) async fn why(&self, id: &str) -> Value {
        let reply = self.get(&format!("/v1/jobs/{id}/why")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json
    }

    /// What keeps a job waiting, once that is the reason.
    pub(crate) async fn why_of(&self, id: &str, reason: &str) -> Value {
        self.why_until(id, |why| why["reason"] == reason).await
    }

    /// What keeps a job waiting, once it is as wanted; loops of the engine take it there.
    pub(crate) async fn why_until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let looked = async {
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            loop {
                let why = self.why(id).await;
                if wanted(&why) {
                    return why;
                }
                pause.tick().await;
            }
        };
        match tokio::time::timeout(PATIENCE, looked).await {
            Ok(why) => why,
            Err(_) => panic!("it never was as wanted: {}", self.why(id).await),
        }
    }
}
