//! Every decision, by example and at random.

mod failures;
mod items;
mod joins;
mod late;
mod orders;
mod orphans;
mod properties;
mod random;
mod scale;
mod starts;
mod undos;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{
    Compensation, Dag, Delay, Expression, ForEach, JobTemplate, Join, Node, NodeIx, NodeState, NodeWork, OnFail, RunState,
    SubDag, Template,
};
use super::super::{Param, ParamKind};
use super::RunMessage;
use crate::job::JobState;
use crate::request::RunRef;
use crate::retry::RetrySettings;
use world::World;

/// A job node; `children` and positions are filled in by `dag`.
fn job(name: &str, needs: &[NodeIx]) -> Node {
    let template = JobTemplate {
        topic: "echo".into(),
        payload: Template::constant(json!({ "node": name })),
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
        name: name.into(),
        needs: needs.to_vec(),
        children: Vec::new(),
        work: NodeWork::Job(Box::new(template)),
        join: Join::AllSuccess,
        on_fail: OnFail::Stop,
        when: None,
        for_each: None,
        compensation: None,
        reads: Vec::new(),
        read: false,
    }
}

fn delay(name: &str, needs: &[NodeIx], millis: u64) -> Node {
    Node { work: NodeWork::Delay(Delay::For { millis }), ..job(name, needs) }
}

fn sub_dag(name: &str, needs: &[NodeIx]) -> Node {
    Node { work: NodeWork::Dag(SubDag { dag: "other".into(), params: BTreeMap::new() }), ..job(name, needs) }
}

fn expression(text: &str) -> Expression {
    Expression::compile(text).unwrap()
}

impl Node {
    fn joined(self, join: Join) -> Self {
        Self { join, ..self }
    }

    fn on_fail(self, on_fail: OnFail) -> Self {
        Self { on_fail, ..self }
    }

    fn when(self, text: &str) -> Self {
        Self { when: Some(expression(text)), ..self }
    }

    fn each(self, list: &Value) -> Self {
        let items = expression(&list.to_string());
        Self { for_each: Some(ForEach { items, concurrency: None, min_success: None }), ..self }
    }

    fn read(self) -> Self {
        Self { read: true, ..self }
    }

    fn undone(self) -> Self {
        let compensation = Compensation {
            topic: "undo".into(),
            payload: Template::constant(json!({ "undo": &*self.name })),
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            max_attempts: None,
            timeout_ms: None,
            undo_on_failure: false,
            reads: Vec::new(),
        };
        Self { compensation: Some(compensation), ..self }
    }

    fn undone_on_failure(self) -> Self {
        let mut node = self.undone();
        node.compensation.as_mut().unwrap().undo_on_failure = true;
        node
    }
}

fn dag(mut nodes: Vec<Node>) -> Dag {
    for at in 0..nodes.len() {
        for parent in nodes[at].needs.clone() {
            nodes[parent as usize].children.push(at as NodeIx);
        }
    }
    Dag {
        name: "test".into(),
        snapshot: "".into(),
        source: "".into(),
        description: None,
        params: vec![Param { name: "size".into(), kind: ParamKind::Number, description: None, default: Some(json!(1)) }],
        max_parallelism: None,
        timeout_ms: None,
        output: None,
        nodes,
    }
}

fn begin(nodes: Vec<Node>) -> World {
    World::begin(dag(nodes))
}

#[track_caller]
fn states(world: &World, expected: &[(&str, NodeState)]) {
    for (name, state) in expected {
        assert_eq!(world.state(name), *state, "{name}");
    }
}

#[test]
fn a_chain_runs_one_after_the_other() {
    let mut world = begin(vec![job("a", &[]), job("b", &[0]), job("c", &[1])]);
    states(&world, &[("a", NodeState::Running), ("b", NodeState::Pending), ("c", NodeState::Pending)]);
    assert_eq!(world.committed.head.version, 1);
    world.succeed("a");
    states(&world, &[("a", NodeState::Succeeded), ("b", NodeState::Running), ("c", NodeState::Pending)]);
    world.succeed("b");
    world.succeed("c");
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!((world.committed.head.done, world.committed.head.total), (3, 3));
    assert_eq!(world.committed.head.ended_at, Some(world.now));
}

#[test]
fn a_dag_without_nodes_is_over_at_once() {
    let world = begin(Vec::new());
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!(world.committed.head.version, 1);
}

#[test]
fn jobs_say_which_part_of_the_run_they_are() {
    let world = begin(vec![job("a", &[])]);
    let (id, ordered) = world.jobs.iter().next().unwrap();
    assert_eq!(id.as_str(), "run-1.0~0");
    assert!(crate::ids::check_name(id.as_str()).is_err(), "a client could take this id first");
    let part = ordered.request.run.as_ref().unwrap();
    assert_eq!((part.run.as_str(), part.node, part.item, part.round, part.undo), ("run-1", 0, None, 0, false));
    assert_eq!(ordered.request.actor_type.as_deref(), Some("agent"));
    assert_eq!(ordered.request.payload.as_str(), r#"{"node":"a"}"#);
}

#[test]
fn what_was_read_is_kept_and_answered() {
    let mut nodes = dag(vec![job("a", &[]).read(), job("b", &[0])]);
    nodes.output = Some(Template::constant(json!({ "ok": true })));
    let mut world = World::begin(nodes);
    world.end_with("a", r#"{"x":1}"#);
    world.end_with("b", r#"{"y":1}"#);
    assert_eq!(world.row("a").output.as_ref().unwrap().as_str(), r#"{"x":1}"#);
    assert_eq!(world.row("b").output, None);
    assert_eq!(world.committed.head.output.as_ref().unwrap().as_str(), r#"{"ok":true}"#);
}

/// Messages of unknown jobs, of other runs and of nodes that do not exist.
#[test]
fn news_of_others_change_nothing() {
    let mut world = begin(vec![job("a", &[])]);
    let mut news = world.news_of("a", JobState::Succeeded);
    let changes: [fn(&mut RunRef); 3] = [|part| part.run = "run-2".into(), |part| part.node = 7, |part| part.round = 1];
    for change in changes {
        let mut other = news.clone();
        if let RunMessage::Job { part, .. } = &mut other {
            change(part);
        }
        assert!(world.live.step(&[other], world.now).is_none());
    }
    if let RunMessage::Job { state, .. } = &mut news {
        *state = JobState::Running;
    }
    assert!(world.live.step(&[news], world.now).is_none());
    let version = world.committed.head.version;
    assert_eq!(world.live.acknowledge().head.version, version + 1);
}
