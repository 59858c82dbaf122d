//! Explains a verdict, rule by rule.

use std::sync::Arc;

use super::Policy;
use super::conditions::RuleMatch;
use super::facts::Facts;
use super::rule::{DecidingRule, RuleSet};
use super::subject::Subject;
use super::velocity::Velocity;
use super::when::Evaluation;
use crate::verdict::Verdict;

/// A verdict, with the rules that were evaluated for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub verdict: Arc<Verdict>,
    /// In the order of evaluation: the base rules, then the overlays, each up to the rule that decided.
    pub looks: Vec<RuleTrace>,
}

/// A rule and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTrace {
    pub scope: RuleScope,
    pub rule: Arc<str>,
    pub outcome: LookOutcome,
}

/// The part of the policy that a rule belongs to.
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
    /// Why the rule could not be evaluated; such a rule denies.
    Failed(String),
}

impl Policy {
    /// Evaluates like [`evaluate`](Policy::evaluate) and records every step. Velocity windows count as usual: pass a
    /// [`Velocity`] that only reads if they must not change.
    pub fn explain(&self, subject: &Subject<'_>, windows: &dyn Velocity) -> Explanation {
        let facts = Facts::new(subject);
        let evaluation = Evaluation::new(&facts, &self.regexes);
        let mut looks = Vec::new();
        let verdict = self.judge(subject, |scope, set| walk(set, scope, subject, &evaluation, windows, &mut looks));
        Explanation { verdict, looks }
    }
}

/// Evaluates every rule in order, without the index, so that the trace also shows the rules that the index would skip.
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
