//! A whole session in paused time, against servers played by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use lockgate_proto::v1::result::Outcome;
use lockgate_proto::v1::{Assignment, BeatAck, Hello, ResultAck, ServerMessage, Welcome, WorkerMessage};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Endpoint;

use super::backoff::LONGEST;
use super::dial::{Dial, Inbound, Over};
use super::lease::stop_after;
use super::outbox::LOG_LINE_BYTES_MAX;
use super::uplink::Uplink;
use super::{SessionState, Setup, run};
use crate::context::Context;
use crate::registry::{LeaseLoss, Registry, Route};

const LOST_AFTER: Duration = Duration::from_secs(10);
/// Longer than anything that is waited for here, in paused time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Servers that are there, or are not.
struct Servers {
    away: AtomicBool,
    refused: AtomicU32,
    arrivals: UnboundedSender<Line>,
}

#[async_trait]
impl Dial for Servers {
    async fn open(&self, session_state: &Arc<SessionState>, _: &Endpoint) -> Result<(Inbound, Instant), Over> {
        if self.away.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Over::Lost("nobody is there".to_owned()));
        }
        let heard_at = Instant::now();
        let uplink = Uplink::new(session_state.clone(), session_state.open_stream());
        let (outgoing, answers) = unbounded_channel();
        let line = Line { hello: Hello::default(), uplink, outgoing, heard_at };
        self.arrivals.send(line).map_err(|_| Over::Lost("the test is over".to_owned()))?;
        let inbound: Inbound = UnboundedReceiverStream::new(answers).map(Ok).boxed();
        Ok((inbound, heard_at))
    }
}

/// One stream as its server has it. Dropping it ends the stream.
struct Line {
    hello: Hello,
    uplink: Uplink,
    outgoing: UnboundedSender<ServerMessage>,
    /// When it heard the last beat that it answered.
    heard_at: Instant,
}

impl Line {
    fn say(&self, message: ServerMessage) {
        let _ = self.outgoing.send(message);
    }

    fn assign(&self, number: u64, token: &str, topic: &str) {
        let (token, topic) = (token.to_owned(), topic.to_owned());
        let assignments = vec![Assignment { number, token, topic, ..Assignment::default() }];
        self.say(ServerMessage { assignments, ..ServerMessage::default() });
    }

    fn ack(&self, token: &str) {
        let acks = vec![ResultAck { token: token.to_owned(), superseded: false }];
        self.say(ServerMessage { acks, ..ServerMessage::default() });
    }

    /// The next message. Beats are answered in passing.
    async fn next(&mut self) -> WorkerMessage {
        let message = timeout(PATIENCE, self.uplink.next()).await.expect("in time").expect("the stream is open");
        if let Some(beat) = &message.beat {
            self.heard_at = Instant::now();
            let beat_ack = Some(BeatAck { number: beat.number, lease_age_ms: 0 });
            self.say(ServerMessage { beat_ack, ..ServerMessage::default() });
        }
        message
    }

    async fn until<T>(&mut self, look: impl Fn(&WorkerMessage) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            let message = self.next().await;
            if let Some(found) = look(&message) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "it did not come");
        }
    }

    async fn started(&mut self, token: &str) {
        self.until(|message| message.starts.iter().any(|start| start.token == token).then_some(())).await;
    }

    async fn beats(&mut self, count: u32) {
        for _ in 0..count {
            self.until(|message| message.beat.is_some().then_some(())).await;
        }
    }

    async fn result(&mut self) -> (String, Outcome) {
        let first = |message: &WorkerMessage| {
            let report = message.results.first()?;
            Some((report.token.clone(), report.outcome.clone()?))
        };
        self.until(first).await
    }
}

/// A worker, and the servers that it knows.
struct World {
    servers: Arc<Servers>,
    lines: UnboundedReceiver<Line>,
}

impl World {
    fn start(registry: Registry) -> Self {
        let (arrivals, lines) = unbounded_channel();
        let servers = Arc::new(Servers { away: AtomicBool::new(false), refused: AtomicU32::new(0), arrivals });
        let profile = Hello { slots: 4, topics: registry.topics(), ..Hello::default() };
        let setup = Setup {
            profile,
            registry,
            addresses: vec![Endpoint::from_static("http://server")],
            dial: servers.clone(),
            journal: None,
            drain_timeout: Duration::ZERO,
            gpu_load: None,
            spans: None,
            adaptive: None,
        };
        tokio::spawn(run(setup, std::future::pending()));
        Self { servers, lines }
    }

    async fn accept(&mut self) -> Line {
        let mut line = timeout(PATIENCE, self.lines.recv()).await.expect("in time").expect("a worker");
        line.hello = line.next().await.hello.expect("a stream begins with a hello");
        let lost_after_ms = u32::try_from(LOST_AFTER.as_millis()).expect("short");
        let welcome = Welcome { epoch: 1, beat_every_ms: 3_000, lost_after_ms, ..Welcome::default() };
        line.say(ServerMessage { welcome: Some(welcome), ..ServerMessage::default() });
        line
    }

    fn go_away(&self) {
        self.servers.away.store(true, Ordering::Relaxed);
    }

    fn come_back(&self) {
        self.servers.away.store(false, Ordering::Relaxed);
    }
}

