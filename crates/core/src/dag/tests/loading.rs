//! What becomes of a definition that loads.

use super::*;
use crate::lane::Priority;

const FULL: &str = r#"version: 1
dag: full
description: Every key once.
params: {list: list, source: {type: text, description: Where, default: here}}
max_parallelism: 10
timeout: 1h
output: {last: "${nodes.undone.output}"}
nodes:
  each:
    needs: [ask, wait]
    join: none_failed
    when: nodes.wait.state == 'SUCCEEDED'
    on_fail: compensate
    topic: job.echo
    payload: {item: "${item}", from: "${nodes.ask.output.who}"}
    priority: high
    max_attempts: 4
    retry: {base: 5s, factor: 1.5, losses: 0}
    timeout: 30s
    labels: {table: "t-${item}", fixed: x}
    env: {N: "${index}"}
    requires: [gpu]
    capability: db.write
    risk_tags: [pii, prod]
    concurrency_key: "${params.source}"
    approval: {reason: Really?}
    for_each: params.list
    concurrency: 5
    min_success: 90%
    compensation:
      topic: job.undo
      payload: {what: "${nodes.each.output}", who: "${nodes.ask.output}", item: "${item}"}
      env: {A: b}
      labels: {c: d}
      max_attempts: 7
      timeout_ms: 1500
      undo_on_failure: true
  ask: {approval: {reason: May we?, approvers: 2, expires: 1h}}
  wait: {delay: 90s}
  seconds: {delay_sec: 3}
  until: {needs: seconds, delay_until: "${params.source}"}
  undone: {needs: [each], dag: other, params: {x: "${nodes.each.output}", y: 1}, for_each: params.list, min_success: 3}
"#;

#[test]
fn every_key_gets_where_it_belongs() {
    let dag = load(FULL);
    assert_eq!((&*dag.name, dag.description.as_deref()), ("full", Some("Every key once.")));
    assert_eq!((dag.max_parallelism, dag.timeout_ms), (Some(10), Some(3_600_000)));
    assert!(dag.snapshot.starts_with("dag:") && &*dag.source == FULL);
    let node = named(&dag, "each");
    assert_eq!((node.join, node.on_fail), (Join::NoneFailed, OnFail::Compensate));
    let each = node.for_each.as_ref().unwrap();
    assert_eq!((each.concurrency, each.min_success), (Some(5), Some(MinSuccess::Percent(90))));
    let NodeWork::Job(job) = &node.work else { panic!("a job") };
    assert_eq!((job.topic.as_str(), job.priority), ("job.echo", Some(Priority::High)));
    assert_eq!((job.max_attempts, job.timeout_ms), (Some(4), Some(30_000)));
    assert_eq!((job.retry.base_ms, job.retry.factor_percent, job.retry.losses), (Some(5_000), Some(150), Some(0)));
    assert_eq!((job.requires.len(), job.capability.as_deref(), job.risk_tags.len()), (1, Some("db.write"), 2));
    let gate = job.gate.as_ref().unwrap();
    assert_eq!((&*gate.reason, gate.only, gate.terms.approvers), ("Really?", false, 1));
    let undo = node.compensation.as_ref().unwrap();
    assert_eq!((undo.topic.as_str(), undo.max_attempts, undo.timeout_ms), ("job.undo", Some(7), Some(1_500)));
    assert!(undo.undo_on_failure);
    let NodeWork::Approval(gate) = &named(&dag, "ask").work else { panic!("an approval") };
    assert_eq!((gate.only, gate.terms.approvers, gate.terms.request_expiry_ms), (true, 2, Some(3_600_000)));
    assert!(matches!(named(&dag, "wait").work, NodeWork::Delay(Delay::For { millis: 90_000 })));
    assert!(matches!(named(&dag, "seconds").work, NodeWork::Delay(Delay::For { millis: 3_000 })));
    assert!(matches!(named(&dag, "until").work, NodeWork::Delay(Delay::Until(_))));
    let NodeWork::Dag(inner) = &named(&dag, "undone").work else { panic!("a DAG") };
    assert_eq!((&*inner.dag, inner.params.len()), ("other", 2));
    assert_eq!(named(&dag, "undone").for_each.as_ref().unwrap().min_success, Some(MinSuccess::Count(3)));
}

#[test]
fn templates_are_filled_with_what_their_node_sees() {
    let dag = load(FULL);
    let (params, nodes) = (json!({"list": ["p", "q"], "source": "here"}), json!({"ask": {"output": {"who": "bob"}}}));
    let item = json!("q");
    let scope = ExpressionScope { run: "run-1", dag: "full", params: &params, nodes: &nodes, item: Some((&item, 1)) };
    let NodeWork::Job(job) = &named(&dag, "each").work else { panic!("a job") };
    assert_eq!(job.payload.fill(&scope), Ok(json!({"item": "q", "from": "bob"})));
    assert_eq!(job.labels["table"].fill(&scope), Ok(json!("t-q")));
    assert_eq!(job.labels["fixed"].fill(&scope), Ok(json!("x")));
    assert_eq!(job.env["N"].fill(&scope), Ok(json!(1)));
    assert_eq!(job.concurrency_key.as_ref().unwrap().fill(&scope), Ok(json!("here")));
    let items = &named(&dag, "each").for_each.as_ref().unwrap().items;
    assert_eq!(items.evaluate(&scope), Ok(json!(["p", "q"])));
}

