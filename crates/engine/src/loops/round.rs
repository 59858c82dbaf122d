//! One round of a loop, when it may take many pages.

use std::time::Duration;

use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, Leadership};
use crate::health::progress;

/// Between its pages a round ends when the process is to end, or when another process leads by now.
pub(super) struct Round<'a> {
    stop: &'a watch::Receiver<bool>,
    /// None for what every process does for itself.
    led: Option<Led<'a>>,
}

/// The lease of a loop that one process runs for all.
struct Led<'a> {
    leadership: &'a Leadership,
    lead: Lead,
    every: Duration,
    /// When it was last asked for and had.
    at: Instant,
}

impl Led<'_> {
    /// The lease lasts for two ticks: renewed this early, it outlives a page of half a tick and the rest that follows the last
    /// one. Not before every page, for quick ones would cost a write each.
    fn renewed_after(&self) -> Duration {
        self.every / 4
    }
}

impl<'a> Round<'a> {
    /// None if another process leads.
    pub(super) async fn begin(
        leadership: &'a Leadership,
        stop: &'a watch::Receiver<bool>,
        lead: Lead,
        every: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let at = Instant::now();
        let leads = leadership.leads(lead, every).await?;
        Ok(leads.then_some(Self { stop, led: Some(Led { leadership, lead, every, at }) }))
    }

    /// For rounds of every process, leader or not.
    pub(super) fn of_own(stop: &'a watch::Receiver<bool>) -> Self {
        Self { stop, led: None }
    }

    /// Asked before each page.
    pub(super) async fn goes_on(&mut self) -> Result<bool, StoreError> {
        progress();
        if *self.stop.borrow() { Ok(false) } else { self.still_leads().await }
    }

    /// Comes back when the process is to end. Meanwhile the lease is renewed, for a page that waits for others may outlast it.
    pub(super) async fn stopped(&mut self) {
        let mut stop = self.stop.clone();
        while let Some(rest) = self.led.as_ref().map(Led::renewed_after) {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(rest) => {}
            }
            // Even if another process leads by now, the page under way is valid there too; leadership is checked again before the next page.
            let _ = self.still_leads().await;
        }
        let _ = stop.wait_for(|stop| *stop).await;
    }

    async fn still_leads(&mut self) -> Result<bool, StoreError> {
        let Some(led) = self.led.as_mut().filter(|led| led.at.elapsed() >= led.renewed_after()) else { return Ok(true) };
        let asked = Instant::now();
        let leads = led.leadership.leads(led.lead, led.every).await?;
        if leads {
            led.at = asked;
        }
        Ok(leads)
    }
}
