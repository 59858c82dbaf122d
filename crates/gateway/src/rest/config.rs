//! The files that configure where jobs run, for how long, and how many are let in: looked at, put in force, taken back. Policies, which have
//! routes of their own, go through the same steps.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use http::StatusCode;
use http::request::Parts;
use lockgate_api::body::{ConfigBody, RollbackBody};
use lockgate_api::view::{Activated, Config, ConfigKindName, Configs};
use lockgate_core::request::Caller;
use lockgate_engine::{Activated as EngineActivated, ConfigText};
use lockgate_ports::SnapshotKind;
use lockgate_proto::v1;
use serde::Deserialize;

use super::body::{Sent, YamlOrJson};
use super::problem::Problem;
use super::query::{ConfigParams, Params};
use super::{CallerExtractor, RouteResult};
use crate::configs::ConfigVersion;
use crate::{ServiceContext, configs, wire};

/// What a path under `/v1/config` names.
pub(super) struct ConfigPath {
    kind: SnapshotKind,
    /// The text, where the path goes on to one.
    id: String,
}

#[derive(Deserialize)]
struct Segments {
    kind: String,
    #[serde(default)]
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ConfigPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> RouteResult<Self> {
        let path = Path::<Segments>::from_request_parts(parts, state).await;
        let Path(Segments { kind, id }) =
            path.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "invalid_argument", error))?;
        match [SnapshotKind::Pools, SnapshotKind::Timeouts, SnapshotKind::Quotas]
            .into_iter()
            .find(|known| known.as_str() == kind)
        {
            Some(kind) => Ok(Self { kind, id }),
            None => {
                let detail = format!("there is no configuration {kind:?}; there are pools, timeouts and quotas");
                Err(Problem::new(StatusCode::NOT_FOUND, "not_found", detail))
            }
        }
    }
}

/// Return the pools, timeouts or quotas in force.
#[utoipa::path(get, path = "/v1/config/{kind}", operation_id = "get_config",
    params(("kind" = inline(ConfigKindName), Path, description = "Which of the files")),
    responses((status = 200, description = "The file in force", body = Config)))]
pub(super) async fn get(State(shared): State<ServiceContext>, path: ConfigPath) -> RouteResult<Json<Config>> {
    Ok(Json(view(configs::in_force(&shared.engine, path.kind).await?)))
}

/// Check pools, timeouts or quotas and put them in force. Answers once no process dispatches by earlier ones any more.
///
/// Either the file itself, or a JSON object with its text. A file with faults is refused with all of them, and the one in
/// force stays.
#[utoipa::path(put, path = "/v1/config/{kind}", operation_id = "put_config",
    params(("kind" = inline(ConfigKindName), Path, description = "Which of the files"), ConfigParams),
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (ConfigBody = "application/json"))),
    responses((status = 200, description = "What is in force now", body = Activated)))]
pub(super) async fn put(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    path: ConfigPath,
    Params(params): Params<ConfigParams>,
    sent: YamlOrJson<ConfigBody>,
) -> RouteResult<Json<Activated>> {
    activate(&shared, &caller, path.kind, text(path.kind, params, sent)?).await
}

/// Put earlier pools, timeouts or quotas in force again.
#[utoipa::path(post, path = "/v1/config/{kind}/rollback", operation_id = "roll_back_config",
    params(("kind" = inline(ConfigKindName), Path, description = "Which of the files")), request_body = RollbackBody,
    responses((status = 200, description = "What is in force now", body = Activated)))]
pub(super) async fn roll_back(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    path: ConfigPath,
    Sent(body): Sent<RollbackBody>,
) -> RouteResult<Json<Activated>> {
    take_back(&shared, &caller, path.kind, &body).await
}

/// List pools, timeouts or quotas that are or were in force, the latest activation first.
#[utoipa::path(get, path = "/v1/config/{kind}/snapshots", operation_id = "list_config_snapshots",
    params(("kind" = inline(ConfigKindName), Path, description = "Which of the files")),
    responses((status = 200, description = "The files that are or were in force", body = Configs)))]
pub(super) async fn snapshots(State(shared): State<ServiceContext>, path: ConfigPath) -> RouteResult<Json<Configs>> {
    let configs = configs::all(&shared.engine, path.kind).await?.into_iter().map(view).collect();
    Ok(Json(Configs { configs }))
}

/// Return pools, timeouts or quotas that were once in force, with their text.
#[utoipa::path(get, path = "/v1/config/{kind}/snapshots/{id}", operation_id = "get_config_snapshot",
    params(("kind" = inline(ConfigKindName), Path, description = "Which of the files"), ("id" = String, Path)),
    responses((status = 200, description = "The file", body = Config)))]
pub(super) async fn snapshot(State(shared): State<ServiceContext>, path: ConfigPath) -> RouteResult<Json<Config>> {
    find(&shared, path.kind, &path.id).await
}

/// The text that was sent, in either form. What the JSON object says beside it wins over the query.
pub(super) fn text(kind: SnapshotKind, params: ConfigParams, sent: YamlOrJson<ConfigBody>) -> RouteResult<ConfigText> {
    let (file, expected) = params.read()?;
    let named = |file: Option<String>| file.unwrap_or_else(|| configs::file_name(kind));
    Ok(match sent {
        YamlOrJson::Yaml(text) => ConfigText { file: named(file), text, expected },
        YamlOrJson::Json(body) => {
            ConfigText { file: named(body.file.or(file)), text: body.text, expected: body.expected_version.or(expected) }
        }
    })
}

pub(super) async fn activate(
    shared: &ServiceContext,
    caller: &Caller,
    kind: SnapshotKind,
    new: ConfigText,
) -> RouteResult<Json<Activated>> {
    Ok(Json(activated(kind, shared.engine.activate_config(caller, kind, new).await?)))
}

pub(super) async fn take_back(
    shared: &ServiceContext,
    caller: &Caller,
    kind: SnapshotKind,
    body: &RollbackBody,
) -> RouteResult<Json<Activated>> {
    let taken_back = shared.engine.roll_back_config(caller, kind, &body.snapshot, body.expected_version).await?;
    Ok(Json(activated(kind, taken_back)))
}

pub(super) async fn find(shared: &ServiceContext, kind: SnapshotKind, id: &str) -> RouteResult<Json<Config>> {
    Ok(Json(view(configs::snapshot(&shared.engine, kind, id).await?)))
}

/// One view for all kinds, policies among them.
pub(super) fn view(known: ConfigVersion) -> Config {
    v1::Config::from(known).into()
}

fn activated(kind: SnapshotKind, activated: EngineActivated) -> Activated {
    if kind == SnapshotKind::Policy { wire::activated_policy(activated).into() } else { wire::activated(activated).into() }
}
