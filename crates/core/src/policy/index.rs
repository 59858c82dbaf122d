//! An index that finds the rules which can match a topic and a tenant without evaluating the others.
//!
//! Rules are kept in buckets by the prefix of their topics, and within a bucket by tenant. A lookup merges the few buckets
//! that apply, in rule order. Rules that compare one number with different bounds form a list of their own: if the weakest
//! bound is not met, the whole list is skipped. A bucket may hold rules that do not match; a rule that could match is never
//! skipped.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::conditions::{Conditions, NameSet};
use super::predicate::{Bound, BoundKind};
use crate::glob::Glob;

type Position = u32;

#[derive(Debug, Default)]
struct TenantLists {
    any_tenant: Lists,
    by_tenant: HashMap<Box<str>, Lists>,
}

/// Positions of rules, in ascending order.
#[derive(Debug, Default)]
struct Lists {
    unbounded: Vec<Position>,
    bounded: BTreeMap<BoundKind, Bounded>,
}

#[derive(Debug)]
struct Bounded {
    /// The rule with the weakest bound of the list.
    weakest: Position,
    bound: Bound,
    positions: Vec<Position>,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    by_topic: HashMap<Box<str>, TenantLists>,
    by_prefix: HashMap<Box<str>, TenantLists>,
    /// The lengths of the prefixes, so that a lookup tries only these.
    prefix_lengths: BTreeSet<usize>,
}

impl Index {
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a Conditions>) -> Self {
        let mut index = Self::default();
        let every = [Glob::everything()];
        for (position, rule) in (0..).zip(rules) {
            let tenants = rule.needed_tenants();
            for topic in rule.needed_topics().as_deref().unwrap_or(&every) {
                index.bucket(topic).add(position, tenants.as_deref(), rule.bound());
            }
        }
        index
    }

    fn bucket(&mut self, topic: &Glob) -> &mut TenantLists {
        match topic {
            Glob::Exact(name) => self.by_topic.entry(name.clone()).or_default(),
            Glob::Prefix(_) | Glob::Pieces(_) => {
                self.prefix_lengths.insert(topic.prefix().len());
                self.by_prefix.entry(topic.prefix().into()).or_default()
            }
        }
    }

    /// Positions of the rules to evaluate, ascending and without duplicates. `falls_short` says whether the bound of a rule
    /// is not met.
    pub(super) fn candidates<'a>(
        &'a self,
        tenant: &str,
        topic: &str,
        falls_short: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = usize> + 'a {
        let prefixes = self.prefix_lengths.iter().filter_map(|length| self.by_prefix.get(topic.get(..*length)?));
        let buckets = self.by_topic.get(topic).into_iter().chain(prefixes);
        let mut lists: Vec<&'a [Position]> = Vec::new();
        for of_bucket in buckets.flat_map(|bucket| bucket.lists(tenant)) {
            lists.extend(Some(of_bucket.unbounded.as_slice()).filter(|list| !list.is_empty()));
            let met = of_bucket.bounded.values().filter(|list| !falls_short(list.weakest as usize));
            lists.extend(met.map(|list| list.positions.as_slice()));
        }
        std::iter::from_fn(move || {
            if let [only] = lists.as_mut_slice() {
                let (first, rest) = only.split_first()?;
                *only = rest;
                return usize::try_from(*first).ok();
            }
            let next = *lists.iter().filter_map(|list| list.first()).min()?;
            for list in &mut lists {
                if let [first, rest @ ..] = list
                    && *first == next
                {
                    *list = rest;
                }
            }
            lists.retain(|list| !list.is_empty());
            usize::try_from(next).ok()
        })
    }
}

impl TenantLists {
    fn add(&mut self, position: Position, tenants: Option<&NameSet>, bound: Option<Bound>) {
        match tenants {
            None => self.any_tenant.add(position, bound),
            Some(tenants) => {
                tenants.iter().for_each(|tenant| self.by_tenant.entry(tenant.clone()).or_default().add(position, bound));
            }
        }
    }

    fn lists(&self, tenant: &str) -> impl Iterator<Item = &Lists> {
        std::iter::once(&self.any_tenant).chain(self.by_tenant.get(tenant))
    }
}

impl Lists {
    fn add(&mut self, position: Position, bound: Option<Bound>) {
        let list = match bound {
            None => &mut self.unbounded,
            Some(bound) => {
                let fresh = || Bounded { weakest: position, bound, positions: Vec::new() };
                let list = self.bounded.entry(bound.kind).or_insert_with(fresh);
                if bound.is_weaker_than(&list.bound) {
                    (list.weakest, list.bound) = (position, bound);
                }
                &mut list.positions
            }
        };
        // Two topics of one rule may fall into one bucket; the rule must be listed once.
        if list.last() != Some(&position) {
            list.push(position);
        }
    }
}
