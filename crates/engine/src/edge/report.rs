//! What workers report: starts, results, progress, logs, beats.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::{AttemptReport, Evidence, Input, Job, Outcome};
use lockgate_core::output::OutputStep;
use lockgate_core::policy::FailMode;
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Bell, LogLine, OutputMeta, StoreError};
use tokio::time::Instant;

use super::sessions::EdgeSession;
use super::{Acknowledged, AttemptProgress, Beat, FromWorker, InventoryItem, LogReport, ResultReport, ToWorker};
use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;
use crate::metrics::ResultPhase;

/// Why a result came out unscanned.
pub(crate) const NOBODY_SCANNED: &str = "output policy fail-open: nobody could scan the result";

/// The job of a result, and when its attempt began if that is not stored yet.
type ReportedJob = Option<(Arc<Job>, Option<Timestamp>)>;

fn is_success(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Succeeded { .. })
}

/// Its handler came to an end by itself.
fn ran(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Succeeded { .. } | Outcome::FailedRetryable { .. } | Outcome::FailedFatal { .. })
}

/// No handler that never began ends so.
fn began(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Cancelled { .. } | Outcome::Interrupted | Outcome::Revoked)
}

impl Inner {
    pub(super) async fn receive(&self, session: &SessionId, epoch: u64, message: FromWorker) {
        let known = self.edge.with(session, epoch, |s| {
            if message.draining {
                s.says_it_drains = true;
                s.drain();
            }
        });
        if known.is_none() {
            return;
        }
        self.hear(session, epoch);
        let now = self.ports.clock.now();
        for (_, token) in &message.starts {
            self.note_start(session, token, now);
        }
        // Named while their attempts are known, kept after the results: log lines must not hold up an end.
        let lines = self.log_lines(session, epoch, message.logs);
        if !message.progress.is_empty() {
            self.note_progress(session, epoch, message.progress).await;
        }
        if !message.results.is_empty() {
            self.take_results(session, epoch, message.results).await;
        }
        // Only of what it was told to stop: of all else it must say how it ended.
        let known = |s: &mut EdgeSession| message.let_go.into_iter().filter(|token| s.leaving.contains_key(token)).collect();
        let let_go: Vec<AttemptToken> = self.edge.with(session, epoch, known).unwrap_or_default();
        self.let_go(session, let_go).await;
        if let Some(beat) = message.beat {
            self.take_beat(session, epoch, beat).await;
        }
        self.keep_logs(session, lines).await;
        self.hear(session, epoch);
    }

    /// The worker spoke. Said again after a long wait for the Store, in which its next words could not be heard.
    pub(super) fn hear(&self, session: &SessionId, epoch: u64) {
        let now = self.ports.clock.now();
        self.edge.with(session, epoch, |s| {
            s.heard_at = Instant::now();
            s.heard_wall = now;
        });
    }

    pub(super) fn note_started(&self, session: &SessionId, inventory: &[InventoryItem]) {
        let now = self.ports.clock.now();
        for item in inventory.iter().filter(|item| item.started) {
            self.note_start(session, &item.token, now);
        }
    }

    fn note_start(&self, session: &SessionId, token: &AttemptToken, now: Timestamp) {
        if let Some(job) = self.edge.note_start(session, token, now) {
            self.metrics.started(&job, now);
        }
    }

    /// How long the attempt of a stored result was in starting and in running. The worker's own words come first: of an attempt
    /// that ended before its start was reported, nothing else says when it began.
    fn measure(&self, job: &Job, noted: Option<Timestamp>, result: &ResultReport) {
        let (now, attempt) = (self.ports.clock.now(), &job.life.attempt);
        let Some(binding) = attempt.binding.as_ref().filter(|_| attempt.token == result.token) else { return };
        let known = attempt.started_at.or(noted);
        // A worker's clock is not ours.
        let said = result.began.map(|began| began.at.min(now).max(binding.dispatched_at));
        let start = known.or(said).or_else(|| began(&result.outcome).then_some(binding.dispatched_at));
        let Some(start) = start else { return };
        if known.is_none() {
            self.metrics.started(job, start);
        }
        let ran = result.began.and_then(|began| began.ran).unwrap_or_else(|| now.since(start));
        self.metrics.ran(job, ran);
        if let Some(pool) = self.edge.pool_of(&binding.session) {
            self.metrics.pools.ran(&pool, ran);
        }
    }

