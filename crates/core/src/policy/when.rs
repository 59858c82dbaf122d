//! `when:` conditions: CEL expressions, compiled and checked at load.
//!
//! Expressions see `job` (id, tenant, topic, capability, priority, actor, actor_type, risk_tags, requires, labels),
//! `payload` (the parsed JSON) and `now` (milliseconds since the Unix epoch). An absent capability or actor type is the
//! empty text. Looking up a label or a payload field that is absent is an error, and an error denies: ask with
//! `has(payload.x)` or `'x' in job.labels` first. CEL does not define the order in which a map is walked.

use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelString};
use cel::extractors::This;
use cel::{Context, Env, ExecutionError, Value};
use regex::Regex;

use super::facts::Facts;
use super::guard::{self, Guard};
use super::unqualify::unqualify;
use super::when_check;
use crate::config::{Place, Report};

/// The parser recurses, so that long or deep text could overflow the stack before it is refused.
const TEXT_BYTES_MAX: usize = 4096;
/// Bounds nesting: brackets inside of texts are counted too, which needs no lexer that could be fooled.
const BRACKETS_MAX: usize = 48;
/// Bounds chains such as `a.b.c` or `1 + 2 + 3`, which become as deep as they are long.
const LINKS_MAX: usize = 320;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition.
#[derive(Debug)]
pub(super) struct When {
    expression: IdedExpr,
    uses_payload: bool,
    guards: Vec<Guard>,
}

/// The patterns of every `matches` call in a policy, compiled once.
pub(super) type Regexes = BTreeMap<String, Regex>;

impl When {
    pub(super) fn compile(text: &str, at: Place, regexes: &mut Regexes, report: &mut Report) -> Option<Self> {
        if let Err(message) = check_size(text) {
            report.refuse(at, message);
            return None;
        }
        let parsed = catch_unwind(|| ENV.compile(text).map(|program| program.expression().clone()));
        let mut expression = match parsed {
            Ok(Ok(expression)) => expression,
            Ok(Err(errors)) => {
                let text = errors.errors.first().map_or_else(String::new, |error| {
                    format!(" at its line {}, column {}: {}", error.pos.0, error.pos.1, error.msg.trim())
                });
                report.refuse(at, format!("when is not valid CEL{text}"));
                return None;
            }
            Err(_) => {
                report.refuse(at, "when is not valid CEL: its parser gave up");
                return None;
            }
        };
        let uses_payload = when_check::check(&expression, at, regexes, report)?;
        let guards = guard::guards(&expression);
        unqualify(&mut expression);
        Some(Self { expression, uses_payload, guards })
    }
}

fn check_size(text: &str) -> Result<(), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("when is longer than {TEXT_BYTES_MAX} bytes; split the rule"));
    }
    if text.bytes().filter(|b| matches!(b, b'(' | b'[' | b'{')).count() > BRACKETS_MAX {
        return Err(format!("when is nested too deeply: it has more than {BRACKETS_MAX} brackets; split the rule"));
    }
    let links = text.bytes().filter(|b| b"._?:+-*/%!<>=&|".contains(b)).count() + text.matches("in").count();
    if links > LINKS_MAX {
        return Err(format!("when has more than {LINKS_MAX} operators and dots; split the rule"));
    }
    Ok(())
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
        let context = self.context.get_or_init(|| self.context());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = Value::resolve_val(&when.expression, context).map_err(|error| in_words(&error))?;
            match value.downcast_ref::<CelBool>() {
                Some(truth) => Ok(*truth.inner()),
                None => Err(format!("it gave {}, not true or false", value.get_type().name())),
            }
        }));
        outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))))
    }

    fn context(&self) -> Context<'f, 'f> {
        let mut context = Context::with_env(ENV.clone());
        context.set_variable_resolver(self.facts);
        if !self.regexes.is_empty() {
            let regexes = self.regexes.clone();
            let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| -> Result<bool, ExecutionError> {
                match regexes.get(&*pattern) {
                    Some(regex) => Ok(regex.is_match(&text)),
                    None => Err(ExecutionError::function_error("matches", "the pattern was not compiled at load")),
                }
            };
            // Refused only if the environment had a `matches` of its own, which then does the same, slower.
            let _ = context.add_function("matches", matches);
        }
        context
    }
}

/// Error texts end up in reasons that submitters read: they name keys and types, never values of the payload.
fn in_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("{key:?} is absent; ask with has() or in first"),
        ExecutionError::NoSuchOverload(_) | ExecutionError::UndeclaredReference(_) => error.to_string(),
        ExecutionError::UnexpectedType { got, want } => format!("{want} was needed, {got} was found"),
        ExecutionError::FunctionError { function, .. } => format!("{function} failed"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("{operator} overflows"),
        ExecutionError::IndexOutOfBounds(_) => "an index is out of bounds".to_owned(),
        ExecutionError::ValuesNotComparable(..) => "it compares values of different kinds".to_owned(),
        _ => "its values do not fit its operators".to_owned(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A text literal, if the expression is one.
pub(super) fn literal(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        cel::common::ast::Expr::Literal(cel::common::ast::LiteralValue::String(text)) => Some(CelString::inner(text)),
        _ => None,
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
