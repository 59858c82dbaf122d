//! How a server's answers about what is in force look.

use lockgate_api::view;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};

/// What became of a text that was put in force.
pub(in crate::commands) fn activated(activated: &view::Activated, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(activated)?;
        return Ok(Exit::Success);
    }
    let note = match activated.recalled {
        _ if activated.unchanged => "was in force already".to_owned(),
        None | Some(0) => "in force".to_owned(),
        Some(recalled) => format!("in force; {recalled} attempts on their way to a worker were called back"),
    };
    let note = out.paint(&note, Tone::Good);
    out.line(&format!("version {}  {}  {note}", activated.version, activated.snapshot))?;
    Ok(Exit::Success)
}

/// The text goes to standard output as it is, so that it can be saved, edited and applied.
pub(in crate::commands) fn text(config: &view::Config, builtin: &str, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(config)?;
        return Ok(Exit::Success);
    }
    match &config.text {
        None if config.version == 0 => out.remark(builtin),
        _ => out.remark(&heading(config, out)),
    }
    if let Some(text) = &config.text {
        out.line(text.trim_end())?;
    }
    Ok(Exit::Success)
}

fn heading(config: &view::Config, out: Output) -> String {
    let force = if config.in_force { "in force" } else { "not in force" };
    let who = config.actor.as_ref().map(|actor| format!(", by {actor}")).unwrap_or_default();
    let when = config.activated_at.map(|at| format!(", {}", out.relative(at))).unwrap_or_default();
    format!("{}, version {}, {force}{who}{when}", config.snapshot, config.version)
}

pub(in crate::commands) fn table(configs: &[view::Config], out: Output) -> String {
    let row = |config: &view::Config| {
        let force = if config.in_force { TableCell::text("in force").toned(Tone::Good) } else { TableCell::text("") };
        vec![
            TableCell::number(&config.version),
            TableCell::text(&config.snapshot),
            force,
            TableCell::text(config.actor.as_deref().unwrap_or("-")),
            out.relative_or_dash(config.activated_at),
        ]
    };
    let rows: Vec<_> = configs.iter().map(row).collect();
    out.table(&["version", "snapshot", "", "by", "activated"], &rows)
}
