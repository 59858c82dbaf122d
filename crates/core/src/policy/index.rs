//! Finds the rules that can match a topic and a tenant without looking at the others.
//!
//! Rules are kept in buckets by the text their topics begin with, and within a bucket by tenant. A lookup merges the few
//! buckets that fit, in rule order. A bucket may hold rules that do not match; none that could match is left out.

use std::collections::{BTreeSet, HashMap};

use super::conditions::{Conditions, Names};
use crate::glob::Glob;

type Position = u32;

/// Positions in ascending order.
#[derive(Debug, Default)]
struct Bucket {
    any_tenant: Vec<Position>,
    by_tenant: HashMap<Box<str>, Vec<Position>>,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    by_topic: HashMap<Box<str>, Bucket>,
    by_prefix: HashMap<Box<str>, Bucket>,
    /// The lengths of the prefixes, so that a lookup tries only those.
    prefix_lengths: BTreeSet<usize>,
}

impl Index {
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a Conditions>) -> Self {
        let mut index = Self::default();
        let every = [Glob::everything()];
        for (position, rule) in (0..).zip(rules) {
            let tenants = rule.needed_tenants();
            for topic in rule.needed_topics().as_deref().unwrap_or(&every) {
                index.bucket(topic).add(position, tenants.as_deref());
            }
        }
        index
    }

    fn bucket(&mut self, topic: &Glob) -> &mut Bucket {
        match topic {
            Glob::Exact(name) => self.by_topic.entry(name.clone()).or_default(),
            Glob::Prefix(_) | Glob::Pieces(_) => {
                self.prefix_lengths.insert(topic.prefix().len());
                self.by_prefix.entry(topic.prefix().into()).or_default()
            }
        }
    }

    /// Positions of the rules to look at, ascending, each once.
    pub(super) fn candidates<'a>(&'a self, tenant: &str, topic: &str) -> impl Iterator<Item = usize> + 'a {
        let prefixes = self.prefix_lengths.iter().filter_map(|length| self.by_prefix.get(topic.get(..*length)?));
        let buckets = self.by_topic.get(topic).into_iter().chain(prefixes);
        let mut lists: Vec<&'a [Position]> = buckets.flat_map(|bucket| bucket.lists(tenant)).collect();
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

impl Bucket {
    fn add(&mut self, position: Position, tenants: Option<&Names>) {
        let push = |list: &mut Vec<Position>| {
            // Two topics of one rule may share a bucket.
            if list.last() != Some(&position) {
                list.push(position);
            }
        };
        match tenants {
            None => push(&mut self.any_tenant),
            Some(tenants) => tenants.iter().for_each(|tenant| push(self.by_tenant.entry(tenant.clone()).or_default())),
        }
    }

    fn lists(&self, tenant: &str) -> impl Iterator<Item = &[Position]> {
        let own = self.by_tenant.get(tenant).map(Vec::as_slice);
        [self.any_tenant.as_slice(), own.unwrap_or_default()].into_iter().filter(|list| !list.is_empty())
    }
}
