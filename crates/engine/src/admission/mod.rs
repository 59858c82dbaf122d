//! Who is let in: rates, quotas and ceilings, before anything is judged or stored.
//!
//! What is known here is a moment old and leaves out what other processes let in meanwhile. That is enough: admission keeps
//! a crowd out, it does not count heads.

mod again;
mod crowds;
mod state;

use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::lane::Shape;
use lockgate_core::pools::Routing;
use lockgate_core::quotas::{Limited, Quota, Quotas, Room};
use lockgate_core::rate::{Rate, RateBuckets, RateGrant};
use lockgate_core::request::{Caller, JobRequest};
use lockgate_ports::{LanesAway, StoreError};
use parking_lot::Mutex;

use crate::Inner;
use crate::error::ApiError;
use state::{AdmissionState, LanesSeen, LetIn, RoomRequest, Spot};

#[derive(Default)]
pub(crate) struct Admission {
    known: Mutex<AdmissionState>,
    /// For a process without others, and while the shared ones are away.
    buckets: Mutex<RateBuckets>,
}

/// For what was let in, until its commit has answered.
pub(crate) struct AdmissionTicket {
    inner: Arc<Inner>,
    tenant: TenantId,
    let_in: LetIn,
}

impl Drop for AdmissionTicket {
    fn drop(&mut self) {
        self.inner.admission.known.lock().settle(&self.tenant, &self.let_in);
    }
}

/// What became of a batch.
pub(crate) struct Admitted<T> {
    /// Keep it until the commit of those that were let in has answered.
    pub(crate) ticket: AdmissionTicket,
    /// Those for which there is no room, with their places. They are errors in the batch, and not counted yet.
    pub(crate) refused: Vec<(usize, T)>,
}

impl Inner {
    /// Lets jobs of one caller in, in the order given; those for which there is no room become errors. The others count
    /// until the ticket is gone.
    pub(crate) async fn admit<T>(
        self: &Arc<Self>,
        caller: &Caller,
        jobs: &mut [Result<T, ApiError>],
        request: impl Fn(&T) -> &Arc<JobRequest> + Send,
    ) -> Result<Admitted<T>, StoreError> {
        let quotas = self.config.quotas();
        let quota = quotas.of(&caller.tenant);
        refuse_large(quota, jobs, &request);
        let want = u32::try_from(jobs.iter().flatten().count()).unwrap_or(u32::MAX);
        let grant = self.take_tokens(caller, quota, want).await;
        self.look_up(&quotas, &caller.tenant).await?;
        let (mut granted, now) = (grant.granted, self.ports.clock.now());
        let routing = self.routing();
        let (mut ticket, mut refused) = (self.ticket(&caller.tenant), Vec::new());
        let mut known = self.admission.known.lock();
        for (place, job) in jobs.iter_mut().enumerate() {
            let Ok(checked) = job else { continue };
            let asked = request(checked);
            let decided = match granted.checked_sub(1) {
                None => Err(too_fast(caller, quota, &grant)),
                Some(left) => {
                    granted = left;
                    let spots = || waits_in(&routing, asked.shape());
                    let asked = RoomRequest {
                        tenant: &caller.tenant,
                        priority: asked.priority.unwrap_or_default(),
                        spots: if asks_for_pool(&quotas) { spots() } else { Vec::new() },
                        more: Room { jobs: 1, runs: 0, stored_bytes: bytes(asked) },
                    };
                    known.admit(&quotas, &asked, &self.edge, now, &mut ticket.let_in)
                }
            };
            if let Err(limited) = decided
                && let Ok(checked) = std::mem::replace(job, Err(ApiError::Limited(limited)))
            {
                refused.push((place, checked));
            }
        }
        drop(known);
        Ok(Admitted { ticket, refused })
    }

    fn ticket(self: &Arc<Self>, tenant: &TenantId) -> AdmissionTicket {
        AdmissionTicket { inner: self.clone(), tenant: tenant.clone(), let_in: LetIn::default() }
    }

    async fn take_tokens(&self, caller: &Caller, quota: &Quota, want: u32) -> RateGrant {
        let buckets = buckets("", caller, quota);
        if buckets.is_empty() || want == 0 {
            return RateGrant::all(want);
        }
        if let Some(counters) = &self.ports.counters
            && let Ok(grant) = counters.take(&buckets, want).await
        {
            return grant;
        }
        self.admission.buckets.lock().take(&buckets, want, self.ports.clock.now())
    }