    /// Results are acknowledged only after their commit. While the Store is away they are kept in hand and tried again.
    async fn take_results(&self, session: &SessionId, epoch: u64, results: Vec<ResultReport>) {
        loop {
            match self.commit_results(session, epoch, &results).await {
                Ok(acks) => {
                    self.send(session, epoch, ToWorker::Acks(acks));
                    return;
                }
                Err(error) => {
                    self.health.cut_off(&error);
                    tracing::warn!(session = %session, %error, results = results.len(), "results could not be stored yet");
                    // It will not pass, and must not hold up whatever else the worker says, who sends them again.
                    if error.is_damage() {
                        return;
                    }
                    tokio::time::sleep(self.settings.start_flush).await;
                }
            }
            self.hear(session, epoch);
            // A session that attached anew resends what was not acknowledged.
            if self.edge.with(session, epoch, |_| ()).is_none() {
                return;
            }
        }
    }

    pub(super) async fn commit_results(
        &self,
        session: &SessionId,
        epoch: u64,
        results: &[ResultReport],
    ) -> Result<Vec<(AttemptToken, Acknowledged)>, StoreError> {
        self.edge.note_runs(session, results.iter().filter(|result| ran(&result.outcome)).map(|result| &result.token));
        let (known, unread) = self.known(session, epoch, results).await?;
        let mut steps = self.check_outputs(results, &known).await.into_iter();
        let mut inputs = Vec::with_capacity(results.len());
        for (result, known) in results.iter().zip(&known) {
            if let Some((job, started_at)) = known {
                let outcome = self.clean(job, result.outcome.clone());
                let output = if is_success(&outcome) { steps.next().unwrap_or_default() } else { OutputStep::Pass };
                let report = AttemptReport { token: result.token.clone(), started_at: *started_at, outcome, output };
                inputs.push((job.clone(), Input::Reported(report)));
            }
        }
        let mut driven = self.drive(inputs).await?.into_iter();
        let mut acks = Vec::with_capacity(results.len());
        let (mut over, mut superseded) = (Vec::with_capacity(results.len()), Vec::new());
        for (result, known) in results.iter().zip(known) {
            // It is unknown whether it counts: its worker keeps it until the job can be read again.
            if unread.contains(&result.token) {
                continue;
            }
            let next = known.as_ref().and_then(|_| driven.next());
            let acknowledged = match next {
                // On record, so that it can be undone, and no result of the job.
                Some(Ok(job)) if job.is_taken(&result.token) => Acknowledged::Superseded,
                Some(Ok(_)) => {
                    if let Some((job, noted)) = &known {
                        self.measure(job, *noted, result);
                    }
                    Acknowledged::Stored
                }
                Some(Err(Undriven::Illegal(_))) | None => Acknowledged::Superseded,
                // Not decided yet, or not stored: the worker keeps it and sends it again.
                Some(Err(Undriven::Contended | Undriven::Refused(_))) => continue,
            };
            over.push(result.token.clone());
            superseded.extend((acknowledged == Acknowledged::Superseded).then(|| result.token.clone()));
            acks.push((result.token.clone(), acknowledged));
        }
        self.free_places(session, over).await;
        // The commit that ended these left their limits until the worker confirms, and this is the confirmation.
        self.free_limits(superseded).await;
        Ok(acks)
    }

