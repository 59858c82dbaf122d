//! File descriptors: raises the limit, and reserves some that clients cannot use.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reserved for the Store, for other servers and for jobs, so that client connections cannot use the last ones.
const RESERVE: u64 = 256;

/// Raises this process's limit as far as possible without privileges. Returns the new limit; None if unlimited.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            let error = io::Error::from(error);
            tracing::warn!(%error, limit = current, "the limit of file descriptors (ulimit -n) could not be raised");
            current
        }
    }
}

/// How many client connections are possible without using the reserve. With a small limit the reserve is three quarters of
/// it.
pub(crate) fn connections_max(wanted: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else { return wanted };
    let most = usize::try_from(limit - RESERVE.min(limit / 4 * 3)).unwrap_or(usize::MAX).max(1);
    if most < wanted {
        tracing::warn!(
            limit,
            connections = most,
            "the limit of file descriptors (ulimit -n) allows fewer connections than usual; more of them wait. Raise it"
        );
    }
    most.min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_a_reserve_of_descriptors() {
        for (limit, connections) in [(None, 4_096), (Some(1 << 20), 4_096), (Some(1_024), 768), (Some(64), 16), (Some(1), 1)]
        {
            assert_eq!(connections_max(4_096, limit), connections, "{limit:?}");
        }
    }
}
