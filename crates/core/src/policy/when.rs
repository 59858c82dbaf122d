//! `when:` conditions: CEL expressions, compiled and checked at load.
//!
//! Expressions see `job` (id, tenant, topic, capability, priority, actor, actor_type, risk_tags, requires, labels),
//! `payload` (the parsed JSON) and `now` (milliseconds since the Unix epoch). An absent capability or actor type is the
//! empty text. Looking up a label or a payload field that is absent is an error, and an error denies: ask with
//! `has(payload.x)` or `'x' in job.labels` first. CEL does not define the order in which a map is walked.

use std::cell::OnceCell;
use std::sync::Arc;

use cel::Context;
use cel::common::ast::IdedExpr;
use cel::common::types::CelBool;

use super::facts::{Facts, JOB_FIELDS};
use super::guard::{self, Guard};
use crate::config::{Place, Report};
use crate::formula::{self, Fault, Regexes, Vocabulary, Wording};

const WORDING: Wording<'_> = Wording { name: "when", remedy: "split the rule" };
const VARIABLES: [&str; 3] = ["job", "payload", "now"];

/// A compiled condition.
#[derive(Debug)]
pub(super) struct When {
    expression: IdedExpr,
    uses_payload: bool,
    guards: Vec<Guard>,
}

impl When {
    pub(super) fn compile(text: &str, at: Place, regexes: &mut Regexes, report: &mut Report) -> Option<Self> {
        let mut seen = Seen { payload: false };
        let parsed = formula::parse(text, WORDING).map_err(|fault| vec![fault]);
        let checked = parsed.and_then(|expression| {
            let faults = formula::check(&expression, WORDING, regexes, &mut seen);
            if faults.is_empty() { Ok(expression) } else { Err(faults) }
        });
        let mut expression = match checked {
            Ok(expression) => expression,
            Err(faults) => {
                faults.into_iter().for_each(|fault| fault.tell(at, report));
                return None;
            }
        };
        let guards = guard::guards(&expression);
        formula::unqualify(&mut expression);
        Some(Self { expression, uses_payload: seen.payload, guards })
    }
}

/// What a condition was seen to use.
struct Seen {
    payload: bool,
}

impl Vocabulary for Seen {
    fn variable(&mut self, name: &str) -> Result<(), Fault> {
        self.payload |= name == "payload";
        if VARIABLES.contains(&name) {
            return Ok(());
        }
        let message = format!("unknown name {name:?} in when; it knows {}", VARIABLES.join(", "));
        Err(Fault::unknown(message, name, VARIABLES))
    }

    fn field(&mut self, variable: &str, field: &str) -> Result<(), Fault> {
        if variable == "job" && !JOB_FIELDS.contains(&field) {
            let message = format!("unknown field {field:?} of job in when; it has {}", JOB_FIELDS.join(", "));
            return Err(Fault::unknown(message, field, JOB_FIELDS));
        }
        self.variable(variable)
    }
}

/// Evaluates the conditions of one policy for one subject. What they share is made when the first one needs it.
pub(super) struct Evaluation<'f, 's> {
    facts: &'f Facts<'s>,
    regexes: &'f Arc<Regexes>,
    context: OnceCell<Context<'f, 'f>>,
}

impl<'f, 's> Evaluation<'f, 's> {
    pub(super) fn new(facts: &'f Facts<'s>, regexes: &'f Arc<Regexes>) -> Self {
        Self { facts, regexes, context: OnceCell::new() }
    }

    /// Whether the condition holds, or in words why that cannot be told.
    pub(super) fn holds(&self, when: &When) -> Result<bool, String> {
        if when.guards.iter().any(|guard| guard.is_false(self.facts.subject())) {
            return Ok(false);
        }
        self.evaluate(when)
    }

    fn evaluate(&self, when: &When) -> Result<bool, String> {
        if when.uses_payload {
            self.facts.payload().as_ref().map_err(|error| format!("the payload is not JSON: {error}"))?;
        }
        let context = self.context.get_or_init(|| formula::context(self.facts, self.regexes));
        formula::evaluate(&when.expression, context, formula::in_words, |value| match value.downcast_ref::<CelBool>() {
            Some(truth) => Ok(*truth.inner()),
            None => Err(format!("it gave {}, not true or false", value.get_type().name())),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::JobId;
    use crate::policy::Subject;
    use crate::request::{Caller, JobRequest, NewJob};
    use crate::time::Timestamp;

    /// Conjunctions and other joins of comparisons, some of which cannot be evaluated.
    fn joined() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "job.tenant == 'acme'",
            "job.tenant != 'acme'",
            "'acme' == job.tenant",
            "job.topic.startsWith('job.')",
            "job.topic.startsWith('x')",
            "job.labels.env == 'prod'",
            "job.labels['env'] != 'prod'",
            "job.labels.missing == 'x'",
            "job.labels['missing'] != 'x'",
            "job.actor_type == ''",
            "job.priority == 'low'",
            "payload.missing == 1",
            "1 / 0 == 1",
            "payload",
            "true",
        ]);
        let joint = prop::sample::select(vec![" && ", " && ", " || "]);
        prop::collection::vec((part, joint), 1..6)
            .prop_map(|parts| parts.into_iter().map(|(part, joint)| format!("{part}{joint}")).collect::<String>() + "true")
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_guard_never_changes_what_an_expression_says(text in joined(), labelled in any::<bool>()) {
            let mut new = NewJob { topic: "job.echo".into(), ..NewJob::default() };
            if labelled {
                new.labels.insert("env".into(), "prod".into());
            }
            let request = JobRequest::check(new, &Caller::new("acme", "ann"), || JobId::from("j")).unwrap();
            let subject = Subject::new(&request, Timestamp::ZERO);
            let (mut regexes, mut report) = (Regexes::new(), Report::new("p.yaml"));
            let when = When::compile(&text, Place { line: 1, column: 1 }, &mut regexes, &mut report).unwrap();
            let (facts, regexes) = (Facts::new(&subject), Arc::new(regexes));
            let evaluation = Evaluation::new(&facts, &regexes);
            prop_assert_eq!(evaluation.holds(&when), evaluation.evaluate(&when));
        }
    }
}
