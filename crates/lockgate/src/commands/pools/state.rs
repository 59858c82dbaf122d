//! Pools paused, resumed, drained.

use std::time::Duration;

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::follow::repeat;
use crate::live::LiveBar;
use crate::output::{Output, Tone};
use crate::session::CliSession;

/// How often a draining pool is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Give a pool's workers nothing new; its jobs wait for it
#[derive(Args, Debug)]
pub(super) struct PausePool {
    /// Name of the pool
    pool: String,
}

/// Give a pool's workers jobs again
#[derive(Args, Debug)]
pub(super) struct ResumePool {
    /// Name of the pool
    pool: String,
}

/// Give a pool's workers nothing new and wait until nothing runs there
///
/// Jobs of the pool go to the other pools of their topic; those that have no other wait until the pool is resumed.
#[derive(Args, Debug)]
pub(super) struct DrainPool {
    /// Name of the pool
    pool: String,

    /// Return as soon as nothing new starts there
    #[arg(long)]
    no_wait: bool,
}

impl PausePool {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let changed = set(session, &self.pool, v1::PoolState::Paused).await?;
        tell(&self.pool, &changed, session.out)
    }
}

impl ResumePool {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let changed = set(session, &self.pool, v1::PoolState::Open).await?;
        tell(&self.pool, &changed, session.out)
    }
}

impl DrainPool {
    pub(super) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let mut changed = set(session, &self.pool, v1::PoolState::Draining).await?;
        if !self.no_wait {
            let live = LiveBar::new(session.out, running(&changed));
            let drained = drained(session, &self.pool, &live).await;
            live.clear();
            changed.pool = Some(drained?);
        }
        tell(&self.pool, &changed, session.out)
    }
}

async fn set(session: &CliSession, pool: &str, state: v1::PoolState) -> Result<view::PoolChanged, CliError> {
    let request = v1::SetPoolStateRequest { pool: pool.to_owned(), state: state.into() };
    let response = session.pools().set_pool_state(request).await;
    Ok(session.answer(response)?.into())
}

/// The pool once nothing runs in it. A server that restarts meanwhile is waited for.
async fn drained(session: &mut CliSession, name: &str, live: &LiveBar) -> Result<view::Pool, CliError> {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let listed = repeat(session, async |session| {
            let response = session.pools().list_pools(v1::ListPoolsRequest {}).await;
            session.answer(response)
        });
        let pools = view::Pools::from(listed.await?).pools;
        let Some(pool) = pools.into_iter().find(|pool| pool.name == name) else {
            return Err(CliError::Outdated(format!("pool {name} left the pools in force while it was drained")));
        };
        if pool.state != "draining" {
            return Err(CliError::Outdated(format!("somebody made pool {name} {} while it was drained", pool.state)));
        }
        if pool.busy == 0 {
            return Ok(pool);
        }
        live.say(still(pool.busy));
    }
}

fn running(changed: &view::PoolChanged) -> String {
    still(changed.pool.as_ref().map_or(0, |pool| pool.busy))
}

fn still(busy: u64) -> String {
    format!("{busy} still running")
}

fn tell(name: &str, changed: &view::PoolChanged, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(changed)?;
        return Ok(Exit::Success);
    }
    let Some(pool) = &changed.pool else {
        out.line(&format!("{name}  is not among the pools in force; what was said about it is forgotten"))?;
        return Ok(Exit::Success);
    };
    let tone = if pool.state == "open" { Tone::Good } else { Tone::Waiting };
    out.line(&format!("{name}  {}  {} running, {} waiting", out.paint(&pool.state, tone), pool.busy, pool.waiting))?;
    Ok(Exit::Success)
}
