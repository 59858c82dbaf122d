//! Values that compare like those of CEL, without being allocated as CEL values.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::policy::payload::{Entries, Payload};

#[derive(Clone, Copy, Debug)]
pub(in crate::policy) enum Fact<'f> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(&'f str),
    Names(&'f BTreeSet<Arc<str>>),
    List(&'f [Payload<'f>]),
    Labels(&'f BTreeMap<String, String>),
    Map(&'f Entries<'f>),
}

#[derive(Clone, Copy, Debug)]
pub(in crate::policy) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl<'f> From<&'f Payload<'_>> for Fact<'f> {
    fn from(payload: &'f Payload<'_>) -> Self {
        match payload {
            Payload::Null => Self::Null,
            Payload::Bool(truth) => Self::Bool(*truth),
            Payload::Int(int) => Self::Int(*int),
            Payload::UInt(uint) => Self::UInt(*uint),
            Payload::Double(double) => Self::Double(*double),
            Payload::Text(text) => Self::Text(text),
            Payload::List(items) => Self::List(items),
            Payload::Map(entries) => Self::Map(entries),
        }
    }
}

impl Fact<'_> {
    const fn is_list(&self) -> bool {
        matches!(self, Self::Names(_) | Self::List(_))
    }

    const fn is_map(&self) -> bool {
        matches!(self, Self::Labels(_) | Self::Map(_))
    }

    /// Values of different types are unequal; all numbers are one type. Lists and maps are left to the interpreter.
    pub(super) fn equals(&self, other: &Fact<'_>) -> Option<bool> {
        match (self, other) {
            (Self::Null, Fact::Null) => Some(true),
            (Self::Text(a), Fact::Text(b)) => Some(a == b),
            (a, b) if a.is_list() && b.is_list() || a.is_map() && b.is_map() => None,
            (a, b) => Some(a.order(b) == Some(Ordering::Equal)),
        }
    }

    /// None for values without an order: of different types, and NaN.
    pub(super) fn order(&self, other: &Fact<'_>) -> Option<Ordering> {
        #[expect(clippy::cast_precision_loss, reason = "the interpreter compares whole numbers with others so")]
        match (self, other) {
            (Self::Bool(a), Fact::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Fact::Text(b)) => Some((*a).cmp(*b)),
            (Self::Int(a), Fact::Int(b)) => Some(a.cmp(b)),
            (Self::UInt(a), Fact::UInt(b)) => Some(a.cmp(b)),
            (Self::Int(a), Fact::UInt(b)) => Some(u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b))),
            (Self::UInt(a), Fact::Int(b)) => Some(i64::try_from(*a).map_or(Ordering::Greater, |a| a.cmp(b))),
            (Self::Double(a), Fact::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), Fact::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Double(a), Fact::UInt(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Int(a), Fact::Double(b)) => (*a as f64).partial_cmp(b),
            (Self::UInt(a), Fact::Double(b)) => (*a as f64).partial_cmp(b),
            _ => None,
        }
    }

    /// Both operands must be of one type. Concatenation of texts and lists, and whatever fails, is left to the interpreter.
    pub(super) fn calculate<'r>(&self, operator: Operator, other: &Fact<'_>) -> Option<Fact<'r>> {
        match (self, other) {
            (Self::Int(a), Fact::Int(b)) => match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide => a.checked_div(*b),
                Operator::Remainder => a.checked_rem(*b),
            }
            .map(Fact::Int),
            (Self::UInt(a), Fact::UInt(b)) => match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide => a.checked_div(*b),
                Operator::Remainder => a.checked_rem(*b),
            }
            .map(Fact::UInt),
            (Self::Double(a), Fact::Double(b)) => match operator {
                Operator::Add => Some(a + b),
                Operator::Subtract => Some(a - b),
                Operator::Multiply => Some(a * b),
                Operator::Divide => Some(a / b),
                Operator::Remainder => None,
            }
            .map(Fact::Double),
            _ => None,
        }
    }

    pub(super) fn negative(&self) -> Option<Self> {
        match self {
            Self::Int(int) => int.checked_neg().map(Self::Int),
            Self::Double(double) => Some(Self::Double(-double)),
            _ => None,
        }
    }

    pub(super) fn size(&self) -> Option<Self> {
        let size = match self {
            Self::Text(text) => text.chars().count(),
            Self::Names(names) => names.len(),
            Self::List(items) => items.len(),
            Self::Labels(labels) => labels.len(),
            Self::Map(entries) => entries.len(),
            _ => return None,
        };
        i64::try_from(size).ok().map(Self::Int)
    }

    /// `other in self`. Keys of maps are texts: keys of other types are absent, and a value that cannot be a key is an
    /// error.
    pub(super) fn contains(&self, other: &Fact<'_>) -> Option<bool> {
        match (self, other) {
            (Self::Names(names), Fact::Text(text)) => Some(names.contains(*text)),
            (Self::Names(_), _) => Some(false),
            (Self::List(items), _) => any(items.iter().map(|item| Fact::from(item).equals(other))),
            (Self::Labels(_) | Self::Map(_), Fact::Text(name)) => self.has(name),
            (Self::Labels(_) | Self::Map(_), Fact::Int(_) | Fact::UInt(_) | Fact::Double(_) | Fact::Bool(_)) => Some(false),
            _ => None,
        }
    }

    /// `has(self.name)`.
    pub(super) fn has(&self, name: &str) -> Option<bool> {
        match self {
            Self::Labels(labels) => Some(labels.contains_key(name)),
            Self::Map(entries) => Some(entries.get(name).is_some()),
            _ => None,
        }
    }
}

/// True as soon as one is true, even if others are unknown; false if all are false.
pub(super) fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(false);
    for truth in truths {
        match truth {
            Some(true) => return truth,
            Some(false) => {}
            None => known = None,
        }
    }
    known
}

/// False as soon as one is false, even if others are unknown; true if all are true.
pub(super) fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(truths.map(|truth| truth.map(|truth| !truth))).map(|truth| !truth)
}
