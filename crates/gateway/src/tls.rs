//! TLS of a listener: its certificate, how that is renewed, and the first words with a client.

mod files;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, LazyConfigAcceptor, StartHandshake};

use crate::peer::PeerCertificate;
use files::{FileStamps, TlsFiles};

pub use files::TlsError;

/// How soon new files are noticed. Certificates are renewed days before they end.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// From the connection to the end of the handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Handshakes computed at once. Each takes a few milliseconds, and those who are in must not wait behind a whole crowd that
/// comes at the same moment. Rejected: a place for the whole handshake, which a client holds by saying nothing more.
const COMPUTED_MAX: usize = 4;
/// First byte of everything a TLS client says first.
const HANDSHAKE_RECORD: u8 = 0x16;
/// Most of a mistaken request that is read before it is answered.
const MISTAKE_BYTES_MAX: usize = 4 * 1024;
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n\
    content-length: 54\r\n\r\nThis port speaks TLS only: write https:// for http://\n";

/// The certificate of a listener. Clones share what is in force.
#[derive(Clone)]
pub struct ListenerTls {
    shared: Arc<SharedCertificate>,
}

struct SharedCertificate {
    files: TlsFiles,
    current: Mutex<Current>,
    computing: Semaphore,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Of the files that were read last, good or bad.
    stamps: FileStamps,
}

/// Why a connection never came to speak.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("no handshake within {HANDSHAKE_WITHIN:?}")]
    Slow,
    #[error("the client does not speak TLS")]
    Plain,
    #[error("{0}")]
    Failed(#[from] io::Error),
}

impl ListenerTls {
    /// Reads a certificate chain and its key, both PEM. With `client_ca` clients may show certificates of that authority;
    /// those who show none must have another way to say who they are, and those with a bad one are sent away.
    pub fn load(cert: PathBuf, key: PathBuf, client_ca: Option<PathBuf>) -> Result<Self, TlsError> {
        let files = TlsFiles { cert, key, client_ca };
        let stamps = files.stamps();
        let current = Mutex::new(Current { config: files.read()?, stamps });
        Ok(Self { shared: Arc::new(SharedCertificate { files, current, computing: Semaphore::new(COMPUTED_MAX) }) })
    }

    /// Reads the files again if they have changed, and says whether they had. Connections that are open stay as they are;
    /// after an error everything does.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let stamps = self.shared.files.stamps();
        if self.shared.current.lock().stamps == stamps {
            return Ok(false);
        }
        let read = self.shared.files.read();
        if !matches!(read, Err(TlsError::Unreadable { .. })) {
            // What could not be read is looked at again, though it stays the same.
            self.shared.current.lock().stamps = stamps;
        }
        self.shared.current.lock().config = read?;
        Ok(true)
    }

    /// Keeps looking for new files. Never ends.
    pub(crate) async fn watch(self) {
        loop {
            sleep(LOOK_EVERY).await;
            let tls = self.clone();
            match tokio::task::spawn_blocking(move || tls.reload()).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => tracing::info!(tls = ?self, "TLS certificate reloaded"),
                Ok(Err(error)) => tracing::error!(%error, "TLS certificate rejected; the previous one stays in use"),
                Err(error) => tracing::error!(%error, "TLS certificate files could not be read"),
            }
        }
    }

    /// The handshake. None if the client left without a word, as probes do.
    pub(crate) async fn greet(
        &self,
        stream: TcpStream,
    ) -> Result<Option<(TlsStream<TcpStream>, Option<PeerCertificate>)>, HandshakeError> {
        timeout(HANDSHAKE_WITHIN, self.shake_hands(stream)).await.unwrap_or(Err(HandshakeError::Slow))
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
    ) -> Result<Option<(TlsStream<TcpStream>, Option<PeerCertificate>)>, HandshakeError> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Ok(None);
        }
        if first[0] != HANDSHAKE_RECORD {
            answer_plainly(stream).await?;
            return Err(HandshakeError::Plain);
        }
        // All the client says first is heard before anything is computed, however slowly it speaks.
        let heard = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let stream = self.answer(heard).await?.await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let certificate = shown.and_then(PeerCertificate::of);
        Ok(Some((stream, certificate)))
    }

    /// Computes the answer, keys and signature and all. The place is free again before the answer is sent: whether and when
    /// the client goes on is nothing that others should wait for.
    async fn answer(&self, heard: StartHandshake<TcpStream>) -> io::Result<Accept<TcpStream>> {
        let _place = self.shared.computing.acquire().await.map_err(io::Error::other)?;
        let config = self.shared.current.lock().config.clone();
        Ok(heard.into_stream(config))
    }
}

/// For clients that use http:// where https:// is needed.
async fn answer_plainly(mut stream: TcpStream) -> io::Result<()> {
    // What is left unread would make the system take back the answer.
    let mut mistake = [0; MISTAKE_BYTES_MAX];
    let _bytes = stream.read(&mut mistake).await?;
    stream.write_all(PLAIN_ANSWER).await?;
    stream.shutdown().await
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.files.fmt(f)
    }
}

#[cfg(test)]
mod tests;