    /// What policy says about the results of those that succeeded, in their order.
    async fn check_outputs(&self, results: &[ResultReport], known: &[ReportedJob]) -> Vec<OutputStep> {
        let meta = |(result, known): (&ResultReport, &ReportedJob)| match (&result.outcome, known) {
            (Outcome::Succeeded { result }, Some((job, _))) => {
                Some(OutputMeta { request: job.request.clone(), bytes: result.as_str().len() })
            }
            _ => None,
        };
        let metas: Vec<OutputMeta> = results.iter().zip(known).filter_map(meta).collect();
        if metas.is_empty() {
            return Vec::new();
        }
        let (began, since) = (Instant::now(), self.traces.begin());
        self.governed().await;
        let steps = self.ports.kernel.check_outputs(&metas).await;
        let steps = self.or_unscanned(steps, &metas);
        let (took, lap) = (began.elapsed(), self.traces.lap(since));
        let succeeded = results.iter().zip(known).filter(|(result, _)| is_success(&result.outcome));
        let jobs = succeeded.filter_map(|(_, known)| known.as_ref()).map(|(job, _)| job);
        for (job, _) in jobs.zip(&steps).filter(|(_, step)| !matches!(step, OutputStep::Pass)) {
            self.traces.checked(lap, job, job.life.attempt.no, "output check");
        }
        for (meta, step) in metas.iter().zip(&steps) {
            match step {
                OutputStep::Pass => {}
                OutputStep::Scan { .. } | OutputStep::Decided(_) => {
                    self.metrics.topics.looked(&meta.request.topic, ResultPhase::Metadata, took);
                }
                OutputStep::Unchecked { .. } => self.metrics.topics.skipped(&meta.request.topic),
            }
        }
        steps
    }

    /// What becomes of results while no scanner answers.
    fn or_unscanned(&self, steps: Vec<OutputStep>, metas: &[OutputMeta]) -> Vec<OutputStep> {
        if self.ports.kernel.scans() {
            return steps;
        }
        let step = |(step, meta): (_, &OutputMeta)| match step {
            OutputStep::Scan { .. } => self.unscanned(&meta.request),
            step => step,
        };
        steps.into_iter().zip(metas).map(step).collect()
    }

    /// No scanner answers: the result waits for one, or it is exposed, marked, and scanned later.
    fn unscanned(&self, request: &JobRequest) -> OutputStep {
        match self.ports.kernel.output_fail_mode(request) {
            FailMode::Closed => OutputStep::Scan { hold: true },
            FailMode::Open => OutputStep::Unchecked { why: NOBODY_SCANNED.into() },
        }
    }

    /// Error texts pass policy like results do: what must not come out is taken out.
    fn clean(&self, job: &Job, outcome: Outcome) -> Outcome {
        let clean = |text| self.ports.kernel.clean(&job.request, text);
        match outcome {
            Outcome::FailedRetryable { error, code, retry_after } => {
                Outcome::FailedRetryable { error: clean(error), code, retry_after }
            }
            Outcome::FailedFatal { error } => Outcome::FailedFatal { error: clean(error) },
            Outcome::Cancelled { note } => Outcome::Cancelled { note: clean(note) },
            outcome => outcome,
        }
    }

    /// The jobs of these results: from memory, and from the Store where memory does not have them. Apart from them, the attempts
    /// whose jobs cannot be read.
    async fn known(
        &self,
        session: &SessionId,
        epoch: u64,
        results: &[ResultReport],
    ) -> Result<(Vec<ReportedJob>, BTreeSet<AttemptToken>), StoreError> {
        let mut unread = BTreeSet::new();
        let mut known = self
            .edge
            .with(session, epoch, |s| {
                let stored = |r: &ResultReport| s.held.get(&r.token).filter(|held| held.stored);
                let held = |r: &ResultReport| stored(r).map(|held| (held.job.clone(), held.started));
                results.iter().map(held).collect::<Vec<_>>()
            })
            .unwrap_or_else(|| vec![None; results.len()]);
        let missing: Vec<usize> = (0..results.len()).filter(|i| known[*i].is_none()).collect();
        if !missing.is_empty() {
            let ids: Vec<_> = missing.iter().map(|i| results[*i].job_id.clone()).collect();
            for (i, job) in missing.into_iter().zip(self.load_each(&ids).await?) {
                match job {
                    ReadRow::There(job) => known[i] = Some((Arc::new(job), None)),
                    ReadRow::Gone => {}
                    ReadRow::Unreadable => {
                        unread.insert(results[i].token.clone());
                    }
                }
            }
        }
        Ok((known, unread))
    }

