//! Bounds: the weakest requirement of a condition on a number. Of many conditions that compare one value in one direction,
//! the weakest bound decides whether any can hold.

use std::cmp::Ordering;

use super::{Comparison, Fact, Predicate, PredicateScratch, ScratchSlot, Term};

/// Bounds that can be compared with each other: on one value, in one direction, with numbers of one type. Comparing numbers
/// of different types is inexact, so those are kept apart.
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
    /// Whether every number that meets the other bound meets this one. Both must be of one kind.
    pub(in crate::policy) fn is_weaker_than(&self, other: &Self) -> bool {
        let weaker = match self.kind.order {
            Comparison::Greater | Comparison::NotLess => Ordering::Less,
            Comparison::Less | Comparison::NotGreater => Ordering::Greater,
        };
        self.number.order(&other.number) == Some(weaker)
    }
}

impl Predicate {
    /// A bound without which the condition is false.
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

    /// Whether the number is present and does not meet the bound. An absent number decides nothing.
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
