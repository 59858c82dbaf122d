//! Files of schedules: checked, put in force.

use std::path::PathBuf;

use clap::Args;
use lockgate_api::view;
use lockgate_core::schedule::load;
use lockgate_proto::v1;
use serde::Serialize;

use crate::commands::config::files;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Keep the schedules of a file; those it does not name are left alone
#[derive(Args, Debug)]
pub(super) struct ApplySchedule {
    /// The file
    file: PathBuf,
}

/// Check a file of schedules without a server and tell every fault
#[derive(Args, Debug)]
pub(super) struct LintSchedule {
    /// The file
    file: PathBuf,
}

#[derive(Serialize)]
struct CheckedSchedules {
    ok: bool,
    schedules: usize,
}

impl ApplySchedule {
    /// If the server refuses the file, the faults are told from here: an error of the server has no room for all of them.
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let out = session.out;
        let (file, text) = (self.file.display().to_string(), files::read(&self.file)?);
        let request = v1::PutSchedulesRequest { file: file.clone(), text: text.clone() };
        let applied = match session.answer(session.schedules().put_schedules(request).await) {
            Ok(applied) => view::AppliedSchedules::from(applied),
            Err(refused @ CliError::Refused { .. }) => {
                return match load(&file, &text) {
                    Err(errors) => files::tell(&errors, None, out),
                    Ok(_) => Err(refused),
                };
            }
            Err(error) => return Err(error),
        };
        if out.is_json() {
            out.json(&applied)?;
            return Ok(Exit::Success);
        }
        let rows = applied.schedules.iter().map(|one| {
            let tone = if one.change == "unchanged" { Tone::Faint } else { Tone::Good };
            vec![TableCell::text(&one.name), TableCell::text(&one.change).toned(tone), TableCell::number(&one.revision)]
        });
        let rows: Vec<_> = rows.collect();
        out.line(&out.table(&["schedule", "change", "revision"], &rows))?;
        Ok(Exit::Success)
    }
}

impl LintSchedule {
    pub(super) fn run(self, out: Output) -> Result<Exit, CliError> {
        let name = self.file.display().to_string();
        let schedules = match load(&name, &files::read(&self.file)?) {
            Ok(schedules) => schedules.len(),
            Err(errors) => return files::tell(&errors, None, out),
        };
        if out.is_json() {
            out.json(&CheckedSchedules { ok: true, schedules })?;
        } else {
            out.line(&format!("{name}  {}  {schedules} schedules", out.paint("ok", Tone::Good)))?;
        }
        Ok(Exit::Success)
    }
}
