//! A deterministic simulator: the real engine on the memory ports, virtual time, one thread, one seed.
//!
//! [`run`] draws everything from the seed: the load, the workers' behaviour and the faults. In the chaos phase the
//! server crashes at arbitrary Store calls, calls fail or end with unknown outcome, bells are lost or doubled, workers
//! die, hang, forget and repeat themselves. Some workers have no stream and speak over NATS, which loses, doubles and delays
//! what is said. Some jobs are parents: they submit children, wait for them and go on. Half of the seeds run several
//! processes on shared lanes, which forget and miss things; half of these tell roles apart. One of several processes may be cut
//! off or stand still until the others close its edge. The clock of a process may be hours off for seconds. Where jobs are quick, workers are sent some ahead of a free slot, and are
//! asked for them back. People change policies, pause the pool and send workers away. Two of three seeds leave some faults out, so
//! that there is time for what needs a while without them. Then the faults stop, and everything acknowledged must end exactly once.
//!
//! Two judges know nothing of the engine: a witness between the processes and the disk keeps books of every change that
//! the Store says it made, and in the end histories are compared with what clients and workers saw. Whether they notice
//! anything is tested with bugs planted on purpose, see [`Bug`].

mod brood;
mod check;
mod client;
mod clock;
mod ends;
mod families;
mod faults;
mod flow;
mod governed;
mod kernel;
mod lanes;
mod late;
mod link;
mod operators;
mod outage;
mod outputs;
mod parent;
mod people;
mod plan;
mod planted;
mod process;
mod restored;
mod runs;
mod sagas;
mod schedules;
mod signal;
mod store;
mod story;
mod times;
mod trail;
mod wire;
mod witness;
mod worker;
mod world;

pub use check::Violation;
pub use faults::{Fault, Injected};
pub use outage::{Ends, Outage, OutageKind};
pub use planted::Bug;
pub use restored::{Restored, SecondEnds};
pub use story::{NONE, Story};
pub use world::Summary;

/// Simulates one seed from start to end.
pub fn run(seed: u64) -> Result<Summary, Violation> {
    Story::of(seed).tell()
}

/// One thread, and a clock that moves only when everybody waits.
fn on_paused_time<T>(what: impl Future<Output = Result<T, Violation>>) -> Result<T, Violation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(what),
        Err(error) => Err(Violation::new("runtime", error.to_string())),
    }
}
