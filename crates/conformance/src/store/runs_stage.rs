//! Short words for runs.

use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::dag::{DagRef, NodeKey, NodeRun, NodeState, Run, RunHead, RunParent, RunState};
use lockgate_core::ids::{JobId, JobSeq, RunId};
use lockgate_core::job::{Job, Transition, submit};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob, RunRef};
use lockgate_core::verdict::Judgement;

use super::stage::{Found, StoreHarness, allow, new_job};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{NewsRow, RunChange, RunNews, RunQuery, RunRefusal};

/// Why a start or a step was refused, if it was.
pub(super) type Advanced = Result<Vec<JobSeq>, RunRefusal>;

impl StoreHarness {
    pub(super) async fn advance(&self, change: RunChange) -> Found<Advanced> {
        let mut results = self.store.advance(vec![change]).await?;
        results.pop().ok_or_else(|| "the step was not answered".into())
    }

    /// A new run with nothing in it.
    pub(super) async fn begin(&self, run: &str) -> Found<RunHead> {
        let head = head(self, run);
        self.advance(change(head.clone())).await??;
        Ok(head)
    }

    /// A new run with these jobs.
    pub(super) async fn begin_with(&self, run: &str, nodes: &[u32]) -> Found<RunHead> {
        let head = head(self, run);
        let jobs = nodes.iter().map(|node| job_in(self, run, *node, allow())).collect::<Found<_>>()?;
        self.advance(RunChange { jobs, ..change(head.clone()) }).await??;
        Ok(head)
    }

    pub(super) async fn run_of(&self, run: &str) -> Found<Run> {
        let found = self.store.load_runs(&[run.into()]).await?.pop().flatten();
        found.ok_or_else(|| format!("run {run} is not there").into())
    }

    pub(super) async fn news_of(&self, runs: &[&str]) -> Found<Vec<NewsRow>> {
        let runs: Vec<RunId> = runs.iter().map(|run| RunId::from(*run)).collect();
        Ok(self.store.news(&runs, 1_000).await?)
    }

    /// Who is told about, in order.
    pub(super) async fn told(&self, runs: &[&str]) -> Found<Vec<String>> {
        Ok(self.news_of(runs).await?.iter().map(subject).collect())
    }

    /// Everything that a refused step must leave as it is.
    pub(super) async fn around(&self, runs: &[&str]) -> Found<String> {
        let ids: Vec<RunId> = runs.iter().map(|run| RunId::from(*run)).collect();
        let listed = self.store.list_runs(RunQuery { limit: 100, ..RunQuery::default() }).await?.items;
        let whole = self.store.load_runs(&ids).await?;
        let audit = self.store.audit(0, 1_000).await?;
        Ok(format!("{listed:?} {whole:?} {:?} {audit:?} {:?}", self.told(runs).await?, self.store.totals().await?))
    }
}

pub(super) fn subject(news: &NewsRow) -> String {
    match &news.what {
        RunNews::Job { job, .. } => format!("{} {}", job.request.job_id, job.state()),
        RunNews::Run(head) => format!("{} {}", head.id, head.state.as_str()),
    }
}

pub(super) fn head(h: &StoreHarness, run: &str) -> RunHead {
    RunHead {
        id: run.into(),
        version: 1,
        dag: DagRef { name: "etl".into(), version: 1 },
        tenant: "acme".into(),
        actor: "ann".into(),
        actor_type: None,
        actor_verified: false,
        params: Json::trusted("{}"),
        state: RunState::Running,
        began_at: h.clock.now(),
        ended_at: None,
        deadline_at: None,
        timeout_ms: None,
        wakes_at: None,
        paused: false,
        failure: None,
        closing: None,
        tainted: false,
        output: None,
        parent: None,
        done: 0,
        trace: None,
        fresh: false,
        reruns: 0,
        total: 3,
    }
}

pub(super) fn child_of(parent: &str, head: RunHead) -> RunHead {
    RunHead { parent: Some(RunParent { run: parent.into(), node: 1, item: None, depth: 1 }), ..head }
}

/// The head with the next version.
pub(super) fn after(head: &RunHead) -> RunHead {
    RunHead { version: head.version + 1, ..head.clone() }
}

/// A version later, and over.
pub(super) fn over(h: &StoreHarness, head: &RunHead) -> RunHead {
    RunHead { state: RunState::Succeeded, ended_at: Some(h.clock.now()), ..after(head) }
}

/// A step that only writes its head.
pub(super) fn change(head: RunHead) -> RunChange {
    RunChange {
        head,
        nodes: Vec::new(),
        jobs: Vec::new(),
        heard: Vec::new(),
        key: None,
        audit: Vec::new(),
        outbox: Vec::new(),
    }
}

pub(super) fn node(at: u32, state: NodeState) -> (NodeKey, NodeRun) {
    (NodeKey::of(at), NodeRun { state, ..NodeRun::default() })
}

/// The birth of a node's job, named after its run and node.
pub(super) fn job_in(h: &StoreHarness, run: &str, node: u32, judgement: Judgement) -> Found<Transition> {
    let part = RunRef { run: run.into(), node, item: None, round: 0, undo: false };
    job_named(h, &format!("{run}.{node}"), part, judgement)
}

pub(super) fn job_named(h: &StoreHarness, id: &str, part: RunRef, judgement: Judgement) -> Found<Transition> {
    let new = NewJob { job_id: None, ..new_job(id) };
    let caller = Caller::new("acme", "ann");
    let mut request = JobRequest::check(new, &caller, || JobId::from(id)).map_err(|errors| format!("{errors:?}"))?;
    request.run = Some(part);
    let hash = request.hash();
    Ok(submit(Arc::new(request), hash, &h.env(judgement)))
}

pub(super) async fn job_of(h: &StoreHarness, run: &str, node: u32) -> Found<Job> {
    h.load(&format!("{run}.{node}")).await
}

pub(super) fn audited(h: &StoreHarness, subject: &str) -> AuditEntry {
    AuditEntry {
        at: h.clock.now(),
        tenant: "acme".into(),
        actor: "ann".into(),
        action: AuditAction::Approved,
        subject: subject.into(),
        detail: Json::trusted(r#"{"n":1}"#),
    }
}
