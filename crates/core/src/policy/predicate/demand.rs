//! Demands: the topics and tenants that a condition requires, so that the index can skip its rule for others.

use super::{Field, Predicate, Term, Test};
use crate::glob::Glob;

impl Predicate {
    /// Globs such that the condition is false for every topic that none of them matches.
    pub(in crate::policy) fn topics(&self) -> Option<Vec<Glob>> {
        self.demands(Field::Topic, &|text, whole| Some(if whole { Glob::Exact(text) } else { Glob::Prefix(text) }))
    }

    /// Tenants such that the condition is false for every other tenant.
    pub(in crate::policy) fn tenants(&self) -> Option<Vec<Box<str>>> {
        self.demands(Field::Tenant, &|text, whole| whole.then_some(text))
    }

    /// `as_demand` turns a text that the field must equal or begin with into a demand.
    fn demands<D>(&self, field: Field, as_demand: &dyn Fn(Box<str>, bool) -> Option<D>) -> Option<Vec<D>> {
        let is_field = |term: &Term| matches!(term, Term::Field(found) if *found == field);
        match self {
            Self::All(parts) => parts.iter().find_map(|part| part.demands(field, as_demand)),
            Self::Any(parts) => {
                let parts = parts.iter().map(|part| part.demands(field, as_demand)).collect::<Option<Vec<_>>>();
                parts.map(|parts| parts.into_iter().flatten().collect())
            }
            Self::Equal(term, Term::Text(text)) | Self::Equal(Term::Text(text), term) if is_field(term) => {
                as_demand(text.clone(), true).map(|demand| vec![demand])
            }
            Self::OneOf(term, words) if is_field(term) => words.iter().map(|word| as_demand(word.clone(), true)).collect(),
            Self::Text(term, Test::StartsWith, Term::Text(text)) if is_field(term) => {
                as_demand(text.clone(), false).map(|demand| vec![demand])
            }
            _ => None,
        }
    }
}
