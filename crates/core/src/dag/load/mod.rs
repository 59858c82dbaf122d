//! Loads a DAG from the text of its definition, or reports every error in it.

mod job;
mod node;
mod param;
mod references;
mod wiring;

use super::template::TemplateUses;
use super::{Dag, NODES_MAX, Template, keys};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode as Yaml};
use crate::config::{ConfigError, ConfigReport, snapshot};
use crate::limits::SPAN_MS_MAX;

/// The only version of the DAG language so far.
const VERSION: u64 = 1;
/// Room for the largest number of nodes at some hundred bytes each. Bounded, because every version of a text is stored.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 20;
/// More parallel work than any installation runs; a larger number is a typing error.
pub(super) const AT_ONCE_MAX: u32 = 1_000_000;

impl Dag {
    /// Reads a definition. `file` is its name in error messages.
    pub fn load(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        Self::read(text, ConfigReport::new(file))
    }

    /// Reads a text that was accepted before, perhaps by an earlier version with fewer checks. New checks must not make it
    /// unreadable.
    pub fn load_stored(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        Self::read(text, ConfigReport::of_stored(file))
    }

    fn read(text: &str, mut report: ConfigReport) -> Result<Self, Vec<ConfigError>> {
        let root = yaml::parse_within(TEXT_BYTES_MAX, text, &mut report);
        let dag = root.and_then(|root| read_dag(&root, text, &mut report));
        match dag {
            Some(dag) if report.is_clean() => Ok(dag),
            _ => Err(report.into_errors()),
        }
    }
}

fn read_dag(root: &Yaml, text: &str, report: &mut ConfigReport) -> Option<Dag> {
    let fields = Fields::of(root, &keys::FILE, report)?;
    if let Some(node) = fields.need("version", report) {
        read::whole(node, "version", VERSION..=VERSION, report);
    }
    let name = fields.need("dag", report).and_then(|node| named(node, "dag", report));
    let description = fields.get("description").and_then(|node| read::text(node, "description", report));
    let params = fields.get("params").map(|node| param::read_all(node, report)).unwrap_or_default();
    let at_once = fields.get("max_parallelism");
    let timeout = fields.get("timeout").and_then(|node| read::span(node, "timeout", 1..=SPAN_MS_MAX, report));
    let mut found = TemplateUses::default();
    let output = fields.get("output").map(|node| {
        yaml::check_numbers(node, "output", report);
        Template::read(node, "output", &mut found)
    });
    let entries = fields.need("nodes", report).and_then(|node| read::some_entries(node, "nodes", report));
    if let Some(more) = entries.unwrap_or_default().get(NODES_MAX) {
        report.refuse(more.at, format!("a DAG has at most {NODES_MAX} nodes; make a DAG of its own of some of them"));
        return None;
    }
    let drafts: Vec<node::Draft<'_>> =
        entries.unwrap_or_default().iter().map(|entry| node::read(entry, name, report)).collect();
    let mut dag = Dag {
        name: name.unwrap_or_default().into(),
        snapshot: snapshot("dag", text),
        source: text.into(),
        description: description.map(Into::into),
        params,
        max_parallelism: at_once.and_then(|node| read::count(node, "max_parallelism", AT_ONCE_MAX, report)),
        timeout_ms: timeout,
        output,
        nodes: Vec::new(),
    };
    wiring::wire(&mut dag, drafts, found, report);
    Some(dag)
}

/// Reads a text that must be a valid name.
fn named<'a>(node: &'a Yaml, key: &str, report: &mut ConfigReport) -> Option<&'a str> {
    read::text(node, key, report).and_then(|text| read::name(text, key, node.at, report))
}
