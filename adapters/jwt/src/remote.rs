//! Keys at the issuer's address: fetched when first needed, kept, fetched again, and outlived.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::TokenError;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::fetch::JwksAddress;
use crate::keyset::KeySet;
use crate::settings::SettingsError;

/// A key that the issuer withdraws is believed for no longer than this.
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);
/// Unless the issuer is away: then its last keys are good for this long.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// Between fetches for unknown keys: any client can send tokens that name one.
const UNKNOWN_EVERY: Duration = Duration::from_secs(30);
/// Between tries while the issuer is away.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
const _: () = assert!(AGAIN_AFTER.as_secs() <= UNKNOWN_EVERY.as_secs() && FRESH_FOR.as_secs() < GOOD_FOR.as_secs());

pub(crate) struct RemoteKeys {
    shared: Arc<RemoteKeySource>,
}

struct RemoteKeySource {
    address: JwksAddress,
    state: Mutex<FetchState>,
}

#[derive(Default)]
struct FetchState {
    keys: Option<Arc<KeySet>>,
    fetched_at: Timestamp,
    tried_at: Option<Timestamp>,
    /// The last try was in vain.
    failed: bool,
    /// Closes when the fetch under way is over.
    fetching: Option<watch::Receiver<()>>,
}

impl FetchState {
    /// A clock that was set back makes everything old.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.keys.is_some() && self.fetched_at <= now && now.since(self.fetched_at) < FRESH_FOR
    }

    fn good_keys(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        self.keys.clone().filter(|_| now.since(self.fetched_at) < GOOD_FOR)
    }

    fn may_try(&self, now: Timestamp, pause: Duration) -> bool {
        self.tried_at.is_none_or(|at| now < at || now.since(at) >= pause)
    }
}

impl RemoteKeys {
    pub(crate) fn new(url: &str, ca: Option<PathBuf>) -> Result<Self, SettingsError> {
        let address = JwksAddress::new(url, ca)?;
        Ok(Self { shared: Arc::new(RemoteKeySource { address, state: Mutex::default() }) })
    }

    pub(crate) async fn current(&self, now: Timestamp) -> Result<Arc<KeySet>, TokenError> {
        let fetch = {
            let mut state = self.shared.state.lock();
            if state.is_fresh(now) {
                None
            } else {
                let fetch = self.shared.fetch(&mut state, now, AGAIN_AFTER);
                // While the issuer is known to be away, a call that can do without it does not wait.
                fetch.filter(|_| !state.failed || state.good_keys(now).is_none())
            }
        };
        over(fetch).await;
        self.shared.state.lock().good_keys(now).ok_or_else(unavailable)
    }

    /// After a token has named a key that is not among the current ones: it may be a new one.
    pub(crate) async fn renewed(&self, now: Timestamp) -> Result<Arc<KeySet>, TokenError> {
        let fetch = {
            let mut state = self.shared.state.lock();
            self.shared.fetch(&mut state, now, UNKNOWN_EVERY)
        };
        over(fetch).await;
        let state = self.shared.state.lock();
        // Whether the key is a new one cannot be known while the issuer is away.
        state.good_keys(now).filter(|_| !state.failed).ok_or_else(unavailable)
    }
}

impl RemoteKeySource {
    /// The fetch under way, or a new one unless the last was too short a time ago.
    fn fetch(self: &Arc<Self>, state: &mut FetchState, now: Timestamp, pause: Duration) -> Option<watch::Receiver<()>> {
        // One that was dropped with its runtime is closed, and no longer under way.
        if let Some(fetching) = state.fetching.clone().filter(|fetching| fetching.has_changed().is_ok()) {
            return Some(fetching);
        }
        if !state.may_try(now, pause) {
            return None;
        }
        let (done, fetching) = watch::channel(());
        state.tried_at = Some(now);
        state.fetching = Some(fetching.clone());
        // In a task of its own: the request that was first may be cancelled, and the others wait for the same answer.
        tokio::spawn(self.clone().refresh(now, done));
        Some(fetching)
    }

    async fn refresh(self: Arc<Self>, now: Timestamp, done: watch::Sender<()>) {
        let fetched = self.address.fetch().await;
        let mut state = self.state.lock();
        state.fetching = None;
        state.failed = fetched.is_err();
        match fetched {
            Ok(keys) => {
                state.keys = Some(Arc::new(keys));
                state.fetched_at = now;
            }
            Err(error) => {
                tracing::warn!(address = %self.address.uri(), %error, "token keys could not be fetched");
            }
        }
        drop(state);
        drop(done);
    }
}

async fn over(fetch: Option<watch::Receiver<()>>) {
    if let Some(mut fetch) = fetch {
        // Nothing is ever sent: it ends when the sender does.
        let _closed = fetch.changed().await;
    }
}

/// Callers are strangers still: where the keys are is none of their business.
fn unavailable() -> TokenError {
    TokenError::Unavailable("the issuer does not give them; the log of the server says why".to_owned())
}
