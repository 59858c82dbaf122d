//! A deterministic simulator: the real engine on the memory ports, virtual time, one thread, one seed.
//!
//! [`run`] draws everything from the seed: the load, the workers' behaviour and the faults. In the chaos phase the server
//! crashes at arbitrary Store calls, calls fail or end with unknown outcome, doorbells are lost or doubled, and workers die,
//! hang, forget and repeat themselves. Some workers have no stream and connect over NATS, which loses, doubles and delays
//! messages. Some jobs are parents: they submit children, wait for them and continue. Half of the seeds run several
//! processes on shared lanes, which forget and miss calls; half of these have processes with different roles. One of several
//! processes may be cut off or stalled until the others close its edge. The clock of a process may be hours off for seconds.
//! Where jobs are quick, workers get some ahead of a free slot, and are asked to give them back. People change policies,
//! pause the pool and drain workers. Two of three seeds leave some faults out, so that behaviour which needs a while without
//! them occurs. Then the faults stop, and everything acknowledged must end exactly once.
//!
//! Two judges know nothing of the engine: a witness between the processes and the disk keeps its own record of every change
//! that the Store acknowledged, and in the end histories are compared with what clients and workers saw. Bugs planted on
//! purpose test that the judges notice errors, see [`Bug`].

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

/// One thread, and a clock that advances only when every task waits.
fn on_paused_time<T>(what: impl Future<Output = Result<T, Violation>>) -> Result<T, Violation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(what),
        Err(error) => Err(Violation::new("runtime", error.to_string())),
    }
}
