//! Every key of `timeouts.yaml`, by section. The loader refuses all other keys; a test compares the published schema with
//! these lists.

use crate::config::Section;

pub(super) static FILE: Section = Section { name: "the timeouts file", keys: &["defaults", "topics", "workflows"] };
pub(super) static TIMEOUTS: Section = Section { name: "timeouts", keys: &["dispatch", "running", "retry"] };
pub(super) static WORKFLOW: Section = Section { name: "the workflow", keys: &["running"] };
