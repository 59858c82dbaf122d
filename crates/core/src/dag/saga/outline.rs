//! Outlines a saga as a DAG, so that every view of a run can show a saga too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dag::{Dag, JobTemplate, Join, Node, NodeKey, NodeWork, OnFail, Run, Template};
use crate::ids::Topic;
use crate::retry::RetrySettings;

/// A node for each job, named by the job's id. A job whose row is not loaded has no name.
pub fn outline(run: &Run) -> Dag {
    let name = |node| {
        let mut rows = run.nodes.range(NodeKey::of(node)..=NodeKey::item(node, u32::MAX));
        rows.find_map(|(_, row)| row.job.as_ref()).map_or_else(|| "".into(), |job| Arc::from(job.as_str()))
    };
    Dag {
        name: run.head.dag.name.clone(),
        snapshot: "".into(),
        source: "".into(),
        description: None,
        params: Vec::new(),
        max_parallelism: None,
        timeout_ms: None,
        output: None,
        nodes: (0..run.head.total).map(|at| node(name(at))).collect(),
    }
}

fn node(name: Arc<str>) -> Node {
    let job = JobTemplate {
        topic: Topic::from(""),
        payload: Template::constant(serde_json::Value::Null),
        priority: None,
        max_attempts: None,
        retry: RetrySettings::default(),
        timeout_ms: None,
        labels: BTreeMap::new(),
        env: BTreeMap::new(),
        requires: BTreeSet::new(),
        capability: None,
        risk_tags: BTreeSet::new(),
        concurrency_key: None,
        gate: None,
        memoise_ms: None,
    };
    Node {
        name,
        needs: Vec::new(),
        children: Vec::new(),
        work: NodeWork::Job(Box::new(job)),
        join: Join::AllSuccess,
        on_fail: OnFail::Compensate,
        when: None,
        for_each: None,
        compensation: None,
        reads: Vec::new(),
        read: false,
    }
}
