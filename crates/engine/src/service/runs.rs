//! Runs: started, looked at, paused, cancelled, run again, put right.

use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::dag::plan::{RunCommand, Start, begin};
use lockgate_core::dag::saga::outline;
use lockgate_core::dag::{Dag, DagRef, NodeKey, Run, RunHead, RunState, asked};
use lockgate_core::ids::{RunId, check_name};
use lockgate_core::limits::PAYLOAD_BYTES_MAX;
use lockgate_core::quotas::Limited;
use lockgate_core::request::Caller;
use lockgate_ports::{Listing, Mint, RunKey, RunQuery, RunRefusal};
use serde_json::Value;

use super::read::{check_limit, check_reach};
use super::to_the_end;
use crate::error::ApiError;
use crate::runs::{DagKey, Planned};
use crate::{Engine, Inner};

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct StartRun {
    pub dag: String,
    /// The latest, if none is named.
    pub version: Option<u32>,
    /// A JSON map.
    pub params: Value,
    /// A second start with this key and the same request answers with the first run.
    pub idempotency_key: Option<String>,
    /// Nothing that was done before stands for what its nodes are to do.
    pub fresh: bool,
}

#[derive(Clone, Debug)]
pub struct StartedRun {
    pub run: RunId,
    pub dag: DagRef,
    /// The key already had this very run.
    pub existing: bool,
}

/// A run with the definition it is pinned to.
#[derive(Clone, Debug)]
pub struct RunView {
    pub run: Run,
    pub dag: Arc<Dag>,
}

/// What a person asks of a run, by the names of nodes.
#[derive(Clone, Debug)]
pub enum RunOrder {
    Pause,
    Resume,
    Cancel { compensate: bool, note: Option<Arc<str>> },
    Rerun { from: Vec<String>, params: serde_json::Map<String, Value>, fresh: bool },
    Resolve { node: String, item: Option<u32> },
    Retry { node: String, item: Option<u32> },
}

impl Engine {
    pub async fn start_run(&self, caller: &Caller, start: StartRun) -> Result<StartedRun, ApiError> {
        if let Some(Err(error)) = start.idempotency_key.as_deref().map(check_name) {
            return Err(ApiError::invalid("idempotency_key", error));
        }
        if start.params.to_string().len() > PAYLOAD_BYTES_MAX {
            return Err(ApiError::invalid("params", format_args!("must be at most {PAYLOAD_BYTES_MAX} bytes of JSON")));
        }
        let view = self.dag(caller, &start.dag, start.version).await?;
        let params = view.dag.check_params(&start.params).map_err(ApiError::Invalid)?;
        let hash = asked(&start.dag, start.version, &start.params, start.fresh);
        let key = start.idempotency_key.as_deref().map(|key| RunKey { key: key.into(), hash });
        let ticket = match self.inner.admit_run(caller, &view.dag).await? {
            Ok(ticket) => ticket,
            Err(limited) => return self.started_already(caller, key, limited).await,
        };
        let inner = self.inner.clone();
        let now = inner.ports.clock.now();
        let id = RunId::new(format!("{}{}", RunId::PREFIX, inner.ports.entropy.uuid(now)));
        let of = DagRef { name: view.row.name.clone(), version: view.row.version };
        let began = inner.traces.begin();
        let traced = inner.traces.root(&id, caller);
        let timeout = self.inner.config.timeouts().of_workflow(&of.name);
        let begins = Start { id: id.clone(), of: of.clone(), params, parent: None, fresh: start.fresh, timeout };
        let (live, next) = begin(&view.dag, begins, &traced, now);
        let head = live.run().head.clone();
        let detail = serde_json::json!({ "dag": of.name, "version": of.version });
        let audit = vec![inner.entry(caller, AuditAction::RunStarted, &id.as_str().into(), &detail)];
        let planned = Planned { key, audit, ..Planned::step(live, RunState::Running, next, Vec::new()) };
        let begun = to_the_end(async move {
            let _until_answered = ticket;
            let begun = inner.begin_surely(planned).await;
            if let Ok(Ok(())) = &begun {
                inner.traces.run_began(began, &head);
            }
            begun
        })
        .await??;
        match begun {
            Ok(()) => Ok(StartedRun { run: id, dag: of, existing: false }),
            Err(RunRefusal::Taken { run, hash: first }) => self.same_run(caller, run, first == hash).await,
            Err(RunRefusal::Conflict) => Err(ApiError::Unavailable("the run could not begin; try again".into())),
            Err(RunRefusal::Refused(why)) => Err(ApiError::refused(format_args!("run {id}"), &why)),
        }
    }

