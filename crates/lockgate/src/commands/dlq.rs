//! `lockgate dlq`: jobs that ended badly, their second chance, and those that are to have none.

use std::time::Duration;

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_core::lane::Priority;
use lockgate_proto::v1;

use super::{get, wire_priority};
use crate::args;
use crate::deadline::ExtraTime;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell};
use crate::session::CliSession;

/// Most jobs that one call replays, by the contract.
const REPLAYS_MAX: u32 = 100_000;

/// Look at dead letters, replay or discard them
#[derive(Args, Debug)]
pub(crate) struct Dlq {
    #[command(subcommand)]
    command: DeadLetterCommand,
}

#[derive(Debug, Subcommand)]
enum DeadLetterCommand {
    List(ListDeadLetters),
    Show(ShowDeadLetter),
    Replay(Replay),
    Discard(DiscardArgs),
}

#[derive(Args, Clone, Debug)]
struct Filter {
    /// Only this topic
    #[arg(long, value_parser = args::name)]
    topic: Option<String>,

    /// Only this reason, such as failed or execution_timeout
    #[arg(long, value_parser = args::name)]
    reason: Option<String>,

    /// Only this priority: critical, high, default or low
    #[arg(long)]
    priority: Option<Priority>,

    /// Only jobs with this label; can be given many times
    #[arg(long = "label", value_parser = args::pair, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,
}

/// List dead letters, newest first
#[derive(Args, Debug)]
struct ListDeadLetters {
    #[command(flatten)]
    filter: Filter,

    /// Those that were discarded, instead of the open ones
    #[arg(long)]
    discarded: bool,

    /// Dead letters on a page
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,

    /// Where the previous page ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

/// Show a dead job with its attempts
#[derive(Args, Debug)]
struct ShowDeadLetter {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

/// Let dead jobs live again: one by id, or many by filter
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["job_id", "topic", "reason", "priority", "labels", "all"]))]
struct Replay {
    /// Id of one job
    #[arg(value_name = "JOB", value_parser = args::name, conflicts_with_all = ["topic", "reason", "priority", "labels", "all", "rate", "limit"])]
    job_id: Option<String>,

    #[command(flatten)]
    filter: Filter,

    /// All dead letters of the tenant
    #[arg(long)]
    all: bool,

    /// Only say what would be replayed
    #[arg(long)]
    dry_run: bool,

    /// Jobs a second; 0 is as fast as possible
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    rate: u32,

    /// At most this many; 0 is all
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    limit: u32,
}

/// Say that dead letters are not to be replayed; they leave the list of open ones
#[derive(Args, Debug)]
struct DiscardArgs {
    /// Ids of the jobs; jobs of runs can be discarded too
    #[arg(value_name = "JOB", required = true, value_parser = args::name)]
    job_ids: Vec<String>,

    /// Why, for the history of the job and the audit trail
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    reason: String,
}

impl Dlq {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        match self.command {
            DeadLetterCommand::List(command) => command.run(session).await,
            DeadLetterCommand::Show(command) => command.run(session).await,
            DeadLetterCommand::Replay(command) => command.run(session).await,
            DeadLetterCommand::Discard(command) => command.run(session).await,
        }
    }
}

impl From<Filter> for v1::DeadLetterFilter {
    fn from(filter: Filter) -> Self {
        Self {
            topic: filter.topic.unwrap_or_default(),
            priority: wire_priority(filter.priority).into(),
            reason: filter.reason.unwrap_or_default(),
            labels: filter.labels.into_iter().collect(),
            discarded: false,
        }
    }
}

