//! Which alerts a real Prometheus fires while something happens: those that should, and in calm none.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::Prometheus;
use tokio::time::Instant;

use super::question;

/// Longer than any quick alert takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

pub(super) struct Alarms<'a> {
    prometheus: &'a Prometheus,
    fired: BTreeSet<String>,
}

impl<'a> Alarms<'a> {
    pub(super) fn new(prometheus: &'a Prometheus) -> Self {
        Self { prometheus, fired: BTreeSet::new() }
    }

    /// What fired at any time since.
    fn since(&self, start: Instant) -> anyhow::Result<BTreeSet<String>> {
        let seconds = start.elapsed().as_secs().max(1);
        let query = format!("sum by (alertname) (count_over_time(ALERTS{{alertstate=\"firing\"}}[{seconds}s]))");
        let rows = question(self.prometheus, &query)?;
        rows.iter()
            .map(|row| Ok(row["metric"]["alertname"].as_str().context("an alert without a name")?.to_owned()))
            .collect()
    }

    /// Goes on poking until all of these have fired since `start`.
    pub(super) async fn expect(
        &mut self,
        start: Instant,
        names: &[&str],
        mut poke: impl AsyncFnMut(),
    ) -> anyhow::Result<()> {
        let mut every = tokio::time::interval(Duration::from_millis(500));
        loop {
            every.tick().await;
            poke().await;
            let fired = self.since(start)?;
            let missing: Vec<&&str> = names.iter().filter(|name| !fired.contains(**name)).collect();
            if missing.is_empty() {
                println!("  after {:.0} s: {}", start.elapsed().as_secs_f64(), names.join(", "));
                self.fired.extend(names.iter().map(|name| (*name).to_owned()));
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("no alert {missing:?} within {PATIENCE:?}; fired: {fired:?}");
            }
        }
    }

    /// Nothing may have fired.
    pub(super) fn expect_calm(&self, start: Instant) -> anyhow::Result<()> {
        let fired = self.since(start)?;
        if !fired.is_empty() {
            bail!("alerts without a reason: {fired:?}");
        }
        println!("  calm for {:.0} s: no alert", start.elapsed().as_secs_f64());
        Ok(())
    }

    pub(super) fn fired(&self) -> &BTreeSet<String> {
        &self.fired
    }
}
