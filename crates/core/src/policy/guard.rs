//! Parts of a `when:` that can be told false without evaluating it.
//!
//! `a && b` is false as soon as one side is, even if the other cannot be evaluated. So a condition that demands
//! `job.tenant == 'acme'` among other things need not be evaluated for other tenants, and most conditions never are.

use cel::common::ast::{CallExpr, Expr, IdedExpr, SelectExpr, operators};

use super::subject::Subject;
use crate::formula::literal;

/// A comparison that the whole condition depends on.
#[derive(Debug)]
pub(super) struct Guard {
    value: Operand,
    test: Test,
    text: Box<str>,
}

#[derive(Debug)]
enum Operand {
    Id,
    Tenant,
    Topic,
    Capability,
    Priority,
    Actor,
    ActorType,
    Label(Box<str>),
}

#[derive(Clone, Copy, Debug)]
enum Test {
    Equal,
    NotEqual,
    StartsWith,
}

/// The guards of an expression.
pub(super) fn guards(expression: &IdedExpr) -> Vec<Guard> {
    match &expression.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_AND && call.target.is_none() => {
            call.args.iter().flat_map(guards).collect()
        }
        Expr::Call(call) => comparison(call).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn comparison(call: &CallExpr) -> Option<Guard> {
    let (test, value, text) = match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
        (operators::EQUALS, None, [left, right]) => (Test::Equal, left, right),
        (operators::NOT_EQUALS, None, [left, right]) => (Test::NotEqual, left, right),
        ("startsWith", Some(target), [text]) => (Test::StartsWith, target, text),
        _ => return None,
    };
    Some(Guard { value: operand(value)?, test, text: literal(text)?.into() })
}

fn operand(expression: &IdedExpr) -> Option<Operand> {
    match &expression.expr {
        Expr::Select(SelectExpr { operand, field, test: false }) if is_job(operand) => match field.as_str() {
            "id" => Some(Operand::Id),
            "tenant" => Some(Operand::Tenant),
            "topic" => Some(Operand::Topic),
            "capability" => Some(Operand::Capability),
            "priority" => Some(Operand::Priority),
            "actor" => Some(Operand::Actor),
            "actor_type" => Some(Operand::ActorType),
            _ => None,
        },
        Expr::Select(SelectExpr { operand, field, test: false }) if is_labels(operand) => {
            Some(Operand::Label(field.as_str().into()))
        }
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [map, name] if is_labels(map) => Some(Operand::Label(literal(name)?.into())),
            _ => None,
        },
        _ => None,
    }
}

fn is_job(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == "job")
}

fn is_labels(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Select(select) if !select.test && select.field == "labels" && is_job(&select.operand))
}

impl Guard {
    /// An absent label is an error to the expression, which only the expression itself can weigh.
    pub(super) fn is_false(&self, subject: &Subject<'_>) -> bool {
        let value = match &self.value {
            Operand::Id => subject.job_id,
            Operand::Tenant => subject.tenant,
            Operand::Topic => subject.topic,
            Operand::Capability => subject.capability.unwrap_or(""),
            Operand::Priority => subject.priority.as_str(),
            Operand::Actor => subject.actor,
            Operand::ActorType => subject.actor_type.unwrap_or(""),
            Operand::Label(name) => match subject.labels.get(&**name) {
                Some(value) => value,
                None => return false,
            },
        };
        match self.test {
            Test::Equal => *value != *self.text,
            Test::NotEqual => *value == *self.text,
            Test::StartsWith => !value.starts_with(&*self.text),
        }
    }
}
