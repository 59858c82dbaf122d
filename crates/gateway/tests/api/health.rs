//! Four kinds of trouble are four different answers, and a process that is in trouble still answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_engine::{Roles, Settings};
use lockgate_gateway::GatewaySettings;
use lockgate_memory::MemoryBus;
use lockgate_model::HealthAnswer;
use lockgate_ports::{Bell, Bus, Ear, Overheard, Sighting, Sightings, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{Server, Stage, echo};

async fn start(stage: &Stage) -> Server {
    Server::start_on(stage.clone(), GatewaySettings::default()).await
}

impl Server {
    /// Waits until readiness has this code; the whole answer.
    async fn until_code(&self, code: &str) -> crate::support::Reply {
        self.wait_for(code, async || self.get("/readyz").await.json["code"] == code).await;
        self.get("/readyz").await
    }

    async fn health(&self) -> Value {
        self.get("/monitor/health").await.json
    }
}

fn component<'a>(health: &'a Value, name: &str) -> &'a Value {
    let components = health["components"].as_array().expect("components");
    components.iter().find(|component| component["name"] == name).expect("a known component")
}

#[tokio::test]
async fn a_sound_process_tells_of_every_part() {
    let server = Server::start().await;
    server.wait_for("it is up", async || server.get("/readyz").await.json == json!({ "status": "ready" })).await;
    let health = server.health().await;
    assert_eq!((&health["status"], &health["findings"]), (&json!("ready"), &json!([])));
    assert_eq!(health["roles"], json!(["gateway", "scheduler", "orchestrator"]));
    let states = ["store", "coordination", "bus", "kernel"].map(|name| component(&health, name)["state"].clone());
    assert_eq!(states, ["answers", "sound", "in_process", "in_process"]);
    let loops = health["loops"].as_array().expect("loops");
    assert!(loops.iter().any(|own| own["name"] == "dispatch" && own["leads"] == "own"), "{health}");
    server
        .wait_for("the due loop has come round", async || {
            let health = server.health().await;
            let loops = health["loops"].as_array().expect("loops").clone();
            loops.iter().any(|due| due["name"] == "due" && due["leads"] == "leads" && due["epoch"] == 0)
        })
        .await;
}

#[tokio::test]
async fn a_store_that_refuses_is_told_apart_from_one_that_is_full_or_damaged() {
    let stage = Stage::default();
    let server = start(&stage).await;
    let text = || "connection refused".to_owned();
    for (error, code, state) in [
        (StoreError::Unavailable(text()), "store_refusing", "refusing"),
        (StoreError::Full(text()), "store_full", "full"),
        (StoreError::Corrupt(text()), "store_damaged", "damaged"),
    ] {
        stage.store.set_mood(HealthAnswer::Refuses(error));
        let reply = server.until_code(code).await;
        reply.is_problem(503, code);
        assert!(!reply.text.contains("connection refused"), "anybody may ask: {reply:?}");
        let health = server.health().await;
        assert!(
            health["findings"][0]["detail"].as_str().is_some_and(|detail| detail.contains("connection refused")),
            "{health}"
        );
        assert_eq!((&health["status"], &component(&health, "store")["state"]), (&json!("not_ready"), &json!(state)));
        assert_eq!(server.get("/healthz").await.json, json!({ "status": "alive" }));
    }
    stage.store.set_mood(HealthAnswer::Well);
    server.wait_for("it is well again", async || server.get("/readyz").await.status == 200).await;
}

#[tokio::test]
async fn a_store_that_hangs_is_noticed_within_two_seconds_and_asked_once() {
    let stage = Stage::default();
    let server = start(&stage).await;
    server.wait_for("it is up", async || server.get("/readyz").await.status == 200).await;
    stage.store.set_mood(HealthAnswer::Hangs);
    let began = Instant::now();
    server.until_code("store_hanging").await.is_problem(503, "store_hanging");
    // An answer from just before is good for a second.
    assert!(began.elapsed() < Duration::from_millis(3_400), "{:?}", began.elapsed());
    let asked = Instant::now();
    for _ in 0..20 {
        server.get("/readyz").await.is_problem(503, "store_hanging");
    }
    assert!(asked.elapsed() < Duration::from_secs(1), "nobody waits for what is known to hang: {:?}", asked.elapsed());
    assert_eq!(stage.store.waiting(), 1, "questions do not pile up");
    assert_eq!(server.get("/healthz").await.status, 200);
    stage.store.set_mood(HealthAnswer::Well);
    server.wait_for("it is well again", async || server.get("/readyz").await.status == 200).await;
}

#[tokio::test]
async fn a_store_that_passes_its_probe_and_fails_calls_is_not_ready() {
    for (error, code) in [
        (StoreError::Full("no page".to_owned()), "store_full"),
        (StoreError::Unavailable("a lock".to_owned()), "store_refusing"),
        (StoreError::Corrupt("page 7".to_owned()), "store_damaged"),
    ] {
        let stage = Stage::default();
        let server = start(&stage).await;
        server.wait_for("it is up", async || server.get("/readyz").await.status == 200).await;
        stage.store.fail_births(Some(error));
        for _ in 0..8 {
            assert!(server.post("/v1/jobs", &echo()).await.status >= 429);
        }
        server.get("/readyz").await.is_problem(503, code);
        let detail = server.health().await["findings"][0]["detail"].clone();
        assert!(detail.as_str().is_some_and(|detail| detail.contains("commits of new jobs failed")), "{detail}");
        stage.store.fail_births(None);
        for _ in 0..9 {
            assert!(server.post("/v1/jobs", &echo()).await.status < 300);
        }
        assert_eq!(server.get("/readyz").await.status, 200, "most go through again");
    }
}

