//! The page for people: whole, alone, and asking only for what there is.

use std::collections::{BTreeMap, BTreeSet};

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use lockgate_gateway::GatewaySettings;
use regex::Regex;

use crate::support::{Closed, Server};

/// Every file of the dashboard by its path, found as a browser finds them.
async fn files(server: &Server) -> BTreeMap<String, String> {
    let names = Regex::new(r##"(?:src|href|from)[= ]"([^"#]+)""##).expect("an expression");
    let mut found = BTreeMap::new();
    let mut wanted = vec!["/".to_owned()];
    while let Some(path) = wanted.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let reply = server.get(&path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.headers[CONTENT_SECURITY_POLICY].to_str().expect("text").contains("default-src 'none'"), "{path}");
        let kind = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            Some("svg") => "image/svg+xml",
            _ => "text/html",
        };
        assert!(reply.headers[CONTENT_TYPE].to_str().expect("text").starts_with(kind), "{path}");
        wanted.extend(names.captures_iter(&reply.text).map(|name| beside(&path, &name[1])));
        found.insert(path, reply.text);
    }
    found
}

/// Where a name leads that stands in the file at `path`.
fn beside(path: &str, name: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if name.starts_with('/') {
        return name.to_owned();
    }
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[tokio::test]
async fn the_page_and_everything_it_names_are_served_and_nothing_foreign_is_named() {
    let server = Server::start().await;
    let files = files(&server).await;
    assert!(files.len() > 15 && files.contains_key("/ui/views/overview.js"), "{:?}", files.keys());
    for (path, text) in &files {
        let foreign = text.replace("http://www.w3.org/", "");
        assert!(!foreign.contains("://") && !text.contains("innerHTML"), "{path}");
    }
}

#[tokio::test]
async fn the_page_asks_only_for_routes_that_there_are() {
    let server = Server::start().await;
    let described = server.get("/openapi.json").await;
    let holes = Regex::new(r"\$?\{[^}]*\}").expect("an expression");
    let known: BTreeSet<String> =
        described.json["paths"].as_object().expect("paths").keys().map(|path| holes.replace_all(path, "*").into()).collect();
    let asked = Regex::new(r#"["`](/(?:v1|monitor)/[^"`?]*|\$\{path\}[^"`?]*)"#).expect("an expression");
    let named = Regex::new(r"const path = `([^`]+)`").expect("an expression");
    let mut calls = 0;
    for (file, text) in files(&server).await {
        let own = named.captures(&text).map_or_else(String::new, |own| own[1].to_owned());
        for call in asked.captures_iter(&named.replace_all(&text, "")) {
            let path = call[1].replace("${path}", &own);
            let path = holes.replace_all(&path, "*").into_owned();
            assert!(known.contains(&path), "{file} asks for {path}");
            calls += 1;
        }
    }
    assert!(calls > 25, "only {calls} were looked at");
}

#[tokio::test]
async fn a_server_without_a_dashboard_has_no_page() {
    let server = Server::start_with(GatewaySettings { dashboard: false, ..GatewaySettings::default() }).await;
    server.get("/").await.is_problem(404, "no_such_route");
    server.get("/ui/app.js").await.is_problem(404, "no_such_route");
}

/// What the pages that serve a credential of one tenant ask for.
#[tokio::test]
async fn overview_and_workers_ask_for_nothing_that_a_credential_of_one_tenant_may_not_have() {
    let server = Closed::start().await;
    let key = server.key("viewer", Some("acme")).await;
    let me = server.get_as(&key, "/v1/whoami").await;
    assert_eq!(me.json["grant"]["tenant"], "acme", "by this the pages know: {me:?}");
    for page in ["/ui/views/overview.js", "/ui/views/workers.js"] {
        let text = server.get(page).await.text;
        assert!(text.contains("me.grant?.tenant ?") && text.contains("./tenant.js"), "{page}");
    }
    let submitter = server.key("submitter", Some("acme")).await;
    let submitted = server.post_as(&submitter, "/v1/jobs", &serde_json::json!({ "topic": "job.x" })).await;
    let id = submitted.json["job_id"].as_str().expect("an id").to_owned();

    let asked = Regex::new(r#"["`](/(?:v1/|readyz)[^"`]*)["`]"#).expect("an expression");
    let text = server.get("/ui/views/tenant.js").await.text;
    let mut calls = 0;
    for call in asked.captures_iter(&text) {
        let path = call[1].replace("${state}", "SCHEDULED").replace("${ROWS}", "8");
        let path = path.replace("${encodeURIComponent(job_id)}", &id);
        assert!(!path.contains('$'), "{path} has a part that this test does not know");
        let reply = server.get_as(&key, &path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        calls += 1;
    }
    assert_eq!(calls, 6, "each call of the file was made");
}
