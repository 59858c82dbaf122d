//! `lockgate auth whoami`

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::Tone;
use crate::session::CliSession;

/// Show who the server takes this client for
#[derive(Args, Debug)]
pub(super) struct Whoami {}

impl Whoami {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let me = view::WhoAmI::from(session.answer(session.access().who_am_i(v1::WhoAmIRequest {}).await)?);
        let out = session.out;
        if out.is_json() {
            out.json(&me)?;
            return Ok(Exit::Success);
        }
        let rows = match &me.grant {
            None => vec![
                ("Actor", me.actor.clone()),
                ("Tenant", me.tenant.clone()),
                ("Checked", "no: this server asks nobody for a credential".to_owned()),
            ],
            Some(grant) => vec![
                ("Actor", me.actor.clone()),
                ("Tenant", me.tenant.clone()),
                ("Roles", grant.roles.join(", ")),
                ("Reach", grant.tenant.clone().unwrap_or_else(|| "every tenant".to_owned())),
                ("Payloads", if grant.payloads { "may be seen" } else { "hidden" }.to_owned()),
                ("Key", me.credential.clone().unwrap_or_default()),
            ],
        };
        for (name, value) in rows {
            out.line(&format!("{} {value}", out.paint(&format!("{name:<9}"), Tone::Faint)))?;
        }
        Ok(Exit::Success)
    }
}
