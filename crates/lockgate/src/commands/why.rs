//! `lockgate why`: what a job waits for.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use super::remedies;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Say what a job waits for and what would start it
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

impl WhyArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.client.explain_job(v1::ExplainJobRequest { job_id: self.job_id.clone() }).await;
        let why = view::Why::new(self.job_id, session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&why)?;
            return Ok(Exit::Success);
        }
        session.out.line(&text(&why, session.out))?;
        if why.state == *view::JobStateName::from(v1::JobState::Denied) {
            say_remedies(session, why.job_id).await?;
        }
        Ok(Exit::Success)
    }
}

/// A refusal that says what would be allowed is half an answer.
async fn say_remedies(session: &mut CliSession, job_id: String) -> Result<(), CliError> {
    let response = session.client.get_job(v1::GetJobRequest { job_id }).await;
    let verdict = session.answer(response)?.verdict.map(view::Verdict::from);
    let remedies = verdict.as_ref().map(remedies).unwrap_or_default();
    if remedies.is_empty() { Ok(()) } else { session.out.line(&format!("\nWhat would help:\n{remedies}")) }
}

fn text(why: &view::Why, out: Output) -> String {
    let mut parts = vec![why.summary.clone(), out.fields(&facts(why, out))];
    parts.extend(why.pools.iter().map(|look| pool(look, out)));
    if !why.limits.is_empty() {
        parts.push(limits(&why.limits, out));
    }
    parts.join("\n\n")
}

fn facts(why: &view::Why, out: Output) -> Vec<(&'static str, TableCell)> {
    let mut facts = vec![("state", TableCell::state(&why.state)), ("reason", TableCell::text(&why.reason))];
    if !why.next_step.is_empty() {
        facts.push(("next", TableCell::text(&why.next_step)));
    }
    if let Some(at) = why.next_at {
        facts.push(("at", TableCell::text(out.moment(at))));
    }
    if let Some(waiting) = why.lane_waiting {
        facts.push(("lane", TableCell::text(format!("{waiting} waiting"))));
    }
    if let Some(tries) = why.tries {
        let max = why.tries_max.map(|max| format!(" of {max}")).unwrap_or_default();
        facts.push(("tries", TableCell::text(format!("{tries}{max}"))));
    }
    if let Some(rule) = &why.rule {
        facts.push(("rule", TableCell::text(rule)));
    }
    facts
}

/// A pool of the route, and what each of its workers says to the job.
fn pool(look: &view::PoolLook, out: Output) -> String {
    let reason = look.reason.as_ref().map(|reason| format!(": {}", out.paint(reason, Tone::Bad))).unwrap_or_default();
    let heading = format!("pool {} ({}){reason}", look.pool, look.dispatch);
    if look.workers.is_empty() {
        return heading;
    }
    let row = |worker: &view::Considered| {
        let tone = match worker.verdict.as_str() {
            "fits" => Tone::Good,
            "busy" => Tone::Busy,
            _ => Tone::Bad,
        };
        vec![
            TableCell::text(&worker.worker_id),
            TableCell::text(&worker.verdict).toned(tone),
            TableCell::number(&worker.free_slots),
        ]
    };
    let rows: Vec<_> = look.workers.iter().map(row).collect();
    let table = out.table(&["worker", "verdict", "free slots"], &rows);
    let more = if look.more > 0 { format!("\nand {} more", look.more) } else { String::new() };
    format!("{heading}\n{table}{more}")
}

fn limits(limits: &[view::LimitLook], out: Output) -> String {
    let row = |limit: &view::LimitLook| {
        let room = if limit.full {
            TableCell::text("full").toned(Tone::Bad)
        } else {
            TableCell::text("has room").toned(Tone::Good)
        };
        let max = limit.max.map_or_else(|| "-".to_owned(), |max| max.to_string());
        vec![
            TableCell::text(&limit.name),
            room,
            TableCell::number(&limit.held),
            TableCell::number(&max),
            out.relative_or_dash(limit.again_at),
        ]
    };
    let rows: Vec<_> = limits.iter().map(row).collect();
    out.table(&["limit", "", "held", "max", "again"], &rows)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lockgate_proto::v1::explain_job_response::{Considered, LimitLook, PoolLook};

    use super::*;
    use crate::output::Format;

    fn shown(response: v1::ExplainJobResponse) -> String {
        let why = view::Why::new("a".to_owned(), response);
        text(&why, Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn the_sentence_comes_first_then_the_facts_then_the_pools_with_their_workers() {
        let worker =
            |id: &str, verdict: &str| Considered { worker_id: id.to_owned(), verdict: verdict.to_owned(), free_slots: 4 };
        let response = v1::ExplainJobResponse {
            state: v1::JobState::Scheduled.into(),
            summary: "No worker can take it.".to_owned(),
            reason: "no_workers".to_owned(),
            lane_waiting: Some(2),
            tries: Some(3),
            tries_max: Some(50),
            pools: vec![
                PoolLook {
                    pool: "gpu".to_owned(),
                    dispatch: "direct".to_owned(),
                    reason: "no_workers".to_owned(),
                    workers: vec![worker("w1", "missing_capability:gpu"), worker("w2", "topic_not_served")],
                    more: 7,
                },
                PoolLook {
                    pool: "spare".to_owned(),
                    dispatch: "queue".to_owned(),
                    reason: "pool_paused".to_owned(),
                    ..PoolLook::default()
                },
            ],
            ..v1::ExplainJobResponse::default()
        };
        let expected = "No worker can take it.

state   SCHEDULED
reason  no_workers
lane    2 waiting
tries   3 of 50

pool gpu (direct): no_workers
WORKER  VERDICT                 FREE SLOTS
w1      missing_capability:gpu           4
w2      topic_not_served                 4
and 7 more

pool spare (queue): pool_paused";
        assert_eq!(shown(response), expected);
    }

    #[test]
    fn limits_come_last_with_what_is_left_of_them() {
        let response = v1::ExplainJobResponse {
            state: v1::JobState::Scheduled.into(),
            summary: "It must wait.".to_owned(),
            reason: "tenant_limit".to_owned(),
            limits: vec![
                LimitLook { name: "tenant/echo/acme".to_owned(), max: Some(10), held: 10, full: true, again_at_ms: None },
                LimitLook { name: "limit/mail".to_owned(), max: None, held: 1, full: false, again_at_ms: Some(3_000) },
            ],
            ..v1::ExplainJobResponse::default()
        };
        let expected = "It must wait.

state   SCHEDULED
reason  tenant_limit

LIMIT                       HELD  MAX  AGAIN
tenant/echo/acme  full        10   10  -
limit/mail        has room     1    -  in 3s";
        assert_eq!(shown(response), expected);
    }
}
