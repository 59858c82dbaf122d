//! Following a run: a live tree for people, a line for each change in a pipe.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use super::{draw, runs};
use crate::error::{CliError, Exit};
use crate::follow::Patience;
use crate::live::LiveBar;
use crate::output::Output;
use crate::session::CliSession;

/// Follow a run until it is over
#[derive(Args, Debug)]
#[command(after_long_help = "Exits with 0 when the run succeeded and with 2 when it ended otherwise.")]
pub(super) struct WatchRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,

    /// Only what changed after this version of the run
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "VERSION")]
    after: i64,
}

impl WatchRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        follow(session, &self.run_id, self.after).await
    }
}

/// Over server restarts: what was seen is not told again.
pub(super) async fn follow(session: &CliSession, run_id: &str, mut after: i64) -> Result<Exit, CliError> {
    let out = session.out;
    let tree = Tree::new(out, run_id);
    let mut patience = Patience::default();
    loop {
        match watch_once(session, run_id, &mut after, &tree).await {
            Ok(()) => {
                let run = runs::fetch(session, run_id).await?;
                if run.ended_at.is_some() {
                    tree.live.clear();
                    if !out.is_json() {
                        out.line(&draw::run(&run, out, None))?;
                    }
                    return Ok(runs::end_of(&run));
                }
                patience = Patience::default();
            }
            Err(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

struct Tree {
    out: Output,
    live: LiveBar,
}

impl Tree {
    fn new(out: Output, run_id: &str) -> Self {
        Self { out, live: LiveBar::new(out, run_id.to_owned()) }
    }
}

async fn watch_once(session: &CliSession, run_id: &str, after: &mut i64, tree: &Tree) -> Result<(), CliError> {
    let request = v1::WatchDagRunRequest { run_id: run_id.to_owned(), after: *after };
    let response = session.orchestrator().watch_dag_run(request).await;
    let mut stream = session.answer(response)?;
    while let Some(event) = stream.message().await.map_err(|status| session.broken(&status))? {
        let Some(run) = event.run else { continue };
        let version = run.version;
        let change = view::Run::from(run);
        if tree.out.is_json() {
            tree.out.json_line(&change)?;
        } else if tree.out.is_live() {
            let whole = runs::fetch(session, run_id).await?;
            tree.live.say(draw::run(&whole, tree.out, Some(event.percent)));
        } else {
            draw::changes(&change, event.percent).into_iter().try_for_each(|line| tree.out.line(&line))?;
        }
        *after = version;
    }
    Ok(())
}
