//! The whole conformance list, with windows as they are and with windows that overflow at once.

mod with_default_windows {
    use std::sync::Arc;

    use crate::lanes::Lanes;
    use crate::memory::MemoryLanes;

    fn lanes() -> Arc<dyn Lanes> {
        Arc::new(MemoryLanes::default())
    }

    crate::lanes_conformance! { lanes }
    crate::lanes_lose_nothing! { lanes, cases: 64 }
}

mod with_small_windows {
    use std::sync::Arc;

    use crate::lanes::Lanes;
    use crate::memory::{Bounds, MemoryLanes};

    fn lanes() -> Arc<dyn Lanes> {
        let bounds =
            Bounds { window_jobs: 6, window_bytes: 8 * 1024, total_jobs: 40, total_bytes: 64 * 1024, floor_jobs: 2 };
        Arc::new(MemoryLanes::new(bounds))
    }

    crate::lanes_conformance! { lanes }
    crate::lanes_lose_nothing! { lanes, cases: 512 }
}

mod with_heavy_jobs {
    use std::sync::Arc;

    use lockgate_core::job::Job;
    use lockgate_core::request::Json;

    use crate::conformance::lanes::stage::{Spec, Stage, job, seqs};
    use crate::lanes::{Lanes, Page};
    use crate::memory::{Bounds, MemoryLanes};

    fn heavy(seq: i64, bytes: usize) -> Arc<Job> {
        let mut job = job(&Spec::default(), seq);
        Arc::make_mut(&mut job.request).payload = Json::trusted("x".repeat(bytes));
        Arc::new(job)
    }

    #[tokio::test]
    async fn a_window_is_bounded_by_weight_and_asks_for_pages_that_fit() {
        let lanes = MemoryLanes::new(Bounds { window_bytes: 40_000, ..Bounds::default() });
        let jobs: Vec<_> = (0..20).map(|seq| heavy(seq, 9_000)).collect();
        lanes.offer(jobs.clone()).await;
        let stage = Stage::new(Arc::new(lanes));
        let claims = stage.claim_for(&[(&["echo"], 20)]).await;
        assert_eq!(seqs(&claims), [0, 1, 2], "three of them weigh less than the bound, four more");
        let mut asks = stage.lanes.hungry().await;
        assert_eq!((asks.len(), asks[0].limit, asks[0].after), (1, 3, Some(jobs[2].ready_key())));
        let asked = asks.remove(0);
        stage.lanes.feed(Page { jobs: jobs[3..3 + asked.limit].to_vec(), asked }).await;
        assert_eq!(seqs(&stage.claim_for(&[(&["echo"], 20)]).await), [3, 4, 5]);
    }
}

/// No window grows above the floor, and none keeps more than ids.
mod when_all_windows_together_are_full {
    use std::sync::Arc;

    use crate::conformance::lanes::stage::{Spec, Stage, seqs};
    use crate::lanes::Lanes;
    use crate::memory::{Bounds, MemoryLanes};

    fn lanes() -> Arc<dyn Lanes> {
        let bounds = Bounds { window_jobs: 6, window_bytes: 8 * 1024, total_jobs: 0, total_bytes: 0, floor_jobs: 2 };
        Arc::new(MemoryLanes::new(bounds))
    }

    crate::lanes_lose_nothing! { lanes, cases: 512 }

    #[tokio::test]
    async fn a_window_still_serves_its_floor_with_ids_alone() {
        let mut stage = Stage::new(lanes());
        let jobs = stage.wait_many(9, &Spec::default()).await;
        let claims = stage.claim_for(&[(&["echo"], 9)]).await;
        assert_eq!(seqs(&claims), [jobs[0].seq.0, jobs[1].seq.0]);
        assert!(claims.iter().all(|claim| claim.job.is_none()));
        assert_eq!(claims[0].job_id, jobs[0].request.job_id);
        assert_eq!(stage.lanes.depths(9).await[0].waiting, 9);
    }
}
