//! Metric families of clocks that jump.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::Seconds;
use super::catalogue::MetricFamilies;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByClock {
    clock: &'static str,
}

/// Whose clock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Machine,
    Store,
    /// The one that made the newest stamps the Store had at the start.
    Stamps,
}

impl Whose {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Store => "store",
            Self::Stamps => "stamps",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

/// What a wrong clock had stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamped {
    Job,
    Run,
    Schedule,
}

impl Stamped {
    const fn name(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Run => "run",
            Self::Schedule => "schedule",
        }
    }
}

#[derive(Clone)]
pub(crate) struct ClockMetrics {
    jumps: Family<ByClock, Counter>,
    ahead: Family<ByClock, Seconds>,
    restamped: Family<ByKind, Counter>,
}

impl ClockMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let (jumps, ahead) = (Family::<ByClock, Counter>::default(), Family::<ByClock, Seconds>::default());
        let help = "Jumps of this machine's clock, or of the Store's, by two seconds or more, and starts with stamps in the Store that lay ahead";
        registry.register("clock_jumps", help, jumps.clone());
        let help =
            "How far a clock that jumped is ahead of the time that work goes on by, negative if behind; 0 if none jumped";
        registry.register("clock_jump_seconds", help, ahead.clone());
        let restamped = Family::<ByKind, Counter>::default();
        let help = "What a clock that was ahead had stamped and was brought back when the time was right, by kind";
        registry.register("clock_restamped", help, restamped.clone());
        // A series that is not there would say nothing.
        for kind in [Stamped::Job, Stamped::Run, Stamped::Schedule].map(Stamped::name) {
            let _ = restamped.get_or_create(&ByKind { kind });
        }
        for clock in [Whose::Machine, Whose::Store, Whose::Stamps].map(Whose::name) {
            let _ = jumps.get_or_create(&ByClock { clock });
            let _ = ahead.get_or_create(&ByClock { clock });
        }
        Self { jumps, ahead, restamped }
    }

    pub(crate) fn restamped(&self, what: Stamped, count: u64) {
        self.restamped.get_or_create(&ByKind { kind: what.name() }).inc_by(count);
    }

    pub(crate) fn jumped(&self, whose: Whose, times: u64) {
        self.jumps.get_or_create(&ByClock { clock: whose.name() }).inc_by(times);
    }

    pub(crate) fn is_ahead(&self, whose: Whose, seconds: f64) {
        self.ahead.get_or_create(&ByClock { clock: whose.name() }).set(seconds);
    }
}
