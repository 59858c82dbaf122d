//! Spans: whatever becomes of a job, each stands below another that is written, and none is written twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_core::trace::{Span, SpanId, TraceId, TraceParent};
use lockgate_engine::{RunOrder, StartRun};
use lockgate_ports::{Clock, Spans};

use super::stage::{Hand, Stage, caller, job};

const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Takes every span of sampled traces and keeps it.
pub(crate) struct Recorder {
    clock: Arc<dyn Clock>,
    taken: Mutex<Vec<Span>>,
}

impl Recorder {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, taken: Mutex::default() }
    }

    fn of(&self, trace: TraceId) -> Vec<Span> {
        self.taken.lock().expect("whole").iter().filter(|span| span.trace == trace).cloned().collect()
    }
}

impl Spans for Recorder {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or(0) * 1_000_000
    }

    fn wants(&self, _: &TraceId, parent: Option<&TraceParent>) -> bool {
        parent.is_none_or(|parent| parent.sampled)
    }

    fn record(&self, spans: Vec<Span>) {
        self.taken.lock().expect("whole").extend(spans);
    }
}

/// How often each name occurs, if everything stands below the one root that stands below `outside`.
fn whole(spans: &[Span], outside: Option<SpanId>) -> BTreeMap<&str, usize> {
    let ids: BTreeSet<SpanId> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len(), "no span is written twice: {spans:#?}");
    let roots: Vec<_> = spans.iter().filter(|span| span.parent.is_none_or(|parent| !ids.contains(&parent))).collect();
    let [root] = roots[..] else { panic!("one root: {roots:#?}") };
    assert_eq!(root.parent, outside);
    let mut names = BTreeMap::new();
    for span in spans {
        assert!(span.began <= span.ended, "{span:?}");
        *names.entry(&*span.name).or_default() += 1;
    }
    names
}

