//! Files as they lie on this machine, and what is wrong with them.

use std::path::Path;
use std::sync::Arc;

use lockgate_core::config::{ConfigError, ERRORS_MAX};
use lockgate_core::policy::Policy;
use lockgate_core::pools::Pools;
use lockgate_core::quotas::Quotas;
use lockgate_core::timeouts::Timeouts;
use serde::Serialize;

use crate::error::{CliError, Exit};
use crate::output::Output;

pub(in crate::commands) fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::Usage(format!("{} cannot be read: {error}", path.display())))
}

/// Checks the text of a file: the snapshot it makes, or all that is wrong with it.
pub(in crate::commands) type ConfigLoader = fn(file: &str, text: &str) -> Result<Arc<str>, Vec<ConfigError>>;

pub(in crate::commands) const LOAD_POLICY: ConfigLoader =
    |file, text| Policy::load(file, text).map(|policy| policy.snapshot().clone());

pub(in crate::commands) const LOAD_POOLS: ConfigLoader =
    |file, text| Pools::load(file, text).map(|pools| pools.snapshot().clone());

pub(in crate::commands) const LOAD_TIMEOUTS: ConfigLoader =
    |file, text| Timeouts::load(file, text).map(|timeouts| timeouts.snapshot().clone());

pub(in crate::commands) const LOAD_QUOTAS: ConfigLoader =
    |file, text| Quotas::load(file, text).map(|quotas| quotas.snapshot().clone());

/// A file without faults, for programs.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct CheckedConfig<'a> {
    pub(in crate::commands) ok: bool,
    pub(in crate::commands) snapshot: &'a str,
}

/// What is wrong with a file, for programs.
#[derive(Debug, Serialize)]
struct FileFaults {
    ok: bool,
    errors: Vec<FileFault>,
}

#[derive(Debug, Serialize)]
struct FileFault {
    file: String,
    line: usize,
    column: usize,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

impl From<&ConfigError> for FileFault {
    fn from(error: &ConfigError) -> Self {
        Self {
            file: error.file.to_string(),
            line: error.line,
            column: error.column,
            message: error.message.clone(),
            suggestion: error.suggestion.clone(),
        }
    }
}

/// Tells every fault of a file. People read them beside the output, with where to look further; programs get a document.
pub(in crate::commands) fn tell(errors: &[ConfigError], further: Option<&str>, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(&FileFaults { ok: false, errors: errors.iter().map(FileFault::from).collect() })?;
        return Ok(Exit::Error);
    }
    errors.iter().for_each(|error| eprintln!("{error}"));
    let file = errors.first().map(|error| error.file.to_string()).unwrap_or_default();
    let faults = match errors.len() {
        1 => "1 fault".to_owned(),
        // The last one says how many are left out.
        many if many > ERRORS_MAX => format!("more than {ERRORS_MAX} faults"),
        few => format!("{few} faults"),
    };
    let further = further.map(|text| format!("; {text}")).unwrap_or_default();
    out.remark(&format!("{faults} in {file}{further}"));
    Ok(Exit::Error)
}
