//! `lockgate health`: how one process is, part by part.

use std::time::Duration;

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Show how a process is: its store, its loops, who leads, and what to do about what is wrong
#[derive(Args, Debug)]
pub(crate) struct HealthArgs {}

impl HealthArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.monitor().get_health(v1::GetHealthRequest {}).await;
        let health = view::Health::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&health)?;
        } else {
            session.out.line(&text(&health, session.out))?;
        }
        Ok(if health.findings.iter().any(|finding| finding.serious) { Exit::Conflict } else { Exit::Success })
    }
}

fn text(health: &view::Health, out: Output) -> String {
    let tone = match health.status.as_str() {
        "ready" => Tone::Good,
        "degraded" => Tone::Waiting,
        _ => Tone::Bad,
    };
    let up = Duration::from_secs(health.up_for_ms / 1_000);
    let mut parts = vec![out.fields(&[
        ("status", TableCell::text(&health.status).toned(tone)),
        ("roles", TableCell::text(health.roles.join(", "))),
        ("up for", TableCell::text(format!("{up:?}"))),
    ])];
    parts
        .extend(health.findings.iter().map(|finding| format!("{}: {}\n  {}", finding.code, finding.detail, finding.advice)));
    parts.push(components(health, out));
    parts.push(loops(health, out));
    if !health.leaders.is_empty() {
        parts.push(leaders(health, out));
    }
    parts.join("\n\n")
}

fn components(health: &view::Health, out: Output) -> String {
    let row = |part: &view::HealthComponent| {
        let tone = match part.state.as_str() {
            "answers" | "sound" | "in_process" | "connected" | "elsewhere" => Tone::Good,
            "behind" | "blank" | "unknown" => Tone::Waiting,
            _ => Tone::Bad,
        };
        vec![TableCell::text(&part.name), TableCell::text(&part.state).toned(tone), TableCell::text(&part.detail)]
    };
    out.table(&["part", "state", "detail"], &health.components.iter().map(row).collect::<Vec<_>>())
}

fn loops(health: &view::Health, out: Output) -> String {
    let row = |view: &view::HealthLoop| {
        let (state, tone) = if view.stuck { ("stuck", Tone::Bad) } else { ("moves", Tone::Good) };
        let leads = view.epoch.map_or_else(|| view.leads.clone(), |epoch| format!("{} since epoch {epoch}", view.leads));
        vec![
            TableCell::text(&view.name),
            TableCell::text(state).toned(tone),
            TableCell::text(format!("{} ms ago", view.moved_ago_ms)),
            TableCell::text(leads),
        ]
    };
    out.table(&["loop", "state", "moved", "leadership"], &health.loops.iter().map(row).collect::<Vec<_>>())
}

fn leaders(health: &view::Health, out: Output) -> String {
    let row = |leader: &view::HealthLeader| {
        let holder = match (&leader.holder, leader.nobody) {
            (Some(holder), _) => TableCell::text(holder),
            (None, false) => TableCell::text("changing hands").toned(Tone::Waiting),
            (None, true) => TableCell::text("nobody").toned(Tone::Bad),
        };
        vec![TableCell::text(&leader.lease), TableCell::text(&leader.role), holder, TableCell::number(&leader.epoch)]
    };
    out.table(&["lease", "role", "holder", "epoch"], &health.leaders.iter().map(row).collect::<Vec<_>>())
}
