//! JSON with expressions: `${ expression }` inside texts. A text that consists of one expression keeps the type of its
//! value.

use std::sync::Arc;

use serde_json::Value;

use super::expression::Uses;
use super::{Expression, ExpressionScope, pieces};
use crate::config::SourcePosition;
use crate::config::yaml::{self, YamlNode};
use crate::formula::ExpressionFault;

/// A JSON value with expressions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Template(Arc<Part>);

#[derive(Debug)]
enum Part {
    Constant(Value),
    Hole(Expression),
    Text(Vec<TemplatePiece>),
    List(Vec<Part>),
    Map(Vec<(String, Part)>),
}

#[derive(Debug)]
enum TemplatePiece {
    Text(String),
    Hole(Expression),
}

/// The references and faults found while reading templates, with their positions.
#[derive(Default)]
pub(super) struct TemplateUses {
    pub(super) faults: Vec<(SourcePosition, ExpressionFault)>,
    pub(super) uses: Vec<(SourcePosition, Uses)>,
}

impl TemplateUses {
    /// Compiles the expression that error messages call `name`.
    pub(super) fn expression(&mut self, text: &str, name: &str, at: SourcePosition) -> Option<Expression> {
        match Expression::parse(text, name) {
            Ok(expression) => {
                self.uses.push((at, expression.uses().clone()));
                Some(expression)
            }
            Err(faults) => {
                self.faults.extend(faults.into_iter().map(|fault| (at, fault)));
                None
            }
        }
    }
}

impl Template {
    pub fn constant(constant: Value) -> Self {
        Self(Arc::new(Part::Constant(constant)))
    }

    /// `name` is the template's name in error messages. A text that cannot be read is reported and left empty.
    pub(super) fn read(node: &YamlNode, name: &str, found: &mut TemplateUses) -> Self {
        Self(Arc::new(part(node, name, found)))
    }

    /// The value of a template without expressions.
    pub(super) fn as_constant(&self) -> Option<&Value> {
        self.0.as_constant()
    }

    /// The value that the template has in every run, as far as that is known without a run.
    pub(super) fn in_every_run(&self) -> Option<Result<Value, String>> {
        match &*self.0 {
            Part::Constant(value) => Some(Ok(value.clone())),
            Part::Hole(expression) => expression.constant(),
            Part::Text(_) | Part::List(_) | Part::Map(_) => None,
        }
    }

    /// The JSON with all expressions evaluated, or an error text that says which could not be.
    pub fn fill(&self, scope: &ExpressionScope<'_>) -> Result<Value, String> {
        self.0.fill(scope)
    }
}

impl Part {
    fn as_constant(&self) -> Option<&Value> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn fill(&self, scope: &ExpressionScope<'_>) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(value.clone()),
            Self::Hole(expression) => expression.evaluate(scope),
            Self::Text(pieces) => pieces
                .iter()
                .try_fold(String::new(), |mut text, piece| {
                    match piece {
                        TemplatePiece::Text(constant) => text.push_str(constant),
                        TemplatePiece::Hole(expression) => text.push_str(&written(expression.evaluate(scope)?)),
                    }
                    Ok(text)
                })
                .map(Value::String),
            Self::List(parts) => parts.iter().map(|part| part.fill(scope)).collect(),
            Self::Map(parts) => {
                let entries = parts.iter().map(|(key, part)| Ok((key.clone(), part.fill(scope)?)));
                entries.collect::<Result<_, String>>().map(Value::Object)
            }
        }
    }
}

/// A value inside a text: texts unquoted, all other values as JSON.
fn written(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn part(node: &YamlNode, name: &str, found: &mut TemplateUses) -> Part {
    match &node.value {
        yaml::YamlValue::Scalar { text, .. } if text.contains(pieces::HOLE) => text_part(text, name, node.at, found),
        yaml::YamlValue::Scalar { .. } => Part::Constant(node.to_json()),
        yaml::YamlValue::List(items) => list_part(items.iter().map(|item| part(item, name, found)).collect()),
        yaml::YamlValue::Map(entries) => {
            map_part(entries.iter().map(|entry| (entry.key.clone(), part(&entry.value, name, found))).collect())
        }
    }
}

fn list_part(parts: Vec<Part>) -> Part {
    match parts.iter().map(Part::as_constant).collect::<Option<Vec<_>>>() {
        Some(constants) => Part::Constant(constants.into_iter().cloned().collect()),
        None => Part::List(parts),
    }
}

fn map_part(parts: Vec<(String, Part)>) -> Part {
    let constants = parts.iter().map(|(key, part)| Some((key.clone(), part.as_constant()?.clone())));
    match constants.collect::<Option<_>>() {
        Some(constants) => Part::Constant(Value::Object(constants)),
        None => Part::Map(parts),
    }
}

fn text_part(text: &str, name: &str, at: SourcePosition, found: &mut TemplateUses) -> Part {
    let Some(read) = pieces::pieces(text) else {
        let message = format!("a ${{ in {name} is not closed; add }}, or write $${{ where ${{ is meant as text");
        found.faults.push((at, ExpressionFault::new(message)));
        return Part::Constant(Value::Null);
    };
    let pieces = read.into_iter().filter_map(|piece| match piece {
        pieces::Piece::Text(constant) => Some(TemplatePiece::Text(constant)),
        pieces::Piece::Hole(hole) => found.expression(hole, name, at).map(TemplatePiece::Hole),
    });
    let pieces: Vec<TemplatePiece> = pieces.collect();
    match pieces.as_slice() {
        [] => Part::Constant("".into()),
        [TemplatePiece::Text(constant)] => Part::Constant(constant.as_str().into()),
        [TemplatePiece::Hole(expression)] => Part::Hole(expression.clone()),
        _ => Part::Text(pieces),
    }
}
