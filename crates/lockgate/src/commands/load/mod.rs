//! `lockgate load`: a mix of good and bad jobs, followed to their ends.

mod mix;
mod pages;
mod report;
mod run;

use std::time::Duration;

use clap::Args;

use self::mix::Mix;
use crate::args;
use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// Submit a mix of good and bad jobs and follow all of them
#[derive(Args, Debug)]
#[command(after_long_help = "The kinds of the mix:
  noop         ends at once
  flaky        fails twice, then succeeds
  always_fail  fails until its attempts are spent
  sleep        is left out of its worker's first inventory and outlives its lease: it is lost once, then runs again

Exits with 0 when every job ended as its kind should, and with 2 otherwise.")]
pub(crate) struct LoadArgs {
    /// How many jobs
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,

    /// Jobs a second; 0 is as fast as possible
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    rate: u32,

    /// Shares of the kinds of jobs
    #[arg(long, default_value = "noop=80,flaky=10,always_fail=5,sleep=5", value_name = "KIND=SHARE,…")]
    mix: Mix,

    /// How long the sleeping jobs sleep
    #[arg(long, default_value = "12s", value_parser = args::duration, value_name = "SPAN")]
    sleep: Duration,

    /// Leave the sleeping jobs out, to be done sooner
    #[arg(long, conflicts_with = "sleep")]
    no_sleep: bool,

    /// Stop waiting after this: for room for a batch where the server has none, and for the jobs to end
    #[arg(long, default_value = "10m", value_parser = args::duration, value_name = "SPAN")]
    give_up: Duration,
}

impl LoadArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let mix = if self.no_sleep { self.mix.without_sleep() } else { self.mix };
        let plan = run::LoadPlan {
            jobs: self.jobs,
            rate: self.rate,
            kinds: mix.spread(),
            sleep: self.sleep,
            give_up: self.give_up,
        };
        let report = run::run(session, &plan).await?;
        if session.out.is_json() {
            session.out.json(&report)?;
        } else {
            session.out.line(&report.text(session.out))?;
        }
        Ok(if report.as_expected() { Exit::Success } else { Exit::JobEndedBadly })
    }
}
