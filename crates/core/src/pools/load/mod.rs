//! Loads pools from the text of `pools.yaml`, or reports every error in it.

mod fairness;
mod limits;
mod pool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Pool, Pools, keys};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlEntry, YamlNode, YamlValue};
use crate::config::{ConfigError, ConfigReport, SourcePosition, TopicMap, snapshot};
use crate::ids::{PoolName, TenantId};

impl Pools {
    /// Reads a pools file. `file` is its name in error messages.
    pub fn load(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        let mut report = ConfigReport::new(file);
        let pools = yaml::parse(text, &mut report).and_then(|root| read_pools(&root, text, &mut report));
        match pools {
            Some(pools) if report.is_clean() => Ok(pools),
            _ => Err(report.into_errors()),
        }
    }
}

fn read_pools(root: &YamlNode, text: &str, report: &mut ConfigReport) -> Option<Pools> {
    let fields = Fields::of(root, &keys::FILE, report)?;
    let declared = match fields.get("pools") {
        None => Declared::ByTopics,
        Some(node) => read::some_entries(node, "pools", report).map_or(Declared::Unreadable, Declared::Pools),
    };
    let topics = fields.need("topics", report).and_then(|node| topics(node, declared, report));
    let pools: Vec<Pool> = match declared {
        Declared::ByTopics => {
            topics.iter().flat_map(TopicMap::iter).flat_map(|(_, names)| &**names).cloned().map(Pool::named).collect()
        }
        Declared::Unreadable => Vec::new(),
        Declared::Pools(entries) => entries.iter().filter_map(|entry| pool::read(entry, report)).collect(),
    };
    let pools: BTreeMap<_, _> = pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
    let limits = fields.get("limits").map(|node| limits::read(node, report));
    let fairness = fields.get("fairness").and_then(|node| fairness::read(node, report));
    Some(Pools {
        snapshot: snapshot("pools", text),
        pools,
        topics: topics?,
        limits: limits.unwrap_or_default(),
        fairness: fairness.unwrap_or_default(),
    })
}

/// Where the pools of a file are declared.
#[derive(Clone, Copy)]
enum Declared<'a> {
    /// The file has no `pools`: a pool is whatever a topic leads to, with all defaults.
    ByTopics,
    /// `pools` is broken, and was reported. Topics are not held against it: each would be refused for one fault.
    Unreadable,
    Pools(&'a [YamlEntry]),
}

/// Reads the mapping of topics and checks it against the pools that are declared.
fn topics(node: &YamlNode, declared: Declared, report: &mut ConfigReport) -> Option<TopicMap<Arc<[PoolName]>>> {
    let pools = if let Declared::Pools(pools) = declared { pools } else { &[] };
    let known: BTreeSet<&str> = pools.iter().map(|pool| pool.key.as_str()).collect();
    let mut led_to = BTreeSet::new();
    let map = TopicMap::read(node, "topics", report, |entry, report| {
        let names = choices(entry, report)?;
        led_to.extend(names.iter().map(|(name, _)| *name));
        match declared {
            Declared::ByTopics => names.iter().for_each(|(name, at)| {
                read::name(name, "pool", *at, report);
            }),
            Declared::Unreadable => {}
            Declared::Pools(_) => refuse_undeclared(&names, &known, report),
        }
        Some(names.into_iter().map(|(name, _)| PoolName::from(name)).collect())
    })?;
    for pool in pools.iter().filter(|pool| !led_to.contains(pool.key.as_str())) {
        report.refuse(pool.at, format!("no topic leads to pool {:?}; name it under topics or remove it", pool.key));
    }
    Some(map)
}

/// One pool, or several in the order of choice.
fn choices<'a>(entry: &'a YamlEntry, report: &mut ConfigReport) -> Option<Vec<(&'a str, SourcePosition)>> {
    let list = format!("the pools of {:?}", entry.key);
    let node = &entry.value;
    match &node.value {
        YamlValue::Scalar { .. } if !node.is_null() => return Some(vec![(read::text(node, &list, report)?, node.at)]),
        YamlValue::List(_) => {}
        _ => {
            report.refuse(node.at, format!("{list} must be one name or a list of names"));
            return None;
        }
    }
    let names = read::texts(node, &list, report)?;
    read::distinct(&names, &list, report);
    Some(names)
}

fn refuse_undeclared(names: &[(&str, SourcePosition)], declared: &BTreeSet<&str>, report: &mut ConfigReport) {
    for (name, at) in names.iter().filter(|(name, _)| !declared.contains(name)) {
        let message = format!("pool {name:?} is not declared; add it under pools");
        report.unknown(*at, message, name, declared.iter().copied());
    }
}

/// A number for each tenant that is named.
fn by_tenant(node: &YamlNode, name: &str, max: u32, report: &mut ConfigReport) -> BTreeMap<TenantId, u32> {
    let entries = read::some_entries(node, name, report).unwrap_or_default();
    let read = |entry: &YamlEntry| {
        let tenant = read::name(&entry.key, "tenant", entry.at, report);
        let number = read::count(&entry.value, &format!("the number of tenant {:?}", entry.key), max, report);
        Some((TenantId::from(tenant?), number?))
    };
    entries.iter().filter_map(read).collect()
}
