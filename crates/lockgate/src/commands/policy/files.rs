//! What can be said about a policy file without a server.

use std::path::PathBuf;

use clap::Args;
use lockgate_core::policy::{CaseOutcome, Policy, SCHEMA, load_cases, run_cases};
use serde::Serialize;

use super::tell;
use crate::commands::config::files::{CheckedConfig, read};
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};

/// Check a policy file and tell every fault
#[derive(Args, Debug)]
pub(super) struct CheckPolicy {
    /// The policy file
    file: PathBuf,
}

/// Ask a policy file about test cases
///
/// A file of cases has a list `cases`; each has a `name`, a `request` and what to `expect`:
///
///   cases:
///     - name: production deploys need a second person
///       request: {tenant: acme, topic: job.deploy, labels: {env: prod}}
///       expect: {decision: require_approval, rule: prod-deploys}
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct TestPolicy {
    /// The policy file
    #[arg(value_name = "POLICY")]
    file: PathBuf,

    /// The file of cases
    #[arg(long, value_name = "FILE")]
    cases: PathBuf,
}

/// Print the JSON Schema of policy files, for editors
#[derive(Args, Debug)]
pub(super) struct SchemaPolicy {}

impl CheckPolicy {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        let name = self.file.display().to_string();
        let policy = match Policy::load(&name, &read(&self.file)?) {
            Ok(policy) => policy,
            Err(errors) => return tell(&errors, out),
        };
        if out.is_json() {
            out.json(&CheckedConfig { ok: true, snapshot: policy.snapshot() })?;
        } else {
            out.line(&format!("{name}  {}  {}", out.paint("ok", Tone::Good), policy.snapshot()))?;
        }
        Ok(Exit::Success)
    }
}

impl SchemaPolicy {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        out.line(SCHEMA.trim_end())?;
        Ok(Exit::Success)
    }
}

#[derive(Debug, Serialize)]
struct Tested {
    passed: usize,
    failed: usize,
    cases: Vec<CaseResult>,
}

#[derive(Debug, Serialize)]
struct CaseResult {
    name: String,
    line: usize,
    passed: bool,
    expected: ExpectedVerdict,
    decision: String,
    rule: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct ExpectedVerdict {
    decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl From<CaseOutcome> for CaseResult {
    fn from(outcome: CaseOutcome) -> Self {
        Self {
            passed: outcome.passed(),
            name: outcome.name,
            line: outcome.line,
            expected: ExpectedVerdict {
                decision: outcome.expected.decision.as_str().to_owned(),
                rule: outcome.expected.rule,
            },
            decision: outcome.verdict.decision.as_str().to_owned(),
            rule: outcome.verdict.rule.to_string(),
            reason: outcome.verdict.reason.to_string(),
        }
    }
}

impl TestPolicy {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        let policy = match Policy::load(&self.file.display().to_string(), &read(&self.file)?) {
            Ok(policy) => policy,
            Err(errors) => return tell(&errors, out),
        };
        let cases = match load_cases(&self.cases.display().to_string(), &read(&self.cases)?) {
            Ok(cases) => cases,
            Err(errors) => return tell(&errors, out),
        };
        let cases: Vec<CaseResult> = run_cases(&policy, &cases).into_iter().map(CaseResult::from).collect();
        let passed = cases.iter().filter(|case| case.passed).count();
        let tested = Tested { passed, failed: cases.len() - passed, cases };
        if out.is_json() {
            out.json(&tested)?;
        } else {
            out.line(&table(&tested, out))?;
            out.remark(&format!("{} passed, {} failed", tested.passed, tested.failed));
        }
        Ok(if tested.failed == 0 { Exit::Success } else { Exit::Error })
    }
}

fn table(tested: &Tested, out: Output) -> String {
    let row = |case: &CaseResult| {
        let (word, tone) = if case.passed { ("ok", Tone::Good) } else { ("failed", Tone::Bad) };
        let rule = case.expected.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
        vec![
            TableCell::text(word).toned(tone),
            TableCell::text(&case.name),
            TableCell::text(format!("{}{rule}", case.expected.decision)),
            TableCell::text(format!("{} by {}", case.decision, case.rule)),
            TableCell::number(&case.line),
        ]
    };
    let rows: Vec<_> = tested.cases.iter().map(row).collect();
    out.table(&["", "case", "expected", "got", "line"], &rows)
}
