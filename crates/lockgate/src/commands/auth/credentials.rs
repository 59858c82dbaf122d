//! Credentials as they are.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{TableCell, Tone};
use crate::session::CliSession;

/// List them; the secrets are not stored and are not shown
#[derive(Args, Debug)]
pub(super) struct ListCredentials {
    /// Also those that have ended
    #[arg(long)]
    all: bool,
}

/// Make one nothing: at once on this server, within seconds on others
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// Its id, as the list shows it
    id: String,
}

impl ListCredentials {
    pub(super) async fn run(self, session: &CliSession, kind: &str) -> Result<Exit, CliError> {
        let mut credentials = all(session).await?;
        credentials.retain(|credential| credential.kind == kind && (self.all || !credential.ended));
        let out = session.out;
        if out.is_json() {
            out.json(&view::Credentials { credentials, next_after: None })?;
            return Ok(Exit::Success);
        }
        let row = |credential: &view::Credential| {
            let status = if credential.ended { ("ended", Tone::Faint) } else { ("good", Tone::Good) };
            vec![
                TableCell::text(&credential.id),
                TableCell::text(&credential.actor),
                TableCell::text(credential.grant.roles.join(" ")),
                TableCell::text(credential.grant.tenant.as_deref().unwrap_or("every tenant")),
                TableCell::text(if credential.grant.payloads { "yes" } else { "no" }),
                TableCell::text(status.0).toned(status.1),
                out.relative_or_dash(credential.ends_at),
            ]
        };
        let rows: Vec<_> = credentials.iter().map(row).collect();
        out.line(&out.table(&["id", "name", "roles", "tenant", "payloads", "status", "ends"], &rows))?;
        Ok(Exit::Success)
    }
}

impl Revoke {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.access().revoke_credential(v1::RevokeCredentialRequest { id: self.id }).await;
        let ended = view::Credential::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&ended)?;
        } else {
            session.out.line(&format!("{}  {}", ended.id, session.out.paint("revoked", Tone::Faint)))?;
        }
        Ok(Exit::Success)
    }
}

/// Page by page: a page may be short, even empty, before the end.
async fn all(session: &CliSession) -> Result<Vec<view::Credential>, CliError> {
    let (mut after, mut found) = (String::new(), Vec::new());
    loop {
        let request = v1::ListCredentialsRequest { after, limit: 1_000 };
        let page = session.answer(session.access().list_credentials(request).await)?;
        found.extend(page.credentials.into_iter().map(view::Credential::from));
        if page.next_after.is_empty() {
            return Ok(found);
        }
        after = page.next_after;
    }
}
