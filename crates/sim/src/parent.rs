//! A handler that submits children and waits for them. Like real handlers it runs beside its worker's stream: it does not
//! notice when the stream or the attempt ends, and may continue when it should not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, JobSeq};
use lockgate_core::job::{Job, OnTimeout, Outcome};
use lockgate_core::request::{Caller, Json};
use lockgate_engine::{ApiError, NewChild, Submitted};

use crate::brood::Brood;
use crate::check::Violation;
use crate::client;
use crate::world::SimWorld;

/// How often an unacknowledged call is repeated. A parent that gives up fails, and finds its children in its next attempt.
const TRIES: usize = 10;

/// One attempt of a parent.
#[derive(Debug)]
pub(crate) struct Parent {
    job_id: JobId,
    token: AttemptToken,
    life: u32,
    /// How often it has waited in this life.
    round: u32,
    caller: Caller,
    brood: Brood,
}

impl Parent {
    pub(crate) fn of(job: &Job, brood: Brood) -> Self {
        Self {
            job_id: job.request.job_id.clone(),
            token: job.life.attempt.token.clone(),
            life: job.life.no,
            round: job.life.family.as_ref().map_or(0, |family| family.rounds),
            caller: Caller::new(job.request.tenant.clone(), "worker"),
            brood,
        }
    }

    pub(crate) fn token(&self) -> &AttemptToken {
        &self.token
    }

    /// Submits the children of this round and reports that it waits for them. After the last round it succeeds.
    pub(crate) async fn handle(self, world: Arc<SimWorld>) -> (Self, Outcome) {
        tokio::time::sleep(world.faults.millis(1_000)).await;
        self.find_children(&world).await;
        let outcome = if self.round < self.brood.rounds() {
            self.begin_round(&world).await
        } else {
            Outcome::Succeeded { result: Json::null() }
        };
        (self, outcome)
    }

    /// Submits one more child with the token of an attempt that is about to end, or ended long ago.
    pub(crate) async fn submit_late(self, world: Arc<SimWorld>) {
        if world.faults.chance(500) {
            tokio::time::sleep(world.faults.millis(30_000)).await;
        }
        self.submit(&world, &[self.brood.extra(self.round)]).await;
    }

    /// In one or two calls. Some children are sent twice, in one call or two: their keys make repeats harmless.
    async fn begin_round(&self, world: &SimWorld) -> Outcome {
        let children = self.brood.children(self.round);
        let half = usize::try_from(world.faults.below(children.len() as u64)).unwrap_or(0);
        let (first, rest) = children.split_at(half);
        let second = if world.faults.chance(300) { &children[..] } else { rest };
        for call in [first, second] {
            let mut call = call.to_vec();
            let again = call.first().filter(|_| world.faults.chance(100)).cloned();
            call.extend(again);
            if !call.is_empty() && !self.submit(world, &call).await {
                return Outcome::FailedRetryable {
                    error: Arc::from("its children were not taken"),
                    code: None,
                    retry_after: None,
                };
            }
        }
        end_of_round(world)
    }

    /// Whether all of them were acknowledged.
    async fn submit(&self, world: &SimWorld, children: &[NewChild]) -> bool {
        for _ in 0..TRIES {
            let process = world.process().await;
            let (token, children) = (self.token.clone(), children.to_vec());
            let answered = tokio::select! {
                biased;
                () = process.lifeline.died() => continue,
                () = client::hang_up(world) => continue,
                answered = process.engine.submit_children(&self.caller, &self.job_id, token, children) => answered,
            };
            match answered {
                Ok(answers) if self.acknowledge(world, &answers) => return true,
                // The attempt no longer counts.
                Err(ApiError::State(_)) => return false,
                // The Store fails, or the parent changes concurrently.
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(world.faults.millis(500)).await;
        }
        false
    }

    fn acknowledge(&self, world: &SimWorld, answers: &[Result<Submitted, ApiError>]) -> bool {
        let mut ledger = world.ledger.lock();
        for answer in answers {
            match answer {
                Ok(Submitted { job_id, .. }) => {
                    ledger.acknowledged.insert(job_id.clone());
                    ledger.children.entry((self.job_id.clone(), self.life)).or_default().insert(job_id.clone());
                }
                Err(error @ ApiError::KeyTaken { .. }) => {
                    let detail = format!("{}: {error}", self.job_id);
                    ledger.broken.push(Violation::new("F-1 a key of a life names one child", detail));
                }
                Err(_) => {}
            }
        }
        answers.iter().all(Result::is_ok)
    }

    /// Every child whose submit was acknowledged to an attempt of this life must be visible to the next attempt.
    async fn find_children(&self, world: &SimWorld) {
        let known = world.ledger.lock().children.get(&(self.job_id.clone(), self.life)).cloned().unwrap_or_default();
        if known.is_empty() {
            return;
        }
        let process = world.process().await;
        let page = tokio::select! {
            biased;
            () = process.lifeline.died() => return,
            page = process.engine.children(&self.caller, &self.job_id, &self.token, JobSeq::default()) => page,
        };
        // The attempt no longer counts, or the Store fails; both are allowed.
        let Ok(page) = page else { return };
        let found: BTreeSet<JobId> = page.children.iter().map(|child| child.job.request.job_id.clone()).collect();
        if let Some(missing) = known.difference(&found).next() {
            let detail = format!("{missing} of {} life {}", self.job_id, self.life);
            let broken = Violation::new("F-1 an attempt finds the children of the one before", detail);
            world.ledger.lock().broken.push(broken);
        }
    }
}

/// Most parents wait as long as it takes, some for a limited time, and some give up on their children.
fn end_of_round(world: &SimWorld) -> Outcome {
    let faults = &world.faults;
    match faults.below(12) {
        0 => Outcome::FailedFatal { error: Arc::from("gave up on its children") },
        1 => Outcome::FailedRetryable { error: Arc::from("forgot to wait for its children"), code: None, retry_after: None },
        2..5 => {
            // Where people answer approvals, the parent may ask for a review.
            let reviewed = faults.chance(500) && world.cast.policies;
            let on_timeout = if reviewed { OnTimeout::Review } else { OnTimeout::Fail };
            Outcome::AwaitChildren { timeout: Some(Duration::from_millis(500) + faults.millis(8_000)), on_timeout }
        }
        _ => Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Fail },
    }
}
