//! Every key of the policy language, by section. The parser refuses all other keys; a test compares the published schema
//! with these lists.

use crate::config::Section;

pub(super) static POLICY: Section = Section {
    name: "the policy",
    keys: &["version", "default", "rules", "tenants", "workflows", "patterns", "output", "input_policy"],
};
pub(super) static DEFAULT: Section = Section { name: "default", keys: &["decision", "reason"] };
pub(super) static RULE: Section = Section {
    name: "the rule",
    keys: &["id", "description", "match", "decision", "reason", "constraints", "approval", "remediations"],
};
pub(super) static MATCH: Section = Section {
    name: "match",
    keys: &[
        "tenants",
        "topics",
        "capabilities",
        "risk_tags",
        "requires",
        "labels",
        "label_not_in",
        // The former name of `label_not_in`, which stored policies have.
        "label_allowlist",
        "label_threshold",
        "actors",
        "actor_types",
        "payload_bytes_over",
        "scan",
        "patterns",
        "velocity",
        "when",
    ],
};
pub(super) static VELOCITY: Section = Section { name: "velocity", keys: &["max", "window", "key"] };
pub(super) static CONSTRAINTS: Section = Section {
    name: "constraints",
    keys: &[
        "max_runtime",
        "max_runtime_ms",
        "max_retries",
        "max_output_bytes",
        "max_concurrent",
        "allowed_pools",
        "network",
        "exec",
    ],
};
pub(super) static APPROVAL: Section = Section { name: "approval", keys: &["approvers", "request_expiry", "valid_for"] };
pub(super) static REMEDIATION: Section =
    Section { name: "the remediation", keys: &["title", "summary", "replacement_topic"] };
pub(super) static OVERLAY: Section = Section { name: "the overlay", keys: &["rules"] };
pub(super) static PATTERN: Section = Section { name: "the pattern", keys: &["regex", "keywords"] };
pub(super) static OUTPUT: Section =
    Section { name: "output", keys: &["enabled", "fail_mode", "rules", "hold_topics", "fail_modes"] };
pub(super) static OUTPUT_RULE: Section =
    Section { name: "the output rule", keys: &["id", "description", "match", "decision", "reason", "hold"] };
pub(super) static OUTPUT_MATCH: Section =
    Section { name: "match", keys: &["tenants", "topics", "labels", "output_bytes_over", "has_error", "scan", "patterns"] };
pub(super) static FAIL_MODE: Section = Section { name: "the fail mode", keys: &["topics", "tenants", "mode"] };
pub(super) static INPUT_POLICY: Section = Section { name: "input_policy", keys: &["fail_mode", "until"] };

pub(super) static CASES: Section = Section { name: "the cases file", keys: &["cases"] };
pub(super) static CASE: Section = Section { name: "the case", keys: &["name", "request", "now", "velocity", "expect"] };
pub(super) static REQUEST: Section = Section {
    name: "request",
    keys: &[
        "tenant",
        "topic",
        "actor",
        "actor_type",
        "capability",
        "risk_tags",
        "requires",
        "labels",
        "payload",
        "priority",
    ],
};
pub(super) static EXPECT: Section = Section { name: "expect", keys: &["decision", "rule"] };
