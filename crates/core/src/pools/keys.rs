//! Every key of `pools.yaml`, by section. The loader refuses all other keys; a test compares the published schema with these
//! lists.

use crate::config::Section;

pub(super) static FILE: Section = Section { name: "the pools file", keys: &["topics", "pools", "limits", "fairness"] };
pub(super) static POOL: Section = Section {
    name: "the pool",
    keys: &[
        "description",
        "dispatch",
        "capabilities",
        "labels",
        "max_concurrent",
        "tenant_max_concurrent",
        "tenants",
        "overload",
    ],
};
pub(super) static OVERLOAD: Section = Section { name: "overload", keys: &["active", "cpu", "gpu"] };
pub(super) static LIMIT: Section = Section { name: "the limit", keys: &["name", "topics", "per", "max_concurrent", "rate"] };
pub(super) static FAIRNESS: Section = Section { name: "fairness", keys: &["priorities", "tenants"] };
pub(super) static PRIORITIES: Section = Section { name: "priorities", keys: &["critical", "high", "default", "low"] };
