//! `lockgate why`: what a job waits for.

use clap::Args;
use lockgate_proto::v1;

use super::remedies;
use crate::error::{CliError, Exit};
use crate::output::{Field, Output, Tone};
use crate::session::Session;
use crate::view;

/// Say what a job waits for and what would start it
#[derive(Args, Debug)]
pub(crate) struct Why {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

impl Why {
    pub(crate) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        let response = session.client.explain_job(v1::ExplainJobRequest { job_id: self.job_id.clone() }).await;
        let why = view::Why::new(self.job_id, session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&why)?;
            return Ok(Exit::Success);
        }
        session.out.line(&text(&why, session.out))?;
        if why.state == view::state(v1::JobState::Denied) {
            say_remedies(session, why.job_id).await?;
        }
        Ok(Exit::Success)
    }
}

/// A refusal that says what would be allowed is half an answer.
async fn say_remedies(session: &mut Session, job_id: String) -> Result<(), CliError> {
    let response = session.client.get_job(v1::GetJobRequest { job_id }).await;
    let verdict = session.answer(response)?.verdict.map(view::Verdict::from);
    let remedies = verdict.as_ref().map(remedies).unwrap_or_default();
    if remedies.is_empty() { Ok(()) } else { session.out.line(&format!("\nWhat would help:\n{remedies}")) }
}

fn text(why: &view::Why, out: Output) -> String {
    let mut fields = vec![("state", Field::state(why.state)), ("reason", Field::text(&why.reason))];
    if !why.next_step.is_empty() {
        fields.push(("next", Field::text(&why.next_step)));
    }
    if let Some(at) = why.next_at {
        fields.push(("at", Field::text(out.moment(at))));
    }
    if let Some(waiting) = why.lane_waiting {
        fields.push(("lane", Field::text(format!("{waiting} waiting"))));
    }
    if let Some(rule) = &why.rule {
        fields.push(("rule", Field::text(rule)));
    }
    let mut text = format!("{}\n\n{}", why.summary, out.fields(&fields));
    if !why.workers.is_empty() {
        let row = |worker: &view::Considered| {
            let tone = if worker.verdict == "fits" { Tone::Good } else { Tone::Bad };
            vec![Field::text(&worker.worker_id), Field::text(&worker.verdict).toned(tone), Field::number(&worker.free_slots)]
        };
        let rows: Vec<_> = why.workers.iter().map(row).collect();
        text.push_str(&format!("\n\n{}", out.table(&["worker", "verdict", "free slots"], &rows)));
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn the_sentence_comes_first_then_the_facts_then_the_workers() {
        let response = v1::ExplainJobResponse {
            state: v1::JobState::Scheduled.into(),
            summary: "No worker can take it.".to_owned(),
            reason: "no_worker_fits".to_owned(),
            lane_waiting: Some(2),
            workers: vec![v1::explain_job_response::Considered {
                worker_id: "w1".to_owned(),
                verdict: "missing_capability:gpu".to_owned(),
                free_slots: 4,
            }],
            ..v1::ExplainJobResponse::default()
        };
        let why = view::Why::new("a".to_owned(), response);
        let text = text(&why, Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH));
        let expected = "No worker can take it.

state   SCHEDULED
reason  no_worker_fits
lane    2 waiting

WORKER  VERDICT                 FREE SLOTS
w1      missing_capability:gpu           4";
        assert_eq!(text, expected);
    }
}
