//! `job.sleep`: sleeps, and on request lets its first attempt be declared lost.

use std::time::Duration;

use serde::Deserialize;

use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SleepInput {
    ms: u64,
    /// False leaves the first attempt out of the worker's inventory, so that the server declares it lost. Later attempts are
    /// normal, so the job ends.
    #[serde(default = "yes")]
    renew: bool,
}

fn yes() -> bool {
    true
}

pub(super) async fn run(context: &Context, payload: &Payload) -> Result<(), JobError> {
    let input: SleepInput = payload.json()?;
    if !input.renew && context.attempt() == 1 {
        context.hide_from_inventory();
    }
    tokio::time::sleep(Duration::from_millis(input.ms)).await;
    Ok(())
}
