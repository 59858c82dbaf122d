//! File descriptors: as many as the system allows, and some of them kept from clients.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept for the Store, for other servers and for what jobs open, so that clients cannot take the last ones.
const RESERVE: u64 = 256;

/// Raises the limit of this process as far as it may without privileges; the limit that is in force then. None is no limit.
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

/// How many connections of clients leave the reserve alone. With a small limit the reserve is three quarters of it.
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
