//! Runs seeds one after another, reports which one broke what and how to reproduce it, and how often each fault happened.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use lockgate_sim::{Fault, Injected, NONE, Story};

const USAGE: &str =
    "usage: lockgate-sim [--from SEED] [--seeds COUNT] [--millis CHAOS] [--clients COUNT] [--without FAULT,FAULT|none]
Without --without most seeds leave some faults out, each its own.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = Asked::parse(&arguments) else {
        let known: Vec<&str> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        eprintln!("{USAGE}\nfaults: {}", known.join(" "));
        return ExitCode::from(2);
    };
    let mut injected = Injected::default();
    let (mut jobs, mut executions, mut lost, mut closed, mut failed) = (0, 0, 0, 0, 0);
    let (mut ahead, mut given_back) = (0, 0);
    for seed in asked.from..asked.from.saturating_add(asked.count) {
        let story = asked.story(seed);
        match story.tell() {
            Ok(summary) => {
                injected.add(&summary.injected);
                jobs += summary.acknowledged;
                executions += summary.executions;
                lost += summary.lost;
                closed += summary.closed;
                ahead += summary.ahead;
                given_back += summary.given_back;
            }
            Err(violation) => {
                failed += 1;
                println!("seed {seed} broke {violation}\n  again with: lockgate-sim {story}");
                // Only the first failure is shrunk: a story that never ends takes its full time in each try.
                if asked.count > 1 && failed == 1 {
                    println!("  shorter:    lockgate-sim {}", story.shrunk(violation.rule));
                }
            }
        }
    }
    println!("{} seeds, {failed} broken; {jobs} jobs acknowledged, {executions} executions", asked.count);
    println!("while faults were on: {lost} attempts lost, {closed} sessions closed");
    println!("{ahead} attempts sent ahead of a free slot, {given_back} given back\n\n{injected}");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Asked {
    from: u64,
    count: u64,
    chaos: Option<Duration>,
    clients: Option<u64>,
    without: Option<BTreeSet<Fault>>,
}

impl Asked {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut asked = Self { count: 1_000, ..Self::default() };
        for pair in arguments.chunks(2) {
            let [flag, value] = pair else { return None };
            match flag.as_str() {
                "--from" => asked.from = value.parse().ok()?,
                "--seeds" => asked.count = value.parse().ok()?,
                "--millis" => asked.chaos = Some(Duration::from_millis(value.parse().ok()?)),
                "--clients" => asked.clients = Some(value.parse().ok()?),
                "--without" if value == NONE => asked.without = Some(BTreeSet::new()),
                "--without" => asked.without = Some(value.split(',').map(fault).collect::<Option<_>>()?),
                _ => return None,
            }
        }
        Some(asked)
    }

    fn story(&self, seed: u64) -> Story {
        let mut story = Story::of(seed);
        story.chaos = self.chaos.unwrap_or(story.chaos);
        story.clients = self.clients.unwrap_or(story.clients);
        story.without = self.without.clone().unwrap_or(story.without);
        story
    }
}

fn fault(name: &str) -> Option<Fault> {
    Fault::ALL.iter().copied().find(|fault| fault.as_str() == name)
}