    /// There is no room; but whoever starts again what it started before gets its run back.
    async fn started_already(&self, caller: &Caller, key: Option<RunKey>, limited: Limited) -> Result<StartedRun, ApiError> {
        if let Some(RunKey { key, hash }) = key
            && let Ok(Some((run, first))) = self.inner.ports.store.run_of_key(&caller.tenant, &key).await
        {
            return self.same_run(caller, run, first == hash).await;
        }
        Err(self.inner.refused(limited))
    }

    async fn same_run(&self, caller: &Caller, run: RunId, is_same: bool) -> Result<StartedRun, ApiError> {
        if !is_same {
            return Err(ApiError::KeyTaken { what: "the idempotency key", first: run.to_string() });
        }
        let dag = self.run_head(caller, &run).await?.dag;
        Ok(StartedRun { run, dag, existing: true })
    }

    pub async fn run_view(&self, caller: &Caller, id: &RunId) -> Result<RunView, ApiError> {
        self.inner.shown_run(caller, id, 0).await
    }

    /// A run without its nodes.
    pub async fn run_head(&self, caller: &Caller, id: &RunId) -> Result<RunHead, ApiError> {
        let mut run = self.inner.stored_run(caller, id, i64::MAX).await?;
        if !caller.sees_payloads {
            run.hide();
        }
        Ok(run.head)
    }

    pub async fn runs(&self, caller: &Caller, query: RunQuery) -> Result<Listing<RunHead>, ApiError> {
        check_limit(query.limit)?;
        check_reach(caller, query.tenant.as_ref())?;
        let mut listing = self.inner.ports.store.list_runs(query).await?;
        if !caller.sees_payloads {
            listing.items.iter_mut().for_each(RunHead::hide);
        }
        Ok(listing)
    }

    pub async fn order_run(&self, caller: &Caller, id: &RunId, order: RunOrder) -> Result<RunHead, ApiError> {
        // Nodes of a saga have no names but those of their rows.
        let since = if id.is_saga() { 0 } else { i64::MAX };
        if id.is_saga() {
            self.inner.hear_all(id).await?;
        }
        let view = self.inner.run_since(caller, id, since).await?;
        check_params(&order, &view)?;
        let (action, detail) = record(&order);
        let order = in_indexes(order, &view, caller)?;
        let ticket = match &order {
            RunCommand::Rerun { from, .. } if view.run.head.state.is_over() => {
                Some(self.inner.admit_rerun(&caller.tenant, &view.dag, from).await?)
            }
            _ => None,
        };
        let audit = vec![self.inner.entry(caller, action, &id.as_str().into(), &detail)];
        let (inner, id) = (self.inner.clone(), id.clone());
        let mut head = to_the_end(async move {
            let _until_answered = ticket;
            inner.order(&id, order, audit).await
        })
        .await??;
        if !caller.sees_payloads {
            head.hide();
        }
        Ok(head)
    }
}

impl Inner {
    /// The caller's own run, with the nodes that changed after a version; another tenant's does not exist for it.
    pub(super) async fn run_since(&self, caller: &Caller, id: &RunId, version: i64) -> Result<RunView, ApiError> {
        let run = self.stored_run(caller, id, version).await?;
        if id.is_saga() {
            let dag = Arc::new(outline(&run));
            return Ok(RunView { run, dag });
        }
        let row = || format!("version {} of DAG {:?}, which run {id} follows,", run.head.dag.version, run.head.dag.name);
        let known = self.definition(&DagKey::of(&run.head.tenant, &run.head.dag)).await;
        let known = known.map_err(|error| self.unread(row, error))?;
        let known = known.ok_or_else(|| ApiError::Damaged { row: row(), why: "it is gone".into() })?;
        Ok(RunView { run, dag: known.dag })
    }

