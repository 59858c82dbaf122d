//! What Python asks of a server, by name: JSON in, JSON out.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use lockgate_client::{ApprovalVote, Client, ClientError, DeadLetterFilter, JobHandle, NewJob, NewRun};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// What operations are told. Each uses what it needs.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CallArgs {
    job: Option<NewJob>,
    jobs: Vec<NewJob>,
    job_id: String,
    topic: String,
    labels: HashMap<String, String>,
    limit: u32,
    cursor: String,
    after: u64,
    reason: String,
    note: String,
    request_hash: String,
    rule_hash: String,
    acknowledge_hidden: bool,
    filter: DeadLetterFilter,
    dry_run: bool,
    text: String,
    run: Option<NewRun>,
    run_id: String,
    compensate: bool,
    /// How long to wait. Absent: until it has ended.
    within_ms: Option<u64>,
}

impl CallArgs {
    /// Bound to what Python has read, or to the job as it is now if it has read nothing.
    async fn vote(self, client: &Client) -> Result<ApprovalVote, ClientError> {
        let Self { job_id, request_hash, rule_hash, note, acknowledge_hidden, .. } = self;
        if request_hash.is_empty() {
            return Ok(ApprovalVote { note, acknowledge_hidden, ..client.vote_on(&job_id).await? });
        }
        Ok(ApprovalVote { job_id, request_hash, rule_hash, note, acknowledge_hidden })
    }
}

#[derive(Serialize)]
struct SubmitAnswer {
    job_id: String,
    existing: bool,
}

/// One job of a batch.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum BatchAnswer {
    Job(SubmitAnswer),
    Error(Fault),
}

#[derive(Serialize)]
struct Paged<T> {
    items: Vec<T>,
    next: Option<String>,
}

pub(crate) async fn perform(client: &Client, operation: &str, args: CallArgs) -> Result<String, Fault> {
    match operation {
        "approvals" => page(client.pending_approvals(args.limit, &args.cursor).await),
        "approve" => json(client.approve(args.vote(client).await?).await),
        "cancel" => json(client.cancel(&args.job_id, &args.reason).await),
        "cancel_run" => json(client.cancel_run(&args.run_id, &args.reason, args.compensate).await),
        "dead_letters" => page(client.dead_letters(args.filter, args.limit, &args.cursor).await),
        "get" => json(client.get(&args.job_id).await),
        "get_run" => json(client.get_run(&args.run_id).await),
        "list" => page(client.list(&args.topic, args.labels, args.limit, &args.cursor).await),
        "logs" => json(client.logs(&args.job_id, args.after).await),
        "put_dag" => json(client.put_dag(&args.text).await),
        "reject" => json(client.reject(args.vote(client).await?).await),
        "replay" => json(client.replay(&args.job_id).await),
        "replay_all" => json(client.replay_all(args.filter, args.dry_run).await),
        "start_dag" => {
            let run = client.start_dag(given(args.run, "run")?).await?;
            written(&SubmitAnswer { job_id: run.id().to_owned(), existing: run.existed() })
        }
        "submit" => written(&submit_answer(&client.submit(given(args.job, "job")?).await?)),
        "submit_many" => {
            let answers = client.submit_many(args.jobs).await?;
            written(&answers.into_iter().map(batch_answer).collect::<Vec<_>>())
        }
        "wait" => written(&waited(args.within_ms, client.job(args.job_id).wait()).await?),
        "wait_run" => written(&waited(args.within_ms, client.run(args.run_id).wait()).await?),
        "why" => json(client.why(&args.job_id).await),
        // For the test that a panic becomes an exception.
        #[cfg(debug_assertions)]
        "panic" => panic!("asked for by a test"),
        _ => Err(Fault::internal(format!("no operation {operation}"))),
    }
}

async fn waited<T>(within_ms: Option<u64>, ended: impl Future<Output = Result<T, ClientError>>) -> Result<T, Fault> {
    let Some(ms) = within_ms else { return Ok(ended.await?) };
    let timed_out = |_| {
        let text = format!("it has not ended within {:?}", Duration::from_millis(ms));
        Fault::new("timed_out", text, "wait longer, or look at it with `why`")
    };
    Ok(tokio::time::timeout(Duration::from_millis(ms), ended).await.map_err(timed_out)??)
}

fn given<T>(value: Option<T>, name: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::internal(format!("{name} is missing")))
}

fn submit_answer(job: &JobHandle) -> SubmitAnswer {
    SubmitAnswer { job_id: job.id().to_owned(), existing: job.existed() }
}

fn batch_answer(answer: Result<JobHandle, ClientError>) -> BatchAnswer {
    match answer {
        Ok(job) => BatchAnswer::Job(submit_answer(&job)),
        Err(error) => BatchAnswer::Error(error.into()),
    }
}

fn page<T: Serialize>(page: Result<(Vec<T>, Option<String>), ClientError>) -> Result<String, Fault> {
    let (items, next) = page?;
    written(&Paged { items, next })
}

fn json<T: Serialize>(answer: Result<T, ClientError>) -> Result<String, Fault> {
    written(&answer?)
}

fn written(answer: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(answer).map_err(|error| Fault::internal(error.to_string()))
}