#[test]
fn nodes_are_in_topological_order_and_know_their_neighbours() {
    let dag = load(FULL);
    let all: Vec<&str> = dag.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(all, ["ask", "wait", "each", "seconds", "until", "undone"]);
    assert_eq!(names(&dag, &named(&dag, "each").needs), ["ask", "wait"]);
    assert_eq!(names(&dag, &named(&dag, "ask").children), ["each"]);
    assert_eq!(names(&dag, &named(&dag, "seconds").children), ["until"]);
    assert_eq!(dag.index("each"), Some(2));
    assert_eq!(dag.index("nobody"), None);
}

#[test]
fn it_is_known_who_reads_whom() {
    let dag = load(FULL);
    let each = named(&dag, "each");
    assert_eq!(names(&dag, &each.reads), ["ask", "wait"]);
    assert_eq!(names(&dag, &each.compensation.as_ref().unwrap().reads), ["ask", "each"]);
    let read: Vec<&str> = dag.nodes.iter().filter(|node| node.read).map(|node| &*node.name).collect();
    assert_eq!(read, ["ask", "wait", "each", "undone"], "each by its own undo, undone by the answer of the run");
}

#[test]
fn an_ancestor_far_away_may_be_read() {
    let dag = with_nodes(
        "a: {topic: t}
         b: {needs: a, topic: t}
         c: {needs: b, topic: t, payload: '${nodes.a.output}'}",
    );
    assert_eq!(names(&dag, &named(&dag, "c").reads), ["a"]);
}

#[test]
fn defaults_are_those_of_the_reference() {
    let dag = with_nodes("a: {topic: t}");
    let node = named(&dag, "a");
    assert_eq!((node.join, node.on_fail, node.read), (Join::AllSuccess, OnFail::Stop, false));
    let NodeWork::Job(job) = &node.work else { panic!("a job") };
    assert_eq!(job.payload.fill(&World::new().scope()), Ok(json!(null)));
    assert_eq!((job.priority, job.max_attempts, job.timeout_ms), (None, None, None));
    assert!(job.gate.is_none() && dag.output.is_none() && dag.params.is_empty());
}

#[test]
fn lint_lists_the_work_that_nothing_can_undo() {
    let dag = with_nodes(
        "a: {topic: t}
         b: {topic: t, compensation: {topic: u}}
         c: {delay: 1s}
         d: {approval: {reason: x}}
         e: {dag: other}",
    );
    assert_eq!(dag.uncompensated(), ["a", "e"]);
}

#[test]
fn lint_lists_joins_that_a_failure_overrules() {
    let dag = with_nodes(
        "a: {topic: t}
         b: {topic: t, on_fail: continue}
         c: {topic: t, on_fail: stop}
         any: {needs: [a, b, c], join: any_success, topic: t}
         done: {needs: [b], join: all_done, topic: t}
         late: {needs: [a], join: all_done, topic: t}
         all: {needs: [a, c], topic: t}",
    );
    let lint = |node, join, by: &[&'static str]| super::super::OverruledJoin { node, join, by: by.to_vec() };
    assert_eq!(dag.overruled_joins(), [lint("any", "any_success", &["a", "c"]), lint("late", "all_done", &["a"])]);
}

#[test]
fn as_many_nodes_as_there_may_be_load() {
    let chain = (1..NODES_MAX).map(|n| format!("n{n}: {{needs: n{}, topic: t, payload: '${{nodes.n0.output}}'}}\n", n - 1));
    let dag = with_nodes(&["n0: {topic: t}\n".to_owned()].into_iter().chain(chain).collect::<String>());
    assert_eq!(dag.nodes.len(), NODES_MAX);
    assert_eq!(dag.nodes[NODES_MAX - 1].reads, [0]);
}

#[test]
fn a_node_says_for_how_long_its_result_stands_for_the_same_work() {
    let kept = |node: &str| {
        let dag = load(&format!("version: 1\ndag: d\nnodes: {{a: {{topic: t, memoise: {node}}}}}\n"));
        let NodeWork::Job(job) = &dag.nodes[0].work else { panic!("no job") };
        job.memoise_ms
    };
    assert_eq!(kept("true"), Some(7 * 24 * 3_600_000));
    assert_eq!(kept("{for: 90s}"), Some(90_000));
    assert_eq!(kept("false"), None);
    for (node, why) in [
        ("{topic: t, memoise: maybe}", "memoise"),
        ("{topic: t, memoise: {for: 400d}}", "for"),
        ("{topic: t, memoise: {until: 1d}}", "until"),
        ("{delay: 1s, memoise: true}", "memoise does not fit"),
        ("{topic: t, approval: {reason: r}, memoise: true}", "memoise does not fit a node with approval"),
        ("{topic: t, compensation: {topic: u}, memoise: true}", "memoise does not fit a node with compensation"),
    ] {
        let told = errors(&format!("version: 1\ndag: d\nnodes: {{a: {node}}}\n"));
        assert!(told.iter().any(|error| error.contains(why)), "{node}: {told:?}");
    }
}