    /// The caller's own run without its definition, which may be unreadable.
    async fn stored_run(&self, caller: &Caller, id: &RunId, version: i64) -> Result<Run, ApiError> {
        let run = self.ports.store.run_since(id, version).await;
        let run = run.map_err(|error| self.unread(|| format!("run {id}"), error))?;
        run.filter(|run| run.head.tenant == caller.tenant).ok_or_else(|| ApiError::no_run(id))
    }

    /// The same as far as the caller may see it.
    pub(super) async fn shown_run(&self, caller: &Caller, id: &RunId, version: i64) -> Result<RunView, ApiError> {
        let mut view = self.run_since(caller, id, version).await?;
        if !caller.sees_payloads {
            view.run.hide();
        }
        Ok(view)
    }

    /// Begins a run, and reads back what became of a commit whose outcome is unknown.
    async fn begin_surely(&self, planned: Planned) -> Result<Result<(), RunRefusal>, ApiError> {
        let id = planned.live.run().head.id.clone();
        match self.advance(vec![planned]).await {
            Ok(mut answers) => {
                self.run_queue.wake([id]);
                Ok(answers.pop().unwrap_or(Err(RunRefusal::Conflict)))
            }
            Err(error) if error.certainly_not_applied() => Err(error.into()),
            Err(error) => match self.ports.store.run_since(&id, i64::MAX).await?.is_some() {
                true => {
                    self.run_queue.wake([id]);
                    Ok(Ok(()))
                }
                false => Err(error.into()),
            },
        }
    }
}

fn record(order: &RunOrder) -> (AuditAction, Value) {
    match order {
        RunOrder::Pause => (AuditAction::RunPaused, Value::Null),
        RunOrder::Resume => (AuditAction::RunResumed, Value::Null),
        RunOrder::Cancel { compensate, note } => {
            (AuditAction::RunCancelled, serde_json::json!({ "compensate": compensate, "note": note }))
        }
        RunOrder::Rerun { from, params, fresh } => {
            let params: Vec<_> = params.keys().collect();
            (AuditAction::RunRerun, serde_json::json!({ "from": from, "params": params, "fresh": fresh }))
        }
        RunOrder::Resolve { node, item } => {
            (AuditAction::CompensationResolved, serde_json::json!({ "node": node, "item": item }))
        }
        RunOrder::Retry { node, item } => {
            (AuditAction::CompensationRetried, serde_json::json!({ "node": node, "item": item }))
        }
    }
}

/// What a rerun changes must fit the definition together with what it keeps.
fn check_params(order: &RunOrder, view: &RunView) -> Result<(), ApiError> {
    let RunOrder::Rerun { params, .. } = order else { return Ok(()) };
    let kept = match view.run.head.params.value() {
        Ok(Value::Object(kept)) => kept,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let merged: serde_json::Map<String, Value> = kept.into_iter().chain(params.clone()).collect();
    view.dag.check_params(&Value::Object(merged)).map(|_| ()).map_err(ApiError::Invalid)
}

fn in_indexes(order: RunOrder, view: &RunView, caller: &Caller) -> Result<RunCommand, ApiError> {
    let whole = if view.run.head.id.is_saga() { "the workflow has no job" } else { "the DAG has no node" };
    let none = |name: &str| ApiError::invalid("node", format_args!("{whole} {name:?}"));
    let node = |name: &str| view.dag.index(name).ok_or_else(|| none(name));
    Ok(match order {
        RunOrder::Pause => RunCommand::Pause,
        RunOrder::Resume => RunCommand::Resume,
        RunOrder::Cancel { compensate, note } => RunCommand::Cancel { actor: caller.actor.clone(), note, compensate },
        RunOrder::Rerun { from, params, fresh } => {
            RunCommand::Rerun { from: from.iter().map(|name| node(name)).collect::<Result<_, _>>()?, params, fresh }
        }
        RunOrder::Resolve { node: name, item } => {
            RunCommand::Resolve { key: NodeKey { node: node(&name)?, item }, actor: caller.actor.clone() }
        }
        RunOrder::Retry { node: name, item } => RunCommand::Retry { key: NodeKey { node: node(&name)?, item } },
    })
}
