//! Makes the jobs and sub-runs of nodes from their templates.
//!
//! Ids are derived from the run, the node, the item and the round, so that a step decided twice makes equal ones. Each
//! contains `~`, which clients may not use in ids, so that no client can take an id first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::{
    Compensation, DEPTH_MAX, ExpressionScope, JobTemplate, NodeIx, NodeKey, NodeWork, RunParent, SubDag, Template,
};
use super::{RunPlanner, SubRun};
use crate::ids::{JobId, RunId};
use crate::job::{Failure, Reason, memo_key};
use crate::lane::Priority;
use crate::policy::WORKFLOW_LABEL;
use crate::request::{ApprovalGate, JobRequest, Json, Memo, NewJob, RunRef};

/// The topic of approval nodes, for policies and listings. No worker serves it.
pub const APPROVAL_TOPIC: &str = "lockgate.approval";

/// Labels and variables by which policies and handlers tell a compensation from ordinary work.
const SAGA: &str = "saga_compensation";
const SAGA_RUN: &str = "saga_workflow_id";
const IS_COMPENSATION: &str = "is_compensation";

pub(super) enum Made {
    Job(Arc<JobRequest>),
    Run(SubRun),
}

impl RunPlanner {
    /// Makes the job or sub-run of a node or an item.
    pub(super) fn make(&mut self, key: NodeKey) -> Result<Made, Failure> {
        let dag = self.dag.clone();
        let node = dag.node(key.node);
        let expanded = key.item.and_then(|_| self.expanded(key.node));
        let item = expanded.as_ref().zip(key.item).and_then(|(each, at)| Some((each.list.get(at as usize)?, at)));
        let seen = if expanded.is_none() { self.nodes_seen(&node.reads, None) } else { Value::Null };
        let scope = self.scope(expanded.as_ref().map_or(&seen, |each| &each.nodes), item);
        let job = |(new, gate)| self.job(new, gate, self.part(key), job_id(&self.run.head.id, key, self.round(key.node)));
        match &node.work {
            NodeWork::Job(template) => {
                let made = filled_job(template, &scope).map_err(failed).and_then(job)?;
                let memo = memo(template, &made, self.run.head.fresh);
                Ok(Made::Job(match memo {
                    Some(memo) => Arc::new(JobRequest { memo: Some(memo), ..(*made).clone() }),
                    None => made,
                }))
            }
            NodeWork::Approval(gate) => {
                let new = NewJob { topic: APPROVAL_TOPIC.to_owned(), ..NewJob::default() };
                job((new, Some(ApprovalGate { only: true, ..gate.clone() }))).map(Made::Job)
            }
            NodeWork::Dag(sub) => self.sub_run(key, sub, &scope).map(Made::Run),
            // A delay is started by `start_delay` and needs no job.
            NodeWork::Delay(_) => Err(failed("a delay starts no job".to_owned())),
        }
    }

    fn part(&self, key: NodeKey) -> RunRef {
        let round = self.round(key.node);
        RunRef { run: self.run.head.id.clone(), node: key.node, item: key.item, round, undo: false }
    }

    /// The compensation job of a row's work, and its id even if the job cannot be made: the failure is recorded under the
    /// id.
    pub(super) fn undo_job(&mut self, key: NodeKey, round: u32) -> (JobId, Result<Arc<JobRequest>, Failure>) {
        let id = undo_id(&self.run.head.id, key, self.round(key.node), round);
        let dag = self.dag.clone();
        let list = key.item.and_then(|_| self.expanded(key.node));
        let item = list.as_ref().zip(key.item).and_then(|(each, at)| Some((each.list.get(at as usize)?, at)));
        let undo = dag.node(key.node).compensation.as_ref();
        let Some((undo, row)) = undo.zip(self.run.nodes.get(&key)) else {
            return (id, Err(failed("nothing says how to undo it".to_owned())));
        };
        let nodes = self.nodes_seen(&undo.reads, Some((key.node, row)));
        let part = RunRef { round, undo: true, ..self.part(key) };
        let new = filled_undo(undo, &self.run.head.id, &self.scope(&nodes, item)).map_err(failed);
        let made = new.and_then(|new| self.job(new, None, part, id.clone()));
        (id, made)
    }

    fn job(&self, mut new: NewJob, gate: Option<ApprovalGate>, part: RunRef, id: JobId) -> Result<Arc<JobRequest>, Failure> {
        let head = &self.run.head;
        let caller = head.caller();
        // The workflow's policy overlay applies to every job of the workflow, so its label overrides the template's.
        new.labels.insert(WORKFLOW_LABEL.to_owned(), head.dag.name.to_string());
        let request = JobRequest::check(new, &caller, || id).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            failed(format!("its job is not valid: {}", errors.join("; ")))
        })?;
        Ok(Arc::new(JobRequest { run: Some(part), gate, ..request }))
    }

    fn sub_run(&self, key: NodeKey, sub: &SubDag, scope: &ExpressionScope<'_>) -> Result<SubRun, Failure> {
        let head = &self.run.head;
        let depth = head.parent.as_ref().map_or(0, |parent| parent.depth) + 1;
        if depth > DEPTH_MAX {
            return Err(failed(format!("runs inside of runs may go {DEPTH_MAX} deep, this would be one more")));
        }
        let fill = |(name, template): (&String, &Template)| {
            let value = template.fill(scope).map_err(|error| failed(format!("params.{name}: {error}")))?;
            Ok((name.clone(), value))
        };
        let params = Value::Object(sub.params.iter().map(fill).collect::<Result<_, Failure>>()?);
        Json::of(&params).map_err(|error| failed(error.in_field("params").to_string()))?;
        Ok(SubRun {
            id: child_id(&head.id, key, self.round(key.node)),
            dag: sub.dag.clone(),
            params,
            parent: RunParent { run: head.id.clone(), node: key.node, item: key.item, depth },
        })
    }

    pub(super) fn round(&self, node: NodeIx) -> u32 {
        self.run.nodes.get(&NodeKey::of(node)).map_or(0, |row| row.round)
    }
}

