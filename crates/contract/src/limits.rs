//! Numbers that bound everything, with what breaks when they change.

/// Largest payload or result taken inline. Larger ones would make every hot-row rewrite expensive.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Most jobs in one batch submit: bounds one commit and one reply.
pub const BATCH_JOBS_MAX: usize = 10_000;
/// Most labels, env entries or required capabilities on one job.
pub const ENTRIES_MAX: usize = 64;
/// Longest label or env value.
pub const VALUE_BYTES_MAX: usize = 4096;
/// Most attempts a client may ask for.
pub const ATTEMPTS_MAX: u32 = 1_000;
/// Longest timeout, deadline or delay a client may ask for: a year, so that arithmetic on it never overflows.
pub const SPAN_MS_MAX: u64 = 366 * 24 * 3600 * 1000;
/// Most children that one life of a job may have: they are looked over whenever its barrier might open.
pub const CHILDREN_MAX: u64 = 10_000;
/// Most jobs that may stand above one another: a handler that submits itself comes to an end.
pub const CHILD_DEPTH_MAX: u32 = 8;
/// Longest error text kept from a worker; the rest is cut.
pub const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Most jobs a worker may hold beyond its slots: more would keep jobs from workers that are free.
pub const PREFETCH_MAX: u32 = 4;
/// Most jobs a worker may run at once: more would make its beats too long to be read in time.
pub const SLOTS_MAX: u32 = 10_000;
/// Most attempts a worker may say it holds: what it runs, what waits there, and as many again that have ended and whose results
/// nobody has acknowledged yet. Fewer would refuse workers that come back after a long outage.
pub const INVENTORY_MAX: usize = 2 * (SLOTS_MAX + PREFETCH_MAX) as usize;
