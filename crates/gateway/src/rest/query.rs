//! Query parameters: unknown ones are refused, and every bad one is named.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use lockgate_api::view::{JobStateName, LanePriorityName, RunStateName, SoughtReasonName};
use lockgate_core::ids::TenantId;
use lockgate_core::request::{Caller, FieldError};
use lockgate_engine::LaneView;
use lockgate_ports::{Cursor, DeadLetterQuery, JobQuery, RunQuery};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::RouteResult;
use super::problem::Problem;
use crate::queries::{self, PAGE_DEFAULT, parsed};

/// Parameters of a list. The texts are read by the route, so that all errors are told at once.
pub(super) struct Params<T>(pub(super) T);

/// Which parameters may be given more than once.
pub(super) trait Repeated {
    const NAMES: &'static [&'static str];
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JobParams {
    #[param(value_type = Option<JobStateName>)]
    state: Option<String>,
    topic: Option<String>,
    /// The caller's when absent; * for all.
    tenant: Option<String>,
    /// A label the job must have, as name=value; `safety_bypassed=true` and other labels of the platform too. May be repeated.
    label: Vec<String>,
    /// Only children of this job.
    parent: Option<String>,
    /// Only jobs of this trace.
    trace: Option<String>,
    /// Most jobs of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeadLetterParams {
    topic: Option<String>,
    #[param(value_type = Option<LanePriorityName>)]
    priority: Option<String>,
    /// A reason code such as fatal or agent_lost.
    #[param(value_type = Option<SoughtReasonName>)]
    reason: Option<String>,
    /// The caller's when absent; * for all.
    tenant: Option<String>,
    /// A label the job must have, as name=value. May be repeated.
    label: Vec<String>,
    /// true: only those that were discarded; their pages can be shorter than the limit, or empty, and go on. Else only open ones.
    #[param(value_type = Option<bool>)]
    discarded: Option<String>,
    /// Most dead letters of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunParams {
    /// Runs of this DAG; with `sagas` the workflow_id.
    dag: Option<String>,
    /// Workflows of plain jobs instead of runs of DAGs.
    #[param(value_type = Option<bool>)]
    sagas: Option<String>,
    #[param(value_type = Option<RunStateName>)]
    state: Option<String>,
    /// Most runs of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DagParams {
    /// The latest when absent.
    #[param(value_type = Option<u32>)]
    version: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
    /// Number of the last event already seen; the header `Last-Event-ID` wins.
    #[param(value_type = Option<u64>, maximum = 9223372036854775807_i64)]
    pub(super) after: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct QueueParams {
    /// Only the queues of this tenant; all when absent or *. The totals are those of all tenants.
    tenant: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WorkerParams {
    /// A label the worker must have, as name=value. May be repeated.
    label: Vec<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParams {
    /// Most questions of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditParams {
    /// Number of the last row already seen.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// Most rows looked at for the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConfigParams {
    /// Named in errors.
    file: Option<String>,
    /// Refused unless this version is in force.
    #[param(value_type = Option<u64>)]
    expected_version: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TenantParams {
    /// Names after this one.
    after: Option<String>,
    /// Most tenants of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl Repeated for TenantParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for PageParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for AuditParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for ConfigParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for JobParams {
    const NAMES: &'static [&'static str] = &["label"];
}

impl Repeated for DeadLetterParams {
    const NAMES: &'static [&'static str] = &["label"];
}

impl Repeated for RunParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for DagParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for EventParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for QueueParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for NameParams {
    const NAMES: &'static [&'static str] = &[];
}

impl Repeated for WorkerParams {
    const NAMES: &'static [&'static str] = &["label"];
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NameParams {
    /// `next_after` of the page before.
    after: Option<String>,
    /// Most entries of the page, 1 to 1000; 50 when absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl NameParams {
    pub(super) fn page(self) -> Result<(Option<String>, usize), Vec<FieldError>> {
        let mut errors = Vec::new();
        let limit = limit(self.limit.as_deref(), &mut errors);
        if errors.is_empty() { Ok((self.after, limit)) } else { Err(errors) }
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Repeated> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> RouteResult<Self> {
        let refuse = |message: &dyn std::fmt::Display| Problem::from(vec![FieldError::new("query", message)]);
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|error| refuse(&error))?;
        let mut map = Map::new();
        for (name, value) in pairs.0 {
            if T::NAMES.contains(&name.as_str()) {
                let values = map.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                values.as_array_mut().into_iter().for_each(|values| values.push(Value::String(value.clone())));
            } else if map.insert(name.clone(), Value::String(value)).is_some() {
                return Err(vec![FieldError::new(name, "must be given once")].into());
            }
        }
        serde_json::from_value(Value::Object(map)).map(Self).map_err(|error| refuse(&error))
    }
}

impl JobParams {
    pub(super) fn query(self, caller: &Caller) -> Result<JobQuery, Vec<FieldError>> {
        let mut errors = Vec::new();
        let query = JobQuery {
            tenant: tenant(self.tenant, caller),
            state: read(self.state.as_deref(), &mut errors, |text| parsed("state", text)),
            labels: labels(&self.label, &mut errors),
            cursor: read(self.cursor.as_deref(), &mut errors, queries::cursor).flatten(),
            limit: limit(self.limit.as_deref(), &mut errors),
            topic: self.topic.map(Into::into),
            parent: self.parent.map(Into::into),
            trace_id: self.trace.map(Into::into),
            discarded: false,
        };
        if errors.is_empty() { Ok(query) } else { Err(errors) }
    }
}

impl DeadLetterParams {
    /// And whether those are asked for that were discarded.
    pub(super) fn query(self, caller: &Caller) -> Result<(DeadLetterQuery, bool), Vec<FieldError>> {
        let mut errors = Vec::new();
        let discarded = read(self.discarded.as_deref(), &mut errors, |text| parsed("discarded", text)).unwrap_or(false);
        let query = DeadLetterQuery {
            tenant: tenant(self.tenant, caller),
            priority: read(self.priority.as_deref(), &mut errors, |text| parsed("priority", text)),
            reason: read(self.reason.as_deref(), &mut errors, queries::reason),
            labels: labels(&self.label, &mut errors),
            cursor: read(self.cursor.as_deref(), &mut errors, queries::cursor).flatten(),
            limit: limit(self.limit.as_deref(), &mut errors),
            topic: self.topic.map(Into::into),
        };
        if errors.is_empty() { Ok((query, discarded)) } else { Err(errors) }
    }
}

impl RunParams {
    pub(super) fn query(self, caller: &Caller) -> Result<RunQuery, Vec<FieldError>> {
        let mut errors = Vec::new();
        let query = RunQuery {
            tenant: Some(caller.tenant.clone()),
            dag: self.dag.map(Into::into),
            state: read(self.state.as_deref(), &mut errors, |text| parsed("state", text)),
            sagas: Some(read(self.sagas.as_deref(), &mut errors, |text| parsed("sagas", text)).unwrap_or(false)),
            cursor: read(self.cursor.as_deref(), &mut errors, queries::cursor).flatten(),
            limit: limit(self.limit.as_deref(), &mut errors),
        };
        if errors.is_empty() { Ok(query) } else { Err(errors) }
    }
}

impl DagParams {
    pub(super) fn version(&self) -> Result<Option<u32>, Vec<FieldError>> {
        let mut errors = Vec::new();
        let version = read(self.version.as_deref(), &mut errors, |text| parsed("version", text));
        if errors.is_empty() { Ok(version) } else { Err(errors) }
    }
}

impl PageParams {
    pub(super) fn page(&self) -> Result<(Option<Cursor>, usize), Vec<FieldError>> {
        let mut errors = Vec::new();
        let cursor = read(self.cursor.as_deref(), &mut errors, queries::cursor).flatten();
        let limit = limit(self.limit.as_deref(), &mut errors);
        if errors.is_empty() { Ok((cursor, limit)) } else { Err(errors) }
    }
}

impl AuditParams {
    pub(super) fn page(&self) -> Result<(i64, usize), Vec<FieldError>> {
        let mut errors = Vec::new();
        let after = read(self.after.as_deref(), &mut errors, |text| parsed("after", text)).unwrap_or(0);
        let limit = limit(self.limit.as_deref(), &mut errors);
        if errors.is_empty() { Ok((after, limit)) } else { Err(errors) }
    }
}

impl TenantParams {
    pub(super) fn read(self) -> Result<(Option<TenantId>, usize), Vec<FieldError>> {
        let mut errors = Vec::new();
        let limit = limit(self.limit.as_deref(), &mut errors);
        if errors.is_empty() { Ok((self.after.map(TenantId::from), limit)) } else { Err(errors) }
    }
}

impl ConfigParams {
    /// The file's name, and the version that must be in force.
    pub(super) fn read(self) -> Result<(Option<String>, Option<u64>), Vec<FieldError>> {
        let mut errors = Vec::new();
        let expected = read(self.expected_version.as_deref(), &mut errors, |text| parsed("expected_version", text));
        if errors.is_empty() { Ok((self.file, expected)) } else { Err(errors) }
    }
}

impl QueueParams {
    pub(super) fn wants(&self, view: &LaneView) -> bool {
        self.tenant.as_deref().is_none_or(|tenant| tenant == "*" || tenant == view.lane.tenant.as_str())
    }
}

impl WorkerParams {
    pub(super) fn labels(&self) -> Result<Vec<(String, String)>, Vec<FieldError>> {
        let mut errors = Vec::new();
        let labels = labels(&self.label, &mut errors);
        if errors.is_empty() { Ok(labels) } else { Err(errors) }
    }
}

/// None is every tenant.
fn tenant(named: Option<String>, caller: &Caller) -> Option<TenantId> {
    match named {
        None => Some(caller.tenant.clone()),
        Some(all) if all == "*" => None,
        Some(name) => Some(name.into()),
    }
}

fn limit(text: Option<&str>, errors: &mut Vec<FieldError>) -> usize {
    read(text, errors, |text| parsed("limit", text)).unwrap_or(PAGE_DEFAULT) as usize
}

/// A label has one value: two of them would find nothing, and one of them silently too much.
fn labels<T: FromIterator<(String, String)>>(texts: &[String], errors: &mut Vec<FieldError>) -> T {
    let mut labels = BTreeMap::new();
    for text in texts {
        let Some((name, value)) = note(label(text), errors) else { continue };
        if labels.get(&name).is_some_and(|known| *known != value) {
            errors.push(FieldError::new("label", format!("{name:?} is given twice")));
        }
        labels.insert(name, value);
    }
    labels.into_iter().collect()
}

fn label(text: &str) -> Result<(String, String), FieldError> {
    let (name, value) = text.split_once('=').ok_or_else(|| FieldError::new("label", "must be name=value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn read<T>(
    text: Option<&str>,
    errors: &mut Vec<FieldError>,
    parse: impl FnOnce(&str) -> Result<T, FieldError>,
) -> Option<T> {
    note(parse(text?), errors)
}

fn note<T>(result: Result<T, FieldError>, errors: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}
