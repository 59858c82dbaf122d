//! Metrics, in the format that whoever asks can read.

use std::collections::BTreeSet;

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::problem::Problem;

const OPEN: &str = "application/openmetrics-text";

/// OpenMetrics for those who ask for it, as Prometheus does; the older text format for people and for tools that know no other.
pub(super) fn metrics(headers: &HeaderMap, registry: &Registry) -> Response {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the metrics could not be written")
            .into_response();
    }
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    match accepted.any(|value| value.contains(OPEN)) {
        true => ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response(),
        false => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], classic(&text)).into_response(),
    }
}

/// There a counter is called what its samples are called, and neither units nor the end are told.
fn classic(text: &str) -> String {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let counters: BTreeSet<&str> = types.filter(|(_, kind)| *kind == "counter").map(|(name, _)| name).collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
        let told =
            ["# HELP ", "# TYPE "].iter().find_map(|start| Some((start, line.strip_prefix(*start)?.split_once(' ')?)));
        match told {
            Some((start, (name, rest))) if counters.contains(name) => {
                out.extend([*start, name, "_total ", rest, "\n"]);
            }
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_calls_counters_as_their_samples_are_called() {
        let open = "# HELP a Jobs.\n# TYPE a counter\na_total{x=\"1\"} 2\n# HELP b_seconds Time.\n# TYPE b_seconds gauge\n\
                    # UNIT b_seconds seconds\nb_seconds 1.5\n# EOF\n";
        let expected = "# HELP a_total Jobs.\n# TYPE a_total counter\na_total{x=\"1\"} 2\n# HELP b_seconds Time.\n\
                        # TYPE b_seconds gauge\nb_seconds 1.5\n";
        assert_eq!(classic(open), expected);
    }
}
