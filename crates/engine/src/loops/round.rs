//! One round of a loop that one process runs for all, when it may take many pages.

use std::time::Duration;

use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Lead;
use crate::Inner;
use crate::health::moved;

/// Between its pages a round ends when the process is to end, or when somebody else leads by now.
pub(super) struct Round<'a> {
    inner: &'a Inner,
    stop: &'a watch::Receiver<bool>,
    lead: Lead,
    every: Duration,
    led_at: Instant,
}

impl<'a> Round<'a> {
    /// None if somebody else leads.
    pub(super) async fn begin(
        inner: &'a Inner,
        stop: &'a watch::Receiver<bool>,
        lead: Lead,
        every: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let led_at = Instant::now();
        let leads = inner.leads(lead, every).await?;
        Ok(leads.then_some(Self { inner, stop, lead, every, led_at }))
    }

    /// Asked before each page. The lease lasts for two ticks: renewed this early, it outlives a page of half a tick and the rest
    /// that follows the last one. Not before every page, for quick ones would cost a write each.
    pub(super) async fn goes_on(&mut self) -> Result<bool, StoreError> {
        moved();
        if *self.stop.borrow() {
            return Ok(false);
        }
        if self.led_at.elapsed() < self.every / 4 {
            return Ok(true);
        }
        let asked = Instant::now();
        let leads = self.inner.leads(self.lead, self.every).await?;
        if leads {
            self.led_at = asked;
        }
        Ok(leads)
    }
}
