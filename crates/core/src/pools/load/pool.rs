//! Reads one pool of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{CONCURRENT_MAX, DispatchMode, Overload, Pool, keys};
use super::by_tenant;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::{YamlEntry, YamlNode};
use crate::ids::{NAME_BYTES_MAX, PoolName};
use crate::limits::VALUE_BYTES_MAX;

pub(super) fn read(entry: &YamlEntry, report: &mut ConfigReport) -> Option<Pool> {
    let name = read::name(&entry.key, "pool", entry.at, report);
    if entry.value.is_null() {
        report.refuse(entry.at, format!("pool {0:?} says nothing; write \"{0}: {{}}\" for the defaults", entry.key));
        return None;
    }
    let fields = Fields::of(&entry.value, &keys::POOL, report)?;
    let modes = DispatchMode::ALL.map(|mode| (mode.as_str(), mode));
    let dispatch = fields.get("dispatch").and_then(|node| read::choice(node, "dispatch", &modes, report));
    let dispatch = dispatch.unwrap_or_default();
    let mut count = |key: &str| fields.get(key).and_then(|node| read::count(node, key, CONCURRENT_MAX, report));
    let (max_concurrent, tenant_max_concurrent) = (count("max_concurrent"), count("tenant_max_concurrent"));
    let description = fields.get("description").and_then(|node| read::text(node, "description", report));
    let tenants = fields.get("tenants").map(|node| by_tenant(node, "tenants", CONCURRENT_MAX, report));
    Some(Pool {
        description: description.map(Arc::from),
        dispatch,
        capabilities: fields.get("capabilities").map(|node| capabilities(node, report)).unwrap_or_default(),
        labels: fields.get("labels").map(|node| labels(node, report)).unwrap_or_default(),
        max_concurrent,
        tenant_max_concurrent,
        tenants: tenants.unwrap_or_default(),
        overload: overload(fields.get("overload"), dispatch, report),
        ..Pool::named(PoolName::from(name?))
    })
}

fn capabilities(node: &YamlNode, report: &mut ConfigReport) -> BTreeSet<Arc<str>> {
    let texts = read::texts(node, "capabilities", report).unwrap_or_default();
    read::distinct(&texts, "capabilities", report);
    texts.into_iter().filter_map(|(text, at)| read::name(text, "capability", at, report)).map(Arc::from).collect()
}

/// Labels are not names: like labels of jobs and workers they may contain any visible character.
fn labels(node: &YamlNode, report: &mut ConfigReport) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut labels = BTreeMap::new();
    for entry in read::some_entries(node, "labels", report).unwrap_or_default() {
        let name = &entry.key;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            let message = format!("label {name:?} must have 1 to {NAME_BYTES_MAX} bytes and no control characters");
            report.refuse(entry.at, message);
        }
        let Some(value) = read::text(&entry.value, &format!("label {name:?}"), report) else { continue };
        if value.len() > VALUE_BYTES_MAX {
            report.refuse(entry.value.at, format!("label {name:?} must be at most {VALUE_BYTES_MAX} bytes long"));
        }
        labels.insert(name.as_str().into(), value.into());
    }
    labels
}

/// A setting that is left out keeps the default of the dispatch mode.
fn overload(node: Option<&YamlNode>, dispatch: DispatchMode, report: &mut ConfigReport) -> Overload {
    let default = match dispatch {
        DispatchMode::Queue => Overload::QUEUE,
        DispatchMode::Direct => Overload::DIRECT,
    };
    let Some(node) = node else { return default };
    let some = read::some_entries(node, "overload", report);
    let Some(fields) = some.and_then(|_| Fields::of(node, &keys::OVERLOAD, report)) else { return default };
    let mut percent = |key: &str, default: Option<u32>| match fields.get(key) {
        Some(node) => read::count(node, key, 100, report),
        None => default,
    };
    Overload {
        claims_last: default.claims_last,
        active_percent: percent("active", default.active_percent),
        cpu_percent: percent("cpu", default.cpu_percent),
        gpu_percent: percent("gpu", default.gpu_percent),
    }
}
