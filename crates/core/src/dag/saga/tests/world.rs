//! What is around a saga: a Store that keeps what was committed, and jobs that end when a test says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::dag::plan::{OrderRefusal, RunCommand, RunMessage, RunTransition};
use crate::dag::saga::Saga;
use crate::dag::{JobTries, NodeKey, NodeRun, Run, RunState, UndoState};
use crate::ids::{AttemptToken, JobId};
use crate::job::{Env, Failure, Job, JobState, Leaving, LostAttempt, Reason, submit};
use crate::limits::Limits;
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::retry::Jitter;
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};

pub(super) const UNDO: &str = r#"{"topic":"job.undo"}"#;

pub(super) struct World {
    pub(super) saga: Option<Saga>,
    pub(super) committed: Option<Run>,
    pub(super) jobs: BTreeMap<String, Job>,
    /// Jobs that undo, by what they undo, and whether they are over.
    pub(super) undos: Vec<(String, Arc<JobRequest>, bool)>,
    pub(super) dead: Vec<(Arc<JobRequest>, Failure)>,
    pub(super) stopped: Vec<String>,
    pub(super) now: Timestamp,
}

impl Default for World {
    fn default() -> Self {
        Self {
            saga: None,
            committed: None,
            jobs: BTreeMap::new(),
            undos: Vec::new(),
            dead: Vec::new(),
            stopped: Vec::new(),
            now: Timestamp::from_millis(1_000_000),
        }
    }
}

pub(super) fn plain_job(id: &str, undo: Option<&str>, now: Timestamp) -> Job {
    let new = NewJob {
        job_id: Some(id.into()),
        topic: "job.do".into(),
        workflow_id: Some("order-7".into()),
        compensation: undo.map(|undo| Json::parse(undo).unwrap()),
        capability: Some("book".into()),
        env: [("TEAM".to_owned(), "blue".to_owned())].into(),
        labels: [("preferred_pool".to_owned(), "gpu".to_owned())].into(),
        ..NewJob::default()
    };
    let request = JobRequest::check(new, &Caller::new("acme", "ann"), || unreachable!("chosen")).unwrap();
    let hash = request.hash();
    let verdict = Verdict::plain(Decision::Allow, "r", "because", "p".into());
    let env = Env {
        now,
        token: AttemptToken::from("t"),
        jitter: Jitter::from_bits(0),
        limits: &Limits::default(),
        timeouts: Arc::default(),
        judgement: Judgement::Decided(Arc::new(verdict)),
    };
    submit(Arc::new(request), hash, &env).job
}

impl World {
    pub(super) fn submit(&mut self, id: &str, undo: Option<&str>) {
        self.jobs.insert(id.to_owned(), plain_job(id, undo, self.now));
        self.tell(id);
    }

    pub(super) fn settle(&mut self, id: &str, state: JobState, reason: Option<Reason>) {
        let job = self.jobs.get_mut(id).unwrap();
        job.life.state = state;
        if matches!(state, JobState::Failed | JobState::Timeout) {
            // A worker had it in its hands.
            job.life.counters.failures += 1;
        }
        job.life.last_error = reason.map(|reason| Failure::new(reason, "boom"));
    }

    /// It is cancelled while its worker is at work on it.
    pub(super) fn take_away(&mut self, id: &str) {
        let life = &mut self.jobs.get_mut(id).unwrap().life;
        let leaving = Some(Leaving { session: "s1".into(), until: Timestamp::from_millis(i64::MAX / 2), scan: false });
        life.taken = vec![LostAttempt { no: life.attempt.no, token: life.attempt.token.clone(), leaving }];
    }

    /// Its worker says that it is gone.
    pub(super) fn let_go(&mut self, id: &str) {
        self.jobs.get_mut(id).unwrap().life.taken.iter_mut().for_each(|taken| taken.leaving = None);
    }

    /// Its worker finished although the attempt no longer counted.
    pub(super) fn finish_late(&mut self, id: &str) {
        self.let_go(id);
        let life = &mut self.jobs.get_mut(id).unwrap().life;
        life.late = Some(LostAttempt { no: life.attempt.no, token: life.attempt.token.clone(), leaving: None });
    }

    pub(super) fn end(&mut self, id: &str, state: JobState, reason: Option<Reason>) {
        self.settle(id, state, reason);
        self.tell(id);
    }

    pub(super) fn replay(&mut self, id: &str) {
        let job = self.jobs.get_mut(id).unwrap();
        job.life.no += 1;
        job.life.state = JobState::Scheduled;
        self.tell(id);
    }

    pub(super) fn news_of(&self, id: &str) -> RunMessage {
        RunMessage::Plain(Box::new(self.jobs[id].clone()))
    }

    pub(super) fn tell(&mut self, id: &str) {
        self.hear(&[self.news_of(id)]);
    }

