//! Policies: rules that decide whether a job may run and whether its result may be exposed.
//!
//! A policy is one YAML file. [`Policy::load`] refuses it with every error it contains, or compiles it once into an
//! immutable value that any number of threads may evaluate. Rules are tried in order and the first that matches decides;
//! without a match and without a default the verdict is a denial. The overlays of the tenant and of the workflow are
//! evaluated after that and can only make the verdict stricter. A rule that cannot be evaluated denies.

mod cases;
mod conditions;
mod diff;
mod explain;
mod facts;
mod index;
mod input;
mod keys;
mod load;
mod output;
mod overlay;
mod patterns;
mod payload;
mod predicate;
pub(crate) mod rfc3339;
mod rule;
mod subject;
mod terms;
#[cfg(test)]
mod tests;
mod velocity;
mod when;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::verdict::{Decision, Verdict};

pub use crate::config::ConfigError;
pub use cases::{Case, CaseOutcome, Expected, load_cases, run_cases};
pub use diff::{Change, diff};
pub use explain::{Explanation, LookOutcome, RuleScope, RuleTrace};
pub use input::{FailMode, InputPolicy};
pub use output::{OutputGate, OutputLook, OutputPolicy, OutputRules, OutputSubject};
pub use rule::DEFAULT_RULE;
pub use subject::{Subject, WORKFLOW_LABEL};
pub use velocity::{Velocity, VelocityWindow};
pub use windows::VelocityWindows;

use crate::formula::Regexes;
use facts::Facts;
use overlay::tighten;
use rule::{DecidingRule, RuleSet};
use terms::Terms;
use when::Evaluation;

/// The JSON Schema of policy files, for editors.
pub const SCHEMA: &str = include_str!("../../policy.schema.json");

/// A loaded policy.
#[derive(Debug)]
pub struct Policy {
    snapshot: Arc<str>,
    source: Arc<str>,
    base: RuleSet,
    default: Terms,
    tenants: BTreeMap<Box<str>, RuleSet>,
    workflows: BTreeMap<Box<str>, RuleSet>,
    regexes: Arc<Regexes>,
    output: OutputPolicy,
    input: InputPolicy,
}

impl Policy {
    /// `sha256:` and the hash of the file's text. Policies with equal snapshots are equal.
    pub fn snapshot(&self) -> &Arc<str> {
        &self.snapshot
    }

    /// The text that the policy was loaded from.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn output(&self) -> &OutputPolicy {
        &self.output
    }

    /// The fail mode for jobs that get no verdict.
    pub fn input(&self) -> &InputPolicy {
        &self.input
    }

    /// Judges one job. If one rule alone decides, its verdict is shared by all jobs that it decides.
    pub fn evaluate(&self, subject: &Subject<'_>, windows: &dyn Velocity) -> Arc<Verdict> {
        let facts = Facts::new(subject);
        let evaluation = Evaluation::new(&facts, &self.regexes);
        self.judge(subject, |_, set| set.first(subject, &evaluation, windows))
    }

    /// Evaluates the base rules, then the overlays that apply. `first` finds the deciding rule of a set.
    fn judge<'p>(
        &'p self,
        subject: &Subject<'_>,
        mut first: impl FnMut(RuleScope, &'p RuleSet) -> Option<DecidingRule<'p>>,
    ) -> Arc<Verdict> {
        let base = first(RuleScope::Base, &self.base);
        let workflow = subject.workflow().and_then(|workflow| self.workflows.get(workflow));
        let overlays = [(RuleScope::Tenant, self.tenants.get(subject.tenant)), (RuleScope::Workflow, workflow)];
        if overlays.iter().all(|(_, overlay)| overlay.is_none()) {
            match &base {
                None => return self.default.shared(&self.snapshot),
                Some(DecidingRule { rule, failure: None }) => return rule.terms.shared(&self.snapshot),
                Some(DecidingRule { failure: Some(_), .. }) => {}
            }
        }
        let mut verdict = base.map_or_else(|| self.default.verdict(&self.snapshot), |found| self.verdict(&found));
        for (scope, overlay) in overlays {
            if verdict.decision == Decision::Deny {
                break;
            }
            if let Some(found) = overlay.and_then(|set| first(scope, set)) {
                verdict = tighten(verdict, self.verdict(&found));
            }
        }
        Arc::new(verdict.without_idle_hash())
    }

    fn verdict(&self, found: &DecidingRule<'_>) -> Verdict {
        let terms = &found.rule.terms;
        let Some(failure) = &found.failure else { return terms.verdict(&self.snapshot) };
        let reason = format!("rule {} could not be evaluated: {failure}", terms.id);
        Terms::plain(&terms.id, terms.hash.clone(), Decision::Deny, &reason).verdict(&self.snapshot)
    }
}
