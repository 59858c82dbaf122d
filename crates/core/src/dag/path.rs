//! Fixed paths into the variables of expressions, such as `nodes.probe.output.size`.
//!
//! A path is followed in the JSON itself, so that an expression costs what it reads, however large the scope is: with ten
//! thousand items that each read one parameter, converting all parameters to CEL values for each item would be quadratic.

use std::borrow::Cow;
use std::fmt;

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::CelInt;
use serde_json::{Value, json};

use super::ExpressionScope;
use super::params::kind_of;
use crate::formula::literal;

#[derive(Clone, Debug)]
pub(super) struct Path {
    root: Root,
    steps: Vec<PathStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Params,
    Nodes,
    Run,
    Item,
    Index,
}

impl Root {
    const ALL: [Self; 5] = [Self::Params, Self::Nodes, Self::Run, Self::Item, Self::Index];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Nodes => "nodes",
            Self::Run => "run",
            Self::Item => "item",
            Self::Index => "index",
        }
    }
}

#[derive(Clone, Debug)]
enum PathStep {
    Key(Box<str>),
    At(usize),
    /// The entry at the number of the item.
    Index,
}

/// The root variables of expressions.
pub(super) fn variables() -> [&'static str; 5] {
    Root::ALL.map(Root::as_str)
}

impl Path {
    /// The path that an expression consists of, if it is one. Field accesses must have been rewritten to lookups before.
    pub(super) fn of(expression: &IdedExpr) -> Option<Self> {
        match &expression.expr {
            Expr::Ident(name) => {
                let root = Root::ALL.into_iter().find(|root| root.as_str() == name)?;
                Some(Self { root, steps: Vec::new() })
            }
            Expr::Call(call) if call.func_name == operators::INDEX => {
                let [operand, key] = call.args.as_slice() else { return None };
                let mut path = Self::of(operand)?;
                path.steps.push(step(key)?);
                Some(path)
            }
            _ => None,
        }
    }

    /// The node and the field, if the path begins with a field of a node.
    pub(super) fn field_of_node(&self) -> Option<(&str, &str)> {
        match (self.root, self.steps.as_slice()) {
            (Root::Nodes, [PathStep::Key(node), PathStep::Key(field), ..]) => Some((node, field)),
            _ => None,
        }
    }

    /// This path extended by one key.
    pub(super) fn with(&self, key: &str) -> Self {
        let mut longer = self.clone();
        longer.steps.push(PathStep::Key(key.into()));
        longer
    }

    pub(super) fn resolve<'a>(&self, scope: &ExpressionScope<'a>) -> Result<Cow<'a, Value>, String> {
        let item = || scope.item.ok_or_else(|| "there is an item only in a for_each".to_owned());
        let mut value = match self.root {
            Root::Params => Cow::Borrowed(scope.params),
            Root::Nodes => Cow::Borrowed(scope.nodes),
            Root::Run => Cow::Owned(json!({"id": scope.run, "dag": scope.dag})),
            Root::Item => Cow::Borrowed(item()?.0),
            Root::Index => Cow::Owned(item()?.1.into()),
        };
        for (depth, step) in self.steps.iter().enumerate() {
            let numbered;
            let step = match step {
                PathStep::Index => {
                    numbered = PathStep::At(item()?.1 as usize);
                    &numbered
                }
                written => written,
            };
            let entered = match value {
                Cow::Borrowed(outer) => enter(outer, step).map(Cow::Borrowed),
                Cow::Owned(outer) => enter(&outer, step).cloned().map(Cow::Owned),
            };
            value = entered.map_err(|fault| self.explain(depth, &fault))?;
        }
        Ok(value)
    }

    /// Whether the map at this path has a key.
    pub(super) fn has(&self, key: &str, scope: &ExpressionScope<'_>) -> Result<bool, String> {
        match &*self.resolve(scope)? {
            Value::Object(entries) => Ok(entries.contains_key(key)),
            other => Err(format!("{self} is {}, not a map", kind_of(other))),
        }
    }

    fn explain(&self, depth: usize, fault: &Missing) -> String {
        let upto = |steps: usize| Self { root: self.root, steps: self.steps[..steps].to_vec() };
        match fault {
            Missing::Absent => format!("{} is absent; ask with has() first", upto(depth + 1)),
            Missing::Short(length) => format!("{} is absent: the list has {length} entries", upto(depth + 1)),
            Missing::Kind(kind) => format!("{} is {kind}, so that there is no {}", upto(depth), upto(depth + 1)),
        }
    }
}

fn step(key: &IdedExpr) -> Option<PathStep> {
    match &key.expr {
        Expr::Literal(LiteralValue::Int(number)) => usize::try_from(*CelInt::inner(number)).ok().map(PathStep::At),
        Expr::Ident(name) if name == Root::Index.as_str() => Some(PathStep::Index),
        _ => literal(key).map(|key| PathStep::Key(key.into())),
    }
}

/// Why a step of a path found no value.
enum Missing {
    Absent,
    Short(usize),
    Kind(&'static str),
}

fn enter<'v>(value: &'v Value, step: &PathStep) -> Result<&'v Value, Missing> {
    match (value, step) {
        (Value::Object(entries), PathStep::Key(key)) => entries.get(&**key).ok_or(Missing::Absent),
        (Value::Array(items), PathStep::At(at)) => items.get(*at).ok_or(Missing::Short(items.len())),
        (other, _) => Err(Missing::Kind(kind_of(other))),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.as_str())?;
        self.steps.iter().try_for_each(|step| match step {
            PathStep::Key(key) if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => write!(f, ".{key}"),
            PathStep::Key(key) => write!(f, "[{key:?}]"),
            PathStep::At(at) => write!(f, "[{at}]"),
            PathStep::Index => f.write_str("[index]"),
        })
    }
}
