//! The file that ships as an example.

use super::super::keys;
use super::*;

const EXAMPLE: &str = include_str!("../../../../../examples/config/pools.yaml");

#[test]
fn the_example_maps_every_topic_of_the_requirement_documents() {
    let pools = load(EXAMPLE);
    let expected = [
        ("job.echo", "echo"),
        ("job.chat.simple", "chat-simple"),
        ("job.chat.advanced", "chat-advanced"),
        ("job.code.llm", "code-llm"),
        ("job.workflow.plan", "workflow-planner"),
        ("job.workflow.demo", "workflow-demo"),
        ("job.workflow.repo.code_review", "workflow-repo"),
        ("job.repo.scan", "repo-scan"),
        ("job.repo.partition", "repo-partition"),
        ("job.repo.lint", "repo-lint"),
        ("job.repo.sast", "repo-sast"),
        ("job.repo.tests", "repo-tests"),
        ("job.repo.report", "repo-report"),
    ];
    for (topic, pool) in expected {
        assert_eq!(led_to(&pools, topic), [pool], "{topic}");
    }
    assert_eq!(pools.pools().count(), expected.len());
}

/// What is commented out must be right too, because operators will uncomment it.
#[test]
fn the_example_shows_every_key_and_loads_with_its_comments_taken_away() {
    let plain: String = EXAMPLE.lines().map(|line| line.replacen("#+ ", "", 1) + "\n").collect();
    let pools = load(&plain);
    assert_eq!(led_to(&pools, "job.repo.other"), ["repo-scan", "repo-lint"]);
    assert_eq!(pools.pool(&"code-llm".into()).map(|pool| pool.dispatch), Some(DispatchMode::Direct));
    assert_eq!((pools.limits.len(), pools.fairness().tenants.len()), (2, 1));
    let sections = [&keys::FILE, &keys::POOL, &keys::OVERLOAD, &keys::LIMIT, &keys::FAIRNESS, &keys::PRIORITIES];
    for key in sections.iter().flat_map(|section| section.keys) {
        assert!(plain.contains(&format!("{key}: ")) || plain.contains(&format!("{key}:\n")), "{key}");
    }
}
