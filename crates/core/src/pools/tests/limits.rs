//! Which limits a lane must pass, and with which lanes it shares them.

use super::*;

const LIMITED: &str = "
topics: {job.a: [fast, slow], job.b: slow, job.free: free}
pools:
  fast: {tenant_max_concurrent: 4, tenants: {acme: 9}}
  slow: {tenants: {acme: 2}}
  free: {}
limits:
  - {name: all, max_concurrent: 100}
  - {name: each, topics: [job.a, 'job.b*'], per: [tenant, topic], rate: 5/s}
  - {name: one, per: [key], max_concurrent: 1}
";

fn keys(tenant: &str, shape: Shape) -> Vec<String> {
    load(LIMITED).limits(&lane(tenant, shape)).iter().map(|limit| limit.key.to_string()).collect()
}

#[test]
fn a_lane_has_the_limits_of_its_first_pool_its_policy_and_its_topic() {
    assert_eq!(keys("acme", Shape::of("job.a")), ["tenant/fast/acme", "limit/all", "limit/each/acme/job.a"]);
    assert_eq!(keys("umbra", Shape::of("job.b")), ["limit/all", "limit/each/umbra/job.b"]);
    assert_eq!(keys("acme", Shape::of("job.free")), ["limit/all"]);
    let judged = Shape { max_concurrent: Some(3), ..Shape::of("job.free") };
    assert_eq!(keys("acme", judged), ["policy/acme/job.free", "limit/all"]);
}

#[test]
fn the_pool_a_job_insists_on_is_its_first_choice() {
    let slow = Shape { preferred_pool: Some("slow".into()), ..Shape::of("job.a") };
    assert_eq!(keys("acme", slow)[0], "tenant/slow/acme");
}

#[test]
fn a_limit_per_key_leaves_jobs_without_one_alone() {
    let keyed = |key: &str| Shape { concurrency_key: Some(key.into()), ..Shape::of("job.free") };
    assert_eq!(keys("acme", keyed("k")), ["limit/all", "limit/one/k"]);
    assert_eq!(keys("umbra", keyed("k")), ["limit/all", "limit/one/k"]);
    assert_eq!(keys("acme", keyed("j")), ["limit/all", "limit/one/j"]);
}

#[test]
fn a_named_tenant_has_its_own_number() {
    let max = |tenant: &str| load(LIMITED).limits(&lane(tenant, Shape::of("job.a")))[0].max;
    assert_eq!((max("acme"), max("umbra")), (Some(9), Some(4)));
}

#[test]
fn an_unrouted_lane_still_has_the_limits_of_its_topic() {
    assert_eq!(keys("acme", Shape::of("job.b.unmapped")), ["limit/all", "limit/each/acme/job.b.unmapped"]);
}
