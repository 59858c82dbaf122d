//! Why a verdict is what it is, rule by rule.

use std::sync::Arc;

use super::Policy;
use super::conditions::RuleMatch;
use super::facts::Facts;
use super::rule::{DecidingRule, RuleSet};
use super::subject::Subject;
use super::velocity::Velocity;
use super::when::Evaluation;
use crate::verdict::Verdict;

/// A verdict and the rules that were looked at on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub verdict: Arc<Verdict>,
    /// In the order they were looked at: the base rules, then the overlays, each up to the rule that decided.
    pub looks: Vec<RuleTrace>,
}

/// One rule and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTrace {
    pub scope: RuleScope,
    pub rule: Arc<str>,
    pub outcome: LookOutcome,
}

/// Which part of the policy a rule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    Base,
    Tenant,
    Workflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookOutcome {
    Matched,
    /// The first condition that did not hold, in words.
    Missed(String),
    /// Why it could not be told; such a rule denies.
    Failed(String),
}

impl Policy {
    /// As [`evaluate`](Policy::evaluate), with every step told. Windows are asked as usual: to leave them as they are, pass
    /// a [`Velocity`] that only looks.
    pub fn explain(&self, subject: &Subject<'_>, windows: &dyn Velocity) -> Explanation {
        let facts = Facts::new(subject);
        let evaluation = Evaluation::new(&facts, &self.regexes);
        let mut looks = Vec::new();
        let verdict = self.judge(subject, |scope, set| walk(set, scope, subject, &evaluation, windows, &mut looks));
        Explanation { verdict, looks }
    }
}

/// Every rule in order, without the index, so that the rules it would skip are told too.
fn walk<'p>(
    set: &'p RuleSet,
    scope: RuleScope,
    subject: &Subject<'_>,
    evaluation: &Evaluation<'_, '_>,
    windows: &dyn Velocity,
    looks: &mut Vec<RuleTrace>,
) -> Option<DecidingRule<'p>> {
    for rule in &set.rules {
        let outcome = rule.conditions.check(&rule.terms.id, subject, evaluation, windows);
        let (told, found) = match outcome {
            RuleMatch::Matched => (LookOutcome::Matched, Some(DecidingRule { rule, failure: None })),
            RuleMatch::Missed(miss) => (LookOutcome::Missed(miss.of(subject).to_string()), None),
            RuleMatch::Failed(error) => {
                (LookOutcome::Failed(error.clone()), Some(DecidingRule { rule, failure: Some(error) }))
            }
        };
        looks.push(RuleTrace { scope, rule: rule.terms.id.clone(), outcome: told });
        if found.is_some() {
            return found;
        }
    }
    None
}
