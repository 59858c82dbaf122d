//! The cost of a policy per job: equal runs without a policy, with a few rules and with 1,000, in turns.

use std::path::Path;

use super::report::{BenchReport, median};
use super::server::BenchServer;
use super::throughput::concurrent_on;
use super::{Scale, decisions};
use crate::error::CliError;

/// Rules, one of ten an expression over every job: a usual policy, and a very large one.
const RULES: [usize; 2] = [20, 1_000];

pub(super) async fn measure(scale: Scale, report: &mut BenchReport) -> Result<(), CliError> {
    report.note(&format!("policy: {} runs without one and with {RULES:?} rules, in turns", scale.governed_runs));
    let folder = tempfile::TempDir::with_prefix("lockgate-bench-")?;
    let files = RULES.map(|rules| folder.path().join(format!("{rules}.yaml")));
    for (file, rules) in files.iter().zip(RULES) {
        // Changes the number that every job carries, so that no rule matches it.
        std::fs::write(file, decisions::policy(rules, "payload.i - 100000000", "job.topic"))?;
    }
    let (mut without, mut with) = (Vec::new(), RULES.map(|_| Vec::new()));
    for _ in 0..scale.governed_runs {
        without.push(cost(None, scale).await?);
        for (costs, file) in with.iter_mut().zip(&files) {
            costs.push(cost(Some(file), scale).await?);
        }
    }
    let without = median(without);
    report.add("embedded.no_policy_cpu_us_per_job", without, "us");
    for (costs, rules) in with.into_iter().zip(RULES) {
        let with = median(costs);
        report.add(format!("embedded.policy_{rules}_rules_cpu_us_per_job"), with, "us");
        report.add(format!("embedded.policy_{rules}_rules_cpu_cost"), (with / without - 1.0) * 100.0, "%");
    }
    Ok(())
}

async fn cost(policy: Option<&Path>, scale: Scale) -> Result<f64, CliError> {
    let path = policy.map(|path| path.to_string_lossy().into_owned());
    let args = path.as_deref().map_or_else(Vec::new, |path| vec!["--policy", path]);
    Ok(concurrent_on(&BenchServer::start_with(&args).await?, scale.governed_jobs).await?.cpu_us)
}
