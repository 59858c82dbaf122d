//! `lockgate pools`: where jobs run.

mod state;

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_proto::v1;

use super::config::{self, POOLS};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Look at pools, pause and drain them, and say which topics they serve
#[derive(Args, Debug)]
pub(crate) struct PoolsArgs {
    #[command(subcommand)]
    command: PoolCommand,
}

#[derive(Debug, Subcommand)]
enum PoolCommand {
    List(ListPools),
    Pause(state::PausePool),
    Resume(state::ResumePool),
    Drain(state::DrainPool),
    #[command(flatten)]
    Config(config::ConfigCommand),
}

/// List the pools and what goes on in them
#[derive(Args, Debug)]
struct ListPools {}

impl PoolsArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || CliSession::connect(connection, out).await;
        match self.command {
            PoolCommand::List(command) => command.run(&connect().await?).await,
            PoolCommand::Pause(command) => command.run(&connect().await?).await,
            PoolCommand::Resume(command) => command.run(&connect().await?).await,
            PoolCommand::Drain(command) => command.run(&mut connect().await?).await,
            PoolCommand::Config(command) => command.run(&POOLS, connection, out).await,
        }
    }
}

impl ListPools {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.pools().list_pools(v1::ListPoolsRequest {}).await;
        let pools = view::Pools::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&pools)?;
        } else {
            session.out.line(&table(&pools, session.out))?;
        }
        Ok(Exit::Success)
    }
}

fn table(pools: &view::Pools, out: Output) -> String {
    let row = |pool: &view::Pool| {
        let tone = if pool.state == "open" { Tone::Good } else { Tone::Waiting };
        vec![
            TableCell::text(&pool.name),
            TableCell::text(&pool.state).toned(tone),
            TableCell::text(&pool.dispatch),
            TableCell::number(&pool.workers),
            TableCell::number(&format!("{}/{}", pool.busy, pool.slots)),
            TableCell::number(&pool.waiting),
            TableCell::clipped(&pool.topics.join(" ")),
        ]
    };
    let rows: Vec<_> = pools.pools.iter().map(row).collect();
    out.table(&["pool", "state", "dispatch", "workers", "busy", "waiting", "topics"], &rows)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn a_pool_is_one_line_with_what_goes_on_in_it() {
        let pool = |name: &str, state: v1::PoolState| v1::PoolStatus {
            name: name.to_owned(),
            dispatch: "queue".to_owned(),
            state: state.into(),
            topics: vec!["job.a".to_owned(), "job.b.*".to_owned()],
            workers: 2,
            slots: 16,
            busy: 3,
            waiting: 120,
            ..v1::PoolStatus::default()
        };
        let pools = vec![pool("repo-scan", v1::PoolState::Open), pool("gpu", v1::PoolState::Draining)];
        let pools = view::Pools::from(v1::ListPoolsResponse { pools, snapshot: "pools:1".to_owned() });
        let expected = "\
POOL       STATE     DISPATCH  WORKERS  BUSY  WAITING  TOPICS
repo-scan  open      queue           2  3/16      120  job.a job.b.*
gpu        draining  queue           2  3/16      120  job.a job.b.*";
        assert_eq!(table(&pools, Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH)), expected);
    }
}
