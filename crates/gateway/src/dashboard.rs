//! The dashboard: a page for people over the REST API.
//!
//! Its files hold no data, so they need no credential; what they show is asked for with the visitor's own
//! credential, by the same rules as every other call. They are part of the program: nothing is fetched from elsewhere, and
//! the browser is told to refuse if a page ever tried.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};

struct Asset {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// Every file of the folder, by the path that it is served under.
macro_rules! files {
    ($($path:literal: $kind:literal = $file:literal,)*) => {
        const FILES: &[Asset] =
            &[$(Asset { path: $path, kind: $kind, text: include_str!(concat!("../dashboard/", $file)) }),*];
    };
}

files! {
    "/": "text/html; charset=utf-8" = "index.html",
    "/ui/style.css": "text/css; charset=utf-8" = "style.css",
    "/ui/icon.svg": "image/svg+xml" = "icon.svg",
    "/ui/app.js": "text/javascript; charset=utf-8" = "app.js",
    "/ui/api.js": "text/javascript; charset=utf-8" = "api.js",
    "/ui/dom.js": "text/javascript; charset=utf-8" = "dom.js",
    "/ui/views/approvals.js": "text/javascript; charset=utf-8" = "views/approvals.js",
    "/ui/views/audit.js": "text/javascript; charset=utf-8" = "views/audit.js",
    "/ui/views/consent.js": "text/javascript; charset=utf-8" = "views/consent.js",
    "/ui/views/job.js": "text/javascript; charset=utf-8" = "views/job.js",
    "/ui/views/jobs.js": "text/javascript; charset=utf-8" = "views/jobs.js",
    "/ui/views/letters.js": "text/javascript; charset=utf-8" = "views/letters.js",
    "/ui/views/overview.js": "text/javascript; charset=utf-8" = "views/overview.js",
    "/ui/views/run.js": "text/javascript; charset=utf-8" = "views/run.js",
    "/ui/views/runs.js": "text/javascript; charset=utf-8" = "views/runs.js",
    "/ui/views/schedules.js": "text/javascript; charset=utf-8" = "views/schedules.js",
    "/ui/views/submit.js": "text/javascript; charset=utf-8" = "views/submit.js",
    "/ui/views/tenant.js": "text/javascript; charset=utf-8" = "views/tenant.js",
    "/ui/views/workers.js": "text/javascript; charset=utf-8" = "views/workers.js",
}

/// Own scripts, own styles, own calls; nothing inline, nothing foreign, and no framing.
const ALLOWED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; \
                       base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether a path leads to a file of the dashboard.
pub(crate) fn has(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    FILES.iter().fold(router, |router, file| router.route(file.path, get(|| async { served(file) })))
}

fn served(file: &'static Asset) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, file.kind),
        (CONTENT_SECURITY_POLICY, ALLOWED),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // A newer server has a newer page.
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, file.text)
}
