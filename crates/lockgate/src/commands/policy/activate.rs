//! The policies of a server: in force, earlier ones, the next one.

use std::path::PathBuf;

use clap::Args;
use lockgate_api::view;
use lockgate_core::policy;
use lockgate_proto::v1;

use super::tell;
use crate::commands::config::files::read;
use crate::commands::config::shown;
use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// What holds while no policy was ever applied.
const BUILTIN: &str = "no policy was ever applied: everything is allowed; `lockgate policy apply FILE` changes that";

/// Put a policy file in force; returns when nothing that it denies starts any more
#[derive(Args, Debug)]
pub(super) struct ApplyPolicy {
    /// The policy file
    file: PathBuf,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// Print a policy: the one in force, or an earlier one
#[derive(Args, Debug)]
pub(super) struct ShowPolicy {
    /// Id of an earlier policy, from `lockgate policy list`
    #[arg(default_value = "", hide_default_value = true)]
    snapshot: String,
}

/// List policies that are or were in force, the latest first
#[derive(Args, Debug)]
pub(super) struct ListPolicys {}

/// Put an earlier policy in force again
#[derive(Args, Debug)]
pub(super) struct RollbackPolicy {
    /// Id of the policy, from `lockgate policy list`
    snapshot: String,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl ApplyPolicy {
    /// The server decides whether the policy is fine. If it is not, the faults are told from here: an error of the server
    /// has no room for all of them.
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let (file, text) = (self.file.display().to_string(), read(&self.file)?);
        let request = v1::ActivatePolicyRequest { file: file.clone(), text: text.clone(), expected_version: self.expect };
        let response = session.admin().activate_policy(request).await;
        match session.answer(response) {
            Ok(activated) => shown::activated(&activated.into(), session.out),
            Err(refused @ CliError::Refused { .. }) => match policy::Policy::load(&file, &text) {
                Err(errors) => tell(&errors, session.out),
                Ok(_) => Err(refused),
            },
            Err(error) => Err(error),
        }
    }
}

impl RollbackPolicy {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::RollBackPolicyRequest { snapshot: self.snapshot, expected_version: self.expect };
        let response = session.admin().roll_back_policy(request).await;
        shown::activated(&session.answer(response)?.into(), session.out)
    }
}

impl ShowPolicy {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.admin().get_policy(v1::GetPolicyRequest { snapshot: self.snapshot }).await;
        shown::text(&view::Config::from(session.answer(response)?), BUILTIN, session.out)
    }
}

impl ListPolicys {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.admin().list_policies(v1::ListPoliciesRequest {}).await;
        let policies = view::Policies::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&policies)?;
        } else {
            session.out.line(&shown::table(&policies.policies, session.out))?;
        }
        Ok(Exit::Success)
    }
}