/// Sends the time at which it is dropped.
struct Tell(UnboundedSender<Instant>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

/// Attempts of topic `wait` run until the gate lets one of them go, and tell when they are gone.
fn waiting(choice: LeaseLoss) -> (Registry, Arc<Notify>, UnboundedReceiver<Instant>) {
    let (gate, (tell, gone)) = (Arc::new(Notify::new()), unbounded_channel());
    let opened = gate.clone();
    let mut registry = Registry::default();
    let route = Route::new(move |_, _| {
        let (gate, tell) = (opened.clone(), Tell(tell.clone()));
        async move {
            let _tell = tell;
            gate.notified().await;
            Ok(())
        }
    });
    registry.insert("wait".to_owned(), route);
    assert!(registry.set_lease_loss("wait", choice));
    (registry, gate, gone)
}

/// Trap 55.
#[tokio::test(start_paused = true)]
async fn a_result_is_told_after_however_long_an_outage() {
    let (registry, gate, mut gone) = waiting(LeaseLoss::Continue);
    let mut world = World::start(registry);
    let mut line = world.accept().await;
    line.assign(1, "a", "wait");
    line.started("a").await;
    world.go_away();
    drop(line);
    gate.notify_one();
    gone.recv().await.expect("its work is done");
    sleep(Duration::from_secs(700)).await;
    let refused = world.servers.refused.load(Ordering::Relaxed);
    assert!(refused >= 140, "only {refused} tries");
    world.come_back();
    let back = Instant::now();
    let mut line = world.accept().await;
    assert!(back.elapsed() <= LONGEST, "{:?}", back.elapsed());
    assert_eq!(line.hello.inventory.iter().map(|held| &*held.token).collect::<Vec<_>>(), ["a"]);
    let (token, outcome) = line.result().await;
    assert!(token == "a" && matches!(outcome, Outcome::Succeeded(_)), "{token}: {outcome:?}");
    line.ack("a");
    line.until(|message| message.beat.as_ref().is_some_and(|beat| beat.inventory.is_empty()).then_some(())).await;
}

/// Trap 55.
#[tokio::test(start_paused = true)]
async fn a_result_does_not_wait_behind_log_lines_that_nobody_takes() {
    const LINES: usize = 1_000;
    let mut registry = Registry::default();
    let route = Route::new(|context: Context, _| async move {
        (0..LINES).for_each(|_| context.log("x".repeat(LOG_LINE_BYTES_MAX)));
        Ok(())
    });
    registry.insert("talk".to_owned(), route);
    let mut world = World::start(registry);
    let mut line = world.accept().await;
    line.assign(1, "a", "talk");
    // Long enough for the handler: what it said and how it ended wait for a server that takes one message a second.
    sleep(Duration::from_secs(1)).await;
    let mut message = line.next().await;
    assert_eq!(message.results.len(), 1, "it comes with the first");
    let mut taken = 0;
    while !message.logs.is_empty() {
        taken += message.logs.len();
        sleep(Duration::from_secs(1)).await;
        message = line.next().await;
    }
    assert!(taken > LINES / 4 && taken < LINES, "more lines than could wait: {taken}");
}

/// Trap 54.
#[tokio::test(start_paused = true)]
async fn what_must_not_outlive_its_lease_is_gone_before_anybody_else_may_have_it() {
    for cut_off in [true, false] {
        let (registry, _gate, mut gone) = waiting(LeaseLoss::Stop);
        let mut world = World::start(registry);
        let mut line = world.accept().await;
        line.assign(1, "a", "wait");
        line.started("a").await;
        line.beats(3).await;
        world.go_away();
        let heard_at = line.heard_at;
        // Otherwise the stream stays open, and the test does not read from it.
        let unread = (!cut_off).then_some(line);
        let gone_at = timeout(PATIENCE, gone.recv()).await.expect("in time").expect("told");
        let after = gone_at - heard_at;
        assert!(after >= stop_after(LOST_AFTER) && after < LOST_AFTER, "{after:?}");
        drop(unread);
        world.come_back();
        let (token, outcome) = world.accept().await.result().await;
        assert!(token == "a" && matches!(outcome, Outcome::Interrupted(_)), "{token}: {outcome:?}");
    }
}

/// Trap 54.
#[tokio::test(start_paused = true)]
async fn a_restart_that_is_over_in_time_stops_nothing() {
    let (registry, gate, _gone) = waiting(LeaseLoss::Stop);
    let mut world = World::start(registry);
    let mut line = world.accept().await;
    // Waits between tries are drawn by lot.
    for round in 1..=20_u64 {
        let token = format!("a{round}");
        line.assign(round, &token, "wait");
        line.started(&token).await;
        line.beats(1).await;
        world.go_away();
        let heard_at = line.heard_at;
        drop(line);
        sleep_until(heard_at + stop_after(LOST_AFTER) - Duration::from_millis(1_100)).await;
        world.come_back();
        line = world.accept().await;
        // Long enough for a stop to have come.
        line.beats(4).await;
        gate.notify_one();
        let (told, outcome) = line.result().await;
        assert!(told == token && matches!(outcome, Outcome::Succeeded(_)), "{told}: {outcome:?}");
        line.ack(&token);
    }
}
