//! The picture as text.

use lockgate_api::view;

use std::cmp::Reverse;
use std::time::Duration;

use super::sample::Picture;
use crate::output::{Output, TableCell, Tone, span};

/// Rows of each table: what is most worth a look comes first, and all of it fits on a screen.
const ROWS_MAX: usize = 8;
/// Signs in the bar of a pool.
const BAR: usize = 16;

pub(super) fn text(picture: &Picture, server: &str, out: Output) -> String {
    let mut parts = vec![head(picture, server, out), pools(picture, out)];
    parts.extend(queues(picture, out));
    parts.extend(workers(picture, out));
    parts.extend(findings(picture, out));
    parts.join("\n\n")
}

fn head(picture: &Picture, server: &str, out: Output) -> String {
    let (queues, health) = (&picture.queues, &picture.health);
    let dead: u64 = queues.dead_letters.values().sum();
    let status = match health.status.as_str() {
        "ready" => out.paint(&health.status, Tone::Good),
        "degraded" => out.paint(&health.status, Tone::Waiting),
        _ => out.paint(&health.status, Tone::Bad),
    };
    let up = span(Duration::from_millis(health.up_for_ms));
    let dead = out.paint(&format!("{dead} dead letters"), if dead > 0 { Tone::Bad } else { Tone::Plain });
    let breakers = health.breakers.breakers.iter().map(|breaker| {
        let tone = if breaker.state == "closed" { Tone::Good } else { Tone::Bad };
        format!("{} {}", breaker.name, out.paint(&breaker.state, tone))
    });
    let leaderless = health.leaders.iter().filter(|leader| leader.nobody).count();
    let mut lines = vec![
        format!("lockgate at {server}  {status}  up {up}"),
        format!("{} live, {} held by workers, {} ended, {dead}", queues.live, queues.held, queues.ended),
        format!("{:.0}/s came in, {:.0}/s ended", picture.came_per_s, picture.ended_per_s),
    ];
    let breakers: Vec<String> = breakers.collect();
    if !breakers.is_empty() {
        lines.push(format!("breakers: {}", breakers.join(", ")));
    }
    if leaderless > 0 {
        lines.push(out.paint(&format!("{leaderless} loops have no leader; `lockgate health` names them"), Tone::Bad));
    }
    lines.join("\n")
}

fn pools(picture: &Picture, out: Output) -> String {
    let mut pools: Vec<&view::Pool> = picture.pools.pools.iter().collect();
    pools.sort_by_key(|pool| (Reverse(pool.waiting), Reverse(pool.busy)));
    let row = |pool: &&view::Pool| {
        let tone = if pool.state == "open" { Tone::Good } else { Tone::Waiting };
        vec![
            TableCell::text(&pool.name),
            TableCell::text(&pool.state).toned(tone),
            TableCell::number(&pool.workers),
            TableCell::text(bar(pool.busy, pool.slots)).toned(Tone::Busy),
            TableCell::number(&format!("{}/{}", pool.busy, pool.slots)),
            TableCell::number(&pool.waiting),
        ]
    };
    let rows: Vec<_> = pools.iter().take(ROWS_MAX).map(row).collect();
    out.table(&["pool", "state", "workers", "", "busy", "waiting"], &rows)
}

/// How much of something is taken. A bar with anything in it shows it.
fn bar(part: u64, whole: u64) -> String {
    let filled = (part.min(whole) * BAR as u64).div_ceil(whole.max(1));
    let filled = usize::try_from(filled).unwrap_or(BAR);
    format!("{}{}", "▮".repeat(filled), "▯".repeat(BAR - filled))
}

fn queues(picture: &Picture, out: Output) -> Option<String> {
    let mut queues: Vec<&view::Queue> = picture.queues.queues.iter().filter(|queue| queue.waiting > 0).collect();
    queues.sort_by_key(|queue| Reverse(queue.waiting));
    let row = |queue: &&view::Queue| {
        vec![
            TableCell::text(if queue.pool.is_empty() { "-" } else { &queue.pool }),
            TableCell::text(&queue.priority),
            TableCell::text(&queue.tenant),
            TableCell::clipped(&queue.shape),
            TableCell::number(&queue.waiting),
            out.relative_or_dash(queue.oldest_at),
        ]
    };
    let rows: Vec<_> = queues.iter().take(ROWS_MAX).map(row).collect();
    (!rows.is_empty()).then(|| out.table(&["queue", "priority", "tenant", "shape", "waiting", "oldest"], &rows))
}

