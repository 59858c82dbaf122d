//! The Rust core of the Python package `lockgate`: the client and the worker library, and what it takes to call them from Python.
//!
//! The border is narrow on purpose: JSON texts go across, calls are answered once, and the worker calls back into Python in one
//! place. Threads of the runtime never take Python's lock, so a handler that keeps it cannot hold up beats.

mod attempt;
mod call;
mod callbacks;
mod connection;
mod fault;
mod log;
mod operations;
mod outcome;
mod owned;
mod runtime;
mod settings;
mod test_server;
mod watch;
mod worker;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<attempt::PyAttempt>()?;
    module.add_class::<call::PyCall>()?;
    module.add_class::<connection::PyConnection>()?;
    module.add_class::<test_server::PyTestServer>()?;
    module.add_class::<watch::PyWatch>()?;
    module.add_class::<worker::PyWorker>()?;
    module.add_function(wrap_pyfunction!(runtime::shut_down, module)?)
}
