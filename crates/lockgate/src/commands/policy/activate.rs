//! The policies of a server: in force, earlier ones, the next one.

use std::path::PathBuf;

use clap::Args;
use lockgate_core::policy;
use lockgate_proto::v1;

use super::{read, tell};
use crate::error::{CliError, Exit};
use crate::output::{Field, Output, Tone};
use crate::session::Session;
use crate::view;

/// Put a policy file in force; returns when nothing that it denies starts any more
#[derive(Args, Debug)]
pub(super) struct Apply {
    /// The policy file
    file: PathBuf,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

/// Print a policy: the one in force, or an earlier one
#[derive(Args, Debug)]
pub(super) struct Show {
    /// Id of an earlier policy, from `lockgate policy list`
    #[arg(default_value = "", hide_default_value = true)]
    snapshot: String,
}

/// List policies that are or were in force, the latest first
#[derive(Args, Debug)]
pub(super) struct List {}

/// Put an earlier policy in force again
#[derive(Args, Debug)]
pub(super) struct Rollback {
    /// Id of the policy, from `lockgate policy list`
    snapshot: String,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl Apply {
    /// The server decides whether the policy is fine. If it is not, the faults are told from here: an error of the server
    /// has no room for all of them.
    pub(super) async fn run(self, session: &Session) -> Result<Exit, CliError> {
        let (file, text) = (self.file.display().to_string(), read(&self.file)?);
        let request = v1::ActivatePolicyRequest { file: file.clone(), text: text.clone(), expected_version: self.expect };
        let response = session.admin().activate_policy(request).await;
        match session.answer(response) {
            Ok(activated) => activated_line(activated, session.out),
            Err(refused @ CliError::Refused { .. }) => match policy::Policy::load(&file, &text) {
                Err(errors) => tell(&errors, session.out),
                Ok(_) => Err(refused),
            },
            Err(error) => Err(error),
        }
    }
}

impl Rollback {
    pub(super) async fn run(self, session: &Session) -> Result<Exit, CliError> {
        let request = v1::RollBackPolicyRequest { snapshot: self.snapshot, expected_version: self.expect };
        let response = session.admin().roll_back_policy(request).await;
        activated_line(session.answer(response)?, session.out)
    }
}

fn activated_line(response: v1::ActivatePolicyResponse, out: Output) -> Result<Exit, CliError> {
    let activated = view::Activated::from(response);
    if out.is_json() {
        out.json(&activated)?;
        return Ok(Exit::Success);
    }
    let note = match activated.recalled {
        _ if activated.unchanged => "was in force already".to_owned(),
        0 => "in force".to_owned(),
        recalled => format!("in force; {recalled} attempts on their way to a worker were called back"),
    };
    let note = out.paint(&note, Tone::Good);
    out.line(&format!("version {}  {}  {note}", activated.version, activated.snapshot))?;
    Ok(Exit::Success)
}

impl Show {
    /// The text goes to standard output as it is, so that it can be saved, edited and applied.
    pub(super) async fn run(self, session: &Session) -> Result<Exit, CliError> {
        let response = session.admin().get_policy(v1::GetPolicyRequest { snapshot: self.snapshot }).await;
        let policy = view::Policy::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&policy)?;
            return Ok(Exit::Success);
        }
        out.remark(&heading(&policy, out));
        if let Some(text) = &policy.text {
            out.line(text.trim_end())?;
        }
        Ok(Exit::Success)
    }
}

fn heading(policy: &view::Policy, out: Output) -> String {
    if policy.version == 0 && policy.text.is_none() {
        return "no policy was ever applied: everything is allowed; `lockgate policy apply FILE` changes that".to_owned();
    }
    let force = if policy.in_force { "in force" } else { "not in force" };
    let who = policy.actor.as_ref().map(|actor| format!(", by {actor}")).unwrap_or_default();
    let when = policy.activated_at.map(|at| format!(", {}", out.relative(at))).unwrap_or_default();
    format!("{}, version {}, {force}{who}{when}", policy.snapshot, policy.version)
}

impl List {
    pub(super) async fn run(self, session: &Session) -> Result<Exit, CliError> {
        let response = session.admin().list_policies(v1::ListPoliciesRequest {}).await;
        let policies = view::Policies::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&policies)?;
        } else {
            session.out.line(&table(&policies, session.out))?;
        }
        Ok(Exit::Success)
    }
}

fn table(policies: &view::Policies, out: Output) -> String {
    let row = |policy: &view::Policy| {
        let force = if policy.in_force { Field::text("in force").toned(Tone::Good) } else { Field::text("") };
        vec![
            Field::number(&policy.version),
            Field::text(&policy.snapshot),
            force,
            Field::text(policy.actor.as_deref().unwrap_or("-")),
            out.relative_or_dash(policy.activated_at),
        ]
    };
    let rows: Vec<_> = policies.policies.iter().map(row).collect();
    out.table(&["version", "snapshot", "", "by", "activated"], &rows)
}
