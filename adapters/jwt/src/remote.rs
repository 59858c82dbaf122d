//! Keys at the issuer's address: fetched when first needed, cached, and refreshed.

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

/// A key that the issuer withdraws is accepted for no longer than this.
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);
/// While the issuer is unreachable, its last keys are accepted for this long.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// The pause between fetches for unknown keys, because any client can send tokens with unknown key names.
const UNKNOWN_EVERY: Duration = Duration::from_secs(30);
/// The pause between tries while the issuer is unreachable.
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
    /// Whether the last try failed.
    failed: bool,
    /// Closes when the fetch in progress ends.
    fetching: Option<watch::Receiver<()>>,
}

impl FetchState {
    /// After the clock was set back the keys count as old.
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
                // While the issuer is known to be unreachable, a call that has usable keys does not wait.
                fetch.filter(|_| !state.failed || state.good_keys(now).is_none())
            }
        };
        over(fetch).await;
        self.shared.state.lock().good_keys(now).ok_or_else(unavailable)
    }

    /// Called for a token whose key is unknown: it may be a new one.
    pub(crate) async fn renewed(&self, now: Timestamp) -> Result<Arc<KeySet>, TokenError> {
        let fetch = {
            let mut state = self.shared.state.lock();
            self.shared.fetch(&mut state, now, UNKNOWN_EVERY)
        };
        over(fetch).await;
        let state = self.shared.state.lock();
        // While the issuer is unreachable it is unknown whether the key is a new one.
        state.good_keys(now).filter(|_| !state.failed).ok_or_else(unavailable)
    }
}

impl RemoteKeySource {
    /// The fetch in progress, or a new one unless the last was too recent.
    fn fetch(self: &Arc<Self>, state: &mut FetchState, now: Timestamp, pause: Duration) -> Option<watch::Receiver<()>> {
        // A fetch that was dropped with its runtime is closed and no longer in progress.
        if let Some(fetching) = state.fetching.clone().filter(|fetching| fetching.has_changed().is_ok()) {
            return Some(fetching);
        }
        if !state.may_try(now, pause) {
            return None;
        }
        let (done, fetching) = watch::channel(());
        state.tried_at = Some(now);
        state.fetching = Some(fetching.clone());
        // A task of its own: the request that started the fetch may be cancelled while others wait for it.
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
        // Nothing is ever sent; the wait ends when the sender is dropped.
        let _closed = fetch.changed().await;
    }
}

/// The caller is not authenticated yet, so the error does not reveal the address of the keys.
fn unavailable() -> TokenError {
    TokenError::Unavailable("the issuer does not give them; the log of the server says why".to_owned())
}