fn failed(message: String) -> Failure {
    Failure::new(Reason::Failed, message)
}

fn filled_job(template: &JobTemplate, scope: &ExpressionScope<'_>) -> Result<(NewJob, Option<ApprovalGate>), String> {
    let new = NewJob {
        topic: template.topic.as_str().to_owned(),
        payload: Some(payload(&template.payload, scope)?),
        priority: template.priority,
        labels: texts("labels", &template.labels, scope)?,
        env: texts("env", &template.env, scope)?,
        max_attempts: template.max_attempts,
        retry: template.retry.clone(),
        timeout_ms: template.timeout_ms,
        requires: template.requires.clone(),
        capability: template.capability.clone(),
        risk_tags: template.risk_tags.clone(),
        concurrency_key: template.concurrency_key.as_ref().map(|key| text("concurrency_key", key, scope)).transpose()?,
        ..NewJob::default()
    };
    Ok((new, template.gate.clone()))
}

/// The memo key of the job, if its node memoises.
fn memo(template: &JobTemplate, request: &JobRequest, fresh: bool) -> Option<Memo> {
    let for_ms = template.memoise_ms?;
    // The run that the job belongs to must not enter the key: equal work in another workflow is still equal.
    let mut asked = request.clone();
    asked.labels.remove(WORKFLOW_LABEL);
    Some(Memo { key: memo_key(&asked), for_ms, fresh })
}

fn filled_undo(undo: &Compensation, run: &RunId, scope: &ExpressionScope<'_>) -> Result<NewJob, String> {
    let mut labels = texts("labels", &undo.labels, scope)?;
    let mut env = texts("env", &undo.env, scope)?;
    saga_marks(run.as_str(), &mut labels, &mut env);
    Ok(NewJob {
        topic: undo.topic.as_str().to_owned(),
        payload: Some(payload_of_undo(&undo.payload, scope)?),
        priority: Some(Priority::Critical),
        labels,
        env,
        max_attempts: undo.max_attempts,
        timeout_ms: undo.timeout_ms,
        ..NewJob::default()
    })
}

/// Adds the labels and variables by which policies and handlers tell a compensation from ordinary work.
pub(in crate::dag) fn saga_marks(workflow: &str, labels: &mut BTreeMap<String, String>, env: &mut BTreeMap<String, String>) {
    for (name, value) in [(SAGA, "true"), (IS_COMPENSATION, "true"), (SAGA_RUN, workflow)] {
        labels.insert(name.to_owned(), value.to_owned());
    }
    for (name, value) in [(SAGA, "true"), (SAGA_RUN, workflow)] {
        env.insert(name.to_owned(), value.to_owned());
    }
}

fn payload(template: &Template, scope: &ExpressionScope<'_>) -> Result<Json, String> {
    let value = template.fill(scope).map_err(|error| format!("payload: {error}"))?;
    Json::of(&value).map_err(|error| error.in_field("payload").to_string())
}

/// Compensations accept numbers that new payloads may not contain: the value that the template reads may have been stored
/// before that rule existed, and only that exact value can undo the work.
fn payload_of_undo(template: &Template, scope: &ExpressionScope<'_>) -> Result<Json, String> {
    let value = template.fill(scope).map_err(|error| format!("payload: {error}"))?;
    Json::admitted(&value.to_string()).map_err(|error| error.in_field("payload").to_string())
}

fn texts(
    field: &str,
    templates: &BTreeMap<String, Template>,
    scope: &ExpressionScope<'_>,
) -> Result<BTreeMap<String, String>, String> {
    templates.iter().map(|(name, template)| Ok((name.clone(), text(&format!("{field}.{name}"), template, scope)?))).collect()
}

fn text(field: &str, template: &Template, scope: &ExpressionScope<'_>) -> Result<String, String> {
    match template.fill(scope).map_err(|error| format!("{field}: {error}"))? {
        Value::String(text) => Ok(text),
        value @ (Value::Number(_) | Value::Bool(_)) => Ok(value.to_string()),
        _ => Err(format!("{field}: it must be a text, a number, true or false")),
    }
}

fn job_id(run: &RunId, key: NodeKey, round: u32) -> JobId {
    let item = key.item.map(|item| format!(".{item}")).unwrap_or_default();
    JobId::new(format!("{run}.{}{item}~{round}", key.node))
}

fn undo_id(run: &RunId, key: NodeKey, round: u32, undo: u32) -> JobId {
    JobId::new(format!("comp-{}~{undo}", derived_uuid("undo", run, key, round)))
}

fn child_id(run: &RunId, key: NodeKey, round: u32) -> RunId {
    RunId::new(format!("run-{}", derived_uuid("run", run, key, round)))
}

fn derived_uuid(what: &str, run: &RunId, key: NodeKey, round: u32) -> uuid::Uuid {
    let item = key.item.map_or(-1, i64::from);
    let hash = Sha256::digest(format!("{what}|{run}|{}|{item}|{round}", key.node));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
