//! A lack of file descriptors is a problem of the machine and not of the job, so it costs no attempt.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::error::JobError;

/// When a job without a descriptor is retried; other jobs may have closed some by then. A job may snooze a thousand times,
/// so a lack may last about half an hour.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The lack of file descriptors that caused `error`, if one did.
pub(super) fn lacking(error: &(dyn Error + 'static)) -> Option<Lack> {
    std::iter::successors(Some(error), |&error| error.source()).find_map(|error| {
        let code = os_code(error)?;
        if code == Errno::MFILE.raw_os_error() {
            let limit = getrlimit(Resource::Nofile).current.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
            Some(Lack(format!(
                "this process has no file descriptor left (its limit, ulimit -n, is {limit}): raise the limit"
            )))
        } else if code == Errno::NFILE.raw_os_error() {
            Some(Lack("this machine has no file descriptor left: raise fs.file-max".to_owned()))
        } else {
            None
        }
    })
}

/// The system's error code. An `io::Error` that wraps another one does not name it as its source, so the wrapped error is
/// examined.
fn os_code(error: &(dyn Error + 'static)) -> Option<i32> {
    let error = error.downcast_ref::<io::Error>()?;
    error.raw_os_error().or_else(|| os_code(error.get_ref()?))
}

/// The limit that was reached.
#[derive(Debug)]
pub(super) struct Lack(pub(super) String);

impl Lack {
    /// Snoozes the job, which keeps its attempts.
    pub(super) fn put_off(self) -> JobError {
        tracing::warn!("a job is put off for {AGAIN_AFTER:?}: {}", self.0);
        JobError::snooze(AGAIN_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_found_under_other_errors_and_named() {
        let of_process = io::Error::other(io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(lacking(&of_process).is_some_and(|lack| lack.0.contains("ulimit -n")));
        let of_machine = io::Error::from_raw_os_error(Errno::NFILE.raw_os_error());
        assert!(lacking(&of_machine).is_some_and(|lack| lack.0.contains("fs.file-max")));
        assert_eq!(lacking(&of_machine).map(Lack::put_off), Some(JobError::snooze(AGAIN_AFTER)));
        assert!(lacking(&io::Error::from(io::ErrorKind::NotFound)).is_none());
    }
}