    async fn take_beat(&self, session: &SessionId, epoch: u64, beat: Beat) {
        self.note_started(session, &beat.inventory);
        let inventory: BTreeSet<AttemptToken> = beat.inventory.into_iter().map(|item| item.token).collect();
        let heard = self.edge.with(session, epoch, |s| {
            (s.load, s.active_jobs) = (beat.load, beat.active_jobs);
            let before = s.profile.slots;
            let resized = beat.slots.filter(|slots| s.resize(*slots)).map(|slots| slots > before);
            let gone = |job: &Arc<Job>| {
                let number = job.life.attempt.binding.as_ref().map_or(u64::MAX, |b| b.assignment);
                number <= beat.highest_assignment && !inventory.contains(&job.life.attempt.token)
            };
            let lost = s.stored().map(|held| held.job.clone()).filter(gone).collect::<Vec<_>>();
            let let_go = s.let_go(beat.highest_assignment, &inventory, self.settings.lost_after);
            s.say_again();
            (lost, let_go, resized)
        });
        let (lost, let_go, resized) = heard.unwrap_or_default();
        if let Some(grown) = resized {
            self.metrics.pools.resized(grown);
            self.wake.dispatch.notify_one();
        }
        self.let_go(session, let_go).await;
        let evidence = Evidence::Attached { session: session.clone(), epoch };
        // A failure is retried by the next beat, which says the same.
        if let Err(error) = self.lose(session, lost, &evidence).await {
            tracing::warn!(session = %session, %error, "attempts missing from the inventory could not be requeued yet");
        }
        // Nobody else could give away what is held here if nobody else can be there.
        let lease_age = if self.settings.exclusive_store { Duration::ZERO } else { self.edge.lease_age() };
        self.send(session, epoch, ToWorker::BeatAck { number: beat.number, lease_age });
    }

    /// The jobs of attempts that the session holds. Their texts are cleaned outside the edge's lock: a scan may take its time.
    fn held_jobs<'t>(
        &self,
        session: &SessionId,
        epoch: u64,
        tokens: impl Iterator<Item = &'t AttemptToken>,
    ) -> Vec<Option<Arc<Job>>> {
        let held = |s: &mut EdgeSession| tokens.map(|token| Some(s.held.get(token)?.job.clone())).collect();
        self.edge.with(session, epoch, held).unwrap_or_default()
    }

    async fn note_progress(&self, session: &SessionId, epoch: u64, reports: Vec<(AttemptToken, AttemptProgress)>) {
        let jobs = self.held_jobs(session, epoch, reports.iter().map(|(token, _)| token));
        let clean = |((token, progress), job): ((AttemptToken, AttemptProgress), Option<Arc<Job>>)| {
            let message = self.ports.kernel.clean(&job?.request, progress.message);
            Some((token, AttemptProgress { message, ..progress }))
        };
        let cleaned: Vec<_> = reports.into_iter().zip(jobs).filter_map(clean).collect();
        let bells = self.edge.with(session, epoch, |s| {
            let mut bells = Vec::new();
            for (token, progress) in cleaned {
                if let Some(held) = s.held.get_mut(&token) {
                    held.progress = Some(progress);
                    bells.push(Bell::Job(held.job.request.job_id.clone()));
                }
            }
            bells
        });
        self.ports.bus.ring(bells.unwrap_or_default()).await;
    }

    fn log_lines(&self, session: &SessionId, epoch: u64, reports: Vec<LogReport>) -> Vec<LogLine> {
        let jobs = self.held_jobs(session, epoch, reports.iter().map(|report| &report.token));
        let line = |(report, job): (LogReport, Option<Arc<Job>>)| {
            let job = job?;
            let line = self.ports.kernel.clean(&job.request, report.line);
            Some(LogLine { job_id: job.request.job_id.clone(), attempt: job.life.attempt.no, at: report.at, line })
        };
        reports.into_iter().zip(jobs).filter_map(line).collect()
    }

    async fn keep_logs(&self, session: &SessionId, lines: Vec<LogLine>) {
        if lines.is_empty() {
            return;
        }
        let jobs: BTreeSet<JobId> = lines.iter().map(|line| line.job_id.clone()).collect();
        // Log lines are a convenience: losing some while the Store is away must not hold up results.
        match self.ports.store.append_logs(lines).await {
            Ok(()) => self.ports.bus.ring(jobs.into_iter().map(Bell::Job).collect()).await,
            Err(error) => tracing::warn!(session = %session, %error, "log lines were lost"),
        }
    }

    fn send(&self, session: &SessionId, epoch: u64, message: ToWorker) {
        self.edge.with(session, epoch, |s| s.outbound.tell(message));
    }
}
