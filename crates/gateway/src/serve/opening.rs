//! The first bytes of a connection, in time.
//!
//! Which HTTP is spoken is known once the bytes differ from what every HTTP/2 client says first, or are all of it. Until then
//! no timeout of either protocol runs, so a client that stops there would be waited for as long as it likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct Opening<S> {
    stream: S,
    /// Gone when it is known what is spoken.
    patience: Option<Pin<Box<Sleep>>>,
    /// How much of the preface has come.
    matched: usize,
}

impl<S> Opening<S> {
    pub(super) fn new(stream: S, within: Duration) -> Self {
        Self { stream, patience: Some(Box::pin(sleep(within))), matched: 0 }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let rest = &PREFACE[self.matched..];
        let common = bytes.iter().zip(rest).take_while(|(byte, expected)| byte == expected).count();
        self.matched += common;
        if self.matched == PREFACE.len() || common < bytes.len() {
            self.patience = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            if self.patience.is_some() {
                self.take_in(&buf.filled()[before..]);
            }
            return Poll::Ready(read);
        }
        let Some(patience) = &mut self.patience else { return Poll::Pending };
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client did not begin to speak")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    /// What a server sees of a client that says these bytes and then nothing for a minute.
    async fn outcome(bytes: &[u8]) -> (Vec<u8>, Option<io::ErrorKind>) {
        let (mut client, server) = duplex(64);
        let mut server = Opening::new(server, WITHIN);
        client.write_all(bytes).await.unwrap();
        let mut heard = Vec::new();
        let read = tokio::time::timeout(WITHIN * 6, server.read_to_end(&mut heard)).await;
        (heard, read.ok().map(|read| read.unwrap_err().kind()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_say_what_it_speaks_is_cut_off() {
        for bytes in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n"] {
            let began = Instant::now();
            assert_eq!(outcome(bytes).await, (bytes.to_vec(), Some(io::ErrorKind::TimedOut)));
            assert_eq!(began.elapsed(), WITHIN);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn once_it_is_known_the_protocols_own_limits_hold() {
        for bytes in [&b"G"[..], b"PO", PREFACE, b"PRI * HTTP/1"] {
            assert_eq!(outcome(bytes).await, (bytes.to_vec(), None), "{bytes:?}");
        }
    }
}
