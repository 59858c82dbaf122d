//! Compiles the syntax tree of CEL to a predicate.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::fact::{Fact, Operator};
use super::{Comparison, Field, PayloadStep, Predicate, ScratchLayout, ScratchSlot, Term, Test};
use crate::formula::{Regexes, literal};

impl Predicate {
    /// Compiles the supported parts of an expression; the others become [`Predicate::Unknown`].
    pub(in crate::policy) fn compile(expression: &IdedExpr, regexes: &Regexes, shelf: &mut ScratchLayout) -> Self {
        Compiler { regexes, shelf, payload_terms: 0 }.predicate(expression)
    }
}

struct Compiler<'r> {
    regexes: &'r Regexes,
    shelf: &'r mut ScratchLayout,
    /// How many terms have read the payload so far.
    payload_terms: usize,
}

impl Compiler<'_> {
    fn predicate(&mut self, expression: &IdedExpr) -> Predicate {
        let known = self.truth(expression).or_else(|| self.value(expression).map(Predicate::Is));
        known.unwrap_or(Predicate::Unknown)
    }

    fn term(&mut self, expression: &IdedExpr) -> Option<Term> {
        self.value(expression).or_else(|| Some(Term::Truth(Box::new(self.truth(expression)?))))
    }

    /// An expression whose form makes it a boolean.
    fn truth(&mut self, expression: &IdedExpr) -> Option<Predicate> {
        match &expression.expr {
            Expr::Select(select) if select.test => {
                let map = self.value(&select.operand)?;
                Some(Predicate::Has(map, select.field.as_str().into()))
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
                (operators::LOGICAL_AND, None, _) => Some(Predicate::All(self.parts(call))),
                (operators::LOGICAL_OR, None, _) => Some(Predicate::Any(self.parts(call))),
                (operators::LOGICAL_NOT, None, [part]) => Some(Predicate::Not(Box::new(self.predicate(part)))),
                (name, None, [left, right]) => self.comparison(name, left, right),
                ("matches", Some(text), [pattern]) => self.matches(text, pattern),
                (name, Some(text), [part]) => self.test(name, text, part),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operands of a chain of one operator. Their order does not matter, so operands without the payload come first and
    /// unknown ones last.
    fn parts(&mut self, chain: &CallExpr) -> Box<[Predicate]> {
        let mut parts = Vec::new();
        self.gather(chain, &mut parts);
        parts.sort_by_key(|(cost, _)| *cost);
        parts.into_iter().map(|(_, part)| part).collect()
    }

    fn gather(&mut self, chain: &CallExpr, parts: &mut Vec<(u8, Predicate)>) {
        for argument in &chain.args {
            match &argument.expr {
                Expr::Call(inner) if inner.func_name == chain.func_name => self.gather(inner, parts),
                _ => {
                    let before = self.payload_terms;
                    let part = self.predicate(argument);
                    let cost = if matches!(part, Predicate::Unknown) { 2 } else { u8::from(self.payload_terms > before) };
                    parts.push((cost, part));
                }
            }
        }
    }

    fn comparison(&mut self, name: &str, left: &IdedExpr, right: &IdedExpr) -> Option<Predicate> {
        let order = match name {
            operators::EQUALS => return Some(Predicate::Equal(self.term(left)?, self.term(right)?)),
            operators::NOT_EQUALS => {
                return Some(Predicate::Not(Box::new(Predicate::Equal(self.term(left)?, self.term(right)?))));
            }
            operators::IN => return self.membership(left, right),
            "matches" => return self.matches(left, right),
            operators::LESS => Comparison::Less,
            operators::LESS_EQUALS => Comparison::NotGreater,
            operators::GREATER => Comparison::Greater,
            operators::GREATER_EQUALS => Comparison::NotLess,
            _ => return None,
        };
        Some(Predicate::Ordered(self.term(left)?, order, self.term(right)?))
    }

    fn membership(&mut self, one: &IdedExpr, list: &IdedExpr) -> Option<Predicate> {
        let one = self.term(one)?;
        let Expr::List(written) = &list.expr else { return Some(Predicate::In(one, self.value(list)?)) };
        if !written.optional_indices.is_empty() {
            return None;
        }
        if let Some(words) = written.elements.iter().map(literal).collect::<Option<Vec<_>>>() {
            let mut words: Vec<Box<str>> = words.into_iter().map(Box::from).collect();
            words.sort_unstable();
            return Some(Predicate::OneOf(one, words.into()));
        }
        let items = written.elements.iter().map(|item| self.term(item)).collect::<Option<Vec<_>>>()?;
        Some(Predicate::In(one, Term::List(items.into())))
    }

    fn matches(&mut self, text: &IdedExpr, pattern: &IdedExpr) -> Option<Predicate> {
        let regex = self.regexes.get(literal(pattern)?)?.clone();
        Some(Predicate::Matches(self.term(text)?, regex))
    }

    fn test(&mut self, name: &str, text: &IdedExpr, part: &IdedExpr) -> Option<Predicate> {
        let test = match name {
            "startsWith" => Test::StartsWith,
            "endsWith" => Test::EndsWith,
            "contains" => Test::Contains,
            _ => return None,
        };
        Some(Predicate::Text(self.term(text)?, test, self.term(part)?))
    }

    /// Constants, fields, and calculations on them.
    fn value(&mut self, expression: &IdedExpr) -> Option<Term> {
        let mut term = self.unshelved(expression)?;
        // Terms with equal parts have equal values, so they share a slot.
        let name = format!("{term:?}");
        if let Term::Label(slot, _) | Term::Payload(slot, _) | Term::Calculated(slot, _) = &mut term {
            *slot = self.shelf.slot(name);
        }
        Some(term)
    }

    fn unshelved(&mut self, expression: &IdedExpr) -> Option<Term> {
        match &expression.expr {
            Expr::Literal(value) => constant(value),
            Expr::Call(call) => match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
                (operators::INDEX, None, [..]) => self.path(expression),
                (operators::CONDITIONAL, None, [predicate, then, otherwise]) => {
                    let parts = (self.predicate(predicate), self.term(then)?, self.term(otherwise)?);
                    Some(Term::Choice(Box::new(parts)))
                }
                (operators::NEGATE, None, [term]) => Some(Term::Negative(Box::new(self.value(term)?))),
                ("size", None, [term]) | ("size", Some(term), []) => Some(Term::Size(Box::new(self.value(term)?))),
                (name, None, [left, right]) => {
                    let operator = operator(name)?;
                    Some(Term::Calculated(ScratchSlot::NONE, Box::new((self.value(left)?, operator, self.value(right)?))))
                }
                _ => None,
            },
            _ => self.path(expression),
        }
    }

    fn path(&mut self, expression: &IdedExpr) -> Option<Term> {
        match &expression.expr {
            Expr::Ident(name) => match name.as_str() {
                "now" => Some(Term::Field(Field::Now)),
                "payload" => {
                    self.payload_terms += 1;
                    Some(Term::Payload(ScratchSlot::NONE, Vec::new()))
                }
                _ => None,
            },
            Expr::Select(select) if !select.test => {
                self.step(&select.operand, PayloadStep::Name(select.field.as_str().into()))
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::INDEX, [map, key]) => {
                    let Expr::Literal(key) = &key.expr else { return None };
                    let step = match key {
                        LiteralValue::String(name) => PayloadStep::Name(name.inner().into()),
                        LiteralValue::Int(place) => PayloadStep::Place(usize::try_from(*place.inner()).ok()?),
                        _ => return None,
                    };
                    self.step(map, step)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn step(&mut self, operand: &IdedExpr, step: PayloadStep) -> Option<Term> {
        if matches!(&operand.expr, Expr::Ident(name) if name == "job") {
            return match step {
                PayloadStep::Name(name) => field(&name).map(Term::Field),
                PayloadStep::Place(_) => None,
            };
        }
        match (self.path(operand)?, step) {
            (Term::Payload(slot, mut steps), step) => {
                steps.push(step);
                Some(Term::Payload(slot, steps))
            }
            (Term::Field(Field::Labels), PayloadStep::Name(name)) => Some(Term::Label(ScratchSlot::NONE, name)),
            _ => None,
        }
    }
}

fn constant(value: &LiteralValue) -> Option<Term> {
    let fact = match value {
        LiteralValue::String(text) => return Some(Term::Text(text.inner().into())),
        LiteralValue::Boolean(truth) => Fact::Bool(*truth.inner()),
        LiteralValue::Double(double) => Fact::Double(*double.inner()),
        LiteralValue::Int(int) => Fact::Int(*int.inner()),
        LiteralValue::UInt(uint) => Fact::UInt(*uint.inner()),
        LiteralValue::Null => Fact::Null,
        LiteralValue::Bytes(_) => return None,
    };
    Some(Term::Number(fact))
}

fn operator(name: &str) -> Option<Operator> {
    match name {
        operators::ADD => Some(Operator::Add),
        operators::SUBSTRACT => Some(Operator::Subtract),
        operators::MULTIPLY => Some(Operator::Multiply),
        operators::DIVIDE => Some(Operator::Divide),
        operators::MODULO => Some(Operator::Remainder),
        _ => None,
    }
}

fn field(name: &str) -> Option<Field> {
    match name {
        "id" => Some(Field::Id),
        "tenant" => Some(Field::Tenant),
        "topic" => Some(Field::Topic),
        "capability" => Some(Field::Capability),
        "priority" => Some(Field::Priority),
        "actor" => Some(Field::Actor),
        "actor_type" => Some(Field::ActorType),
        "risk_tags" => Some(Field::RiskTags),
        "requires" => Some(Field::Requires),
        "labels" => Some(Field::Labels),
        _ => None,
    }
}
