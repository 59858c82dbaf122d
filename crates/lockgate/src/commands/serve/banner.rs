//! The first thing a newcomer sees.

use lockgate_core::verdict::BUILTIN_ALLOW;
use serde::Serialize;

use super::Serve;
use super::wiring::Server;
use crate::error::CliError;
use crate::output::{Output, Tone};

#[derive(Serialize)]
struct Started<'a> {
    api: String,
    metrics: String,
    data: String,
    policy: &'a str,
    worker_slots: u32,
}

pub(super) fn show(serve: &Serve, server: &Server, out: Output) -> Result<(), CliError> {
    let slots = if serve.has_worker() { serve.worker_slots } else { 0 };
    let started = Started {
        api: format!("http://{}", server.listen),
        metrics: format!("http://{}/metrics", server.metrics),
        data: serve.data.display().to_string(),
        policy: server.policy.as_ref().map_or(BUILTIN_ALLOW, |active| &active.id),
        worker_slots: slots,
    };
    if out.is_json() {
        return out.json_line(&started);
    }
    let worker = match slots {
        0 if serve.judges_only() => "none: this process only judges".to_owned(),
        0 => "none: start one with `lockgate worker`".to_owned(),
        n => format!("built in, {n} slots"),
    };
    let policy = match &server.policy {
        Some(active) => format!("version {} ({})", active.version, active.id),
        None => format!("{BUILTIN_ALLOW} (no policy configured: every job is allowed)"),
    };
    let rows = [
        ("API", started.api.clone() + "  (gRPC and REST)"),
        ("Metrics", started.metrics.clone()),
        ("Data", started.data),
        ("Policy", policy),
        ("Worker", worker),
    ];
    out.line(&format!("{} {}", out.paint("Lockgate", Tone::Good), env!("CARGO_PKG_VERSION")))?;
    for (name, value) in rows {
        out.line(&format!("  {} {value}", out.paint(&format!("{name:<8}"), Tone::Faint)))?;
    }
    out.line("")?;
    out.line("Try it, in another terminal:")?;
    out.line("  lockgate submit job.echo --payload '{\"hello\":\"world\"}' --wait")
}
