//! Every key of `quotas.yaml`, by section. The loader refuses all other keys; a test compares the published schema with
//! these lists.

use crate::config::Section;

pub(super) static FILE: Section = Section { name: "the quotas file", keys: &["defaults", "tenants", "ceilings"] };
pub(super) static QUOTA: Section =
    Section { name: "a quota", keys: &["submit_rate", "actor_rate", "jobs", "runs", "payload_bytes", "stored_bytes"] };
pub(super) static CEILINGS: Section = Section { name: "ceilings", keys: &["jobs", "wait", "pools", "shares"] };
pub(super) static SHARES: Section = Section { name: "shares", keys: &["critical", "high", "default", "low"] };
