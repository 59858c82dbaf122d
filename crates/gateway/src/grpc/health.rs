//! What `grpc.health.v1` says: whether calls can be served, as far as we know.

use std::future::Future;
use std::time::Duration;

use lockgate_proto::v1::access_server::AccessServer;
use lockgate_proto::v1::admin_server::AdminServer;
use lockgate_proto::v1::approvals_server::ApprovalsServer;
use lockgate_proto::v1::monitor_server::MonitorServer;
use lockgate_proto::v1::orchestrator_server::OrchestratorServer;
use lockgate_proto::v1::output_policy_server::OutputPolicyServer;
use lockgate_proto::v1::pools_server::PoolsServer;
use lockgate_proto::v1::safety_kernel_server::SafetyKernelServer;
use lockgate_proto::v1::scheduler_server::SchedulerServer;
use lockgate_proto::v1::schedules_server::SchedulesServer;
use lockgate_proto::v1::worker_server::WorkerServer;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::{
    AccessService, AdminService, ApprovalsService, KernelService, MonitorService, OrchestratorService, PoolsService,
    SchedulerService, SchedulesService, WorkerService,
};
use crate::ApiSurface;

/// Every look writes to the Store and waits for the disk, so it must stay rare beside real work.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The server as a whole, and its services. They share one Store, so they share one condition.
const NAMES: [&str; 12] = [
    "",
    MonitorServer::<MonitorService>::NAME,
    AccessServer::<AccessService>::NAME,
    AdminServer::<AdminService>::NAME,
    SafetyKernelServer::<KernelService>::NAME,
    OutputPolicyServer::<KernelService>::NAME,
    SchedulerServer::<SchedulerService>::NAME,
    WorkerServer::<WorkerService>::NAME,
    ApprovalsServer::<ApprovalsService>::NAME,
    PoolsServer::<PoolsService>::NAME,
    OrchestratorServer::<OrchestratorService>::NAME,
    SchedulesServer::<SchedulesService>::NAME,
];

/// A service that is not behind these doors is unknown, not unhealthy.
fn names(surface: ApiSurface) -> &'static [&'static str] {
    match surface {
        ApiSurface::All => &NAMES,
        ApiSurface::Kernel => &NAMES[..6],
        ApiSurface::Health => &NAMES[..2],
    }
}

/// Reports what `ready` says, again and again, until the doors close; from then on nothing is served.
pub(crate) async fn mirror<F>(
    reporter: HealthReporter,
    surface: ApiSurface,
    closing: CancellationToken,
    ready: impl Fn() -> F,
) where
    F: Future<Output = bool>,
{
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut look = async || {
        ticks.tick().await;
        ready().await
    };
    let mut last = None;
    while let Some(serving) = closing.run_until_cancelled(look()).await {
        // A report wakes every watcher, so only changes are news.
        if last.replace(serving) != Some(serving) {
            report(&reporter, surface, serving).await;
        }
    }
    report(&reporter, surface, false).await;
}

pub(super) async fn report(reporter: &HealthReporter, surface: ApiSurface, serving: bool) {
    let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    for name in names(surface) {
        reporter.set_service_status(name, status).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_server::Health;
    use tonic_health::server::HealthService;

    use super::*;

    async fn served(service: &HealthService) -> Vec<bool> {
        let mut all = Vec::new();
        for name in NAMES {
            let request = tonic::Request::new(HealthCheckRequest { service: name.to_owned() });
            let status = service.check(request).await.expect("a known service").into_inner().status;
            all.push(status == ServingStatus::Serving as i32);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn health_follows_readiness_and_ends_with_the_doors() {
        let reporter = HealthReporter::new();
        let service = HealthService::from_health_reporter(reporter.clone());
        let (ready, closing) = (Arc::new(AtomicBool::new(true)), CancellationToken::new());
        let (asked, closed) = (ready.clone(), closing.clone());
        let mirror = tokio::spawn(mirror(reporter, ApiSurface::All, closed, move || {
            std::future::ready(asked.load(Ordering::SeqCst))
        }));
        for state in [true, false, true] {
            ready.store(state, Ordering::SeqCst);
            tokio::time::sleep(2 * LOOK_EVERY).await;
            assert_eq!(served(&service).await, [state; NAMES.len()]);
        }
        closing.cancel();
        mirror.await.expect("no panic");
        assert_eq!(served(&service).await, [false; NAMES.len()]);
    }

    #[tokio::test]
    async fn a_kernel_says_nothing_of_services_it_does_not_have() {
        let reporter = HealthReporter::new();
        let service = HealthService::from_health_reporter(reporter.clone());
        report(&reporter, ApiSurface::Kernel, true).await;
        let known = async |name: &str| {
            let request = tonic::Request::new(HealthCheckRequest { service: name.to_owned() });
            service.check(request).await.is_ok()
        };
        assert!(known(SafetyKernelServer::<KernelService>::NAME).await);
        assert!(!known(SchedulerServer::<SchedulerService>::NAME).await);
    }
}
