//! Reads configuration files: YAML in which every value knows its line, and all errors of a file are reported at once.

mod error;
mod hash;
pub(crate) mod read;
#[cfg(test)]
pub(crate) mod schema_check;
mod section;
mod topics;
pub(crate) mod yaml;

pub use error::{ConfigError, ERRORS_MAX};
pub(crate) use error::{ConfigReport, SourcePosition, nearest};
pub(crate) use hash::{sha256, snapshot};
pub(crate) use section::Section;
pub(crate) use topics::TopicMap;
