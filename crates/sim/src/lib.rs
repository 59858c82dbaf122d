//! A deterministic simulator: the real engine on the memory ports, virtual time, one thread, one seed.
//!
//! [`run`] draws everything from the seed: the load, the workers' behaviour and the faults. In the chaos phase the
//! server crashes at arbitrary Store calls, calls fail or end with unknown outcome, bells are lost or doubled, workers
//! die, hang, forget and repeat themselves. Half of the seeds run several processes on shared lanes, which forget and
//! miss things. Then the faults stop, and everything acknowledged must end exactly once.

mod check;
mod client;
mod clock;
mod faults;
mod flow;
mod governed;
mod lanes;
mod plan;
mod process;
mod runs;
mod schedules;
mod signal;
mod store;
mod worker;
mod world;

pub use check::Violation;
pub use faults::Injected;
pub use world::Summary;

/// Simulates one seed from start to end.
pub fn run(seed: u64) -> Result<Summary, Violation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(async { world::World::new(seed).run().await }),
        Err(error) => Err(Violation::new("runtime", error.to_string())),
    }
}