fn workers(picture: &Picture, out: Output) -> Option<String> {
    let mut workers: Vec<&view::Worker> = picture.workers.workers.iter().collect();
    workers.sort_by_key(|worker| (worker.status == "attached", Reverse(worker.busy)));
    let percent = |load: Option<u32>| TableCell::number(&load.map_or_else(|| "-".to_owned(), |load| format!("{load}%")));
    let row = |worker: &&view::Worker| {
        let tone = if worker.status == "attached" { Tone::Good } else { Tone::Waiting };
        vec![
            TableCell::text(&worker.worker_id),
            TableCell::text(&worker.status).toned(tone),
            TableCell::text(&worker.pool),
            TableCell::number(&format!("{}/{}", worker.busy, worker.slots)),
            percent(worker.cpu_load),
            percent(worker.memory_load),
        ]
    };
    let rows: Vec<_> = workers.iter().take(ROWS_MAX).map(row).collect();
    (!rows.is_empty()).then(|| out.table(&["worker", "status", "pool", "busy", "cpu", "memory"], &rows))
}

fn findings(picture: &Picture, out: Output) -> Option<String> {
    let line = |finding: &view::HealthFinding| {
        let tone = if finding.serious { Tone::Bad } else { Tone::Waiting };
        format!("{}: {}\n  {}", out.paint(&finding.code, tone), finding.detail, finding.advice)
    };
    let lines: Vec<String> = picture.health.findings.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lockgate_proto::v1;

    use super::*;
    use crate::output::Format;

    fn picture() -> Picture {
        let pool = |name: &str, busy, waiting| v1::PoolStatus {
            name: name.to_owned(),
            state: v1::PoolState::Open.into(),
            workers: 1,
            slots: 32,
            busy,
            waiting,
            ..v1::PoolStatus::default()
        };
        let queue = |tenant: &str, waiting| v1::QueueStatus {
            pool: "gpu".to_owned(),
            priority: v1::Priority::High.into(),
            tenant: tenant.to_owned(),
            shape: "job.render".to_owned(),
            waiting,
            oldest_ms: Some(0),
        };
        let queues = v1::ListQueuesResponse {
            queues: vec![queue("idle", 0), queue("small", 2), queue("large", 7)],
            live: 12,
            held: 3,
            ended: 40,
            ..v1::ListQueuesResponse::default()
        };
        let worker = v1::WorkerStatus { worker_id: "w-1".to_owned(), slots: 32, busy: 3, ..v1::WorkerStatus::default() };
        let finding = v1::HealthFinding {
            code: "store_slow".to_owned(),
            detail: "the store is slow".to_owned(),
            advice: "look at the disk".to_owned(),
            serious: true,
        };
        let health = v1::Health { status: "ready".to_owned(), findings: vec![finding], ..v1::Health::default() };
        Picture {
            came_per_s: 51.4,
            ended_per_s: 0.0,
            queues: queues.into(),
            pools: v1::ListPoolsResponse { pools: vec![pool("default", 0, 0), pool("gpu", 3, 9)], ..Default::default() }
                .into(),
            workers: v1::ListWorkersResponse { workers: vec![worker] }.into(),
            health: health.into(),
        }
    }

    #[test]
    fn the_busiest_come_first_and_what_is_empty_is_left_out() {
        let out = Output::new(Format::People { colour: false }, Timestamp::from_second(5).expect("in range"));
        let text = text(&picture(), "http://here", out);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is missing in\n{text}"));
        assert!(
            text.starts_with(
                "lockgate at http://here  ready  up 0ms\n12 live, 3 held by workers, 40 ended, 0 dead letters\n"
            )
        );
        assert!(text.contains("51/s came in, 0/s ended"));
        assert!(at("gpu      open") < at("default  open"));
        assert!(at("large") < at("small") && !text.contains("idle"));
        assert!(text.ends_with("store_slow: the store is slow\n  look at the disk"));
    }

    #[test]
    fn a_bar_is_as_full_as_what_it_shows() {
        assert_eq!(bar(0, 0), "▯".repeat(BAR));
        assert_eq!(bar(1, 1_000), format!("▮{}", "▯".repeat(BAR - 1)));
        assert_eq!(bar(9, 9), "▮".repeat(BAR));
        assert_eq!(bar(10, 9), "▮".repeat(BAR));
    }
}
