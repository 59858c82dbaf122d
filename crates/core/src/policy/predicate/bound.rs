//! The least that a condition asks of a number. Of many that compare the same value the same way, one tells whether any can hold.

use std::cmp::Ordering;

use super::{Comparison, Fact, Predicate, PredicateScratch, ScratchSlot, Term};

/// What can be told together: comparisons of one value, the same way, with numbers of one kind. Of other kinds the order is
/// not exact, so that one would not speak for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct BoundKind {
    slot: ScratchSlot,
    order: Comparison,
    whole: bool,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::policy) struct Bound {
    pub(in crate::policy) kind: BoundKind,
    number: Fact<'static>,
}

impl Bound {
    /// Whatever meets the other meets this one too. Both are of one kind.
    pub(in crate::policy) fn is_weaker_than(&self, other: &Self) -> bool {
        let weaker = match self.kind.order {
            Comparison::Greater | Comparison::NotLess => Ordering::Less,
            Comparison::Less | Comparison::NotGreater => Ordering::Greater,
        };
        self.number.order(&other.number) == Some(weaker)
    }
}

impl Predicate {
    /// The condition is false for every number that does not meet it.
    pub(in crate::policy) fn bound(&self) -> Option<Bound> {
        match self {
            Self::All(parts) => parts.iter().find_map(Self::bound),
            Self::Ordered(term, order, Term::Number(number)) => {
                let slot = term.slot()?;
                let whole = match number {
                    Fact::Int(_) => true,
                    Fact::Double(_) => false,
                    _ => return None,
                };
                Some(Bound { kind: BoundKind { slot, order: *order, whole }, number: *number })
            }
            _ => None,
        }
    }

    /// The number is there and does not meet the bound. If it is not there, nothing is said.
    pub(in crate::policy) fn falls_short(&self, desk: &PredicateScratch<'_, '_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().find(|part| part.bound().is_some()).is_some_and(|part| part.falls_short(desk)),
            _ => self.holds(desk) == Some(false),
        }
    }
}

impl Term {
    fn slot(&self) -> Option<ScratchSlot> {
        match self {
            Self::Label(slot, _) | Self::Payload(slot, _) | Self::Calculated(slot, _) => {
                Some(*slot).filter(|slot| *slot != ScratchSlot::NONE)
            }
            _ => None,
        }
    }
}
