//! Work that was done before: what came of it stands for the same work asked for again, if policy lets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::job::Earlier;
use lockgate_core::output::OutputStep;
use lockgate_core::request::JobRequest;
use lockgate_core::verdict::Judgement;
use lockgate_ports::{MemoKey, OutputMeta};

use crate::Inner;

impl Inner {
    /// By place among the requests: what stands for it. One read for all of them. Nobody has to know what was done before, so
    /// whatever cannot be read is done.
    pub(super) async fn done_before(&self, requests: &[Arc<JobRequest>], judged: &[Judgement]) -> BTreeMap<usize, Earlier> {
        let wants = |request: &Arc<JobRequest>| {
            let memo = request.memo.as_ref().filter(|memo| !memo.fresh && request.gate.is_none())?;
            Some(MemoKey { tenant: request.tenant.clone(), key: memo.key.clone() })
        };
        let (places, keys): (Vec<usize>, Vec<MemoKey>) =
            requests.iter().enumerate().filter_map(|(at, request)| Some((at, wants(request)?))).unzip();
        if keys.is_empty() {
            return BTreeMap::new();
        }
        let found = match self.ports.store.memos(&keys).await {
            Ok(found) => found,
            Err(error) => {
                self.health.store_failed(&error);
                tracing::warn!(%error, "memos could not be read; the work is done again");
                return BTreeMap::new();
            }
        };
        let found: Vec<(usize, Earlier)> =
            places.into_iter().zip(found).filter_map(|(at, earlier)| Some((at, earlier?))).collect();
        let metas: Vec<OutputMeta> = found
            .iter()
            .map(|(at, earlier)| OutputMeta { request: requests[*at].clone(), bytes: earlier.result.as_str().len() })
            .collect();
        let steps = if metas.is_empty() { Vec::new() } else { self.ports.kernel.check_outputs(&metas).await };
        let stands = |((at, earlier), step): &((usize, Earlier), OutputStep)| match judged.get(*at) {
            Some(Judgement::Decided(verdict)) => earlier.stands_for(&requests[*at], verdict, step),
            Some(Judgement::Unavailable(_)) | None => false,
        };
        found.into_iter().zip(steps).filter(stands).map(|(found, _)| found).collect()
    }
}
