//! Expressions in the texts of scheduled jobs and runs, evaluated for the nominal time.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use serde_json::Value;

use crate::config::SourcePosition;
use crate::dag::pieces::{Piece, pieces};
use crate::formula::{self, ExpressionFault, Regexes, Vocabulary, Wording};

/// The variables that expressions may use.
pub(super) const VARIABLES: [&str; 4] = ["schedule", "nominal", "nominal_ms", "series"];

/// The values of the variables for one slot.
pub(super) struct TemplateScope {
    values: [Box<dyn Val>; VARIABLES.len()],
}

impl TemplateScope {
    /// `nominal` is the time as text.
    pub(super) fn new(schedule: &str, nominal: &str, nominal_ms: i64, series: &str) -> Self {
        let values: [Value; 4] = [schedule.into(), nominal.into(), nominal_ms.into(), series.into()];
        Self { values: values.map(formula::from_json) }
    }

    /// JSON with the expressions of all texts evaluated. A text that consists of one expression keeps the type of its value.
    pub(super) fn fill(&self, json: &Value, name: &str) -> Result<Value, String> {
        match json {
            Value::String(text) => self.fill_text(text, name),
            Value::Array(items) => items.iter().map(|item| self.fill(item, name)).collect(),
            Value::Object(entries) => {
                let filled = entries.iter().map(|(key, value)| Ok((key.clone(), self.fill(value, name)?)));
                filled.collect::<Result<_, String>>().map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    fn fill_text(&self, text: &str, name: &str) -> Result<Value, String> {
        let parts = pieces(text).ok_or_else(|| unclosed(name))?;
        if let [Piece::Hole(hole)] = parts.as_slice() {
            return self.evaluate(hole, name);
        }
        let mut filled = String::new();
        for part in parts {
            match part {
                Piece::Text(constant) => filled.push_str(&constant),
                Piece::Hole(hole) => filled.push_str(&written(self.evaluate(hole, name)?)),
            }
        }
        Ok(filled.into())
    }

    /// Evaluates to a text, whatever the type of the value.
    pub(super) fn fill_plain(&self, text: &str, name: &str) -> Result<String, String> {
        self.fill_text(text, name).map(written)
    }

    pub(super) fn fill_map(&self, texts: &BTreeMap<String, String>, name: &str) -> Result<BTreeMap<String, String>, String> {
        texts.iter().map(|(key, text)| Ok((key.clone(), self.fill_plain(text, name)?))).collect()
    }

    fn evaluate(&self, hole: &str, name: &str) -> Result<Value, String> {
        let mut regexes = Regexes::new();
        let mut expression = formula::parse(hole, wording(name)).map_err(|fault| fault.to_string())?;
        if let Some(fault) = formula::check(&expression, wording(name), &mut regexes, &mut NameCheck { name }).first() {
            return Err(fault.to_string());
        }
        formula::unqualify(&mut expression);
        let context = formula::context(self, &Arc::new(regexes));
        let value = formula::evaluate(&expression, &context, formula::in_words, formula::to_json);
        value.map_err(|error| format!("{name}: {error}"))
    }
}

impl VariableResolver for TemplateScope {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let number = VARIABLES.iter().position(|known| *known == variable)?;
        Some(CowVal::Borrowed(self.values[number].as_ref()))
    }
}

/// Every fault of the expressions of a text.
pub(super) fn faults(text: &str, name: &str, at: SourcePosition, found: &mut Vec<(SourcePosition, ExpressionFault)>) {
    let Some(parts) = pieces(text) else {
        return found.push((at, ExpressionFault::new(unclosed(name))));
    };
    for part in parts {
        let Piece::Hole(hole) = part else { continue };
        match formula::parse(hole, wording(name)) {
            Err(fault) => found.push((at, fault)),
            Ok(expression) => {
                let faults = formula::check(&expression, wording(name), &mut Regexes::new(), &mut NameCheck { name });
                found.extend(faults.into_iter().map(|fault| (at, fault)));
            }
        }
    }
}

fn wording(name: &str) -> Wording<'_> {
    Wording { name, remedy: "shorten it" }
}

fn unclosed(name: &str) -> String {
    format!("a ${{ in {name} is not closed; add }}, or write $${{ where ${{ is meant as text")
}

/// A value inside a text: texts unquoted, all other values as JSON.
fn written(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

struct NameCheck<'a> {
    name: &'a str,
}

impl Vocabulary for NameCheck<'_> {
    fn variable(&mut self, variable: &str) -> Result<(), ExpressionFault> {
        if VARIABLES.contains(&variable) {
            return Ok(());
        }
        let message = format!("unknown name {variable:?} in {}; it knows {}", self.name, VARIABLES.join(", "));
        Err(ExpressionFault::unknown(message, variable, VARIABLES))
    }

    fn field(&mut self, variable: &str, _field: &str) -> Result<(), ExpressionFault> {
        self.variable(variable)?;
        Err(ExpressionFault::new(format!("{variable} in {} has no fields", self.name)))
    }
}
