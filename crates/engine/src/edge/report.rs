//! What workers report: starts, results, progress, logs, beats.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::edge::{Acknowledged, AttemptProgress, EdgeEffect, FromWorker, LogReport, ReportedJob, ResultReport};
use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::{AttemptReport, Input, Job, Outcome};
use lockgate_core::output::OutputStep;
use lockgate_core::policy::FailMode;
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Bell, LogLine, OutputMeta, StoreError};
use tokio::time::Instant;

use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;
use crate::metrics::ResultPhase;

/// Why a result came out unscanned.
pub(crate) const NOBODY_SCANNED: &str = "output policy fail-open: nobody could scan the result";

fn is_success(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Succeeded { .. })
}

/// No handler that never began ends so.
fn began(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Cancelled { .. } | Outcome::Interrupted | Outcome::Revoked)
}

impl Inner {
    pub(super) async fn receive(&self, session: &SessionId, epoch: u64, message: FromWorker) {
        let wall = self.ports.clock.now();
        let effects = self.edge.step_with(|edge, now| {
            let effects = edge.on_message(session, epoch, &message, now, wall);
            (effects.is_some(), effects.unwrap_or_default())
        });
        let (true, effects) = effects else { return };
        self.perform(effects).await;
        // Named while their attempts are known, kept after the results: log lines must not hold up an end.
        let lines = self.log_lines(session, epoch, message.logs);
        if !message.progress.is_empty() {
            self.note_progress(session, epoch, message.progress).await;
        }
        if !message.results.is_empty() {
            self.take_results(session, epoch, message.results).await;
        }
        let wall = self.ports.clock.now();
        let mut effects = self.edge.step(|edge, _| edge.on_let_go(session, epoch, message.let_go));
        if let Some(beat) = message.beat {
            // Each of them may take its time; the second is decided after the first is done.
            self.follow_beat(session, std::mem::take(&mut effects)).await;
            effects = self.edge.step(|edge, now| edge.on_beat(session, epoch, beat, now, wall));
        }
        self.follow_beat(session, effects).await;
        self.keep_logs(session, lines).await;
        self.hear(session, epoch);
    }

    /// A failure is repeated by the next beat, which says the same.
    async fn follow_beat(&self, session: &SessionId, effects: Vec<EdgeEffect>) {
        if let Err(error) = self.follow_up(effects).await {
            tracing::warn!(session = %session, %error, "attempts missing from the inventory could not be requeued yet");
        }
    }

    /// The worker spoke. Whether it is attached under this epoch.
    pub(super) fn hear(&self, session: &SessionId, epoch: u64) -> bool {
        let wall = self.ports.clock.now();
        self.edge.ask(|edge, now| edge.on_heard(session, epoch, now, wall))
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
        if let Some(pool) = self.edge.look(|edge| edge.pool_of(&binding.session)) {
            self.metrics.pools.ran(&pool, ran);
        }
    }

    /// Results are acknowledged only after their commit. While the Store is away they are kept in hand and tried again.
    async fn take_results(&self, session: &SessionId, epoch: u64, results: Vec<ResultReport>) {
        let Some(batch) = self.edge.ask(|edge, _| edge.on_results(session, epoch)) else { return };
        let acks = loop {
            match self.commit_results(session, epoch, &results).await {
                Ok(acks) => break acks,
                Err(error) => {
                    self.health.cut_off(&error);
                    tracing::warn!(session = %session, %error, results = results.len(), "results could not be stored yet");
                    // It will not pass, and must not hold up whatever else the worker says, who sends them again.
                    if error.is_damage() {
                        break Vec::new();
                    }
                    tokio::time::sleep(self.settings.start_flush).await;
                }
            }
            // A session that attached anew resends what was not acknowledged.
            if !self.hear(session, epoch) {
                return;
            }
        };
        let effects = self.edge.step(|edge, _| edge.on_decided(session, epoch, batch, acks));
        self.perform(effects).await;
    }

    pub(super) async fn commit_results(
        &self,
        session: &SessionId,
        epoch: u64,
        results: &[ResultReport],
    ) -> Result<Vec<(AttemptToken, Acknowledged)>, StoreError> {
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
        let effects = self.edge.step(|edge, _| edge.on_committed(session, &over, superseded));
        self.perform(effects).await;
        Ok(acks)
    }

    /// What policy says about the results of those that succeeded, in their order.
    async fn check_outputs(&self, results: &[ResultReport], known: &[Option<ReportedJob>]) -> Vec<OutputStep> {
        let meta = |(result, known): (&ResultReport, &Option<ReportedJob>)| match (&result.outcome, known) {
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
    ) -> Result<(Vec<Option<ReportedJob>>, BTreeSet<AttemptToken>), StoreError> {
        let mut unread = BTreeSet::new();
        let mut known = self.edge.ask(|edge, now| edge.reported(session, epoch, results, now));
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

    /// The jobs of attempts that the session holds. Their texts are cleaned outside the edge's lock: a scan may take its time.
    fn held_jobs<'t>(
        &self,
        session: &SessionId,
        epoch: u64,
        tokens: impl Iterator<Item = &'t AttemptToken>,
    ) -> Vec<Option<Arc<Job>>> {
        self.edge.ask(|edge, _| edge.held_jobs(session, epoch, tokens))
    }

    async fn note_progress(&self, session: &SessionId, epoch: u64, reports: Vec<(AttemptToken, AttemptProgress)>) {
        let jobs = self.held_jobs(session, epoch, reports.iter().map(|(token, _)| token));
        let clean = |((token, progress), job): ((AttemptToken, AttemptProgress), Option<Arc<Job>>)| {
            let message = self.ports.kernel.clean(&job?.request, progress.message);
            Some((token, AttemptProgress { message, ..progress }))
        };
        let cleaned: Vec<_> = reports.into_iter().zip(jobs).filter_map(clean).collect();
        let effects = self.edge.step(|edge, _| edge.on_progress(session, epoch, cleaned));
        self.perform(effects).await;
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
}
