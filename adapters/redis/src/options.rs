//! Options: where the server is and how long to wait for it.

use std::fmt;
use std::time::Duration;

use lockgate_tls::Tls;

use crate::error::ConnectError;

/// A claim that is not settled within this time may be claimed again. Must be longer than any commit, or jobs are claimed
/// twice.
const CLAIM_LEASE: Duration = Duration::from_secs(10);
/// Longer than any script runs; every call waits this long while the server hangs.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest name of an installation, since it is part of every key.
const NAME_MAX: usize = 64;

#[derive(Clone)]
pub struct Options {
    /// `redis://[user:password@]host:port/[db]`, or `rediss://` for TLS.
    pub url: String,
    /// TLS settings for a `rediss://` address; the public authorities by default.
    pub tls: Option<Tls>,
    /// Separates installations that share a server.
    pub installation: String,
    /// How long a claim waits for its settlement.
    pub claim_lease: Duration,
    /// How long a call waits for its answer.
    pub response_timeout: Duration,
}

/// Hides the address, which may contain a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, tls, installation, claim_lease, response_timeout } = self;
        let mut shown = f.debug_struct("Options");
        shown.field("tls", tls).field("installation", installation);
        shown.field("claim_lease", claim_lease).field("response_timeout", response_timeout).finish_non_exhaustive()
    }
}

impl Options {
    pub fn new(url: impl Into<String>, installation: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: None,
            installation: installation.into(),
            claim_lease: CLAIM_LEASE,
            response_timeout: RESPONSE_TIMEOUT,
        }
    }

    /// The prefix of every key. The braces put all keys into one cluster slot.
    pub(crate) fn root(&self) -> Result<String, ConnectError> {
        check_installation(&self.installation)?;
        Ok(format!("{{lockgate:{}}}", self.installation))
    }
}

/// A name may contain no character that is special in key patterns, by which old layouts are found, or in hash tags, by
/// which keys are placed.
pub(crate) fn check_installation(name: &str) -> Result<(), ConnectError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(plain) {
        return Err(ConnectError::Installation(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::KeyNames;

    #[test]
    fn a_name_that_means_something_in_a_pattern_is_refused() {
        let root = |name: &str| Options::new("redis://localhost/", name).root();
        assert_eq!(root("prod-1").ok().as_deref(), Some("{lockgate:prod-1}"));
        for name in ["", "a*", "a}b", "a b", "a[b", &"x".repeat(65)] {
            assert!(matches!(root(name), Err(ConnectError::Installation(_))), "{name:?}");
        }
    }

    /// Queues left after a restore belong to the other timeline.
    #[test]
    fn the_docs_name_the_keys_that_a_restore_must_delete() {
        let page = include_str!("../../../docs/backup.md");
        for name in ["default", "prod"] {
            let lanes = Options::new("redis://localhost/", name).root().expect("a name");
            let taken = KeyNames::of(name).expect("a name").message("");
            let counters = taken[0].strip_suffix("bus:processed:").expect("of messages");
            for pattern in [format!("`{lanes}:*`"), format!("`{counters}*`")] {
                assert!(page.contains(&pattern), "docs/backup.md does not name {pattern}");
            }
        }
    }
}
