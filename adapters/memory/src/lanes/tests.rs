//! The whole conformance list, with windows as they are and with windows that overflow at once.

mod with_default_windows {
    use std::sync::Arc;

    use crate::MemoryLanes;
    use lockgate_ports::lanes::Lanes;

    fn lanes() -> Arc<dyn Lanes> {
        Arc::new(MemoryLanes::default())
    }

    lockgate_conformance::lanes_conformance! { lanes }
    lockgate_conformance::lanes_lose_nothing! { lanes, cases: 64 }
}

mod with_small_windows {
    use std::sync::Arc;

    use crate::{MemoryLanes, WindowBounds};
    use lockgate_ports::lanes::Lanes;

    fn lanes() -> Arc<dyn Lanes> {
        let bounds =
            WindowBounds { window_jobs: 6, window_bytes: 8 * 1024, total_jobs: 40, total_bytes: 64 * 1024, floor_jobs: 2 };
        Arc::new(MemoryLanes::new(bounds))
    }

    lockgate_conformance::lanes_conformance! { lanes }
    lockgate_conformance::lanes_lose_nothing! { lanes, cases: 512 }
}

mod with_heavy_jobs {
    use std::sync::Arc;

    use lockgate_core::job::Job;
    use lockgate_core::request::Json;

    use crate::{MemoryLanes, WindowBounds};
    use lockgate_conformance::lanes::stage::{Spec, Stage, job, seqs};
    use lockgate_ports::lanes::{Lanes, Refill};

    fn heavy(seq: i64, bytes: usize) -> Arc<Job> {
        let mut job = job(&Spec::default(), seq);
        Arc::make_mut(&mut job.request).payload = Json::trusted("x".repeat(bytes));
        Arc::new(job)
    }

    #[tokio::test]
    async fn a_window_is_bounded_by_weight_and_asks_for_pages_that_fit() {
        let lanes = MemoryLanes::new(WindowBounds { window_bytes: 40_000, ..WindowBounds::default() });
        let jobs: Vec<_> = (0..20).map(|seq| heavy(seq, 9_000)).collect();
        lanes.offer(jobs.clone()).await;
        let stage = Stage::new(Arc::new(lanes));
        let claims = stage.claim_for(&[(&["echo"], 20)]).await;
        assert_eq!(seqs(&claims), [0, 1, 2], "three of them weigh less than the bound, four more");
        let mut asks = stage.lanes.refill_requests().await;
        assert_eq!((asks.len(), asks[0].limit, asks[0].after), (1, 3, Some(jobs[2].ready_key())));
        let asked = asks.remove(0);
        stage.lanes.refill(Refill { jobs: jobs[3..3 + asked.limit].to_vec(), asked }).await;
        assert_eq!(seqs(&stage.claim_for(&[(&["echo"], 20)]).await), [3, 4, 5]);
    }
}

/// No window grows above the floor, and none keeps more than ids.
mod when_all_windows_together_are_full {
    use std::sync::Arc;

    use crate::{MemoryLanes, WindowBounds};
    use lockgate_conformance::lanes::stage::{Spec, Stage, seqs};
    use lockgate_ports::lanes::Lanes;

    fn lanes() -> Arc<dyn Lanes> {
        let bounds = WindowBounds { window_jobs: 6, window_bytes: 8 * 1024, total_jobs: 0, total_bytes: 0, floor_jobs: 2 };
        Arc::new(MemoryLanes::new(bounds))
    }

    lockgate_conformance::lanes_lose_nothing! { lanes, cases: 512 }

    #[tokio::test]
    async fn a_window_still_serves_its_floor_with_ids_alone() {
        let mut stage = Stage::new(lanes());
        let jobs = stage.wait_many(9, &Spec::default()).await;
        let claims = stage.claim_for(&[(&["echo"], 9)]).await;
        assert_eq!(seqs(&claims), [jobs[0].seq.0, jobs[1].seq.0]);
        assert!(claims.iter().all(|claim| claim.job.is_none()));
        assert_eq!(claims[0].job_id, jobs[0].request.job_id);
        assert_eq!(stage.depths(9).await[0].waiting, 9);
    }
}

mod with_limits {
    use std::sync::Arc;

    use lockgate_core::pools::Pools;
    use lockgate_core::time::Timestamp;