impl ListDeadLetters {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let filter = v1::DeadLetterFilter { discarded: self.discarded, ..self.filter.into() };
        let request = v1::ListDeadLettersRequest { filter: Some(filter), limit: self.limit, cursor: self.cursor };
        let response = session.client.list_dead_letters(request).await;
        let page = view::DeadLetters::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&page)?;
            return Ok(Exit::Success);
        }
        if page.dead_letters.is_empty() && page.next_cursor.is_none() {
            out.remark("no dead letters");
        } else {
            out.line(&if self.discarded { discarded(&page, out) } else { table(&page, out) })?;
        }
        if let Some(cursor) = page.next_cursor {
            out.remark(&format!("more with --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

fn table(page: &view::DeadLetters, out: Output) -> String {
    let row = |letter: &view::DeadLetter| {
        vec![
            TableCell::text(&letter.job_id),
            TableCell::state(&letter.state),
            TableCell::text(&letter.topic),
            TableCell::text(&letter.priority),
            TableCell::number(&letter.attempts),
            out.relative_or_dash(Some(letter.at)),
            TableCell::text(&letter.reason),
            TableCell::clipped(&letter.message),
        ]
    };
    let rows: Vec<_> = page.dead_letters.iter().map(row).collect();
    out.table(&["job", "state", "topic", "priority", "attempts", "died", "reason", "message"], &rows)
}

fn discarded(page: &view::DeadLetters, out: Output) -> String {
    let row = |letter: &view::DeadLetter| {
        let discard = letter.discarded.as_ref();
        vec![
            TableCell::text(&letter.job_id),
            TableCell::state(&letter.state),
            TableCell::text(&letter.topic),
            TableCell::text(&letter.reason),
            out.relative_or_dash(discard.map(|discard| discard.at)),
            TableCell::text(discard.map(|discard| discard.actor.as_str()).unwrap_or_default()),
            TableCell::clipped(discard.map(|discard| discard.reason.as_str()).unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = page.dead_letters.iter().map(row).collect();
    out.table(&["job", "state", "topic", "reason", "discarded", "by", "why"], &rows)
}

impl ShowDeadLetter {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.client.get_job(v1::GetJobRequest { job_id: self.job_id }).await;
        let job = session.answer(response)?;
        let letter = view::DeadLetter::of(&job);
        let job = view::Job::full(job);
        let Some(letter) = letter else {
            let message = format!("job {} has no dead letter: it is {}", job.job_id, job.state);
            return Err(CliError::not_found("dead letter", message));
        };
        if session.out.is_json() {
            session.out.json(&letter)?;
        } else {
            session.out.line(&get::text(&job, session.out))?;
            let lives_again = format!("`lockgate dlq replay {}` lets it live again", job.job_id);
            session.out.remark(if letter.discarded.is_some() {
                "it is not replayed: it was discarded"
            } else {
                &lives_again
            });
        }
        Ok(Exit::Success)
    }
}

impl DiscardArgs {
    /// One after the other, each by itself: those before one that is refused stay discarded, and are named.
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let mut changed = Vec::with_capacity(self.job_ids.len());
        let mut refused = None;
        for job_id in self.job_ids {
            let request = v1::DiscardDeadLetterRequest { job_id: job_id.clone(), reason: self.reason.clone() };
            let response = session.client.discard_dead_letter(request).await;
            match session.answer(response) {
                Ok(response) => changed.push(view::Changed { job_id, state: response.state().into() }),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let out = session.out;
        if out.is_json() {
            out.json(&changed)?;
        } else {
            for view::Changed { job_id, state } in &changed {
                out.line(&format!("{job_id}  {}  discarded", out.state(state)))?;
            }
        }
        refused.map_or(Ok(Exit::Success), Err)
    }
}

impl Replay {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let dry_run = self.dry_run;
        let extra = self.paced();
        let mut request = tonic::Request::new(self.into_request());
        request.extensions_mut().insert(extra);
        let response = session.client.replay_dead_letters(request).await;
        let replayed = view::Replayed::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&replayed)?;
            return Ok(Exit::Success);
        }
        for job_id in &replayed.job_ids {
            out.line(job_id)?;
        }
        out.remark(&if dry_run {
            format!("{} would be replayed", replayed.matched.saturating_sub(replayed.left_out))
        } else {
            format!("{} of {} replayed", replayed.replayed, replayed.matched)
        });
        if replayed.left_out > 0 {
            let advice = "jobs of runs and workflows; `lockgate dag rerun` starts a run again from a node";
            out.remark(&format!("{} are not replayed by themselves: {advice}", replayed.left_out));
        }
        if replayed.no_room > 0 {
            out.remark(&format!("for {} there is no room now: `lockgate tenants` shows the quotas", replayed.no_room));
        }
        Ok(Exit::Success)
    }

    /// How long the server takes at the asked rate, if there are as many dead letters as one call replays.
    fn paced(&self) -> ExtraTime {
        let most = if self.limit == 0 { REPLAYS_MAX } else { self.limit };
        let span = if self.dry_run { None } else { most.checked_div(self.rate) };
        ExtraTime(Duration::from_secs(span.unwrap_or(0).into()))
    }

    fn into_request(self) -> v1::ReplayDeadLettersRequest {
        let filter = self.job_id.is_none().then(|| self.filter.into());
        v1::ReplayDeadLettersRequest {
            job_id: self.job_id.unwrap_or_default(),
            filter,
            dry_run: self.dry_run,
            rate: self.rate,
            limit: self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        replay: Replay,
    }

    fn request(words: &[&str]) -> Option<v1::ReplayDeadLettersRequest> {
        let line = Line::try_parse_from([&["replay"], words].concat()).ok()?;
        Some(line.replay.into_request())
    }

    #[test]
    fn one_job_is_replayed_by_id_and_many_by_filter() {
        let one = request(&["a"]).expect("good usage");
        assert_eq!((one.job_id.as_str(), one.filter), ("a", None));
        let many = request(&["--topic", "t", "--priority", "low", "--rate", "5", "--limit", "9", "--dry-run"]);
        let many = many.expect("good usage");
        assert!(many.job_id.is_empty() && many.dry_run);
        assert_eq!((many.rate, many.limit), (5, 9));
        let filter = many.filter.expect("a filter");
        assert_eq!((filter.topic.as_str(), filter.priority()), ("t", v1::Priority::Low));
    }

    #[test]
    fn a_paced_replay_is_given_the_time_that_its_pace_takes() {
        let extra = |words: &[&str]| Line::try_parse_from([&["replay"], words].concat()).unwrap().replay.paced().0;
        assert_eq!(extra(&["--all", "--rate", "10"]), Duration::from_secs(10_000), "more than the hour of a long call");
        assert_eq!(extra(&["--all", "--rate", "10", "--limit", "50"]), Duration::from_secs(5));
        assert_eq!(extra(&["--all"]), Duration::ZERO);
        assert_eq!(extra(&["--all", "--rate", "1", "--dry-run"]), Duration::ZERO);
    }

    #[test]
    fn replaying_everything_must_be_said() {
        assert!(request(&[]).is_none());
        assert!(request(&["a", "--all"]).is_none());
        assert!(request(&["--topic", ""]).is_none() && request(&["--reason", ""]).is_none() && request(&[""]).is_none());
        assert!(request(&["--all"]).is_some_and(|request| request.filter.is_some()));
    }
}
