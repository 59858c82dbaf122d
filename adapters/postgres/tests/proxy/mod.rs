//! A man in the middle who speaks enough of PostgreSQL's protocol to make a server fail when a test wants it.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::Config;

/// When the connection is lost around a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never hears of it.
    BeforeCommit,
    /// The server commits, and its answer is lost.
    AfterCommit,
}

#[derive(Default)]
struct Script {
    /// Statements and commits until one is refused as a serialization failure, and the pause after that.
    refuse_in: Option<u64>,
    pause: u64,
    pause_grows: bool,
    refused: u64,
    cut: Option<Cut>,
}

pub(crate) struct Proxy {
    port: u16,
    script: Arc<Mutex<Script>>,
}

/// What to do with a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Refuse,
    Cut(Cut),
}

impl Proxy {
    pub(crate) async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else { continue };
                tokio::spawn(relay(client, server, Arc::clone(&shared)));
            }
        });
        Self { port, script }
    }

    /// The configuration of the database, through the proxy.
    pub(crate) fn config(&self, config: &Config) -> Config {
        let mut through: Config = format!("postgres://lockgate@127.0.0.1:{}/postgres", self.port).parse().unwrap();
        through.options(config.get_options().unwrap_or_default());
        through
    }

    /// Refuses one of every so many statements and commits.
    pub(crate) fn refuse_every(&self, period: u64) {
        let mut script = self.script.lock();
        (script.refuse_in, script.pause) = (Some(1), period);
    }

    /// Refuses the n-th statement or commit from now, then others after pauses that double: however long a transaction is,
    /// it comes through one day.
    pub(crate) fn refuse_ever_less(&self, first: u64) {
        let mut script = self.script.lock();
        (script.refuse_in, script.pause, script.pause_grows) = (Some(first), 16, true);
    }

    /// Cuts the connection at the next COMMIT.
    pub(crate) fn cut(&self, cut: Cut) {
        self.script.lock().cut = Some(cut);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.script.lock().refused
    }

    /// The cut that was asked for has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.script.lock().cut.is_none()
    }
}

impl Script {
    fn fate(&mut self, unit: &Unit) -> Fate {
        if unit.commits()
            && let Some(cut) = self.cut.take()
        {
            return Fate::Cut(cut);
        }
        if !unit.commits() && !unit.executes {
            return Fate::Pass;
        }
        let Some(left) = &mut self.refuse_in else { return Fate::Pass };
        *left -= 1;
        if *left > 0 {
            return Fate::Pass;
        }
        *left = self.pause;
        self.pause *= 1 + u64::from(self.pause_grows);
        self.refused += 1;
        Fate::Refuse
    }
}

/// Messages that are answered together: a simple query, or everything up to a Sync.
#[derive(Default)]
struct Unit {
    bytes: Vec<u8>,
    executes: bool,
}

impl Unit {
    fn commits(&self) -> bool {
        self.bytes.first() == Some(&b'Q') && self.bytes.get(5..).is_some_and(|text| text.starts_with(b"COMMIT\0"))
    }
}

/// Fails with division by zero, which is then told as something else.
const FAILING: &[u8] = b"Q\0\0\0\x0fSELECT 1/0\0";

async fn relay(client: TcpStream, server: TcpStream, script: Arc<Mutex<Script>>) {
    // Small messages must not wait for each other's acknowledgement.
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let mute = Arc::new(Mutex::new(false));
    // Whichever side ends first ends both.
    tokio::select! {
        () = up(client_in, server_out, script, Arc::clone(&mute)) => {}
        () = down(server_in, client_out, mute) => {}
    }
}

/// Takes one message off the front, if it is whole. The first of a connection has no type byte.
fn message(buffer: &mut Vec<u8>, typed: bool) -> Option<Vec<u8>> {
    let at = usize::from(typed);
    let length = buffer.get(at..at + 4)?.try_into().map(u32::from_be_bytes).ok()?;
    let whole = at + usize::try_from(length).ok()?;
    (buffer.len() >= whole).then(|| buffer.drain(..whole).collect())
}

async fn up(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, script: Arc<Mutex<Script>>, mute: Arc<Mutex<bool>>) {
    let (mut buffer, mut unit, mut started) = (Vec::new(), Unit::default(), false);
    while from.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(message) = message(&mut buffer, started) {
            let kind = if started { message[0] } else { b'Q' };
            unit.executes |= started && kind == b'E';
            unit.bytes.extend(message);
            if !matches!(kind, b'Q' | b'S' | b'X') {
                continue;
            }
            let ready = std::mem::take(&mut unit);
            let fate = if started { script.lock().fate(&ready) } else { Fate::Pass };
            started = true;
            if fate == Fate::Cut(Cut::BeforeCommit) {
                return;
            }
            *mute.lock() = fate == Fate::Cut(Cut::AfterCommit);
            let bytes = if fate == Fate::Refuse { FAILING } else { &ready.bytes };
            if to.write_all(bytes).await.is_err() {
                return;
            }
            if fate == Fate::Cut(Cut::AfterCommit) {
                // The other direction ends the connection when the server has committed.
                return std::future::pending().await;
            }
        }
    }
}

async fn down(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mute: Arc<Mutex<bool>>) {
    let mut buffer = Vec::new();
    while from.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(mut message) = message(&mut buffer, true) {
            let muted = *mute.lock();
            if muted && message[0] == b'C' && message.get(5..) == Some(b"COMMIT\0") {
                return;
            }
            if message[0] == b'E'
                && let Some(at) = message.windows(7).position(|window| window == b"C22012\0")
            {
                message[at + 1..at + 6].copy_from_slice(b"40001");
            }
            if !muted && to.write_all(&message).await.is_err() {
                return;
            }
        }
    }
}