    use crate::MemoryLanes;
    use lockgate_conformance::lanes::stage::{Spec, job, shapes, token};
    use lockgate_ports::lanes::{Claim, ClaimRequest, LaneLayout, Lanes, Seat, Settlement};

    async fn lanes_under(limits: &str) -> MemoryLanes {
        let text = format!("topics: {{'*': default}}\npools: {{default: {{}}}}\nlimits: [{limits}]");
        let lanes = MemoryLanes::default();
        let pools = Arc::new(Pools::load("pools.yaml", &text).unwrap());
        lanes.adopt(LaneLayout { version: 1, pools }, Vec::new()).await;
        lanes
    }

    async fn claim(lanes: &MemoryLanes, free: usize, now_ms: i64) -> Vec<Claim> {
        let seats = vec![Seat { shapes: shapes(&["echo"]), free }];
        let now = Timestamp::from_millis(now_ms);
        let (pool, serving) = ("default".into(), "default".into());
        lanes.claim(ClaimRequest { pool, serving, seats, limit: usize::MAX, now }).await.claims
    }

    async fn run(lanes: &MemoryLanes, claim: Claim) {
        let token = token(claim.key.seq.0);
        lanes.settle(vec![Settlement::Sent { lane: claim.lane, key: claim.key, token: token.clone() }]).await;
        lanes.release(vec![token]).await;
    }

    fn name(n: i64) -> &'static str {
        Box::leak(format!("name-{n}").into_boxed_str())
    }

    #[tokio::test]
    async fn names_and_limits_that_nothing_uses_are_forgotten() {
        let lanes = lanes_under("{name: keys, per: [tenant, key], max_concurrent: 1, rate: 1/h}").await;
        for n in 0..5_000 {
            let spec = Spec { tenant: name(n), concurrency_key: Some(name(n)), ..Spec::default() };
            lanes.offer(vec![Arc::new(job(&spec, n))]).await;
            let claims = claim(&lanes, 1, 1_000).await;
            assert_eq!(claims.len(), 1);
            run(&lanes, claims.into_iter().next().unwrap()).await;
        }
        let kept = lanes.shares(usize::MAX).await.unwrap().len();
        assert!(kept < 2_500, "{kept} tenants");
        assert!(lanes.state.lock().lanes.len() < 2_500);
        assert_eq!(lanes.state.lock().gates.len(), 5_000, "each rate remembers a start for an hour");
        claim(&lanes, 1, 1_000 + 3_600_000).await;
        assert!(lanes.state.lock().gates.len() < 2_500);
        assert!(lanes.holding().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn room_for_one_moves_one_lane_however_many_wait() {
        let lanes = lanes_under("{name: all, max_concurrent: 1}").await;
        for n in 0..2_000 {
            lanes.offer(vec![Arc::new(job(&Spec { tenant: name(n), ..Spec::default() }, n))]).await;
        }
        let mut running = claim(&lanes, 1, 0).await;
        let before = lanes.state.lock().openings;
        for _ in 0..100 {
            run(&lanes, running.remove(0)).await;
            running = claim(&lanes, 1, 0).await;
        }
        assert_eq!(lanes.state.lock().openings - before, 100);
    }

    #[tokio::test]
    async fn lanes_without_limits_leave_nothing_behind() {
        let lanes = lanes_under("{name: others, topics: [other], max_concurrent: 1}").await;
        lanes.offer(vec![Arc::new(job(&Spec::default(), 1))]).await;
        let claims = claim(&lanes, 1, 0).await;
        let sent = Settlement::Sent { lane: claims[0].lane.clone(), key: claims[0].key, token: token(1) };
        lanes.settle(vec![sent]).await;
        assert!(lanes.holding().await.unwrap().is_empty());
        assert_eq!(lanes.state.lock().gates.len(), 0);
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_stops_nothing_for_longer_than_a_window() {
        let lanes = lanes_under("{name: all, rate: 2/s}").await;
        lanes.offer((0..9).map(|n| Arc::new(job(&Spec::default(), n))).collect()).await;
        assert_eq!(claim(&lanes, 9, 1_000_000).await.len(), 2);
        assert_eq!(claim(&lanes, 9, 10_000).await.len(), 0);
        assert_eq!(claim(&lanes, 9, 10_500).await.len(), 1);
        assert_eq!(claim(&lanes, 9, 10_400).await.len(), 0, "a claim that was overtaken changes no clock");
        assert_eq!(claim(&lanes, 9, 11_000).await.len(), 1);
    }
}