#[tokio::test]
async fn a_damaged_store_gets_no_new_jobs() {
    let stage = Stage::default();
    let server = start(&stage).await;
    server.wait_for("it is up", async || server.get("/readyz").await.status == 200).await;
    stage.store.set_mood(HealthAnswer::Refuses(StoreError::Corrupt("jobs_done".to_owned())));
    server.until_code("store_damaged").await;
    let refused = server.post("/v1/jobs", &echo()).await;
    assert!(refused.status == 503 && refused.text.contains("the Store is damaged (jobs_done)"), "{refused:?}");
    stage.store.set_mood(HealthAnswer::Well);
    server.wait_for("it is well again", async || server.get("/readyz").await.status == 200).await;
    assert!(server.post("/v1/jobs", &echo()).await.status < 300);
}

#[tokio::test]
async fn grpc_health_follows_readiness() {
    let stage = Stage::default();
    let server = start(&stage).await;
    let mut health = HealthClient::new(server.channel().await);
    let mut watched = health.watch(HealthCheckRequest::default()).await.expect("watched").into_inner();
    stage.store.set_mood(HealthAnswer::Refuses(StoreError::Unavailable("away".to_owned())));
    loop {
        let news = tokio::time::timeout(crate::support::PATIENCE, watched.message()).await.expect("news in time");
        if news.expect("an unbroken stream").expect("news").status() == ServingStatus::NotServing {
            return;
        }
    }
}

/// Rings until it is told not to; then never comes back.
#[derive(Default)]
struct StuckBus {
    bus: MemoryBus,
    stuck: AtomicBool,
}

#[tonic::async_trait]
impl Bus for StuckBus {
    async fn ring(&self, bells: Vec<Bell>) {
        if self.stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.bus.ring(bells).await;
    }

    fn listen(&self, bell: Bell) -> Ear {
        self.bus.listen(bell)
    }

    fn overhear(&self) -> Overheard {
        self.bus.overhear()
    }

    async fn post(&self, seen: Vec<Sighting>) {
        self.bus.post(seen).await;
    }

    fn sightings(&self) -> Sightings {
        self.bus.sightings()
    }
}

#[tokio::test]
async fn a_loop_that_does_not_come_round_is_named() {
    let bus = Arc::new(StuckBus::default());
    let engine =
        Settings { stuck_after: Duration::from_secs(1), reoffer_every: Duration::from_millis(50), ..Settings::default() };
    let server = start(&Stage { bus: bus.clone(), engine, ..Stage::default() }).await;
    server.wait_for("it is up", async || server.get("/readyz").await.status == 200).await;
    // Nobody takes it, so it is offered again and again.
    server.submit(echo()).await;
    bus.stuck.store(true, Ordering::SeqCst);
    let reply = server.until_code("loop_stuck").await;
    reply.is_problem(503, "loop_stuck");
    let health = server.health().await;
    assert!(health["findings"][0]["detail"].as_str().is_some_and(|detail| detail.contains("reoffer for")), "{health}");
    let loops = health["loops"].as_array().expect("loops");
    let stuck: Vec<&Value> = loops.iter().filter(|view| view["stuck"] == true).map(|view| &view["name"]).collect();
    assert_eq!(stuck, ["reoffer"], "{health}");
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_gateway_serves_although_nobody_leads_and_says_so() {
    let roles = Roles { gateway: true, scheduler: false, orchestrator: false };
    let engine =
        Settings { roles, exclusive_store: false, leaderless_after: Duration::from_millis(100), ..Settings::default() };
    let stage = Stage { engine, ..Stage::default() };
    let gateway = start(&stage).await;
    let reply = gateway.until_code("no_leader").await;
    assert_eq!((reply.status, &reply.json["status"]), (200, &json!("degraded")), "calls are served: {reply:?}");
    assert!(reply.json["detail"].as_str().is_some_and(|detail| detail.contains("start a process")), "{reply:?}");
    let health = gateway.health().await;
    let detail = health["findings"][0]["detail"].as_str().expect("a detail");
    assert!(detail.contains("lockgate:retry:pump (role scheduler)"), "{detail}");
    gateway.submit(echo()).await;

    let others = Roles { gateway: false, scheduler: true, orchestrator: true };
    let leading = start(&Stage { engine: Settings { roles: others, ..stage.engine.clone() }, ..stage.clone() }).await;
    let leads = async || {
        let health = gateway.health().await;
        let leaders = health["leaders"].as_array().expect("leaders").clone();
        leaders.iter().any(|leader| leader["lease"] == "lockgate:retry:pump" && leader["holder"].is_string())
    };
    gateway.wait_for("somebody leads", leads).await;
    leading.stop().await;
}
