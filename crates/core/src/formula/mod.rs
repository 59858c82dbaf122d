//! CEL as policies, DAGs and schedules use it: parsed within bounds, checked against the known variables, and evaluated
//! without letting a panic escape.

mod json;
mod unqualify;
mod vocabulary;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::extractors::This;
use cel::{Context, Env, ExecutionError, Value};
use regex::Regex;

use crate::config::{ConfigReport, SourcePosition};

pub(crate) use json::{from_json, to_json};
pub(crate) use unqualify::{each_part, unqualify};
pub(crate) use vocabulary::{Vocabulary, check, last_line};

/// The parser recurses, so long or deep text could overflow the stack before it is refused.
const TEXT_BYTES_MAX: usize = 4096;
/// Bounds nesting. Brackets inside texts count too, since telling them apart needs a lexer that input could fool.
const BRACKETS_MAX: usize = 48;
/// Bounds chains such as `a.b.c` or `1 + 2 + 3`, whose syntax trees are as deep as the chain is long.
const LINKS_MAX: usize = 320;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// The patterns of every `matches` call, compiled once.
pub(crate) type Regexes = BTreeMap<String, Regex>;

/// The words for an expression in error messages.
#[derive(Clone, Copy)]
pub(crate) struct Wording<'a> {
    /// The expression's name, as in "`when` is not valid CEL".
    pub(crate) name: &'a str,
    /// The advice for an expression that is too large.
    pub(crate) remedy: &'a str,
}

/// A fault of an expression.
#[derive(Debug)]
pub(crate) struct ExpressionFault {
    message: String,
    /// An unknown word, and the known ones.
    unknown: Option<(String, Vec<String>)>,
}

impl ExpressionFault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), unknown: None }
    }

    pub(crate) fn unknown<'k>(message: String, word: &str, known: impl IntoIterator<Item = &'k str>) -> Self {
        Self { message, unknown: Some((word.to_owned(), known.into_iter().map(str::to_owned).collect())) }
    }

    pub(crate) fn tell(self, at: SourcePosition, report: &mut ConfigReport) {
        match self.unknown {
            Some((word, known)) => report.unknown(at, self.message, &word, known.iter().map(String::as_str)),
            None => report.refuse(at, self.message),
        }
    }
}

impl fmt::Display for ExpressionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(crate) fn parse(text: &str, wording: Wording<'_>) -> Result<IdedExpr, ExpressionFault> {
    let Wording { name, remedy } = wording;
    check_size(text).map_err(|fault| ExpressionFault::new(format!("{name} {fault}; {remedy}")))?;
    match catch_unwind(|| ENV.compile(text).map(|program| program.expression().clone())) {
        Ok(Ok(expression)) => Ok(expression),
        Ok(Err(errors)) => {
            let text = errors.errors.first().map_or_else(String::new, |error| {
                format!(" at its line {}, column {}: {}", error.pos.0, error.pos.1, error.msg.trim())
            });
            Err(ExpressionFault::new(format!("{name} is not valid CEL{text}")))
        }
        Err(_) => Err(ExpressionFault::new(format!("{name} is not valid CEL: its parser gave up"))),
    }
}

fn check_size(text: &str) -> Result<(), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("is longer than {TEXT_BYTES_MAX} bytes"));
    }
    if text.bytes().filter(|b| matches!(b, b'(' | b'[' | b'{')).count() > BRACKETS_MAX {
        return Err(format!("is nested too deeply: it has more than {BRACKETS_MAX} brackets"));
    }
    let links = text.bytes().filter(|b| b"._?:+-*/%!<>=&|".contains(b)).count() + text.matches("in").count();
    if links > LINKS_MAX {
        return Err(format!("has more than {LINKS_MAX} operators and dots"));
    }
    Ok(())
}

/// The evaluation context: variables, and the compiled patterns of `matches` calls.
pub(crate) fn context<'v>(variables: &'v dyn VariableResolver, regexes: &Arc<Regexes>) -> Context<'v, 'v> {
    let mut context = Context::with_env(ENV.clone());
    context.set_variable_resolver(variables);
    if !regexes.is_empty() {
        let regexes = regexes.clone();
        let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| -> Result<bool, ExecutionError> {
            match regexes.get(&*pattern) {
                Some(regex) => Ok(regex.is_match(&text)),
                None => Err(ExecutionError::function_error("matches", "the pattern was not compiled at load")),
            }
        };
        // Adding fails only if the environment has a `matches` already, which gives equal results and is slower.
        let _ = context.add_function("matches", matches);
    }
    context
}

/// Evaluates and converts the result. A failure or a panic becomes an error text.
pub(crate) fn evaluate<T>(
    expression: &IdedExpr,
    context: &Context<'_, '_>,
    in_words: impl FnOnce(&ExecutionError) -> String,
    read: impl FnOnce(&dyn Val) -> Result<T, String>,
) -> Result<T, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let value = Value::resolve_val(expression, context).map_err(|error| in_words(&error))?;
        read(&*value)
    }));
    outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))))
}

/// Evaluates an expression without variables: its value is the same everywhere.
pub(crate) fn constant<T>(
    expression: &IdedExpr,
    regexes: &Regexes,
    read: impl FnOnce(&dyn Val) -> Result<T, String>,
) -> Result<T, String> {
    evaluate(expression, &context(&Nothing, &Arc::new(regexes.clone())), in_words, read)
}

/// A resolver without variables.
struct Nothing;

impl VariableResolver for Nothing {
    fn resolve<'b>(&'b self, _: &str) -> Option<CowVal<'b, 'b>> {
        None
    }
}

/// Error texts become reasons that other people read, so they name keys and types and never values.
pub(crate) fn in_words(error: &ExecutionError) -> String {
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

/// The text, if the expression is a text literal.
pub(crate) fn literal(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(CelString::inner(text)),
        _ => None,
    }
}
