//! `when:` conditions compiled into comparisons of job fields.
//!
//! A predicate decides only what the interpreter would decide alike; it leaves unsupported expressions and all failures to
//! the interpreter. So it needs no list of the ways to fail. `false && x` is false for both: CEL lets the deciding operand
//! of `&&` and `||` stand, in whatever order, even if the other one fails. So a condition is interpreted only if its known
//! operands do not decide it, or to find out why it failed.

mod bound;
mod compile;
mod demand;
mod fact;
mod scratch;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use regex::Regex;

use super::payload::Payload;
pub(super) use bound::{Bound, BoundKind};
use fact::{Fact, Operator, all, any};
pub(super) use scratch::{PredicateScratch, ScratchLayout, ScratchSlot};

#[derive(Debug)]
pub(super) enum Predicate {
    /// Only the interpreter can decide it.
    Unknown,
    All(Box<[Self]>),
    Any(Box<[Self]>),
    Not(Box<Self>),
    Equal(Term, Term),
    Ordered(Term, Comparison, Term),
    /// The text is one of these, which are sorted.
    OneOf(Term, Box<[Box<str>]>),
    In(Term, Term),
    Has(Term, Box<str>),
    Text(Term, Test, Term),
    Matches(Term, Regex),
    /// The term is itself a boolean.
    Is(Term),
}

#[derive(Debug)]
pub(super) enum Term {
    Text(Box<str>),
    Number(Fact<'static>),
    Field(Field),
    Label(ScratchSlot, Box<str>),
    Payload(ScratchSlot, Vec<PayloadStep>),
    List(Box<[Self]>),
    Calculated(ScratchSlot, Box<(Self, Operator, Self)>),
    Negative(Box<Self>),
    Size(Box<Self>),
    Choice(Box<(Predicate, Self, Self)>),
    Truth(Box<Predicate>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    Tenant,
    Topic,
    Capability,
    Priority,
    Actor,
    ActorType,
    RiskTags,
    Requires,
    Labels,
    Now,
}

/// One step of a path into a payload.
#[derive(Debug)]
pub(super) enum PayloadStep {
    Name(Box<str>),
    Place(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Comparison {
    Less,
    NotGreater,
    Greater,
    NotLess,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    StartsWith,
    EndsWith,
    Contains,
}

impl Predicate {
    /// Whether the condition holds; None if only the interpreter can decide.
    pub(super) fn holds(&self, desk: &PredicateScratch<'_, '_>) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::All(parts) => all(parts.iter().map(|part| part.holds(desk))),
            Self::Any(parts) => any(parts.iter().map(|part| part.holds(desk))),
            Self::Not(part) => part.holds(desk).map(|truth| !truth),
            Self::Equal(left, right) => left.read(desk)?.equals(&right.read(desk)?),
            Self::Ordered(left, order, right) => {
                let found = left.read(desk)?.order(&right.read(desk)?)?;
                Some(match order {
                    Comparison::Less => found == Ordering::Less,
                    Comparison::NotGreater => found != Ordering::Greater,
                    Comparison::Greater => found == Ordering::Greater,
                    Comparison::NotLess => found != Ordering::Less,
                })
            }
            Self::OneOf(term, words) => match term.read(desk)? {
                Fact::Text(text) => Some(words.binary_search_by(|word| (**word).cmp(text)).is_ok()),
                _ => Some(false),
            },
            Self::In(term, Term::List(items)) => {
                let fact = term.read(desk)?;
                // An item that fails makes the list fail in the interpreter, wherever it stands.
                let whole = items.iter().all(|item| item.read(desk).is_some());
                let equal = any(items.iter().map(|item| item.read(desk)?.equals(&fact)));
                if whole { equal } else { None }
            }
            Self::In(term, list) => {
                let fact = term.read(desk)?;
                list.read(desk)?.contains(&fact)
            }
            Self::Has(term, name) => term.read(desk)?.has(name),
            Self::Text(text, test, part) => {
                let (Fact::Text(text), Fact::Text(part)) = (text.read(desk)?, part.read(desk)?) else { return None };
                Some(match test {
                    Test::StartsWith => text.starts_with(part),
                    Test::EndsWith => text.ends_with(part),
                    Test::Contains => text.contains(part),
                })
            }
            Self::Matches(text, regex) => match text.read(desk)? {
                Fact::Text(text) => Some(regex.is_match(text)),
                _ => None,
            },
            Self::Is(term) => match term.read(desk)? {
                Fact::Bool(truth) => Some(truth),
                _ => None,
            },
        }
    }
}

impl Term {
    /// The value; None if it is absent, fails, or is only known to the interpreter.
    fn read<'t>(&'t self, desk: &'t PredicateScratch<'_, '_>) -> Option<Fact<'t>> {
        match self {
            Self::Text(text) => Some(Fact::Text(text)),
            Self::Number(fact) => Some(*fact),
            Self::Field(field) => Some(field.read(desk)),
            Self::Label(slot, name) => {
                desk.once(*slot, |facts| facts.subject().labels.get(&**name).map(|value| Fact::Text(value)))
            }
            Self::Payload(slot, steps) => desk.once(*slot, |facts| {
                let found = steps.iter().try_fold(facts.payload().ok()?, |inner, step| step.into(inner))?;
                Some(Fact::from(found))
            }),
            Self::List(_) => None,
            Self::Calculated(slot, parts) => desk.once(*slot, |_| {
                let (left, operator, right) = &**parts;
                left.read(desk)?.calculate(*operator, &right.read(desk)?)
            }),
            Self::Negative(term) => term.read(desk)?.negative(),
            Self::Size(term) => term.read(desk)?.size(),
            Self::Choice(parts) => {
                let (predicate, then, otherwise) = &**parts;
                if predicate.holds(desk)? { then.read(desk) } else { otherwise.read(desk) }
            }
            Self::Truth(predicate) => predicate.holds(desk).map(Fact::Bool),
        }
    }
}

impl Field {
    fn read<'f>(self, desk: &PredicateScratch<'f, '_>) -> Fact<'f> {
        let subject = desk.facts().subject();
        match self {
            Self::Id => Fact::Text(subject.job_id),
            Self::Tenant => Fact::Text(subject.tenant),
            Self::Topic => Fact::Text(subject.topic),
            Self::Capability => Fact::Text(subject.capability.unwrap_or("")),
            Self::Priority => Fact::Text(subject.priority.as_str()),
            Self::Actor => Fact::Text(subject.actor),
            Self::ActorType => Fact::Text(subject.actor_type.unwrap_or("")),
            Self::RiskTags => Fact::Names(subject.risk_tags),
            Self::Requires => Fact::Names(subject.requires),
            Self::Labels => Fact::Labels(subject.labels),
            Self::Now => Fact::Int(subject.now.as_millis()),
        }
    }
}

impl PayloadStep {
    fn into<'p, 'a>(&self, payload: &'p Payload<'a>) -> Option<&'p Payload<'a>> {
        match (self, payload) {
            (Self::Name(name), Payload::Map(entries)) => entries.get(name),
            (Self::Place(place), Payload::List(items)) => items.get(*place),
            _ => None,
        }
    }
}
