//! What `/openapi.json` says about the API as a whole, and about every operation alike.

mod bounds;
mod examples;
mod links;

use lockgate_api::view::{Event, LogLine, Progress};
use serde_json::{Map, Value};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::Server;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ContentBuilder, OpenApi as Api, Ref, RefOr, ResponseBuilder};

use super::problem::Problem;
use crate::auth::service_of;

/// The name of the one security scheme.
const BEARER: &str = "bearer";
/// Services of the gRPC contract, whose methods the operations are, with the tags that group them.
const TAGS: [(&str, &str, &str); 9] = [
    ("Scheduler", "Jobs", "Submit jobs, follow them, stop them; dead letters, queues and workers."),
    ("Orchestrator", "Workflows", "DAGs and their runs."),
    ("Schedules", "Schedules", "What starts at set times."),
    ("Approvals", "Approvals", "Questions that policy asked, their answers, and results that are held back."),
    ("Admin", "Governance", "The policy in force, the audit trail, tenants, circuit breakers."),
    ("SafetyKernel", "Policy", "What the policy would decide."),
    ("Pools", "Pools", "Pools, timeouts, quotas, and who works in them."),
    ("Access", "Access", "Credentials."),
    ("Monitor", "Health", "How this process is."),
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Lockgate",
        description = "Submit jobs, follow them, stop them, replay them; decide what may run and what may come out. A \
                       credential comes as `authorization: Bearer …`, and the tenant in `x-lockgate-tenant` if the \
                       credential is good for several. A server that asks for no credential takes the names it is given: \
                       actor and kind of actor in `x-lockgate-actor` and `x-lockgate-actor-type`. Errors are problem \
                       documents (RFC 9457) with a stable `code`. A stream is a text/event-stream whose frames have an \
                       `id:` to resume from with `Last-Event-ID`, sometimes an `event:`, and a `data:` of one JSON document."
    ),
    components(schemas(Event, LogLine, Progress, Problem))
)]
pub(super) struct Document;

/// Adds what is the same for every operation, so that no route can forget it: the tag, who may call, and how errors look.
/// `asks`: the server takes no call without a credential.
pub(super) fn complete(api: &mut Api, asks: bool) {
    // Relative: wherever the document was read from.
    api.servers = Some(vec![Server::new("/")]);
    let tag = |(_, name, text): &(&str, &str, &str)| TagBuilder::new().name(*name).description(Some(*text)).build();
    api.tags = Some(TAGS.iter().map(tag).collect());
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme(BEARER, scheme);
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let problem = ResponseBuilder::new().description("A problem").content("application/problem+json", problem).build();
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in operations(item) {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem.clone()));
            let service = service_of(method, path);
            let tag = TAGS.iter().find(|(of, ..)| Some(*of) == service).map_or("Health", |(_, tag, _)| tag);
            operation.tags = Some(vec![tag.to_owned()]);
            // A server without `--auth` asks for nothing; probes never need a credential.
            let bearer = service.map(|_| SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []));
            let nothing = (!asks || service.is_none()).then(SecurityRequirement::default);
            operation.security = Some(nothing.into_iter().chain(bearer).collect());
        }
    }
}

/// The document as it is sent, with what is said about many places at once.
pub(super) fn settled(api: &Api) -> Value {
    // Made of texts, numbers, lists and maps with texts for keys.
    let mut document = serde_json::to_value(api).unwrap_or_default();
    bounds::add_to(&mut document);
    examples::add_to(&mut document);
    links::add_to(&mut document);
    document
}

/// Calls `with` for every operation: its id, and all of it.
fn for_each_operation(document: &mut Value, mut with: impl FnMut(&str, &mut Value)) {
    let items = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    for operation in items.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if let Some(id) = operation["operationId"].as_str().map(str::to_owned) {
            with(&id, operation);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let operations = [("GET", &mut item.get), ("POST", &mut item.post), ("PUT", &mut item.put)];
    operations.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
