//! Every key of the DAG language, by section. The loader refuses all other keys; a test compares the published schema with
//! these lists.

use crate::config::Section;

pub(super) static FILE: Section = Section {
    name: "the DAG",
    keys: &["version", "dag", "description", "params", "max_parallelism", "timeout", "output", "nodes"],
};
pub(super) static PARAM: Section = Section { name: "the parameter", keys: &["type", "description", "default"] };
pub(super) static NODE: Section = Section {
    name: "the node",
    keys: &[
        "needs",
        "join",
        "when",
        "on_fail",
        "topic",
        "payload",
        "priority",
        "max_attempts",
        "retry",
        "timeout",
        "timeout_ms",
        "labels",
        "env",
        "requires",
        "capability",
        "risk_tags",
        "concurrency_key",
        "approval",
        "delay",
        "delay_sec",
        "delay_until",
        "dag",
        "params",
        "for_each",
        "concurrency",
        "min_success",
        "compensation",
        "memoise",
    ],
};
pub(super) static MEMOISE: Section = Section { name: "memoise", keys: &["for"] };
pub(super) static APPROVAL: Section = Section { name: "approval", keys: &["reason", "approvers", "expires"] };
pub(super) static COMPENSATION: Section = Section {
    name: "compensation",
    keys: &["topic", "payload", "env", "labels", "max_attempts", "timeout", "timeout_ms", "undo_on_failure"],
};

/// Keys of every kind of node.
pub(super) const COMMON: [&str; 4] = ["needs", "join", "when", "on_fail"];
/// Keys that each decide the kind of the node.
pub(super) const KINDS: [&str; 6] = ["topic", "dag", "delay", "delay_sec", "delay_until", "approval"];
/// Further keys of a node with a topic. There, `approval` asks people before the job runs.
pub(super) const WITH_TOPIC: [&str; 17] = [
    "payload",
    "priority",
    "max_attempts",
    "retry",
    "timeout",
    "timeout_ms",
    "labels",
    "env",
    "requires",
    "capability",
    "risk_tags",
    "concurrency_key",
    "for_each",
    "concurrency",
    "min_success",
    "compensation",
    "memoise",
];
/// Further keys of a node that starts a sub-DAG.
pub(super) const WITH_DAG: [&str; 5] = ["params", "for_each", "concurrency", "min_success", "compensation"];
