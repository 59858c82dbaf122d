//! CEL expressions of a DAG, evaluated over a run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use cel::ExecutionError;
use cel::common::ast::{Expr, IdedExpr};
use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use serde_json::Value;

use super::params::kind_of;
use super::path::{Path, variables};
use crate::formula::{self, ExpressionFault, Regexes, Vocabulary, Wording};

/// The fields of `nodes.<name>` that expressions may read.
const NODE_FIELDS: [&str; 2] = ["output", "state"];
const RUN_FIELDS: [&str; 2] = ["id", "dag"];
/// The first character of variables that stand for lifted paths. No CEL identifier or macro begins with it, so they cannot
/// collide.
const PATH_PREFIX: char = '$';

/// A compiled expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Expression(Arc<CompiledExpression>);

#[derive(Debug)]
struct CompiledExpression {
    program: Program,
    uses: Uses,
}

#[derive(Debug)]
enum Program {
    /// Most expressions only name a value. They need no evaluator, and the value is passed on without conversion, to the
    /// last digit.
    Path(Path),
    Formula(Formula),
}

#[derive(Debug)]
struct Formula {
    /// The expression with a variable in place of each path.
    expression: IdedExpr,
    lookups: Vec<Lookup>,
    regexes: Arc<Regexes>,
}

#[derive(Debug)]
enum Lookup {
    Value(Path),
    /// `has(path.key)`
    Has(Path, Box<str>),
}

/// The parts of the scope that an expression reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) nodes: BTreeSet<Box<str>>,
    pub(super) params: BTreeSet<Box<str>>,
    /// Whether it reads `item` or `index`.
    pub(super) item: bool,
}

/// The variables of expressions: `params`, `nodes.<name>.output`, `nodes.<name>.state`, `run.id`, `run.dag`, and in a
/// `for_each` `item` and `index`.
#[derive(Clone, Debug)]
pub struct ExpressionScope<'a> {
    pub run: &'a str,
    pub dag: &'a str,
    pub params: &'a Value,
    /// An object by node name: `{"output": …, "state": "SUCCEEDED"}`.
    pub nodes: &'a Value,
    pub item: Option<(&'a Value, u32)>,
}

impl Expression {
    /// Compiles an expression. Whether the nodes and parameters that it reads exist is checked by the loader, not here.
    pub fn compile(text: &str) -> Result<Self, String> {
        Self::parse(text, "the expression").map_err(|faults| faults.first().map(ToString::to_string).unwrap_or_default())
    }

    /// `name` is the expression's name in error messages.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self, Vec<ExpressionFault>> {
        let wording = Wording { name, remedy: "shorten it" };
        let mut expression = formula::parse(text, wording).map_err(|fault| vec![fault])?;
        let (mut seen, mut regexes) = (UsesCollector { name, uses: Uses::default() }, Regexes::new());
        let mut faults = formula::check(&expression, wording, &mut regexes, &mut seen);
        formula::unqualify(&mut expression);
        let mut lookups = Vec::new();
        lift(&mut expression, &mut lookups);
        faults.extend(lookups.iter().filter_map(|lookup| unknown_field(lookup, name)));
        if !faults.is_empty() {
            return Err(faults);
        }
        let program = match (&expression.expr, lookups.as_slice()) {
            (Expr::Ident(_), [Lookup::Value(path)]) => Program::Path(path.clone()),
            _ => Program::Formula(Formula { expression, lookups, regexes: Arc::new(regexes) }),
        };
        Ok(Self(Arc::new(CompiledExpression { program, uses: seen.uses })))
    }

    pub(super) fn uses(&self) -> &Uses {
        &self.0.uses
    }

    /// The value that the expression has in every run; None if it reads anything of the run.
    pub(super) fn constant(&self) -> Option<Result<Value, String>> {
        let nothing = ExpressionScope { run: "", dag: "", params: &Value::Null, nodes: &Value::Null, item: None };
        match &self.0.program {
            Program::Formula(formula) if formula.lookups.is_empty() => Some(formula.evaluate(&nothing)),
            Program::Formula(_) | Program::Path(_) => None,
        }
    }

    /// The value, or an error text that says why there is none.
    pub fn evaluate(&self, scope: &ExpressionScope<'_>) -> Result<Value, String> {
        match &self.0.program {
            Program::Path(path) => path.resolve(scope).map(Cow::into_owned),
            Program::Formula(formula) => formula.evaluate(scope),
        }
    }

    /// Whether the expression is true. A value that is not a boolean is an error.
    pub fn holds(&self, scope: &ExpressionScope<'_>) -> Result<bool, String> {
        let value = self.evaluate(scope)?;
        value.as_bool().ok_or_else(|| format!("it gave {}, not true or false", kind_of(&value)))
    }
}

impl Formula {
    fn evaluate(&self, scope: &ExpressionScope<'_>) -> Result<Value, String> {
        let values = self.lookups.iter().map(|_| OnceLock::new()).collect();
        let bound = ScopeLookups { scope, lookups: &self.lookups, values };
        let context = formula::context(&bound, &self.regexes);
        formula::evaluate(&self.expression, &context, |error| bound.in_words(error), formula::to_json)
    }
}

/// The lookups of one evaluation. Each is resolved when the evaluation first needs it, and only once however often a loop
/// repeats it.
struct ScopeLookups<'a> {
    scope: &'a ExpressionScope<'a>,
    lookups: &'a [Lookup],
    values: Vec<OnceLock<Option<Box<dyn Val>>>>,
}

