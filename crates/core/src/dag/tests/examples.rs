//! The definitions that ship as examples.

use super::*;

const TRANSCODE: &str = include_str!("../../../../../examples/dags/transcode.yaml");
const TRAVEL: &str = include_str!("../../../../../examples/dags/travel-booking.yaml");
const ETL: &str = include_str!("../../../../../examples/dags/etl.yaml");

fn topics(dag: &Dag) -> impl Iterator<Item = &str> {
    dag.nodes.iter().flat_map(|node| {
        let done = match &node.work {
            NodeWork::Job(job) => Some(job.topic.as_str()),
            _ => None,
        };
        done.into_iter().chain(node.compensation.as_ref().map(|undo| undo.topic.as_str()))
    })
}

#[test]
fn the_examples_load_and_need_only_the_built_in_worker_and_no_params() {
    for text in [TRANSCODE, TRAVEL, ETL] {
        let dag = load(text);
        let known = ["job.echo", "job.noop", "job.sleep", "job.flaky", "job.always_fail"];
        assert!(topics(&dag).all(|topic| known.contains(&topic)), "{}", dag.name);
        assert!(dag.check_params(&json!({})).is_ok(), "{}", dag.name);
    }
}

#[test]
fn the_transcode_example_fans_out_and_in() {
    let dag = load(TRANSCODE);
    let middle = ["transcode-1080p", "transcode-720p", "thumbnails"];
    assert_eq!(names(&dag, &named(&dag, "probe").children), middle);
    assert_eq!(names(&dag, &named(&dag, "package").needs), middle);
    assert_eq!(names(&dag, &named(&dag, "probe").needs), ["ingest"]);
}

/// As the built-in worker would: `job.echo` answers with its payload.
#[test]
fn the_templates_of_the_examples_can_be_filled() {
    for text in [TRANSCODE, TRAVEL, ETL] {
        let dag = load(text);
        let params = dag.check_params(&json!({})).unwrap();
        let mut nodes = json!({});
        for node in &dag.nodes {
            let scope = ExpressionScope { run: "run-1", dag: &dag.name, params: &params, nodes: &nodes, item: None };
            assert!(node.when.as_ref().is_none_or(|when| when.holds(&scope) == Ok(true)), "{}", node.name);
            let items = node.for_each.as_ref().map(|each| each.items.evaluate(&scope).unwrap());
            let output = match (&node.work, &items) {
                (NodeWork::Job(job), Some(items)) => {
                    let fill =
                        |(index, item)| job.payload.fill(&ExpressionScope { item: Some((item, index)), ..scope.clone() });
                    (0..).zip(items.as_array().unwrap()).map(fill).collect::<Result<Value, _>>().unwrap()
                }
                (NodeWork::Job(job), None) => job.payload.fill(&scope).unwrap(),
                _ => json!(null),
            };
            nodes[&*node.name] = json!({"state": "SUCCEEDED", "output": output});
        }
        let scope = ExpressionScope { run: "run-1", dag: &dag.name, params: &params, nodes: &nodes, item: None };
        let undo = dag.nodes.iter().filter_map(|node| node.compensation.as_ref());
        undo.for_each(|undo| drop(undo.payload.fill(&scope).unwrap()));
        let answer = dag.output.as_ref().unwrap().fill(&scope).unwrap();
        let expected = match &*dag.name {
            "transcode" => json!({"package": "s3://videos/cat.mov.zip", "minutes": 4}),
            "travel-booking" => json!({"trip": ["flight-run-1", "hotel-run-1"]}),
            _ => {
                let loaded = ["orders", "users", "events", "carts"].map(|table| format!("2030-01-31/{table}"));
                json!({"loaded": loaded, "rows": 4})
            }
        };
        assert_eq!(answer, expected);
    }
}
