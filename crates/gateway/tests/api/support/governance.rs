//! A policy to decide by, and people who act under it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::rest::Reply;
use super::{PATIENCE, Server};

/// Asks for approval of `job.deploy` (one) and `job.pay` (two), denies `job.forbidden`, fences `shell`, quarantines keys
/// of `job.leak`, redacts addresses of `job.mail`, and allows the rest.
pub(crate) const POLICY: &str = "\
version: 1
default: {decision: allow}
rules:
  - id: forbidden
    match: {topics: [job.forbidden, action.url]}
    decision: deny
    reason: nobody does this
    remediations: [{title: Use the safe one, replacement_topic: job.safe}]
  - id: deploys
    match: {topics: [job.deploy]}
    decision: require_approval
    reason: deploys need a second person
    approval: {request_expiry: 1h}
  - id: payments
    match: {topics: [job.pay], risk_tags: [money]}
    decision: require_approval
    reason: payments need two more people
    approval: {approvers: 2}
  - id: fenced
    match: {capabilities: [shell]}
    decision: allow_with_constraints
    reason: shells stay inside
    constraints: {network: deny, exec: allow, max_runtime_ms: 1500}
output:
  rules:
    - id: no-keys
      match: {topics: [job.leak], scan: [secrets]}
      decision: quarantine
      hold: true
      reason: keys stay inside
    - id: no-addresses
      match: {topics: [job.mail], scan: [pii]}
      decision: redact
      hold: true
      reason: addresses are private
";

impl Server {
    /// A server that decides by [`POLICY`].
    pub(crate) async fn governed() -> Self {
        let server = Self::start().await;
        server.apply(POLICY).await;
        server
    }

    /// Puts a policy in force that must be accepted.
    pub(crate) async fn apply(&self, policy: &str) -> Value {
        let reply = self.put_policy("", policy).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json
    }

    pub(crate) async fn put_policy(&self, query: &str, policy: &str) -> Reply {
        let request = self.request("PUT", &format!("/v1/policy{query}")).header("content-type", "application/yaml");
        self.send(request, policy.to_owned()).await
    }

    /// Posts as somebody.
    pub(crate) async fn post_as(&self, actor: &str, path: &str, body: &Value) -> Reply {
        let request = self.request("POST", path).header("content-type", "application/json");
        self.send(request.header("x-lockgate-actor", actor), Bytes::from(body.to_string())).await
    }

    /// Submits as ann a job that must be accepted; its id.
    pub(crate) async fn submit_as_ann(&self, job: Value) -> String {
        let reply = self.post_as("ann", "/v1/jobs", &job).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json["job_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn job(&self, id: &str) -> Value {
        let reply = self.get(&format!("/v1/jobs/{id}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json
    }

    /// The job once it has come to a state; loops of the engine take it there.
    pub(crate) async fn job_in(&self, id: &str, state: &str) -> Value {
        let looked = async {
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            loop {
                let job = self.job(id).await;
                if job["state"] == state {
                    return job;
                }
                pause.tick().await;
            }
        };
        tokio::time::timeout(PATIENCE, looked).await.unwrap_or_else(|_| panic!("job {id} never became {state}"))
    }

    /// The body of an answer to the question a job waits with.
    pub(crate) async fn ballot(&self, id: &str) -> Value {
        let job = self.job(id).await;
        json!({ "request_hash": job["request_hash"], "rule_hash": job["approval"]["rule_hash"] })
    }
}
