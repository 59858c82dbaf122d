//! What a policy of 1,000 rules costs a job: the same run with and without it, in turns.

use super::report::{Report, median};
use super::server::Server;
use super::throughput::concurrent_on;
use super::{Scale, decisions};
use crate::error::CliError;

const RULES: usize = 1_000;

pub(super) async fn measure(scale: Scale, report: &mut Report) -> Result<(), CliError> {
    report.note(&format!("policy: {} runs without one and with {RULES} rules, in turns", scale.governed_runs));
    let folder = tempfile::TempDir::with_prefix("lockgate-bench-")?;
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, decisions::policy(RULES))?;
    let path = file.to_string_lossy();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..scale.governed_runs {
        without.push(concurrent_on(&Server::start().await?, scale.governed_jobs).await?.cpu_us);
        with.push(concurrent_on(&Server::start_with(&["--policy", &path]).await?, scale.governed_jobs).await?.cpu_us);
    }
    let (without, with) = (median(without), median(with));
    report.add("embedded.no_policy_cpu_us_per_job", without, "us");
    report.add("embedded.policy_cpu_us_per_job", with, "us");
    report.add("embedded.policy_cpu_cost_percent", (with / without - 1.0) * 100.0, "% (aim: below 5)");
    Ok(())
}
