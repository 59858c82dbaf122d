//! `lockgate-sim [--from SEED] [--seeds COUNT]`: runs seeds one after another and says which one broke what.

use std::process::ExitCode;

use lockgate_sim::{Injected, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((from, count)) = parse(&arguments) else {
        eprintln!("usage: lockgate-sim [--from SEED] [--seeds COUNT]");
        return ExitCode::from(2);
    };
    let mut injected = Injected::default();
    let (mut jobs, mut executions, mut failed) = (0, 0, 0);
    for seed in from..from.saturating_add(count) {
        match run(seed) {
            Ok(summary) => {
                injected.add(&summary.injected);
                jobs += summary.acknowledged;
                executions += summary.executions;
            }
            Err(violation) => {
                failed += 1;
                println!("seed {seed} broke {violation}\n  again with: lockgate-sim --from {seed} --seeds 1");
            }
        }
    }
    println!("{count} seeds, {failed} broken; {jobs} jobs acknowledged, {executions} executions\n{injected:#?}");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut from, mut count) = (0, 1_000);
    for pair in arguments.chunks(2) {
        match pair {
            [flag, value] if flag == "--from" => from = value.parse().ok()?,
            [flag, value] if flag == "--seeds" => count = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((from, count))
}
