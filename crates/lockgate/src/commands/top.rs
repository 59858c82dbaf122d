//! `lockgate top`: what goes on, as it goes on.

mod draw;
mod sample;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use lockgate_ports::clock::Clock;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use self::sample::{Picture, Sample};
use self::screen::Screen;
use crate::args;
use crate::clock::SystemClock;
use crate::error::{CliError, Exit};
use crate::follow::Patience;
use crate::output::Output;
use crate::session::CliSession;

/// Watch queues, pools, workers, rates, breakers and leaders live
#[derive(Args, Debug)]
#[command(after_long_help = "Ctrl-C leaves. In a pipe one picture is printed; with --json, one document a line.")]
pub(crate) struct Top {
    /// Time between pictures
    #[arg(long, default_value = "1s", value_parser = every, value_name = "SPAN")]
    every: Duration,

    /// Leave after this many pictures; none means never on a terminal, and after the first one in a pipe
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "COUNT")]
    count: Option<u64>,
}

/// Faster, and looking would be a load of its own.
const EVERY_MIN: Duration = Duration::from_millis(100);

fn every(text: &str) -> Result<Duration, String> {
    let span = args::duration(text)?;
    if span >= EVERY_MIN { Ok(span) } else { Err(format!("must be at least {}ms", EVERY_MIN.as_millis())) }
}

impl Top {
    pub(crate) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let watched = !session.out.is_json() && std::io::stdout().is_terminal();
        let count = self.count.or_else(|| (!watched).then_some(1));
        let mut screen = watched.then(Screen::open).transpose()?;
        tokio::select! {
            shown = self.pictures(session, count, screen.as_mut()) => shown?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        Ok(Exit::Success)
    }

    /// Rates need two looks, so the first picture is shown after the second one.
    async fn pictures(
        &self,
        session: &CliSession,
        count: Option<u64>,
        mut screen: Option<&mut Screen>,
    ) -> Result<(), CliError> {
        let mut patience = Patience::default();
        let mut before = None;
        let mut shown = 0;
        let mut ticks = interval_at(Instant::now(), self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while count.is_none_or(|count| shown < count) {
            ticks.tick().await;
            let sample = match Sample::take(session).await {
                Ok(sample) => sample,
                Err(error) => {
                    let said = match &error {
                        CliError::Busy { message, .. } => message.clone(),
                        _ => format!("{} does not answer", session.server),
                    };
                    patience.bear(error)?;
                    if let Some(screen) = screen.as_deref_mut() {
                        screen.show(&format!("{said}; asking again"))?;
                    }
                    before = None;
                    continue;
                }
            };
            patience = Patience::default();
            if let Some(before) = before.replace(sample.mark()) {
                shown += 1;
                show(&sample.since(&before), session, screen.as_deref_mut())?;
            }
        }
        Ok(())
    }
}

fn show(picture: &Picture, session: &CliSession, screen: Option<&mut Screen>) -> Result<(), CliError> {
    let now = Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default();
    let out = Output::new(session.out.format, now);
    match screen {
        Some(screen) => screen.show(&draw::text(picture, &session.server, out)),
        None if out.is_json() => out.json_line(picture),
        None => out.line(&draw::text(picture, &session.server, out)),
    }
}