    /// How many of so many refused jobs are looked for in the Store, in case they are repeats: as many as the rates let in
    /// besides. A flood of names must not cost a read for each although all are refused.
    pub(crate) fn repeats_looked_for(&self, caller: &Caller, want: usize) -> usize {
        let quotas = self.config.quotas();
        let buckets = buckets("again/", caller, quotas.of(&caller.tenant));
        let grant =
            self.admission.buckets.lock().take(&buckets, u32::try_from(want).unwrap_or(u32::MAX), self.ports.clock.now());
        want.min(grant.granted as usize)
    }

    /// Makes sure that what the tenant has is known where it matters, and not from too long ago.
    async fn look_up(&self, quotas: &Quotas, tenant: &TenantId) -> Result<(), StoreError> {
        if !quotas.of(tenant).counts() || self.admission.known.lock().is_fresh(tenant, self.ports.clock.now()) {
            return Ok(());
        }
        let usage = self.ports.store.usage(std::slice::from_ref(tenant)).await?;
        let usage = usage.first().copied().unwrap_or_default();
        self.admission.known.lock().learn(tenant, usage, self.ports.clock.now());
        Ok(())
    }

    /// Looks at how much there is and how fast it is done.
    pub(crate) async fn meters_once(&self) -> Result<(), StoreError> {
        let quotas = self.config.quotas();
        let live = self.ports.store.totals().await?.live;
        let seen = self.look_at_lanes(&quotas).await;
        let (mut known, now) = (self.admission.known.lock(), self.ports.clock.now());
        match seen {
            Ok(seen) => known.observe(live, &seen, &self.edge, now),
            Err(_) => known.stand_still(live, now),
        }
        Ok(())
    }

    async fn look_at_lanes(&self, quotas: &Quotas) -> Result<LanesSeen, LanesAway> {
        let served = self.ports.lanes.claimed_total().await?;
        let depths = if asks_for_pool(quotas) { self.ports.lanes.depths(usize::MAX).await? } else { Vec::new() };
        Ok(LanesSeen { served, depths, shares: self.routing().pools.fairness().priorities })
    }

    pub(crate) fn refused(&self, limited: Limited) -> ApiError {
        self.metrics.admission.refused(limited.by);
        ApiError::Limited(limited)
    }
}

/// Those that a caller takes from.
/// A rate had no token left: whose it is, the caller's own or that of all its tenant sends.
fn too_fast(caller: &Caller, quota: &Quota, grant: &RateGrant) -> Limited {
    let first_is_tenants = quota.submit_rate.is_some();
    match grant.short {
        Some(place) if place > 0 || !first_is_tenants => {
            Quota::actor_too_fast(&caller.actor, &caller.tenant, grant.again_in)
        }
        _ => Quota::too_fast(&caller.tenant, grant.again_in),
    }
}

/// The tenant's first, then the actor's; see [`too_fast`].
fn buckets(kind: &str, caller: &Caller, quota: &Quota) -> Vec<(Arc<str>, Rate)> {
    let (tenant, actor) = (&caller.tenant, &caller.actor);
    let of_tenant = quota.submit_rate.map(|rate| (format!("{kind}tenant/{tenant}"), rate));
    // The length tells where the tenant ends.
    let of_actor = quota.actor_rate.map(|rate| (format!("{kind}actor/{}/{tenant}/{actor}", tenant.as_str().len()), rate));
    of_tenant.into_iter().chain(of_actor).map(|(name, rate)| (name.into(), rate)).collect()
}

/// The pool that a job is offered to first.
fn waits_in(routing: &Routing, shape: Shape) -> Vec<Spot> {
    let shape = Arc::new(shape);
    let first = routing.pools.route(&shape).ok().map(|pools| pools.first().clone());
    first.map(|pool| Spot { pool, shape: shape.fit().into_owned() }).into_iter().collect()
}

/// Whether it matters how much waits for one pool.
fn asks_for_pool(quotas: &Quotas) -> bool {
    quotas.ceilings.wait.is_some() || !quotas.ceilings.pools.is_empty()
}

fn refuse_large<T>(quota: &Quota, jobs: &mut [Result<T, ApiError>], request: impl Fn(&T) -> &Arc<JobRequest>) {
    let Some(max) = quota.payload_bytes else { return };
    for job in jobs {
        if job.as_ref().is_ok_and(|checked| bytes(request(checked)) > max) {
            *job = Err(ApiError::invalid("payload", format_args!("must be at most {max} bytes, by the tenant's quota")));
        }
    }
}

fn bytes(request: &JobRequest) -> u64 {
    request.payload.as_str().len() as u64
}
