//! Limits on how many jobs run at once and how fast they start.

use std::sync::Arc;

use super::Pools;
use crate::glob::Glob;
use crate::lane::LaneKey;
use crate::rate::Rate;

/// A limit as configured: for the topics that it names, one count for each value of what it is counted per.
#[derive(Clone, Debug)]
pub struct LimitRule {
    pub name: Arc<str>,
    pub(super) topics: Vec<Glob>,
    pub per: Vec<Per>,
    pub max_concurrent: Option<u32>,
    pub rate: Option<Rate>,
}

/// What a limit is counted per.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    Tenant,
    Topic,
    /// The job's concurrency key. The limit does not apply to jobs without one.
    Key,
}

impl Per {
    pub const ALL: [Self; 3] = [Self::Tenant, Self::Topic, Self::Key];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Topic => "topic",
            Self::Key => "key",
        }
    }
}

/// A limit as it applies to one lane. Lanes with equal keys share the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub key: Arc<str>,
    /// The most attempts at once.
    pub max: Option<u32>,
    pub rate: Option<Rate>,
}

impl Pools {
    /// Every limit that a job of this lane must pass, whichever worker takes it.
    pub fn limits(&self, lane: &LaneKey) -> Vec<Limit> {
        let mut limits = Vec::new();
        self.tenant_limit(lane, &mut limits);
        self.policy_limit(lane, &mut limits);
        limits.extend(self.limits.iter().filter_map(|rule| rule.on(lane)));
        limits
    }

    fn tenant_limit(&self, lane: &LaneKey, limits: &mut Vec<Limit>) {
        let Ok(route) = self.route(&lane.shape) else { return };
        let Some(pool) = self.pool(route.first()) else { return };
        if let Some(max) = pool.tenants.get(&lane.tenant).copied().or(pool.tenant_max_concurrent) {
            let key = format!("tenant/{}/{}", pool.name, lane.tenant).into();
            limits.push(Limit { key, max: Some(max), rate: None });
        }
    }

    fn policy_limit(&self, lane: &LaneKey, limits: &mut Vec<Limit>) {
        if let Some(max) = lane.shape.max_concurrent {
            let key = format!("policy/{}/{}", lane.tenant, lane.shape.topic).into();
            limits.push(Limit { key, max: Some(max), rate: None });
        }
    }
}

impl LimitRule {
    fn on(&self, lane: &LaneKey) -> Option<Limit> {
        if !self.topics.iter().any(|glob| glob.matches(lane.shape.topic.as_str())) {
            return None;
        }
        let mut key = format!("limit/{}", self.name);
        for per in &self.per {
            key.push('/');
            key.push_str(match per {
                Per::Tenant => lane.tenant.as_str(),
                Per::Topic => lane.shape.topic.as_str(),
                Per::Key => lane.shape.concurrency_key.as_deref()?,
            });
        }
        Some(Limit { key: key.into(), max: self.max_concurrent, rate: self.rate })
    }
}
