//! Schedules, for both doors.

/// Named in errors when the client names no file.
pub(crate) const FILE: &str = "schedules.yaml";
