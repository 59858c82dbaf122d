//! The one Tokio runtime of the process. It starts with the first call, not with the import.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::callbacks::CallbackThread;
use crate::fault::Fault;
use crate::log;

/// Encoding and network work of a client or a worker; handlers run in Python's threads.
const THREADS: usize = 2;

/// The process that the runtime was started in; 0 before. Read before any lock is taken: in a fork, locks may never be released.
static STARTED_IN: AtomicU32 = AtomicU32::new(0);
static CORE: Mutex<Option<Core>> = Mutex::new(None);

struct Core {
    runtime: Runtime,
    callbacks: CallbackThread,
}

/// Runs futures, and calls back into Python. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) callbacks: CallbackThread,
}

/// Refuses a process that was forked from one in which the runtime runs: its threads are not in the fork.
pub(crate) fn check_fork() -> Result<(), Fault> {
    let (here, there) = (std::process::id(), STARTED_IN.load(Ordering::Acquire));
    if there == 0 || there == here {
        return Ok(());
    }
    Err(Fault::new(
        "fork",
        format!("lockgate was in use in process {there} when it was forked, and cannot be used in process {here}"),
        "fork before the first call to lockgate, or start processes with `multiprocessing.get_context(\"spawn\")`",
    ))
}

/// The runtime, started if it is not yet.
pub(crate) fn running() -> Result<Running, Fault> {
    check_fork()?;
    let mut core = CORE.lock();
    let core = match &mut *core {
        Some(core) => core,
        none => {
            let started = start().map_err(|error| {
                Fault::new("setup", format!("no threads for lockgate: {error}"), "raise the limits of this process")
            })?;
            STARTED_IN.store(std::process::id(), Ordering::Release);
            none.insert(started)
        }
    };
    Ok(Running { handle: core.runtime.handle().clone(), callbacks: core.callbacks.clone() })
}

fn start() -> std::io::Result<Core> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("lockgate").enable_all().build()?;
    let callbacks = CallbackThread::start()?;
    log::send_to(callbacks.clone());
    Ok(Core { runtime, callbacks })
}

/// Ends the runtime before the interpreter does. What still runs is cut off.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    if check_fork().is_err() {
        return;
    }
    // The callback thread may wait for Python's lock while it is told to end.
    py.detach(|| {
        let core = CORE.lock().take();
        if let Some(Core { runtime, callbacks }) = core {
            callbacks.end();
            runtime.shutdown_background();
        }
    });
}
