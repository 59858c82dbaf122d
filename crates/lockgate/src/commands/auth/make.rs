//! New credentials.

use std::time::Duration;

use clap::Args;
use lockgate_api::view;
use lockgate_core::access::Role;
use lockgate_proto::v1;

use crate::args;
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::Tone;
use crate::session::CliSession;

/// What a new credential is good for
#[derive(Args, Debug)]
struct For {
    /// What its bearer may do: viewer, submitter, approver, operator, admin; or worker or scheduler, alone. May be repeated
    #[arg(long = "role", required = true, value_delimiter = ',', value_name = "ROLE")]
    roles: Vec<Role>,

    /// For every tenant, not only the one that --tenant names
    #[arg(long)]
    everyone: bool,

    /// Payloads and results may be seen, not only that they exist
    #[arg(long)]
    payloads: bool,

    /// Pool that a worker may belong to; all of them unless given. May be repeated
    #[arg(long = "pool", value_delimiter = ',', value_name = "NAME")]
    pools: Vec<String>,

    /// How long it lasts; for ever unless given
    #[arg(long, value_parser = args::duration, value_name = "SPAN")]
    expires: Option<Duration>,

    /// What kind of actor its bearer is, such as person, service or agent; policies may ask for it
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

impl For {
    fn wire(self, actor: String, connection: &Connection) -> v1::NewCredential {
        // Machines serve every tenant.
        let everyone = self.everyone || matches!(self.roles[..], [Role::Worker | Role::Scheduler]);
        let tenant = if everyone { None } else { Some(connection.tenant.clone().unwrap_or_else(|| "default".to_owned())) };
        v1::NewCredential {
            actor,
            actor_type: self.kind.unwrap_or_default(),
            grant: Some(v1::Grant {
                roles: self.roles.iter().map(ToString::to_string).collect(),
                tenant: tenant.unwrap_or_default(),
                pools: self.pools,
                payloads: self.payloads,
            }),
            lasts_ms: self.expires.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// Make an API key; it is shown this once
#[derive(Args, Debug)]
pub(super) struct Create {
    /// Who comes in with it, in every record
    name: String,

    #[command(flatten)]
    good: For,
}

/// Make a new key for the same bearer; the old one goes on for a while
#[derive(Args, Debug)]
pub(super) struct Rotate {
    /// Id of the key, as `auth key list` shows it
    id: String,

    /// How long the old key goes on
    #[arg(long, default_value = "1h", value_parser = args::duration, value_name = "SPAN")]
    overlap: Duration,
}

/// Let the bearer of a client certificate in
#[derive(Args, Debug)]
pub(super) struct Bind {
    /// uri: and the first URI name of the certificate, else dns: and its first DNS name, else cn: and its common name
    subject: String,

    /// Who comes in with it, in every record
    #[arg(long, value_name = "NAME")]
    name: String,

    #[command(flatten)]
    good: For,
}

impl Create {
    pub(super) async fn run(self, session: &CliSession, connection: &Connection) -> Result<Exit, CliError> {
        let request = v1::CreateKeyRequest { credential: Some(self.good.wire(self.name, connection)) };
        let made = session.answer(session.access().create_key(request).await)?;
        show(session, made)
    }
}

impl Rotate {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let overlap_ms = u64::try_from(self.overlap.as_millis()).unwrap_or(u64::MAX);
        let request = v1::RotateKeyRequest { id: self.id, overlap_ms };
        let made = session.answer(session.access().rotate_key(request).await)?;
        show(session, made)
    }
}

impl Bind {
    pub(super) async fn run(self, session: &CliSession, connection: &Connection) -> Result<Exit, CliError> {
        let credential = Some(self.good.wire(self.name, connection));
        let request = v1::BindCertificateRequest { subject: self.subject, credential };
        let bound = view::Credential::from(session.answer(session.access().bind_certificate(request).await)?);
        if session.out.is_json() {
            session.out.json(&bound)?;
        } else {
            session.out.line(&format!("{}  {}", bound.id, session.out.paint("is let in", Tone::Good)))?;
        }
        Ok(Exit::Success)
    }
}

/// The key stands alone on its line, so that it can be copied and piped.
fn show(session: &CliSession, made: v1::CreateKeyResponse) -> Result<Exit, CliError> {
    if session.out.is_json() {
        session.out.json(&view::MadeKey::from(made))?;
    } else {
        session.out.line(&made.key)?;
        session.out.remark("keep it: it is not shown again; use it with --api-key or LOCKGATE_API_KEY");
    }
    Ok(Exit::Success)
}
