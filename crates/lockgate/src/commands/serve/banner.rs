//! The banner: the first output that a new user sees.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use lockgate_core::pools::DEFAULT_POOL;
use lockgate_core::verdict::BUILTIN_ALLOW;
use lockgate_gateway::ApiSurface;
use serde::Serialize;

use super::Serve;
use super::wiring::RunningServer;
use crate::cli::SERVER;
use crate::error::CliError;
use crate::output::{Output, Tone};

#[derive(Serialize)]
struct Banner<'a> {
    api: String,
    metrics: String,
    data: String,
    /// The policy in force; absent while a remote safety kernel has not reported its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    /// The address of the remote safety kernel, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<&'a str>,
    /// Files of the folder `config` that are used although no option names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    config_files: Vec<String>,
    worker_slots: u32,
    /// The file with the administrator's key, if this start made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_key_file: Option<String>,
}

pub(super) fn show(serve: &Serve, server: &RunningServer, out: Output) -> Result<(), CliError> {
    let slots = if server.has_worker() { serve.worker_slots } else { 0 };
    let admin_key_file = server.admin.as_ref().map(|_| key_file(serve).display().to_string());
    let kernel = serve.governance.safety_kernel.as_deref();
    let scheme = if serve.identity.speaks_tls() { "https" } else { "http" };
    let started = Banner {
        api: format!("{scheme}://{}", server.listen),
        metrics: format!("{scheme}://{}/metrics", server.metrics),
        data: serve.data.display().to_string(),
        policy: match (&server.policy, kernel) {
            (Some(active), _) => Some(&active.id),
            (None, None) => Some(BUILTIN_ALLOW),
            (None, Some(_)) => None,
        },
        safety_kernel: kernel,
        pools: server.pools.as_ref().map(|active| &*active.id),
        config_files: server.found.iter().map(|path| path.display().to_string()).collect(),
        worker_slots: slots,
        admin_key_file: admin_key_file.clone(),
    };
    if out.is_json() {
        return out.json_line(&started);
    }
    let at = told(scheme, server.listen);
    let worker = match slots {
        0 if server.roles.judges_only() => "none: this process only judges".to_owned(),
        0 if server.roles.worker => {
            format!("none: its pool {} is not configured; name another with --worker-pool", serve.worker_pool)
        }
        0 => format!("none: start one with `lockgate{at} worker`"),
        n if serve.worker_pool == DEFAULT_POOL => format!("built in, {n} slots"),
        n => format!("built in, {n} slots, pool {}", serve.worker_pool),
    };
    let policy = policy(kernel, server.policy.as_ref().map(|active| (active.version, &*active.id)));
    let pools = server.pools.as_ref().map(|active| format!("version {} ({})", active.version, active.id));
    let shown = server.roles.surface == ApiSurface::All && !serve.no_dashboard;
    let rows = [
        ("API", Some(started.api.clone() + "  (gRPC and REST)")),
        ("Browser", shown.then(|| format!("{}/", started.api))),
        ("Metrics", Some(started.metrics.clone())),
        ("Data", Some(started.data)),
        ("Policy", Some(policy)),
        ("Pools", pools),
        (
            "Files",
            (!started.config_files.is_empty())
                .then(|| started.config_files.join(", ") + "  (found; --no-config leaves them out)"),
        ),
        ("Worker", Some(worker)),
        ("Access", serve.identity.auth.then(|| "for those with a credential".to_owned())),
        ("Admin", server.admin.as_ref().map(|made| made.key.reveal() + "  (shown this once)")),
        ("", admin_key_file.as_ref().map(|path| format!("also in {path}, for its owner only: take it from there"))),
    ];
    out.line(&format!("{} {}", out.paint("Lockgate", Tone::Good), env!("CARGO_PKG_VERSION")))?;
    for (name, value) in rows {
        let Some(value) = value else { continue };
        out.line(&format!("  {} {value}", out.paint(&format!("{name:<8}"), Tone::Faint)))?;
    }
    invite(&at, server.admin.is_some(), out)
}

/// The kernel and the policy, as far as it is known.
fn policy(kernel: Option<&str>, active: Option<(u64, &str)>) -> String {
    match (kernel, active) {
        (Some(kernel), Some((version, id))) => {
            format!("judged by the safety kernel at {kernel}, last by version {version} ({id})")
        }
        (Some(kernel), None) => format!("judged by the safety kernel at {kernel}"),
        (None, Some((version, id))) => format!("version {version} ({id})"),
        (None, None) => format!("{BUILTIN_ALLOW} (no policy configured: every job is allowed)"),
    }
}

fn invite(at: &str, needs_key: bool, out: Output) -> Result<(), CliError> {
    out.line("")?;
    out.line("Try it, in another terminal:")?;
    if needs_key {
        out.line("  export LOCKGATE_API_KEY=<the admin key above>")?;
    }
    out.line(&format!("  lockgate{at} submit job.echo --payload '{{\"hello\":\"world\"}}' --wait"))
}

/// The option that a command on this machine needs to find the server; empty if the default address is right.
fn told(scheme: &str, mut listen: SocketAddr) -> String {
    match listen {
        SocketAddr::V4(all) if all.ip().is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(all) if all.ip().is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let server = format!("{scheme}://{listen}");
    if server == SERVER { String::new() } else { format!(" --server {server}") }
}

/// With JSON output the banner is logged, and a key must not be: it is written to a file instead.
pub(super) fn key_file(serve: &Serve) -> PathBuf {
    serve.data.join("admin.key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_judges_is_named() {
        let kernel = Some("kernel.example:9000");
        assert_eq!(policy(kernel, None), "judged by the safety kernel at kernel.example:9000");
        assert!(policy(kernel, Some((3, "sha256:ab"))).ends_with("kernel.example:9000, last by version 3 (sha256:ab)"));
        assert_eq!(policy(None, Some((3, "sha256:ab"))), "version 3 (sha256:ab)");
        assert!(policy(None, None).contains("every job is allowed"));
    }

    #[test]
    fn the_first_command_finds_the_server_wherever_it_listens() {
        for (scheme, listen, expected) in [
            ("http", "127.0.0.1:8080", ""),
            ("http", "0.0.0.0:8080", ""),
            ("http", "127.0.0.1:8123", " --server http://127.0.0.1:8123"),
            ("http", "[::]:8080", " --server http://[::1]:8080"),
            ("https", "10.0.0.7:8080", " --server https://10.0.0.7:8080"),
        ] {
            assert_eq!(told(scheme, listen.parse().expect("an address")), expected);
        }
    }
}
