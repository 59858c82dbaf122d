//! Pools and what goes on in them.

use lockgate_core::pools::Closed;
use lockgate_engine::PoolView;
use lockgate_proto::v1;

pub(crate) fn pools(views: &[PoolView], snapshot: &str) -> v1::ListPoolsResponse {
    v1::ListPoolsResponse { pools: views.iter().map(status).collect(), snapshot: snapshot.to_owned() }
}

pub(crate) fn pool_changed(view: Option<&PoolView>) -> v1::SetPoolStateResponse {
    v1::SetPoolStateResponse { pool: view.map(status) }
}

pub(crate) fn drained(sessions: usize) -> v1::DrainWorkerResponse {
    v1::DrainWorkerResponse { sessions: u32::try_from(sessions).unwrap_or(u32::MAX) }
}

fn status(view: &PoolView) -> v1::PoolStatus {
    let pool = &view.pool;
    v1::PoolStatus {
        name: pool.name.to_string(),
        description: pool.description.as_deref().unwrap_or_default().to_owned(),
        dispatch: pool.dispatch.as_str().to_owned(),
        state: state(view.closed).into(),
        topics: view.topics.clone(),
        capabilities: pool.capabilities.iter().map(ToString::to_string).collect(),
        labels: pool.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        max_concurrent: pool.max_concurrent,
        workers: u32::try_from(view.workers).unwrap_or(u32::MAX),
        slots: view.slots,
        busy: view.busy,
        waiting: view.waiting,
    }
}

fn state(closed: Option<Closed>) -> v1::PoolState {
    match closed {
        None => v1::PoolState::Open,
        Some(Closed::Paused) => v1::PoolState::Paused,
        Some(Closed::Draining) => v1::PoolState::Draining,
    }
}
