//! Every key of `timeouts.yaml`, by section. The loader refuses all others; the published schema lists the same.

use crate::config::Section;

pub(super) static FILE: Section = Section { name: "the timeouts file", keys: &["defaults", "topics", "workflows"] };
pub(super) static TIMEOUTS: Section = Section { name: "timeouts", keys: &["dispatch", "running", "retry"] };
pub(super) static WORKFLOW: Section = Section { name: "the workflow", keys: &["running"] };
