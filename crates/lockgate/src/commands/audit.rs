//! `lockgate audit`: what governance did, and whether the record of it is whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Most rows the server looks at for one page.
const PAGE: u32 = 1_000;

/// Read the audit trail and verify that it was not altered
#[derive(Args, Debug)]
pub(crate) struct Audit {
    #[command(subcommand)]
    command: AuditRowCommand,
}

#[derive(Debug, Subcommand)]
enum AuditRowCommand {
    List(ListAuditRows),
    Verify(Verify),
    Export(Export),
}

/// List rows of the tenant, oldest first
#[derive(Args, Debug)]
struct ListAuditRows {
    /// Number of the last row already seen
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "NUMBER")]
    after: i64,

    /// Rows looked at for the page; those of other tenants are not shown
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

/// Walk the chain of sealed blocks, of all tenants, up to the first broken place
#[derive(Args, Debug)]
struct Verify {}

/// Write all rows of the tenant as JSON lines
#[derive(Args, Debug)]
struct Export {
    /// Where to; standard output if absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Audit {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        match self.command {
            AuditRowCommand::List(command) => command.run(session).await,
            AuditRowCommand::Verify(command) => command.run(session).await,
            AuditRowCommand::Export(command) => command.run(session).await,
        }
    }
}

async fn page(session: &CliSession, after: i64, limit: u32) -> Result<view::AuditRows, CliError> {
    let response = session.admin().list_audit(v1::ListAuditRequest { after, limit }).await;
    session.answer(response).map(view::AuditRows::from)
}

impl ListAuditRows {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let page = page(session, self.after, self.limit).await?;
        let out = session.out;
        if out.is_json() {
            out.json(&page)?;
            return Ok(Exit::Success);
        }
        if page.rows.is_empty() {
            out.remark(if page.next_after.is_some() { "no rows of this tenant here" } else { "no rows" });
        } else {
            out.line(&table(&page, out))?;
        }
        if let Some(after) = page.next_after {
            out.remark(&format!("more with --after {after}"));
        }
        Ok(Exit::Success)
    }
}

fn table(page: &view::AuditRows, out: Output) -> String {
    let row = |row: &view::AuditRow| {
        let tone = match row.action.as_str() {
            "job_denied" | "output_quarantined" | "bypass_refused" | "action_refused" | "loss_accepted" => Tone::Bad,
            "approved" | "output_released" => Tone::Good,
            "safety_bypassed" | "output_unchecked" | "approval_asked" => Tone::Waiting,
            _ => Tone::Plain,
        };
        vec![
            TableCell::number(&row.id),
            out.relative_or_dash(Some(row.at)),
            TableCell::text(&row.actor),
            TableCell::text(row.source.as_deref().unwrap_or("-")),
            TableCell::text(&row.action).toned(tone),
            TableCell::clipped(&row.subject),
            TableCell::clipped(row.detail.as_ref().map_or("", |detail| detail.get())),
        ]
    };
    let rows: Vec<_> = page.rows.iter().map(row).collect();
    out.table(&["row", "when", "actor", "from", "action", "subject", "detail"], &rows)
}

impl Verify {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.admin().verify_audit(v1::VerifyAuditRequest {}).await;
        let verified = view::Verified::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&verified)?;
        } else {
            out.line(&verdict(&verified, out))?;
        }
        Ok(if verified.intact { Exit::Success } else { Exit::Conflict })
    }
}

fn verdict(verified: &view::Verified, out: Output) -> String {
    let view::Verified { blocks, rows, unsealed, .. } = verified;
    let word = match &verified.broken {
        None => format!("{}  {rows} rows in {blocks} blocks", out.paint("intact", Tone::Good)),
        Some(place) => {
            format!("{}  {place}\nuntouched before it: {rows} rows in {blocks} blocks", out.paint("broken", Tone::Bad))
        }
    };
    let mut told = if *unsealed == 0 { word } else { format!("{word}; {unsealed} newer rows are not sealed yet") };
    for loss in &verified.losses {
        let label = out.paint("loss accepted", Tone::Bad);
        told.push_str(&format!("\n{label}  {loss}; rows of the trail may have been among it"));
    }
    told
}

impl Export {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let mut sink: Box<dyn Write + Send> = match &self.out {
            Some(path) => Box::new(BufWriter::new(create(path)?)),
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        let (mut after, mut written) = (0, 0_u64);
        loop {
            let page = page(session, after, PAGE).await?;
            for row in &page.rows {
                let line = serde_json::to_string(row).map_err(|error| CliError::Server(error.to_string()))?;
                writeln!(sink, "{line}")?;
                written += 1;
            }
            match page.next_after {
                Some(next) => after = next,
                None => break,
            }
        }
        sink.flush()?;
        session.out.remark(&format!("{written} rows written"));
        Ok(Exit::Success)
    }
}

fn create(path: &std::path::Path) -> Result<File, CliError> {
    File::create(path).map_err(|error| CliError::Usage(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    fn said(verified: v1::VerifyAuditResponse) -> String {
        verdict(&view::Verified::from(verified), Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn a_broken_trail_names_its_place_and_an_intact_one_its_size() {
        let intact = v1::VerifyAuditResponse { blocks: 2, rows: 9, ..v1::VerifyAuditResponse::default() };
        assert_eq!(said(intact.clone()), "intact  9 rows in 2 blocks");
        let lost = v1::VerifyAuditResponse { losses: vec!["lockgate.db was empty".to_owned()], ..intact.clone() };
        let expected =
            "intact  9 rows in 2 blocks\nloss accepted  lockgate.db was empty; rows of the trail may have been among it";
        assert_eq!(said(lost), expected);
        let unsealed = v1::VerifyAuditResponse { unsealed: 3, ..intact.clone() };
        assert_eq!(said(unsealed), "intact  9 rows in 2 blocks; 3 newer rows are not sealed yet");
        let broken = v1::VerifyAuditResponse { broken: "audit block 3 is broken".to_owned(), ..intact };
        assert_eq!(said(broken), "broken  audit block 3 is broken\nuntouched before it: 9 rows in 2 blocks");
    }
}
