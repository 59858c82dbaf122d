//! Workflows: store a definition, start a run, follow it.

use std::time::Duration;

use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Instant, sleep};

use crate::builder::Client;
use crate::error::ClientError;
use crate::record::raw;
use crate::state::RunState;

/// A server that restarts is away for a second or two.
const AWAY_MAX: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// A run to be started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewRun {
    dag: String,
    version: Option<u32>,
    params: Option<Box<RawValue>>,
    idempotency_key: Option<String>,
    fresh: bool,
    #[serde(skip)]
    fault: Option<String>,
}

/// A run that was started, or one that is known by its id.
#[derive(Clone, Debug)]
pub struct RunHandle {
    client: Client,
    run_id: String,
    existing: bool,
}

/// A run and what became of it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunRecord {
    pub run_id: String,
    pub dag: String,
    pub dag_version: u32,
    pub tenant: String,
    pub actor: String,
    pub state: RunState,
    pub params: Option<Box<RawValue>>,
    pub output: Option<Box<RawValue>>,
    /// Why it failed or was cancelled.
    pub reason: String,
    pub message: String,
    pub began_at_ms: i64,
    pub ended_at_ms: Option<i64>,
    /// Nodes that are over, of all.
    pub done: u32,
    pub total: u32,
    /// In topological order.
    pub nodes: Vec<NodeRecord>,
}

/// A node of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NodeRecord {
    pub name: String,
    /// Index of the item of a `for_each` node; none for the node itself.
    pub item: Option<u32>,
    /// Such as `RUNNING`.
    pub state: String,
    pub topic: String,
    pub job_id: String,
    pub reason: String,
    pub message: String,
    pub output: Option<Box<RawValue>>,
}

impl NewRun {
    /// A run of the latest version of this DAG, without parameters.
    pub fn new(dag: impl Into<String>) -> Self {
        Self { dag: dag.into(), ..Self::default() }
    }

    /// A version of the DAG other than the latest.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = Some(version);
        self
    }

    /// The parameters: a value that is an object in JSON.
    #[must_use]
    pub fn params(mut self, params: &(impl Serialize + ?Sized)) -> Self {
        match to_raw_value(params) {
            Ok(json) => self.params = Some(json),
            Err(error) => self.fault = Some(error.to_string()),
        }
        self
    }

    /// A name chosen by the client: a repeated start with this key answers with the run it started first.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Every node does its work: stored results of equal work are not used again.
    #[must_use]
    pub const fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }
}

impl Client {
    /// Checks a definition in YAML and stores it as the next version of its name; name and version.
    pub async fn put_dag(&self, yaml: &str) -> Result<(String, u32), ClientError> {
        let mut orchestrator = self.orchestrator();
        let call = orchestrator.put_dag(v1::PutDagRequest { file: String::new(), text: yaml.to_owned() });
        let stored = self.answer(call).await?;
        Ok((stored.name, stored.version))
    }

    /// Starts a run.
    pub async fn start_dag(&self, run: NewRun) -> Result<RunHandle, ClientError> {
        if let Some(fault) = run.fault {
            return Err(ClientError::invalid("params", format_args!("are not valid JSON: {fault}")));
        }
        let request = v1::StartDagRequest {
            dag: run.dag,
            version: run.version,
            params_json: run.params.map(|json| String::from(Box::<str>::from(json)).into()).unwrap_or_default(),
            idempotency_key: run.idempotency_key.unwrap_or_default(),
            fresh: run.fresh,
        };
        let mut orchestrator = self.orchestrator();
        let started = self.answer(orchestrator.start_dag(request)).await?;
        Ok(RunHandle { client: self.clone(), run_id: started.run_id, existing: started.existing })
    }

    /// A run known by its id. Nothing is asked of the server.
    pub fn run(&self, run_id: impl Into<String>) -> RunHandle {
        RunHandle { client: self.clone(), run_id: run_id.into(), existing: true }
    }

    /// A run with all its nodes.
    pub async fn get_run(&self, run_id: &str) -> Result<RunRecord, ClientError> {
        let mut orchestrator = self.orchestrator();
        let call = orchestrator.get_dag_run(v1::GetDagRunRequest { run_id: run_id.to_owned() });
        self.answer(call).await.map(Into::into)
    }

    /// Cancels a run; with `compensate` its finished work is undone.
    pub async fn cancel_run(&self, run_id: &str, reason: &str, compensate: bool) -> Result<RunState, ClientError> {
        let request = v1::CancelDagRequest { run_id: run_id.to_owned(), reason: reason.to_owned(), compensate };
        let mut orchestrator = self.orchestrator();
        let answer = self.answer(orchestrator.cancel_dag(request)).await?;
        Ok(RunState::from_wire(answer.state))
    }
}

impl RunHandle {
    pub fn id(&self) -> &str {
        &self.run_id
    }

    /// The idempotency key had started this run before; nothing was started.
    pub const fn existed(&self) -> bool {
        self.existing
    }

    /// The run with all its nodes.
    pub async fn get(&self) -> Result<RunRecord, ClientError> {
        self.client.get_run(&self.run_id).await
    }

    /// Waits until the run is over, also over a restart of the server; the run as it ended.
    pub async fn wait(&self) -> Result<RunRecord, ClientError> {
        let mut away_since = None;
        loop {
            let ended = match self.watch_once().await {
                Ok(()) => self.get().await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(run) if run.ended_at_ms.is_some() => return Ok(run),
                Ok(_) => away_since = None,
                Err(error) => {
                    let since: Instant = *away_since.get_or_insert_with(Instant::now);
                    if !error.is_retryable() || since.elapsed() >= AWAY_MAX {
                        return Err(error);
                    }
                }
            }
            sleep(RETRY_AFTER).await;
        }
    }

    async fn watch_once(&self) -> Result<(), ClientError> {
        let mut orchestrator = self.client.orchestrator();
        let call = orchestrator.watch_dag_run(v1::WatchDagRunRequest { run_id: self.run_id.clone(), after: 0 });
        let mut stream = self.client.answer(call).await?;
        let broken = |status| ClientError::from_broken_stream(&status, &self.client.server);
        while stream.message().await.map_err(broken)?.is_some() {}
        Ok(())
    }

    /// Cancels the run; with `compensate` its finished work is undone.
    pub async fn cancel(&self, reason: &str, compensate: bool) -> Result<RunState, ClientError> {
        self.client.cancel_run(&self.run_id, reason, compensate).await
    }
}

impl From<v1::DagRun> for RunRecord {
    fn from(run: v1::DagRun) -> Self {
        Self {
            state: RunState::from_wire(run.state),
            params: raw(&run.params_json),
            output: raw(&run.output_json),
            nodes: run.nodes.into_iter().map(Into::into).collect(),
            run_id: run.run_id,
            dag: run.dag,
            dag_version: run.dag_version,
            tenant: run.tenant,
            actor: run.actor,
            reason: run.reason,
            message: run.message,
            began_at_ms: run.began_at_ms,
            ended_at_ms: run.ended_at_ms,
            done: run.done,
            total: run.total,
        }
    }
}

impl From<v1::DagNode> for NodeRecord {
    fn from(node: v1::DagNode) -> Self {
        let state = v1::NodeState::try_from(node.state).unwrap_or_default().as_str_name();
        Self {
            state: state.trim_start_matches("NODE_STATE_").to_owned(),
            output: raw(&node.output_json),
            name: node.name,
            item: node.item,
            topic: node.topic,
            job_id: node.job_id,
            reason: node.reason,
            message: node.message,
        }
    }
}
