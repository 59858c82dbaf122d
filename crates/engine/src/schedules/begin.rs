//! What is due is begun: jobs by the path of every submit, runs by that of every start. Whoever comes second finds them there.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::dag::plan::{Start, begin};
use lockgate_core::dag::{DagRef, RunState};
use lockgate_core::ids::TenantId;
use lockgate_core::job::submit;
use lockgate_core::request::{Caller, JobRequest};
use lockgate_core::schedule::{Begin, RunAsk, Schedule, ScheduleNews, Target};
use lockgate_core::time::Timestamp;
use lockgate_ports::{ChangeError, RunRefusal, StoreError};

use crate::Inner;
use crate::runs::{CachedDag, DagKey, Planned};
use crate::traces::SubmitTimes;

/// Runs begun in one commit.
const RUNS_MAX: usize = 256;

/// The newest versions, as far as they were asked for in one round.
type Newest = BTreeMap<(TenantId, Arc<str>), Option<u32>>;

impl Inner {
    /// All that is due of all of them. A job that policy denies is there, as a denied job: its slot was started.
    pub(super) async fn begin_due(&self, schedules: &[Schedule], news: &mut ScheduleNews) -> Result<(), StoreError> {
        let (mut jobs, mut runs) = (Vec::new(), Vec::new());
        for schedule in schedules {
            for (target, what) in schedule.unbegun(news.now, news.keep) {
                match what {
                    Begin::Job(request) => jobs.push((target.clone(), request)),
                    Begin::Run(ask) => runs.push((target.clone(), schedule.caller(), ask)),
                    Begin::Nothing(reason) => drop(news.begun.insert(target.clone(), Err(reason))),
                }
            }
        }
        for some in jobs.chunks(self.settings.batch_max) {
            self.begin_jobs(some, news).await?;
        }
        let mut newest = Newest::new();
        for some in runs.chunks(RUNS_MAX) {
            self.begin_runs(some, &mut newest, news).await?;
        }
        Ok(())
    }

    async fn begin_jobs(&self, jobs: &[(Target, Arc<JobRequest>)], news: &mut ScheduleNews) -> Result<(), StoreError> {
        let requests: Vec<Arc<JobRequest>> = jobs.iter().map(|(_, request)| request.clone()).collect();
        let began = self.traces.begin();
        let (judged, verdict) = self.judge(&requests).await;
        let entry = SubmitTimes { began, verdict };
        let birth = |(request, judgement): (Arc<JobRequest>, _)| {
            let hash = request.hash();
            submit(request, hash, &self.env(judgement))
        };
        let births = requests.into_iter().zip(judged).map(birth).collect();
        for ((target, _), outcome) in jobs.iter().zip(self.commit_new(births, entry).await?) {
            match outcome {
                // Nobody else can take the id: it is there from an earlier try.
                Ok(_) | Err(ChangeError::Taken(_)) => drop(news.begun.insert(target.clone(), Ok(()))),
                // It is tried again when the schedule is turned next.
                Err(ChangeError::Conflict | ChangeError::Refused(_)) => {}
            }
        }
        Ok(())
    }

    async fn begin_runs(
        &self,
        runs: &[(Target, Caller, RunAsk)],
        newest: &mut Newest,
        news: &mut ScheduleNews,
    ) -> Result<(), StoreError> {
        let (mut planned, mut targets) = (Vec::new(), Vec::new());
        for (target, caller, ask) in runs {
            match self.plan_run(caller, ask, newest, news.now).await? {
                Ok(run) => {
                    planned.push(run);
                    targets.push(target);
                }
                Err(reason) => drop(news.begun.insert(target.clone(), Err(reason.into()))),
            }
        }
        let ids: Vec<_> = planned.iter().map(|planned| planned.live.run().head.id.clone()).collect();
        let answers = self.advance(planned).await?;
        self.run_queue.wake(ids);
        for (target, answer) in targets.into_iter().zip(answers) {
            match answer {
                // A conflict means that it has begun already.
                Ok(()) | Err(RunRefusal::Conflict) => drop(news.begun.insert(target.clone(), Ok(()))),
                Err(RunRefusal::Taken { .. } | RunRefusal::Refused(_)) => {}
            }
        }
        Ok(())
    }

    /// A run ready to begin, or in words why there can be none.
    async fn plan_run(
        &self,
        caller: &Caller,
        ask: &RunAsk,
        newest: &mut Newest,
        now: Timestamp,
    ) -> Result<Result<Planned, String>, StoreError> {
        let wanted = match self.wanted_dag(caller, ask, newest).await {
            // It must not stand in the way of everybody else's.
            Err(StoreError::Corrupt(text)) => return Ok(Err(format!("DAG {:?} cannot be read: {text}", ask.dag))),
            wanted => wanted?,
        };
        let Some((of, known)) = wanted else {
            let version = ask.version.map(|version| format!(" version {version} of")).unwrap_or_default();
            return Ok(Err(format!("there is no{version} DAG {:?}", ask.dag)));
        };
        let params = match known.dag.check_params(&ask.params) {
            Ok(params) => params,
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                return Ok(Err(format!("DAG {:?} refused its parameters: {}", ask.dag, errors.join("; "))));
            }
        };
        let caller = self.traces.root(&ask.id, caller);
        let timeout = self.config.timeouts().of_workflow(&of.name);
        let start = Start { id: ask.id.clone(), of, params, parent: None, fresh: false, timeout };
        let (live, next) = begin(&known.dag, start, &caller, now);
        Ok(Ok(Planned::step(live, RunState::Running, next, Vec::new())))
    }

    async fn wanted_dag(
        &self,
        caller: &Caller,
        ask: &RunAsk,
        newest: &mut Newest,
    ) -> Result<Option<(DagRef, CachedDag)>, StoreError> {
        let name = (caller.tenant.clone(), ask.dag.clone());
        let version = match ask.version.map(Some).or_else(|| newest.get(&name).copied()) {
            Some(version) => version,
            None => {
                let row = self.ports.store.dag(&caller.tenant, &ask.dag, None).await?;
                let version = row.as_ref().map(|row| row.version);
                row.map(|row| self.learn(row)).transpose()?;
                newest.insert(name, version);
                version
            }
        };
        let Some(version) = version else { return Ok(None) };
        let of = DagRef { name: ask.dag.clone(), version };
        Ok(self.definition(&DagKey::of(&caller.tenant, &of)).await?.map(|known| (of, known)))
    }
}
