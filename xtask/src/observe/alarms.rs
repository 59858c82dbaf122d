//! Which alerts a real Prometheus fires while something happens: those that should, and in calm none.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::Prometheus;
use serde_json::Value;
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
        names(&question(self.prometheus, &query)?)
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

    /// Waits until none of these fires any more: what was cured must not go on to alarm.
    pub(super) async fn expect_over(&self, names: &[&str]) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut every = tokio::time::interval(Duration::from_millis(500));
        loop {
            every.tick().await;
            let firing = self.firing()?;
            let left: Vec<&&str> = names.iter().filter(|name| firing.contains(**name)).collect();
            if left.is_empty() {
                println!("  over after {:.0} s: {}", start.elapsed().as_secs_f64(), names.join(", "));
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("{left:?} goes on {PATIENCE:?} after its cause was gone");
            }
        }
    }

    /// Everything that ever fired must be over.
    pub(super) async fn expect_all_over(&self) -> anyhow::Result<()> {
        self.expect_over(&self.fired.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// What fires now.
    fn firing(&self) -> anyhow::Result<BTreeSet<String>> {
        names(&question(self.prometheus, "ALERTS{alertstate=\"firing\"}")?)
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

/// The alerts that an answer is about.
fn names(rows: &[Value]) -> anyhow::Result<BTreeSet<String>> {
    let name = |row: &Value| row["metric"]["alertname"].as_str().map(str::to_owned).context("an alert without a name");
    rows.iter().map(name).collect()
}