    /// Every process that loads the saga makes an equal decision.
    pub(super) fn hear(&mut self, news: &[RunMessage]) {
        let now = self.now;
        let first = news.iter().find_map(|news| if let RunMessage::Plain(job) = news { Some(job) } else { None });
        if self.saga.is_none() {
            self.saga = first.map(|job| Saga::begin(&job.request, now));
        }
        let mut loaded = self.committed.clone().map(Saga::new).or_else(|| self.saga.clone());
        let next = self.saga.as_mut().and_then(|saga| saga.step(news, now));
        let again = loaded.as_mut().and_then(|saga| saga.step(news, now));
        assert_eq!(format!("{next:?}"), format!("{again:?}"));
        self.commit(next);
    }

    pub(super) fn commit(&mut self, next: Option<RunTransition>) {
        let Some(next) = next else { return };
        let committed = self.committed.get_or_insert_with(|| {
            let mut head = next.head.clone();
            head.version = 0;
            Run { head, nodes: BTreeMap::new() }
        });
        assert_eq!(next.head.version, committed.head.version + 1);
        committed.head = next.head;
        committed.nodes.extend(next.nodes);
        for request in next.jobs {
            let part = request.run.as_ref().unwrap();
            let row = &committed.nodes[&NodeKey { node: part.node, item: part.item }];
            let id = row.job.as_ref().unwrap().to_string();
            let settled = |row: &NodeRun| row.undo.as_ref().is_some_and(|undo| undo.state.is_settled());
            let after = committed.nodes.values().filter(|other| other.entry_no > row.entry_no);
            assert!(part.round > 0 || after.into_iter().all(settled), "{id} is undone before what came after it");
            assert!(self.undos.iter().all(|(_, known, _)| known.job_id != request.job_id), "{} twice", request.job_id);
            self.undos.push((id, request, false));
        }
        self.dead.extend(next.dead);
        self.stopped.extend(next.stop_jobs.iter().map(ToString::to_string));
    }

    /// A step that lost its process is taken again from the rows, and the sweep finds nothing that it has left.
    pub(super) fn crash(&mut self) {
        self.saga = self.committed.clone().map(Saga::new);
        let now = self.now;
        let next = self.saga.as_mut().and_then(|saga| saga.replan(now).0);
        assert!(next.is_none(), "{next:?}");
    }

    pub(super) fn end_undo(&mut self, id: &str, state: JobState) {
        let open = self.undos.iter_mut().rev().find(|(of, _, over)| of == id && !over).unwrap();
        open.2 = state.is_terminal();
        let part = open.1.run.clone().unwrap();
        let failure = (!matches!(state, JobState::Succeeded)).then(|| Failure::new(Reason::Failed, "boom"));
        let tries = JobTries { attempts: 1, losses: 0 };
        self.hear(&[RunMessage::Job { part, state, output: None, failure, memo_of: None, tries, leaving: Vec::new() }]);
    }

    pub(super) fn obey(&mut self, order: RunCommand) -> Result<(), OrderRefusal> {
        let now = self.now;
        let next = self.saga.as_mut().unwrap().order(order, now)?;
        self.commit(next);
        Ok(())
    }

    pub(super) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.hear(&[]);
    }

    pub(super) fn spoil(&mut self, id: &str, entry: Json) {
        let key = self.key(id);
        let run = self.committed.as_mut().unwrap();
        run.nodes.get_mut(&key).unwrap().entry = Some(entry);
        self.saga = Some(Saga::new(run.clone()));
    }

    pub(super) fn run(&self) -> &Run {
        self.committed.as_ref().unwrap()
    }

    pub(super) fn state(&self) -> RunState {
        self.run().head.state
    }

    pub(super) fn key(&self, id: &str) -> NodeKey {
        let id = JobId::from(id);
        *self.run().nodes.iter().find(|(_, row)| row.job.as_ref() == Some(&id)).unwrap().0
    }

    pub(super) fn row(&self, id: &str) -> &NodeRun {
        &self.run().nodes[&self.key(id)]
    }

    pub(super) fn undo_state(&self, id: &str) -> Option<UndoState> {
        self.row(id).undo.as_ref().map(|undo| undo.state)
    }

    pub(super) fn undo_job(&self, id: &str) -> &JobRequest {
        &self.undos.iter().rev().find(|(of, ..)| of == id).unwrap().1
    }

    pub(super) fn open_undos(&self) -> Vec<&str> {
        self.undos.iter().filter(|(_, _, over)| !over).map(|(id, ..)| id.as_str()).collect()
    }

    /// In the order in which they were begun.
    pub(super) fn undone(&self) -> Vec<&str> {
        self.undos.iter().map(|(id, ..)| id.as_str()).collect()
    }
}
