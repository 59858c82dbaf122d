//! Watch a run: what changed since any version, then live, without a gap.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::dag::{Dag, Run};
use lockgate_core::ids::RunId;
use lockgate_core::request::Caller;
use lockgate_ports::{Bell, Ear};

use super::RunView;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// A run being followed. Ends when the run is over and everything was seen.
pub struct RunWatch {
    inner: Arc<Inner>,
    caller: Caller,
    id: RunId,
    ear: Ear,
    /// The latest version seen.
    after: i64,
    over: bool,
    dag: Arc<Dag>,
}

/// A lost ring delays a watcher by at most this.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

impl Engine {
    /// The first answer has everything that changed after a version: 0 for all of it.
    pub async fn watch_run(&self, caller: &Caller, id: &RunId, after: i64) -> Result<RunWatch, ApiError> {
        let ear = self.inner.ports.bus.listen(Bell::run(id));
        let view = self.inner.run_since(caller, id, i64::MAX).await?;
        let inner = self.inner.clone();
        Ok(RunWatch { inner, caller: caller.clone(), id: id.clone(), ear, after, over: false, dag: view.dag })
    }
}

impl RunWatch {
    pub fn dag(&self) -> &Arc<Dag> {
        &self.dag
    }

    /// The head and the nodes that changed since the answer before; None when nothing more will come. States that came
    /// and went between two looks are not told.
    pub async fn next(&mut self) -> Result<Option<Run>, ApiError> {
        while !self.over {
            let RunView { run, dag } = self.inner.shown_run(&self.caller, &self.id, self.after).await?;
            // A saga has more jobs each time.
            self.dag = dag;
            self.over = run.head.state.is_over();
            if run.head.version > self.after {
                self.after = run.head.version;
                return Ok(Some(run));
            }
            if self.over {
                break;
            }
            tokio::select! {
                biased;
                () = self.ear.heard() => {}
                () = tokio::time::sleep(LOOK_ANYWAY) => {}
            }
        }
        Ok(None)
    }
}
