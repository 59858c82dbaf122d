//! What is let in beside new jobs: runs, and what comes back to life.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::dag::{Dag, NodeIx, NodeWork};
use lockgate_core::ids::TenantId;
use lockgate_core::job::Job;
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::quotas::{Limited, Quotas, Room};
use lockgate_core::request::Caller;
use lockgate_ports::StoreError;

use super::state::{RoomRequest, Spot};
use super::{AdmissionTicket, asks_for_pool, too_fast, waits_in};
use crate::Inner;
use crate::error::ApiError;

/// Which of some dead jobs may live again.
#[derive(Default)]
pub(crate) struct Returning {
    pub(crate) jobs: Vec<Arc<Job>>,
    /// Keep them until the commit has answered.
    pub(crate) tickets: Vec<AdmissionTicket>,
    pub(crate) refused: u64,
    /// Why the first of the others may not.
    pub(crate) limited: Option<Limited>,
}

impl Inner {
    /// Lets one run in, which counts until the ticket is gone. The refusal is not counted yet.
    pub(crate) async fn admit_run(
        self: &Arc<Self>,
        caller: &Caller,
        dag: &Dag,
    ) -> Result<Result<AdmissionTicket, Limited>, ApiError> {
        let quotas = self.config.quotas();
        let quota = quotas.of(&caller.tenant);
        let grant = self.take_tokens(caller, quota, 1).await;
        if grant.granted == 0 {
            return Ok(Err(too_fast(caller, quota, &grant)));
        }
        let first: Vec<NodeIx> = (0..).zip(&dag.nodes).filter(|(_, node)| node.needs.is_empty()).map(|(ix, _)| ix).collect();
        Ok(self.admit_nodes(&quotas, &caller.tenant, dag, &first).await?)
    }

    /// Lets a run that is over begin again from some of its nodes. Rates are for those who start.
    pub(crate) async fn admit_rerun(
        self: &Arc<Self>,
        tenant: &TenantId,
        dag: &Dag,
        from: &[NodeIx],
    ) -> Result<AdmissionTicket, ApiError> {
        let quotas = self.config.quotas();
        self.admit_nodes(&quotas, tenant, dag, from).await?.map_err(|limited| self.refused(limited))
    }

    /// A run counts as one job more: how many it will come to, nobody knows.
    async fn admit_nodes(
        self: &Arc<Self>,
        quotas: &Quotas,
        tenant: &TenantId,
        dag: &Dag,
        first: &[NodeIx],
    ) -> Result<Result<AdmissionTicket, Limited>, StoreError> {
        self.look_up(quotas, tenant).await?;
        let asked = RoomRequest {
            tenant,
            priority: most_urgent(dag, first),
            spots: if asks_for_pool(quotas) { self.spots_of(dag, first) } else { Vec::new() },
            more: Room { jobs: 1, runs: 1, stored_bytes: 0 },
        };
        let mut ticket = self.ticket(tenant);
        let now = self.ports.clock.now();
        let decided = self.admission.known.lock().admit(quotas, &asked, &self.edge, now, &mut ticket.let_in);
        Ok(decided.map(|()| ticket))
    }

    /// Where the jobs of these nodes will wait, each pool once.
    fn spots_of(&self, dag: &Dag, nodes: &[NodeIx]) -> Vec<Spot> {
        let routing = self.routing();
        let mut spots = BTreeMap::new();
        for node in nodes.iter().filter_map(|ix| dag.nodes.get(*ix as usize)) {
            if let NodeWork::Job(job) = &node.work {
                let requires = job.requires.iter().map(|name| name.as_str().into()).collect();
                let first = waits_in(&routing, Shape { requires, ..Shape::of(job.topic.clone()) });
                spots.extend(first.into_iter().map(|spot| (spot.pool.clone(), spot)));
            }
        }
        spots.into_values().collect()
    }

    /// Lets dead jobs live again, each tenant's against its own quota. They bring nothing to be stored, and rates are for
    /// those who submit. What is not dead is not asked for room: its state says why it cannot come back.
    pub(crate) async fn admit_replays(
        self: &Arc<Self>,
        jobs: impl IntoIterator<Item = Job>,
    ) -> Result<Returning, StoreError> {
        let (quotas, routing) = (self.config.quotas(), self.routing());
        let mut by_tenant: BTreeMap<TenantId, Vec<Job>> = BTreeMap::new();
        for job in jobs {
            by_tenant.entry(job.request.tenant.clone()).or_default().push(job);
        }
        let mut returning = Returning::default();
        for (tenant, jobs) in by_tenant {
            self.look_up(&quotas, &tenant).await?;
            let (mut ticket, now) = (self.ticket(&tenant), self.ports.clock.now());
            let mut known = self.admission.known.lock();
            for job in jobs {
                let spots = || waits_in(&routing, job.request.shape());
                let asked = RoomRequest {
                    tenant: &tenant,
                    priority: job.request.priority.unwrap_or_default(),
                    spots: if asks_for_pool(&quotas) { spots() } else { Vec::new() },
                    more: Room { jobs: 1, runs: 0, stored_bytes: 0 },
                };
                let of_dag = job.request.run.as_ref().is_some_and(|part| part.undo || !part.run.is_saga());
                let is_asked = job.state().is_dead() && !of_dag;
                let decided =
                    if is_asked { known.admit(&quotas, &asked, &self.edge, now, &mut ticket.let_in) } else { Ok(()) };
                match decided {
                    Ok(()) => returning.jobs.push(Arc::new(job)),
                    Err(limited) => returning.refuse(self, limited),
                }
            }
            drop(known);
            returning.tickets.push(ticket);
        }
        Ok(returning)
    }
}

impl Returning {
    fn refuse(&mut self, inner: &Inner, limited: Limited) {
        inner.metrics.admission.refused(limited.by);
        self.refused += 1;
        self.limited.get_or_insert(limited);
    }
}

/// Of what waits first.
fn most_urgent(dag: &Dag, first: &[NodeIx]) -> Priority {
    let of = |work: &NodeWork| match work {
        NodeWork::Job(job) => Some(job.priority.unwrap_or_default()),
        NodeWork::Approval(_) | NodeWork::Delay(_) | NodeWork::Dag(_) => None,
    };
    let nodes = first.iter().filter_map(|ix| dag.nodes.get(*ix as usize));
    nodes.filter_map(|node| of(&node.work)).min().unwrap_or_default()
}
