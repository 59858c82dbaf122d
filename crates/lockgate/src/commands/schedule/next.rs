//! `lockgate schedule next`: what an expression means, before anything depends on it.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use lockgate_api::view::Time;
use lockgate_core::schedule::{Rhythm, Timetable};
use lockgate_core::time::Timestamp as Instant;
use lockgate_ports::Clock;
use serde::Serialize;

use crate::args;
use crate::clock::SystemClock;
use crate::error::{CliError, Exit};
use crate::output::{Output, Tone};

/// Show the next times of a cron expression, without a server
#[derive(Args, Debug)]
pub(super) struct NextTimes {
    /// The expression, such as "0 2 * * MON-FRI" or @daily
    cron: String,

    /// The time zone in which it is meant
    #[arg(long, default_value = "UTC", value_name = "NAME")]
    time_zone: String,

    /// After this moment; now unless given
    #[arg(long, value_parser = args::timestamp, value_name = "TIME")]
    after: Option<Timestamp>,

    /// How many
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000), value_name = "COUNT")]
    count: u16,
}

#[derive(Serialize)]
struct PrintedTimes {
    times: Vec<String>,
}

impl NextTimes {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        let rhythm = Rhythm::Cron(Arc::from(self.cron));
        let table = Timetable::new(&rhythm, &self.time_zone).map_err(CliError::Usage)?;
        let after = self.after.map_or_else(|| SystemClock.now(), |at| Instant::from_millis(at.as_millisecond()));
        let times = table.upcoming(after, usize::from(self.count));
        if out.is_json() {
            out.json(&PrintedTimes { times: times.iter().map(|at| table.write(*at)).collect() })?;
            return Ok(Exit::Success);
        }
        for at in &times {
            let moment = Timestamp::from_millisecond(at.as_millis()).map(Time).map(|at| out.relative(at));
            let relative = out.paint(&moment.unwrap_or_default(), Tone::Faint);
            out.line(&format!("{}  {relative}", table.write(*at)))?;
        }
        if times.is_empty() {
            out.remark("it never comes again");
        }
        Ok(Exit::Success)
    }
}
