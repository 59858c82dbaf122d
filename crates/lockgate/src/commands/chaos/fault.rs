//! The faults that can be injected.

use std::time::Duration;

/// The target of a fault: a part, or the connection to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultTarget {
    Server,
    Gateway,
    Scheduler,
    Worker,
    Client,
    Postgres,
    Redis,
    Nats,
    /// The connection of one gateway to PostgreSQL; the other gateways are not affected.
    GatewayPostgres,
    /// The connection of the leading scheduler to Redis.
    SchedulerRedis,
    Handlers,
    Disk,
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    /// kill -9, and a new process at once, as a supervisor does.
    Kill,
    /// SIGSTOP for longer than every lease, then SIGCONT.
    Stop,
    /// Every chunk comes later.
    Latency,
    /// Connections end, and new ones are refused for a while.
    Cut,
    /// Connections stay open and carry nothing any more, in either direction; new ones work.
    HalfOpen,
    /// Connections end with RST; new ones work.
    Reset,
    /// Files may not grow: writes fail, and not as on a full disk.
    Refuses,
    /// The database may not grow any more.
    Full,
    /// One more worker, in which attempts fail, hang and are slow at random.
    Fail,
    /// The wall clock jumps.
    Shift,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedFault {
    pub(super) part: FaultTarget,
    pub(super) blow: Blow,
}

/// The sign by which an outside observer sees the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// A call of the client fails.
    Call,
    /// A submit is refused for want of room.
    NoRoom,
    /// The worker's session is no longer attached.
    Session,
    /// The worker dials again.
    Redial,
    /// A process says that it is not ready, or not wholly.
    Readiness,
    /// Another process leads.
    Lead,
    /// The fault should not be visible at all.
    Nothing,
}

const ON_THE_WIRE: [Blow; 4] = [Blow::Latency, Blow::Cut, Blow::HalfOpen, Blow::Reset];

impl FaultTarget {
    const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Gateway => "gateway",
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
            Self::Client => "client",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Nats => "nats",
            Self::GatewayPostgres => "gateway-postgres",
            Self::SchedulerRedis => "scheduler-redis",
            Self::Handlers => "handlers",
            Self::Disk => "disk",
            Self::Clock => "clock",
        }
    }

    /// Whether the fault affects a gateway: then the observer uses another one.
    pub(super) const fn is_at_gateway(self) -> bool {
        matches!(self, Self::Gateway | Self::GatewayPostgres)
    }
}

impl Blow {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Latency => "latency",
            Self::Cut => "cut",
            Self::HalfOpen => "half-open",
            Self::Reset => "reset",
            Self::Refuses => "refuses",
            Self::Full => "full",
            Self::Fail => "fail",
            Self::Shift => "shift",
        }
    }
}

impl PlannedFault {
    /// All faults of an installation of this kind, in the order of the table.
    pub(super) fn all(cluster: bool) -> Vec<Self> {
        let processes: &[FaultTarget] = if cluster {
            &[FaultTarget::Gateway, FaultTarget::Scheduler, FaultTarget::Worker]
        } else {
            &[FaultTarget::Server, FaultTarget::Worker]
        };
        let wires: &[FaultTarget] = if cluster {
            &[FaultTarget::Worker, FaultTarget::Client, FaultTarget::Postgres, FaultTarget::Redis, FaultTarget::Nats]
        } else {
            &[FaultTarget::Worker, FaultTarget::Client]
        };
        let of = |parts: &[FaultTarget], blows: &[Blow]| -> Vec<Self> {
            parts.iter().flat_map(|&part| blows.iter().map(move |&blow| Self { part, blow })).collect()
        };
        let mut all = of(processes, &[Blow::Kill, Blow::Stop]);
        all.extend(of(wires, &ON_THE_WIRE));
        if cluster {
            all.extend(of(&[FaultTarget::GatewayPostgres, FaultTarget::SchedulerRedis], &[Blow::Cut]));
        }
        all.push(Self { part: FaultTarget::Handlers, blow: Blow::Fail });
        if !cluster {
            all.extend(of(&[FaultTarget::Disk], &[Blow::Refuses, Blow::Full]));
        }
        all.push(Self { part: FaultTarget::Clock, blow: Blow::Shift });
        all
    }

    pub(super) fn name(self) -> String {
        format!("{}-{}", self.part.name(), self.blow.name())
    }

    /// Why the fault cannot be injected, if it cannot.
    pub(super) const fn impossible(self) -> Option<&'static str> {
        match self.blow {
            Blow::Shift => {
                Some("only the administrator of a machine can set its clock; the simulator shifts clocks instead")
            }
            _ => None,
        }
    }

    pub(super) const fn notice(self) -> Notice {
        match (self.part, self.blow) {
            // Retries hide it.
            (_, Blow::Latency | Blow::Fail) => Notice::Nothing,
            (_, Blow::Full) => Notice::NoRoom,
            (FaultTarget::Scheduler, _) => Notice::Lead,
            (FaultTarget::Worker, Blow::HalfOpen | Blow::Reset) => Notice::Redial,
            (FaultTarget::Worker, _) => Notice::Session,
            (FaultTarget::Postgres | FaultTarget::Redis | FaultTarget::Nats | FaultTarget::SchedulerRedis, _) => {
                Notice::Readiness
            }
            _ => Notice::Call,
        }
    }

    /// How long the fault lasts. Kills and resets are instantaneous.
    pub(super) const fn lasts(self, quick: bool) -> Duration {
        let seconds = match (self.blow, self.part) {
            (Blow::Kill | Blow::Reset | Blow::Shift, _) => 0,
            // An edge is closed when its lease of 6 s ran out 4 s ago, or later.
            (Blow::Stop, FaultTarget::Gateway | FaultTarget::Scheduler) | (Blow::Cut, FaultTarget::GatewayPostgres) => 15,
            (Blow::Stop, _) => {
                if quick {
                    6
                } else {
                    15
                }
            }
            (Blow::Latency | Blow::Cut | Blow::Refuses, _) => 3,
            // Long enough for attempts that fail twice.
            (Blow::Fail, _) => 6,
            // The load needs seconds to fill the remaining room.
            (Blow::Full, _) => 12,
            // A worker gives up on a beat after 5 s, and the next beat may be 3 s away.
            (Blow::HalfOpen, FaultTarget::Worker) => 12,
            (Blow::HalfOpen, _) => 6,
        };
        Duration::from_secs(seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        for cluster in [false, true] {
            let all = PlannedFault::all(cluster);
            let names: BTreeSet<String> = all.iter().map(|fault| fault.name()).collect();
            assert_eq!(names.len(), all.len());
            assert_eq!(names.contains("server-kill"), !cluster);
            assert_eq!(names.contains("postgres-half-open"), cluster);
            assert_eq!(names.contains("gateway-postgres-cut"), cluster);
            assert_eq!(names.contains("disk-full"), !cluster);
            assert!(names.contains("handlers-fail"));
        }
    }

    #[test]
    fn a_blow_to_the_process_that_leads_shows_by_who_leads_next() {
        for blow in [Blow::Kill, Blow::Stop] {
            assert_eq!(PlannedFault { part: FaultTarget::Scheduler, blow }.notice(), Notice::Lead);
        }
    }
}