fn trace(text: &str) -> TraceParent {
    text.parse().expect("good")
}

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn failed() -> Outcome {
    Outcome::FailedRetryable { error: "not yet".into(), code: None, retry_after: None }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_retried_lost_and_replayed_has_a_span_for_each_of_it() {
    let stage = Stage::new();
    let sent = trace(SENT);
    let client = Caller { trace: Some(sent), ..caller() };
    let new = NewJob { job_id: Some("j".to_owned()), max_attempts: Some(2), ..job("t") };
    stage.engine.submit(&client, vec![new.clone()]).await.expect("taken").pop().expect("one").expect("accepted");
    let again = stage.engine.submit(&client, vec![new]).await.expect("taken").pop().expect("one").expect("accepted");
    assert!(again.existing, "a repeat makes nothing, and no spans either");
    let id = JobId::from("j");
    let mut hand = Hand::attach(&stage.engine, "one", &["t"], 1).await;
    let first = hand.take().await;
    assert_eq!(first.trace.map(|trace| (trace.trace, trace.sampled)), Some((sent.trace, true)));
    assert_eq!(first.trace.and_then(|trace| trace.span), Some(first.job.attempt_span(1)));
    hand.report(&first, failed()).await;
    hand.take().await;
    // It is never heard of again.
    drop(hand);
    stage.until(&id, |job| job.life.attempt.no == 3).await;
    let mut hand = Hand::attach(&stage.engine, "two", &["t"], 1).await;
    let third = hand.take().await;
    hand.report(&third, failed()).await;
    stage.until(&id, |job| job.state() == JobState::Failed).await;
    stage.engine.replay_one(&caller(), &id).await.expect("replayed");
    let fourth = hand.take().await;
    hand.report(&fourth, done()).await;
    stage.until(&id, |job| job.state() == JobState::Succeeded).await;

    let spans = stage.spans.of(sent.trace);
    let lives: Vec<&Span> = spans.iter().filter(|span| span.name == "job t").collect();
    assert_eq!(lives.iter().map(|life| life.parent).collect::<Vec<_>>(), [sent.span; 2], "two lives, one after the other");
    assert_eq!(lives.iter().map(|life| life.failure.is_some()).collect::<Vec<_>>(), [true, false]);
    let attempts: Vec<_> = spans.iter().filter(|span| span.name.starts_with("attempt")).collect();
    let told: Vec<_> = attempts.iter().map(|attempt| (&*attempt.name, attempt.failure.is_some())).collect();
    assert_eq!(told, [("attempt 1", true), ("attempt 2", true), ("attempt 3", true), ("attempt 4", false)]);
    // Everything below the two lives hangs together.
    let mut joined = spans.clone();
    let root = Span { id: sent.span.expect("sent"), parent: None, name: "client".into(), ..spans[0].clone() };
    joined.push(root);
    let names = whole(&joined, None);
    assert_eq!((names["submit"], names["claim"], names["dispatch"], names["verdict"]), (1, 4, 4, 4));
}

#[tokio::test(start_paused = true)]
async fn jobs_that_never_reach_a_worker_end_their_traces_too() {
    let stage = Stage::new();
    stage
        .apply("version: 1\ndefault: {decision: allow, reason: ok}\nrules:\n  - {id: n, match: {topics: [bad]}, decision: deny, reason: never}\n")
        .await;
    let denied = stage.submit(job("bad")).await;
    let cancelled = stage.submit(job("t")).await;
    stage.engine.cancel(&caller(), &cancelled, None).await.expect("cancelled");
    for (id, root) in [(denied, "job bad"), (cancelled, "job t")] {
        let job = stage.until(&id, |job| job.state().is_terminal()).await;
        let spans = stage.spans.of(job.request.trace());
        let names = whole(&spans, None);
        assert_eq!((names[root], names["submit"], names["verdict"]), (1, 1, 1), "{names:?}");
    }
    let quiet = Caller { trace: Some(TraceParent { sampled: false, ..trace(SENT) }), ..caller() };
    stage.engine.submit(&quiet, vec![job("bad")]).await.expect("taken");
    assert!(stage.spans.of(trace(SENT).trace).is_empty(), "nobody writes what the caller does not");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_run_again_stays_below_its_root() {
    let stage = Stage::new();
    let inner = "version: 1\ndag: inner\nnodes:\n  x: {topic: t}\n";
    let outer = "version: 1\ndag: outer\nnodes:\n  a: {topic: t}\n  b: {needs: a, dag: inner}\n  c: {needs: b, topic: t}\n";
    for text in [inner, outer] {
        stage.engine.put_dag(&caller(), "test.yaml", text).await.expect("a good definition");
    }
    let params = serde_json::json!({});
    let start = StartRun { dag: "outer".to_owned(), version: None, params, idempotency_key: None, fresh: false };
    let run = stage.engine.start_run(&caller(), start).await.expect("started").run;
    let mut hand = Hand::attach(&stage.engine, "one", &["t"], 1).await;
    for outcome in [done(), done(), Outcome::FailedFatal { error: "no".into() }] {
        let next = hand.take().await;
        hand.report(&next, outcome).await;
    }
    let over = || async { stage.engine.run_head(&caller(), &run).await.expect("there").state.is_over() };
    wait_until(over).await;
    let order = RunOrder::Rerun { from: vec!["c".to_owned()], params: serde_json::Map::new(), fresh: false };
    stage.engine.order_run(&caller(), &run, order).await.expect("taken");
    let last = hand.take().await;
    hand.report(&last, done()).await;
    wait_until(over).await;

    let head = stage.engine.run_head(&caller(), &run).await.expect("there");
    let spans = stage.spans.of(head.trace.expect("decided").trace);
    let names = whole(&spans, None);
    assert_eq!((names["run outer"], names["run inner"], names["job t"], names["start"]), (2, 1, 4, 1), "{names:?}");
    let inner = spans.iter().find(|span| span.name == "run inner").expect("there");
    let outer = spans.iter().find(|span| Some(span.id) == inner.parent).expect("there");
    assert_eq!(outer.name, "run outer");
}

async fn wait_until<F: Future<Output = bool>>(met: impl Fn() -> F) {
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..10_000 {
        if met().await {
            return;
        }
        tick.tick().await;
    }
    panic!("it did not happen");
}
