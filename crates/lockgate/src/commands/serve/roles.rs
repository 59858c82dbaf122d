//! The roles of a server process.

use std::collections::BTreeSet;

use clap::ValueEnum;
use lockgate_engine::Roles;
use lockgate_gateway::ApiSurface;

use crate::error::CliError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Role {
    /// Gateway, scheduler, orchestrator and worker
    All,
    /// The API, and the streams of workers
    Gateway,
    /// Verdicts, due jobs, deadlines, and whatever must be mended
    Scheduler,
    /// The steps of workflows
    Orchestrator,
    /// The built-in worker
    Worker,
    /// Nothing but verdicts, for schedulers elsewhere
    Kernel,
}

/// The roles of one process, as its other settings allow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoleSet {
    pub(super) engine: Roles,
    pub(super) surface: ApiSurface,
    pub(super) worker: bool,
}

impl RoleSet {
    /// `shared` when other processes work on the same Store.
    pub(super) fn of(roles: &[Role], no_worker: bool, shared: bool) -> Result<Self, CliError> {
        let roles: BTreeSet<Role> = roles.iter().copied().collect();
        let has = |role| roles.contains(&Role::All) || roles.contains(&role);
        if roles.contains(&Role::Kernel) {
            if roles.len() > 1 {
                return usage("--roles kernel stands alone: a process that judges for others does nothing else");
            }
            // A process with its own data folder must also schedule it; one of several leaves that to the schedulers.
            let none = Roles { gateway: false, scheduler: false, orchestrator: false };
            let engine = if shared { none } else { Roles::default() };
            return Ok(Self { engine, surface: ApiSurface::Kernel, worker: false });
        }
        let engine =
            Roles { gateway: has(Role::Gateway), scheduler: has(Role::Scheduler), orchestrator: has(Role::Orchestrator) };
        let worker = has(Role::Worker) && !no_worker;
        if !shared && engine != Roles::default() {
            return usage(
                "a server with a data folder of its own is alone and needs the roles gateway, scheduler and orchestrator; \
                 to share the work, name DATABASE_URL, REDIS_URL and NATS_URL",
            );
        }
        if worker && !engine.gateway {
            return usage(
                "the built-in worker needs the role gateway in the same process; elsewhere, run `lockgate worker`",
            );
        }
        let surface = if engine.gateway { ApiSurface::All } else { ApiSurface::Health };
        Ok(Self { engine, surface, worker })
    }

    /// Lets the process hold workers even without the API: those that connect over NATS.
    pub(super) fn with_workers(self) -> Self {
        if self.judges_only() { self } else { Self { engine: Roles { gateway: true, ..self.engine }, ..self } }
    }

    pub(super) fn judges_only(self) -> bool {
        self.surface == ApiSurface::Kernel
    }
}

fn usage<T>(text: &str) -> Result<T, CliError> {
    Err(CliError::Usage(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(roles: &[Role], shared: bool) -> Result<RoleSet, CliError> {
        RoleSet::of(roles, false, shared)
    }

    #[test]
    fn all_is_everything_but_a_kernel_for_others() {
        let all = set(&[Role::All], false).expect("valid");
        assert_eq!((all.engine, all.surface, all.worker), (Roles::default(), ApiSurface::All, true));
        assert!(!RoleSet::of(&[Role::All], true, false).expect("valid").worker);
    }

    #[test]
    fn shared_work_can_be_split() {
        let gateway = set(&[Role::Gateway], true).expect("valid");
        assert_eq!((gateway.engine.scheduler, gateway.surface, gateway.worker), (false, ApiSurface::All, false));
        let scheduler = set(&[Role::Scheduler], true).expect("valid");
        assert_eq!((scheduler.engine.gateway, scheduler.surface), (false, ApiSurface::Health));
        assert!(set(&[Role::Gateway, Role::Worker], true).expect("valid").worker);
    }

    #[test]
    fn whoever_holds_workers_over_nats_needs_no_api() {
        let scheduler = set(&[Role::Scheduler], true).expect("valid").with_workers();
        assert_eq!(
            (scheduler.engine.gateway, scheduler.engine.scheduler, scheduler.surface),
            (true, true, ApiSurface::Health)
        );
        assert!(!set(&[Role::Kernel], true).expect("valid").with_workers().engine.gateway);
    }

    #[test]
    fn a_kernel_for_others_leaves_the_work_to_them() {
        let kernel = set(&[Role::Kernel], true).expect("valid");
        assert_eq!((kernel.engine.gateway, kernel.engine.scheduler, kernel.judges_only()), (false, false, true));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for (roles, shared) in [
            (&[Role::Gateway][..], false),
            (&[Role::Scheduler], false),
            (&[Role::Worker], true),
            (&[Role::Kernel, Role::Gateway], true),
        ] {
            assert!(set(roles, shared).is_err(), "{roles:?}");
        }
    }
}
