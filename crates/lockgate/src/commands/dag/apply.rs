//! Definitions: checked, stored, looked at.

use std::path::PathBuf;

use clap::Args;
use lockgate_api::view;
use lockgate_core::dag::{Dag, OverruledJoin};
use lockgate_proto::v1;
use serde::Serialize;

use crate::commands::config::files;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Store a definition under the next version of its name; runs that are under way stay with theirs
#[derive(Args, Debug)]
pub(super) struct ApplyDag {
    /// The file
    file: PathBuf,
}

/// Check a definition without a server and tell every fault, which nodes nothing undoes, and which joins a failure overrules
#[derive(Args, Debug)]
pub(super) struct LintDag {
    /// The file
    file: PathBuf,
}

/// List the latest version of each workflow
#[derive(Args, Debug)]
pub(super) struct ListDags {}

/// Print a definition
#[derive(Args, Debug)]
pub(super) struct ShowDag {
    /// Name of the workflow
    name: String,

    /// The latest, if absent
    #[arg(long)]
    version: Option<u32>,
}

#[derive(Serialize)]
struct CheckedDag<'a> {
    ok: bool,
    dag: &'a str,
    snapshot: &'a str,
    nodes: usize,
    uncompensated: Vec<&'a str>,
    overruled_joins: Vec<OverruledJoin<'a>>,
}

impl ApplyDag {
    /// If the server refuses the file, the faults are told from here: an error of the server has no room for all of them.
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let out = session.out;
        let (file, text) = (self.file.display().to_string(), files::read(&self.file)?);
        let request = v1::PutDagRequest { file: file.clone(), text: text.clone() };
        let response = session.orchestrator().put_dag(request).await;
        let stored = match session.answer(response) {
            Ok(stored) => view::StoredDag::from(stored),
            Err(refused @ CliError::Refused { .. }) => {
                return match Dag::load(&file, &text) {
                    Err(errors) => files::tell(&errors, None, out),
                    Ok(_) => Err(refused),
                };
            }
            Err(error) => return Err(error),
        };
        if out.is_json() {
            out.json(&stored)?;
        } else {
            let version = out.paint(&format!("version {}", stored.version), Tone::Good);
            out.line(&format!("{}  {version}  {}", stored.name, out.paint(&stored.snapshot, Tone::Faint)))?;
            // The server took the text; a newer one may take what this program cannot read.
            if let Ok(dag) = Dag::load(&file, &text) {
                overruled(&dag, out).iter().for_each(|line| out.remark(line));
            }
            out.remark(&format!("start it with `lockgate dag start {}`", stored.name));
        }
        Ok(Exit::Success)
    }
}

impl LintDag {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        let name = self.file.display().to_string();
        let dag = match Dag::load(&name, &files::read(&self.file)?) {
            Ok(dag) => dag,
            Err(errors) => return files::tell(&errors, None, out),
        };
        let (uncompensated, overruled_joins) = (dag.uncompensated(), dag.overruled_joins());
        if out.is_json() {
            let (nodes, snapshot) = (dag.nodes.len(), &*dag.snapshot);
            out.json(&CheckedDag { ok: true, dag: &dag.name, snapshot, nodes, uncompensated, overruled_joins })?;
            return Ok(Exit::Success);
        }
        out.line(&format!("{name}  {}  {} nodes  {}", out.paint("ok", Tone::Good), dag.nodes.len(), dag.snapshot))?;
        if !uncompensated.is_empty() {
            out.line(&format!("{} {}", out.paint("nothing undoes:", Tone::Waiting), uncompensated.join(", ")))?;
        }
        overruled(&dag, out).iter().try_for_each(|line| out.line(line))?;
        Ok(Exit::Success)
    }
}

/// A line for each join that a failure overrules, and what to write instead.
fn overruled(dag: &Dag, out: Output) -> Vec<String> {
    let lead = out.paint("a failure ends the run before the join decides:", Tone::Waiting);
    let line = |OverruledJoin { node, join, by }: OverruledJoin<'_>| {
        format!("{lead} {node} ({join}) needs {}; say on_fail: continue there to let the join decide", by.join(", "))
    };
    dag.overruled_joins().into_iter().map(line).collect()
}

impl ListDags {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.orchestrator().list_da_gs(v1::ListDaGsRequest {}).await;
        let dags = view::Dags::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&dags)?;
            return Ok(Exit::Success);
        }
        let row = |dag: &view::Dag| {
            vec![
                TableCell::text(&dag.name),
                TableCell::number(&dag.version),
                TableCell::number(&dag.nodes),
                TableCell::text(out.relative(dag.stored_at)),
                TableCell::text(&dag.actor),
                TableCell::clipped(dag.description.as_deref().unwrap_or_default()),
            ]
        };
        let rows: Vec<_> = dags.dags.iter().map(row).collect();
        out.line(&out.table(&["dag", "version", "nodes", "stored", "by", "description"], &rows))?;
        Ok(Exit::Success)
    }
}

impl ShowDag {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::GetDagRequest { name: self.name, version: self.version };
        let response = session.orchestrator().get_dag(request).await;
        let dag = view::Dag::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&dag)?;
        } else {
            session.out.line(dag.text.as_deref().unwrap_or_default().trim_end())?;
        }
        Ok(Exit::Success)
    }
}
