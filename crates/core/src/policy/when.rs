//! `when:` conditions: CEL expressions, compiled and checked at load.
//!
//! Expressions see `job` (id, tenant, topic, capability, priority, actor, actor_type, risk_tags, requires, labels),
//! `payload` (the parsed JSON) and `now` (milliseconds since the Unix epoch). An absent capability or actor type is the
//! empty text. Looking up a label or a payload field that is absent is an error, and an error denies: test with
//! `has(payload.x)` or `'x' in job.labels` first. CEL does not define the order in which a map is walked.
//!
//! Most conditions are decided by their [`Predicate`]; the interpreter decides the others.

use std::cell::OnceCell;
use std::sync::Arc;

use cel::Context;
use cel::common::ast::IdedExpr;
use cel::common::types::CelBool;
use cel::common::value::Val;

use super::facts::{Facts, JOB_FIELDS};
use super::predicate::{Predicate, PredicateScratch, ScratchLayout};
use crate::config::{ConfigReport, SourcePosition};
use crate::formula::{self, ExpressionFault, Regexes, Vocabulary, Wording};

const WORDING: Wording<'_> = Wording { name: "when", remedy: "split the rule" };
const VARIABLES: [&str; 3] = ["job", "payload", "now"];

/// A compiled condition.
#[derive(Debug)]
pub(super) struct When {
    expression: IdedExpr,
    uses_payload: bool,
    pub(super) predicate: Predicate,
}

impl When {
    /// `rule` is the rule's id, for errors.
    pub(super) fn compile(
        text: &str,
        rule: &str,
        at: SourcePosition,
        regexes: &mut Regexes,
        shelf: &mut ScratchLayout,
        report: &mut ConfigReport,
    ) -> Option<Self> {
        let mut seen = ConditionUses { payload: false, anything: false };
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
        let predicate = Predicate::compile(&expression, regexes, shelf);
        formula::unqualify(&mut expression);
        let constant = (!seen.anything).then(|| formula::constant(&expression, regexes, truth));
        if let Some(Err(why)) = constant {
            report.refuse_new(at, format!("when of rule {rule:?} fails for every job: {why}"));
        }
        Some(Self { expression, uses_payload: seen.payload, predicate })
    }
}

/// The variables that a condition reads.
struct ConditionUses {
    payload: bool,
    /// Whether it reads any variable. A condition without variables has one value for every job.
    anything: bool,
}

impl Vocabulary for ConditionUses {
    fn variable(&mut self, name: &str) -> Result<(), ExpressionFault> {
        self.payload |= name == "payload";
        self.anything = true;
        if VARIABLES.contains(&name) {
            return Ok(());
        }
        let message = format!("unknown name {name:?} in when; it knows {}", VARIABLES.join(", "));
        Err(ExpressionFault::unknown(message, name, VARIABLES))
    }

    fn field(&mut self, variable: &str, field: &str) -> Result<(), ExpressionFault> {
        if variable == "job" && !JOB_FIELDS.contains(&field) {
            let message = format!("unknown field {field:?} of job in when; it has {}", JOB_FIELDS.join(", "));
            return Err(ExpressionFault::unknown(message, field, JOB_FIELDS));
        }
        self.variable(variable)
    }
}

/// Evaluates the conditions of one policy for one subject. Values that conditions share are computed when first needed.
pub(super) struct Evaluation<'f, 's> {
    desk: PredicateScratch<'f, 's>,
    regexes: &'f Arc<Regexes>,
    context: OnceCell<Context<'f, 'f>>,
}

impl<'f, 's> Evaluation<'f, 's> {
    pub(super) fn new(facts: &'f Facts<'s>, regexes: &'f Arc<Regexes>) -> Self {
        Self { desk: PredicateScratch::new(facts), regexes, context: OnceCell::new() }
    }

    /// Whether the condition is false because its bound is not met.
    pub(super) fn falls_short(&self, when: &When) -> bool {
        when.predicate.falls_short(&self.desk)
    }

    /// Whether the condition holds, or an error text that says why it cannot be evaluated.
    pub(super) fn holds(&self, when: &When) -> Result<bool, String> {
        match when.predicate.holds(&self.desk) {
            Some(false) => Ok(false),
            // A payload that is not valid JSON denies, even if the condition reads none of its fields.
            Some(true) if !when.uses_payload || self.desk.facts().payload().is_ok() => Ok(true),
            Some(true) | None => self.interpret(when),
        }
    }

    pub(super) fn interpret(&self, when: &When) -> Result<bool, String> {
        if when.uses_payload {
            self.desk.facts().payload().map_err(|error| format!("the payload is not JSON: {error}"))?;
        }
        let context = self.context.get_or_init(|| formula::context(self.desk.facts(), self.regexes));
        formula::evaluate(&when.expression, context, formula::in_words, truth)
    }
}

fn truth(value: &dyn Val) -> Result<bool, String> {
    match value.downcast_ref::<CelBool>() {
        Some(truth) => Ok(*truth.inner()),
        None => Err(format!("it gave {}, not true or false", value.get_type().name())),
    }
}
