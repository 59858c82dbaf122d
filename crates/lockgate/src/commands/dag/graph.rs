//! A workflow as a picture.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, ValueEnum};
use lockgate_core::dag::{Dag, NodeState};
use lockgate_core::ids::RunId;
use lockgate_proto::v1;

use super::runs;
use crate::cli::Connection;
use crate::commands::config::files;
use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::session::CliSession;

/// Draw a workflow, or a run with the states of its nodes, as Mermaid or SVG
#[derive(Args, Debug)]
pub(super) struct Graph {
    /// A file, the name of a stored workflow, or the id of a run
    #[arg(value_name = "FILE|DAG|RUN")]
    what: String,

    /// The form of the picture
    #[arg(long, value_enum, default_value_t = Form::Mermaid)]
    format: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Mermaid,
    Svg,
}

impl Graph {
    pub(super) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let path = Path::new(&self.what);
        let (dag, states) = if path.is_file() {
            match Dag::load(&self.what, &files::read(path)?) {
                Ok(dag) => (dag, BTreeMap::new()),
                Err(errors) => return files::tell(&errors, None, out),
            }
        } else {
            stored(&CliSession::connect(connection, out).await?, &self.what).await?
        };
        let state = |at: u32| states.get(&dag.node(at).name.to_string()).copied();
        let picture = match self.format {
            Form::Mermaid => dag.mermaid(state),
            Form::Svg => dag.svg(state),
        };
        out.line(picture.trim_end())?;
        Ok(Exit::Success)
    }
}

/// The definition, and where each node of a run stands.
async fn stored(session: &CliSession, what: &str) -> Result<(Dag, BTreeMap<String, NodeState>), CliError> {
    let mut states = BTreeMap::new();
    let (mut name, mut version) = (what.to_owned(), None);
    if what.starts_with(RunId::PREFIX) {
        let run = runs::fetch(session, what).await?;
        let own = run.nodes.into_iter().flatten().filter(|node| node.item.is_none());
        states.extend(own.filter_map(|node| Some((node.name, node_state(&node.state)?))));
        (name, version) = (run.dag, Some(run.dag_version));
    }
    let response = session.orchestrator().get_dag(v1::GetDagRequest { name: name.clone(), version }).await;
    let text = session.answer(response)?.text;
    let dag = Dag::load_stored(&name, &text).map_err(|_| {
        CliError::Server(format!("this program cannot read the definition of {name}; is the server a newer one?"))
    })?;
    Ok((dag, states))
}

fn node_state(text: &str) -> Option<NodeState> {
    NodeState::ALL.into_iter().find(|state| state.as_str() == text)
}
