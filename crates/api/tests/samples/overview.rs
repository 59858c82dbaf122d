use lockgate_proto::v1;

use super::{at, governance, pairs, text, texts};

pub(crate) fn workers() -> v1::ListWorkersResponse {
    let worker = v1::WorkerStatus {
        worker_id: text("w"),
        session: text("s"),
        pool: text("p"),
        topics: texts(&["job.*"]),
        capabilities: texts(&["gpu"]),
        labels: pairs(&[("zone", "eu-1")]),
        slots: 8,
        busy: 2,
        last_beat_ms: at(0),
        status: text("draining"),
        cpu_load: Some(40),
        gpu_utilization: Some(50),
        memory_load: Some(60),
        active_jobs: 2,
    };
    v1::ListWorkersResponse { workers: vec![worker, v1::WorkerStatus { status: text("elsewhere"), ..Default::default() }] }
}

pub(crate) fn queues() -> v1::ListQueuesResponse {
    let queue = v1::QueueStatus {
        pool: text("p"),
        priority: v1::Priority::Low.into(),
        tenant: text("acme"),
        shape: text("job.x"),
        waiting: 5,
        oldest_ms: Some(at(0)),
    };
    let dead_letters = [(text("low"), 2), (text("high"), 1)].into();
    v1::ListQueuesResponse { queues: vec![queue], dead_letters, live: 5, ended: 6, held: 1 }
}

pub(crate) fn pools() -> v1::ListPoolsResponse {
    let pool = v1::PoolStatus {
        name: text("p"),
        description: text("of machines"),
        dispatch: text("direct"),
        state: v1::PoolState::Draining.into(),
        topics: texts(&["job.*"]),
        capabilities: texts(&["gpu"]),
        labels: pairs(&[("zone", "eu-1")]),
        max_concurrent: Some(9),
        workers: 2,
        slots: 16,
        busy: 3,
        waiting: 4,
    };
    v1::ListPoolsResponse { pools: vec![pool], snapshot: text("pools:1") }
}

pub(crate) fn tenants() -> v1::ListTenantsResponse {
    let quota = v1::TenantQuota {
        submit_rate: text("500/s"),
        actor_rate: text("100/s"),
        jobs: Some(1),
        runs: Some(2),
        payload_bytes: Some(3),
        stored_bytes: Some(4),
    };
    let tenant = v1::Tenant { name: text("acme"), jobs: 5, ended: 6, runs: 7, stored_bytes: 8, quota: Some(quota) };
    v1::ListTenantsResponse { tenants: vec![tenant, v1::Tenant::default()], next_after: text("acme") }
}

pub(crate) fn erased() -> v1::EraseTenantResponse {
    v1::EraseTenantResponse { ended: 1, jobs: 2, runs: 3, live_jobs: 4, live_runs: 5, done: false }
}

pub(crate) fn health() -> v1::Health {
    let leader = |holder: &str| v1::HealthLeader {
        lease: text("replay"),
        role: text("scheduler"),
        holder: text(holder),
        epoch: 3,
        vacant_ms: 4,
        nobody: true,
    };
    v1::Health {
        status: text("degraded"),
        findings: vec![v1::HealthFinding {
            code: text("loop_stuck"),
            serious: true,
            detail: text("reap"),
            advice: text("restart it"),
        }],
        roles: texts(&["gateway"]),
        up_for_ms: 1,
        components: vec![v1::HealthComponent { name: text("store"), state: text("answers"), detail: text("") }],
        loops: vec![v1::HealthLoop {
            name: text("reap"),
            stuck: true,
            moved_ago_ms: 2,
            leads: text("leads"),
            epoch: Some(3),
        }],
        leaders: vec![leader("host"), leader("")],
        breakers: governance::breakers().breakers,
    }
}