impl ScopeLookups<'_> {
    /// The evaluator can only be told that a variable is missing. The reason is therefore looked up again after the
    /// evaluation failed.
    fn in_words(&self, error: &ExecutionError) -> String {
        let failed = match error {
            ExecutionError::UndeclaredReference(name) => number(name).and_then(|number| self.lookups.get(number)),
            _ => None,
        };
        let why = failed.and_then(|lookup| lookup.value(self.scope).err());
        why.unwrap_or_else(|| formula::in_words(error))
    }
}

impl VariableResolver for ScopeLookups<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let number = number(variable)?;
        let value = self.values.get(number)?.get_or_init(|| self.lookups.get(number)?.value(self.scope).ok());
        value.as_ref().map(|value| CowVal::Borrowed(value.as_ref()))
    }
}

impl Lookup {
    fn value(&self, scope: &ExpressionScope<'_>) -> Result<Box<dyn Val>, String> {
        match self {
            Self::Value(path) => path.resolve(scope).map(|value| formula::from_json(value.into_owned())),
            Self::Has(path, key) => path.has(key, scope).map(|has| Box::new(CelBool::from(has)) as Box<dyn Val>),
        }
    }
}

fn number(variable: &str) -> Option<usize> {
    variable.strip_prefix(PATH_PREFIX)?.parse().ok()
}

/// Replaces each path, the longest possible one, by a variable.
fn lift(expression: &mut IdedExpr, lookups: &mut Vec<Lookup>) {
    let lookup = match &expression.expr {
        Expr::Select(select) if select.test => {
            Path::of(&select.operand).map(|path| Lookup::Has(path, select.field.as_str().into()))
        }
        _ => Path::of(expression).map(Lookup::Value),
    };
    match lookup {
        Some(lookup) => {
            expression.expr = Expr::Ident(format!("{PATH_PREFIX}{}", lookups.len()));
            lookups.push(lookup);
        }
        None => formula::each_part(expression, &mut |part| lift(part, lookups)),
    }
}

fn unknown_field(lookup: &Lookup, name: &str) -> Option<ExpressionFault> {
    let path = match lookup {
        Lookup::Value(path) => path.clone(),
        Lookup::Has(path, key) => path.with(key),
    };
    let (node, field) = path.field_of_node().filter(|(_, field)| !NODE_FIELDS.contains(field))?;
    let message = format!("unknown field {field:?} of node {node:?} in {name}; it has {}", NODE_FIELDS.join(", "));
    Some(ExpressionFault::unknown(message, field, NODE_FIELDS))
}

/// Collects the parts of the scope that the expression called `name` reads.
struct UsesCollector<'a> {
    name: &'a str,
    uses: Uses,
}

impl Vocabulary for UsesCollector<'_> {
    fn variable(&mut self, variable: &str) -> Result<(), ExpressionFault> {
        let name = self.name;
        match variable {
            "params" | "run" => Ok(()),
            "item" | "index" => {
                self.uses.item = true;
                Ok(())
            }
            "nodes" => {
                Err(ExpressionFault::new(format!("nodes in {name} must be followed by a name, as in nodes.NAME.output")))
            }
            _ => {
                let message = format!("unknown name {variable:?} in {name}; it knows {}", variables().join(", "));
                Err(ExpressionFault::unknown(message, variable, variables()))
            }
        }
    }

    fn field(&mut self, variable: &str, field: &str) -> Result<(), ExpressionFault> {
        match variable {
            "params" => drop(self.uses.params.insert(field.into())),
            "nodes" => drop(self.uses.nodes.insert(field.into())),
            "run" if !RUN_FIELDS.contains(&field) => {
                let message = format!("unknown field {field:?} of run in {}; it has {}", self.name, RUN_FIELDS.join(", "));
                return Err(ExpressionFault::unknown(message, field, RUN_FIELDS));
            }
            _ => return self.variable(variable),
        }
        Ok(())
    }

    fn may_bind(&self, name: &str) -> bool {
        !variables().contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths that are looked up, in the order of the text. Lookups are all that an evaluation touches.
    fn looked_up(text: &str) -> Vec<String> {
        match &Expression::compile(text).unwrap().0.program {
            Program::Path(path) => vec![format!("only {path}")],
            Program::Formula(formula) => formula
                .lookups
                .iter()
                .map(|lookup| match lookup {
                    Lookup::Value(path) => path.to_string(),
                    Lookup::Has(path, key) => format!("has {}", path.with(key)),
                })
                .collect(),
        }
    }

    #[test]
    fn an_expression_looks_up_no_more_than_it_names() {
        assert_eq!(looked_up("params.list[index] + params.n"), ["params.list[index]", "params.n"]);
        assert_eq!(looked_up("nodes['a-b'].output.x[2].y"), ["only nodes[\"a-b\"].output.x[2].y"]);
        assert_eq!(looked_up("has(params.map.x) && params.map.x > 1"), ["has params.map.x", "params.map.x"]);
        assert_eq!(looked_up("nodes.a.output.list.filter(x, x in params.known)"), ["nodes.a.output.list", "params.known"]);
        assert_eq!(looked_up("params.list[params.n - 1].x"), ["params.list", "params.n"]);
        assert_eq!(looked_up("1 + 1"), Vec::<String>::new());
    }
}
