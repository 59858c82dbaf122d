//! What every server can be told.

use std::fmt::{self, Debug, Formatter};

use rustix::process::Signal;

use crate::ports::free_port;
use crate::process::ChildProcess;

/// Times another program may take the port that was free.
const TRIES: usize = 5;

type Launch = Box<dyn Fn(u16) -> anyhow::Result<ChildProcess> + Send + Sync>;

/// A server on a port of its own. It ends when this is dropped.
pub struct TestServer {
    port: u16,
    process: ChildProcess,
    launch: Launch,
    /// What ends it, in the middle of whatever it does.
    end: Signal,
}

impl Debug for TestServer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("port", &self.port).finish_non_exhaustive()
    }
}

impl TestServer {
    /// `launch` runs it on a port, and returns when it answers.
    pub(crate) fn start(
        end: Signal,
        launch: impl Fn(u16) -> anyhow::Result<ChildProcess> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let mut tries = 0;
        loop {
            let port = free_port()?;
            match launch(port) {
                Ok(process) => return Ok(Self { port, process, launch: Box::new(launch), end }),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// It hangs: connections stay, nothing is answered.
    pub fn pause(&self) {
        self.process.signal_all(Signal::STOP);
    }

    pub fn resume(&self) {
        self.process.signal_all(Signal::CONT);
    }

    /// Every connection is cut.
    pub fn kill(&mut self) {
        self.process.end(self.end);
    }

    /// Starts again on the same port, with what it had on its disk.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        self.process = (self.launch)(self.port)?;
        Ok(())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}
