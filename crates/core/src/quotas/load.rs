//! Loads quotas from the text of `quotas.yaml`, or reports every error in it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Ceilings, Quota, Quotas, keys};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigError, ConfigReport, snapshot};
use crate::ids::{PoolName, TenantId};
use crate::lane::Priority;
use crate::limits::{PAYLOAD_BYTES_MAX, SPAN_MS_MAX};
use crate::rate::Rate;

/// A shorter wait would be below the resolution with which the pace of a pool is measured.
const WAIT_MS: RangeInclusive<u64> = 1_000..=SPAN_MS_MAX;
const COUNT: RangeInclusive<u64> = 0..=1_000_000_000_000;
const BYTES: RangeInclusive<u64> = 0..=1 << 60;

impl Quotas {
    /// Reads a quotas file. `file` is its name in error messages.
    pub fn load(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        let mut report = ConfigReport::new(file);
        let quotas = yaml::parse(text, &mut report).and_then(|root| read_quotas(&root, text, &mut report));
        match quotas {
            Some(quotas) if report.is_clean() => Ok(quotas),
            _ => Err(report.into_errors()),
        }
    }
}

fn read_quotas(root: &YamlNode, text: &str, report: &mut ConfigReport) -> Option<Quotas> {
    read::some_entries(root, keys::FILE.name, report)?;
    let fields = Fields::of(root, &keys::FILE, report)?;
    let defaults = fields.get("defaults").and_then(|node| quota(node, "defaults", Quota::default(), report));
    let defaults = defaults.unwrap_or_default();
    let tenants = fields.get("tenants").map(|node| tenants(node, defaults, report)).unwrap_or_default();
    let ceilings = fields.get("ceilings").and_then(|node| ceilings(node, report)).unwrap_or_default();
    Some(Quotas { snapshot: snapshot("quotas", text), defaults, tenants, ceilings })
}

fn tenants(node: &YamlNode, defaults: Quota, report: &mut ConfigReport) -> BTreeMap<TenantId, Quota> {
    let mut tenants = BTreeMap::new();
    for entry in read::some_entries(node, "tenants", report).unwrap_or_default() {
        let name = read::name(&entry.key, "tenant", entry.at, report);
        let quota = quota(&entry.value, &format!("the entry of {:?}", entry.key), defaults, report);
        if let (Some(name), Some(quota)) = (name, quota) {
            tenants.insert(TenantId::from(name), quota);
        }
    }
    tenants
}

/// A setting that is left out keeps the value of `otherwise`.
fn quota(node: &YamlNode, name: &str, otherwise: Quota, report: &mut ConfigReport) -> Option<Quota> {
    read::some_entries(node, name, report)?;
    let fields = Fields::of(node, &keys::QUOTA, report)?;
    let mut rate = |key: &str| fields.get(key).and_then(|node| Rate::read(node, key, report));
    let (submit_rate, actor_rate) = (rate("submit_rate"), rate("actor_rate"));
    let mut count = |key: &str| fields.get(key).and_then(|node| read::whole(node, key, COUNT, report));
    let (jobs, runs) = (count("jobs"), count("runs"));
    let payload = fields.get("payload_bytes");
    let payload_bytes = payload.and_then(|node| read::bytes(node, "payload_bytes", 2..=PAYLOAD_BYTES_MAX as u64, report));
    let stored_bytes = fields.get("stored_bytes").and_then(|node| read::bytes(node, "stored_bytes", BYTES, report));
    Some(Quota {
        submit_rate: submit_rate.or(otherwise.submit_rate),
        actor_rate: actor_rate.or(otherwise.actor_rate),
        jobs: jobs.or(otherwise.jobs),
        runs: runs.or(otherwise.runs),
        payload_bytes: payload_bytes.or(otherwise.payload_bytes),
        stored_bytes: stored_bytes.or(otherwise.stored_bytes),
    })
}

fn ceilings(node: &YamlNode, report: &mut ConfigReport) -> Option<Ceilings> {
    read::some_entries(node, "ceilings", report)?;
    let fields = Fields::of(node, &keys::CEILINGS, report)?;
    let builtin = Ceilings::default();
    let jobs = fields.get("jobs").and_then(|node| read::whole(node, "jobs", COUNT, report));
    let wait = fields.get("wait").and_then(|node| read::span(node, "wait", WAIT_MS, report));
    let mut pools = BTreeMap::new();
    for entry in fields.get("pools").and_then(|node| read::some_entries(node, "pools", report)).unwrap_or_default() {
        let name = read::name(&entry.key, "pool", entry.at, report);
        let most = read::whole(&entry.value, &format!("the ceiling of {:?}", entry.key), COUNT, report);
        if let (Some(name), Some(most)) = (name, most) {
            pools.insert(PoolName::from(name), most);
        }
    }
    let shares = fields.get("shares").and_then(|node| shares(node, report)).unwrap_or(builtin.shares);
    Some(Ceilings { jobs: jobs.or(builtin.jobs), wait: wait.map(Duration::from_millis), pools, shares })
}

fn shares(node: &YamlNode, report: &mut ConfigReport) -> Option<[u8; 4]> {
    read::some_entries(node, "shares", report)?;
    let fields = Fields::of(node, &keys::SHARES, report)?;
    let mut shares = Ceilings::default().shares;
    for priority in Priority::ALL {
        let key = priority.as_str();
        let share = fields.get(key).and_then(|node| read::whole(node, key, 0..=100, report));
        if let Some(share) = share.and_then(|share| u8::try_from(share).ok()) {
            shares[priority as usize] = share;
        }
    }
    // Otherwise less urgent jobs would be admitted where more urgent ones are refused.
    if shares.windows(2).any(|pair| pair[0] < pair[1]) {
        report.refuse(node.at, "shares must not grow from critical over high and default to low");
    }
    Some(shares)
}
