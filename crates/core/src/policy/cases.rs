//! Test cases for policies: requests and the verdicts they must get.
//!
//! ```yaml
//! cases:
//!   - name: production deploys need a second person
//!     request: {tenant: acme, topic: job.deploy, labels: {env: prod}}
//!     velocity: {burst: 3}        # what the window of rule "burst" holds; 1 where nothing is said
//!     now: 2030-01-31T12:00:00Z
//!     expect: {decision: require_approval, rule: prod-deploys}
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Policy;
use super::input::time;
use super::keys;
use super::subject::Subject;
use super::velocity::{Velocity, VelocityWindow};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlNode};
use crate::config::{ConfigError, ConfigReport, SourcePosition};
use crate::ids::{JobId, check_name};
use crate::lane::Priority;
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::time::Timestamp;
use crate::verdict::{Decision, Verdict};

/// One request and the verdict that it must get.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// The line of the file where the case begins.
    pub line: usize,
    pub request: JobRequest,
    pub now: Timestamp,
    /// The counts of velocity windows, by rule.
    pub velocity: BTreeMap<String, u64>,
    pub expect: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub decision: Decision,
    /// If absent, any rule may decide.
    pub rule: Option<String>,
}

/// The result of one case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    pub name: String,
    pub line: usize,
    pub expected: Expected,
    pub verdict: Arc<Verdict>,
}

impl CaseOutcome {
    pub fn passed(&self) -> bool {
        let rule = self.expected.rule.as_deref();
        self.verdict.decision == self.expected.decision && rule.is_none_or(|rule| rule == &*self.verdict.rule)
    }
}

/// Evaluates the policy for every case.
pub fn run_cases(policy: &Policy, cases: &[Case]) -> Vec<CaseOutcome> {
    let judge = |case: &Case| CaseOutcome {
        name: case.name.clone(),
        line: case.line,
        expected: case.expect.clone(),
        verdict: policy.evaluate(&Subject::new(&case.request, case.now), &Stated(&case.velocity)),
    };
    cases.iter().map(judge).collect()
}

/// Velocity windows with the counts that a case states.
struct Stated<'a>(&'a BTreeMap<String, u64>);

impl Velocity for Stated<'_> {
    fn count(&self, window: &VelocityWindow<'_>) -> u64 {
        self.0.get(window.rule).copied().unwrap_or(1)
    }
}

/// Reads a file of cases. `file` is its name in error messages.
pub fn load_cases(file: &str, text: &str) -> Result<Vec<Case>, Vec<ConfigError>> {
    let mut report = ConfigReport::new(file);
    let cases = yaml::parse(text, &mut report).and_then(|root| read_cases(&root, &mut report));
    match cases {
        Some(cases) if report.is_clean() => Ok(cases),
        _ => Err(report.into_errors()),
    }
}

fn read_cases(root: &YamlNode, report: &mut ConfigReport) -> Option<Vec<Case>> {
    let fields = Fields::of(root, &keys::CASES, report)?;
    let items = fields.need("cases", report).and_then(|node| read::items(node, "cases", report))?;
    Some(items.iter().filter_map(|item| read_case(item, report)).collect())
}

fn read_case(node: &YamlNode, report: &mut ConfigReport) -> Option<Case> {
    let fields = Fields::of(node, &keys::CASE, report)?;
    let name = fields.need("name", report).and_then(|node| read::text(node, "name", report));
    let request = fields.need("request", report).and_then(|node| read_request(node, report));
    let expect = fields.need("expect", report).and_then(|node| read_expected(node, report));
    let velocity = fields.get("velocity").map_or_else(BTreeMap::new, |node| read_counts(node, report));
    let now = fields.get("now").and_then(|node| time(node, "now", report));
    Some(Case {
        name: name?.to_owned(),
        line: node.at.line,
        request: request?,
        now: now.unwrap_or(Timestamp::ZERO),
        velocity,
        expect: expect?,
    })
}

fn read_counts(node: &YamlNode, report: &mut ConfigReport) -> BTreeMap<String, u64> {
    let entries = read::some_entries(node, "velocity", report).unwrap_or_default();
    let counts = entries.iter().filter_map(|entry| {
        let count = read::whole(&entry.value, &format!("the window of {:?}", entry.key), 1..=u64::MAX, report)?;
        Some((entry.key.clone(), count))
    });
    counts.collect()
}

fn read_expected(node: &YamlNode, report: &mut ConfigReport) -> Option<Expected> {
    let fields = Fields::of(node, &keys::EXPECT, report)?;
    let decision =
        fields.need("decision", report).and_then(|node| read::choice(node, "decision", &Decision::words(), report));
    let rule = fields.get("rule").and_then(|node| read::text(node, "rule", report)).map(str::to_owned);
    Some(Expected { decision: decision?, rule })
}

/// A request as a client would send it. Whatever the gateway refuses is refused here too, so that no case tests an
/// impossible request.
fn read_request(node: &YamlNode, report: &mut ConfigReport) -> Option<JobRequest> {
    let fields = Fields::of(node, &keys::REQUEST, report)?;
    let mut text = |key: &str| fields.get(key).and_then(|node| read::text(node, key, report)).map(str::to_owned);
    let (tenant, actor) = (text("tenant"), text("actor"));
    let (topic, capability, actor_type) = (text("topic"), text("capability"), text("actor_type"));
    let mut set = |key: &str| -> BTreeSet<String> {
        let texts = fields.get(key).and_then(|node| read::texts(node, key, report)).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text.to_owned()).collect()
    };
    let (risk_tags, requires) = (set("risk_tags"), set("requires"));
    let priorities = Priority::ALL.map(|priority| (priority.as_str(), priority));
    let new = NewJob {
        topic: topic.unwrap_or_default(),
        payload: fields.get("payload").map(|node| {
            yaml::check_numbers(node, "payload", report);
            Json::trusted(node.to_json().to_string())
        }),
        priority: fields.get("priority").and_then(|node| read::choice(node, "priority", &priorities, report)),
        labels: fields.get("labels").map_or_else(BTreeMap::new, |node| read_labels(node, report)),
        capability,
        risk_tags,
        requires,
        ..NewJob::default()
    };
    let mut caller = Caller::new(tenant.unwrap_or_else(|| "default".into()), actor.unwrap_or_else(|| "anonymous".into()));
    caller.actor_type = actor_type.map(Into::into);
    check_caller(&caller, node.at, report);
    match JobRequest::check(new, &caller, || JobId::from("case")) {
        Ok(request) => Some(request),
        Err(errors) => {
            errors.iter().for_each(|error| report.refuse(node.at, format!("the request could not be submitted: {error}")));
            None
        }
    }
}

fn check_caller(caller: &Caller, at: SourcePosition, report: &mut ConfigReport) {
    for (field, name) in [("tenant", caller.tenant.as_str()), ("actor", caller.actor.as_str())] {
        if let Err(error) = check_name(name) {
            report.refuse(at, format!("the request could not be submitted: {field}: {error}"));
        }
    }
}

fn read_labels(node: &YamlNode, report: &mut ConfigReport) -> BTreeMap<String, String> {
    let entries = read::some_entries(node, "labels", report).unwrap_or_default();
    let labels = entries.iter().filter_map(|entry| {
        let value = read::value(&entry.value, &format!("label {:?}", entry.key), report)?;
        Some((entry.key.clone(), value.to_owned()))
    });
    labels.collect()
}
