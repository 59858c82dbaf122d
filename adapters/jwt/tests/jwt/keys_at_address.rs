//! Keys from the issuer's address, against an issuer that counts how often it is asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use lockgate_core::access::Identity;
use lockgate_jwt::{JwtSettings, JwtTokens, KeySource};
use lockgate_ports::{TokenError, Tokens};
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::support::{Signer, at, claims, claims_with, jwks, settings};

const DAY: i64 = 24 * 3600;

struct Issuer {
    tokens: JwtTokens,
    page: Arc<Page>,
}

struct Page {
    asked: AtomicUsize,
    answer: Mutex<(StatusCode, String)>,
    /// An answer takes one permit.
    gate: Semaphore,
}

impl Page {
    fn with(answer: String) -> Arc<Self> {
        let answer = Mutex::new((StatusCode::OK, answer));
        Arc::new(Self { asked: AtomicUsize::new(0), answer, gate: Semaphore::new(1_000) })
    }

    async fn answer(self: Arc<Self>, _: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _permit = self.gate.acquire().await;
        let (status, text) = self.answer.lock().clone();
        let answer = Response::builder().status(status);
        let answer = if status.is_redirection() { answer.header(LOCATION, "/keys") } else { answer };
        Ok(answer.body(Full::from(text)).unwrap())
    }
}

impl Issuer {
    async fn start(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let page = Page::with(answer);
        tokio::spawn(serve(listener, page.clone()));
        Self { tokens: JwtTokens::new(settings(KeySource::Url(url))).unwrap(), page }
    }

    fn asked(&self) -> usize {
        self.page.asked.load(Ordering::SeqCst)
    }

    fn answers(&self, status: StatusCode, text: String) {
        *self.page.answer.lock() = (status, text);
    }

    async fn verify(&self, token: &str, seconds: i64) -> Result<Identity, TokenError> {
        self.tokens.verify(token, at(seconds)).await
    }
}

async fn serve(listener: TcpListener, page: Arc<Page>) {
    while let Ok((stream, _)) = listener.accept().await {
        let page = page.clone();
        let service = service_fn(move |request| page.clone().answer(request));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// An issuer at `https://localhost`, whose certificate is its own authority.
async fn serve_tls(listener: TcpListener, page: Arc<Page>, cert: CertificateDer<'static>, key: PrivateKeyDer<'static>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        let page = page.clone();
        let service = service_fn(move |request| page.clone().answer(request));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

#[tokio::test]
async fn keys_of_an_issuer_with_a_private_authority_are_taken_if_it_is_named() {
    let signer = Signer::es256(Some("k"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.cert.pem()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/keys", listener.local_addr().unwrap().port());
    let page = Page::with(jwks(&[&signer]));
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    tokio::spawn(serve_tls(listener, page.clone(), made.cert.der().clone(), key));
    let tokens = |ca| JwtTokens::new(JwtSettings { ca, ..settings(KeySource::Url(url.clone())) }).unwrap();
    let token = lasting(&signer);
    let strange = tokens(None).verify(&token, at(0)).await;
    assert!(matches!(strange, Err(TokenError::Unavailable(_))), "no public authority knows it: {strange:?}");
    assert_eq!(page.asked.load(Ordering::SeqCst), 0, "not even asked");
    assert!(tokens(Some(file.path().to_owned())).verify(&token, at(0)).await.is_ok());
}

/// Good for two days, so that only keys grow old.
fn lasting(signer: &Signer) -> String {
    signer.sign(&claims_with(&serde_json::json!({ "exp": crate::support::NOW + 2 * DAY })))
}

#[tokio::test]
async fn keys_are_fetched_with_the_first_token_and_kept_for_ten_minutes() {
    let signer = Signer::es256(Some("k"));
    let issuer = Issuer::start(jwks(&[&signer])).await;
    let token = lasting(&signer);
    assert_eq!(issuer.asked(), 0, "nobody has come yet");
    for seconds in [0, 1, 30, 599] {
        assert!(issuer.verify(&token, seconds).await.is_ok());
        assert_eq!(issuer.asked(), 1, "after {seconds} s");
    }
    assert!(issuer.verify(&token, 600).await.is_ok());
    assert_eq!(issuer.asked(), 2);
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_asked_for_at_most_every_thirty_seconds() {
    let (signer, stranger) = (Signer::es256(Some("k")), Signer::es256(Some("stranger")));
    let issuer = Issuer::start(jwks(&[&signer])).await;
    assert!(issuer.verify(&signer.sign(&claims()), 0).await.is_ok());
    for (seconds, asked) in [(0, 1), (29, 1), (30, 2), (31, 2), (59, 2), (60, 3)] {
        for _ in 0..3 {
            assert_eq!(issuer.verify(&stranger.sign(&claims()), seconds).await, Err(TokenError::Untrusted));
        }
        assert_eq!(issuer.asked(), asked, "after {seconds} s");
    }
    let none = patched_algorithm(&stranger.sign(&claims()));
    assert_eq!(issuer.verify(&none, 500).await, Err(TokenError::Untrusted));
    assert_eq!(issuer.asked(), 3, "an algorithm that is never good is no reason to ask");
}

fn patched_algorithm(token: &str) -> String {
    use base64::Engine;
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"new"}"#);
    format!("{header}.{}", token.split_once('.').unwrap().1)
}

#[tokio::test]
async fn rotated_keys_are_found_and_withdrawn_ones_forgotten() {
    let (old, new) = (Signer::es256(Some("old")), Signer::es256(Some("new")));
    let issuer = Issuer::start(jwks(&[&old])).await;
    let (old_token, new_token) = (lasting(&old), lasting(&new));
    assert!(issuer.verify(&old_token, 0).await.is_ok());
    issuer.answers(StatusCode::OK, jwks(&[&old, &new]));
    assert!(issuer.verify(&new_token, 40).await.is_ok());
    assert_eq!(issuer.asked(), 2);
    issuer.answers(StatusCode::OK, jwks(&[&new]));
    assert!(issuer.verify(&old_token, 630).await.is_ok());
    assert_eq!(issuer.verify(&old_token, 640).await, Err(TokenError::Untrusted));
    assert!(issuer.verify(&new_token, 640).await.is_ok());
}

#[tokio::test]
async fn while_the_issuer_is_away_its_keys_are_good_for_a_day() {
    let (signer, stranger) = (Signer::es256(Some("k")), Signer::es256(Some("new")));
    let issuer = Issuer::start(jwks(&[&signer])).await;
    let token = lasting(&signer);
    assert!(issuer.verify(&token, 0).await.is_ok());
    issuer.answers(StatusCode::BAD_GATEWAY, String::new());
    assert!(issuer.verify(&token, 600).await.is_ok());
    assert_eq!(issuer.asked(), 2);
    assert!(issuer.verify(&token, 604).await.is_ok());
    assert_eq!(issuer.asked(), 2, "tried again after five seconds only");
    let unsure = issuer.verify(&stranger.sign(&claims()), 604).await;
    assert!(matches!(unsure, Err(TokenError::Unavailable(_))), "it may be a new key: {unsure:?}");
    assert!(issuer.verify(&token, DAY - 1).await.is_ok());
    let error = issuer.verify(&token, DAY + 10).await.unwrap_err();
    assert!(matches!(error, TokenError::Unavailable(_)), "{error:?}");
    assert!(!error.to_string().contains("127.0.0.1"), "strangers need not know where the keys are: {error}");
    issuer.answers(StatusCode::OK, jwks(&[&signer]));
    assert!(issuer.verify(&token, DAY + 20).await.is_ok());
}

#[tokio::test]
async fn without_any_keys_the_next_try_comes_after_five_seconds() {
    let signer = Signer::es256(Some("k"));
    let issuer = Issuer::start(String::new()).await;
    let bad_answers = [
        (StatusCode::OK, "<html>".to_owned()),
        (StatusCode::NOT_FOUND, jwks(&[&signer])),
        (StatusCode::FOUND, jwks(&[&signer])),
        (StatusCode::OK, format!("{}{}", jwks(&[&signer]), " ".repeat(256 * 1024))),
        (StatusCode::OK, jwks(&[&Signer::hs256(Some("k"), &[7; 32])])),
    ];
    let token = lasting(&signer);
    for (round, (status, text)) in (0..).zip(bad_answers) {
        issuer.answers(status, text.clone());
        for seconds in [round * 5, round * 5 + 4] {
            let answer = issuer.verify(&token, seconds).await;
            assert!(matches!(answer, Err(TokenError::Unavailable(_))), "round {round}: {answer:?}");
        }
        assert_eq!(issuer.asked(), round as usize + 1);
    }
    issuer.answers(StatusCode::OK, jwks(&[&signer]));
    assert!(issuer.verify(&token, 60).await.is_ok());
}

#[tokio::test]
async fn many_tokens_at_once_ask_once_even_if_the_first_to_ask_goes_away() {
    let signer = Signer::es256(Some("k"));
    let issuer = Arc::new(Issuer::start(jwks(&[&signer])).await);
    let token = lasting(&signer);
    issuer.page.gate.forget_permits(1_000);
    {
        // Starts the fetch, then loses interest.
        let first = issuer.verify(&token, 0);
        tokio::pin!(first);
        assert!(poll_once(first.as_mut()).await.is_pending());
    }
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (issuer, token) = (issuer.clone(), token.clone());
        waiting.spawn(async move { issuer.verify(&token, 0).await });
    }
    issuer.page.gate.add_permits(1);
    while let Some(answer) = waiting.join_next().await {
        assert!(answer.unwrap().is_ok());
    }
    assert_eq!(issuer.asked(), 1);
}

async fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    let mut future = Some(future);
    std::future::poll_fn(move |cx| std::task::Poll::Ready(future.take().unwrap().poll(cx))).await
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_never_answers_is_given_up() {
    let signer = Signer::es256(Some("k"));
    // The system accepts the connection, and no server ever answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", silent.local_addr().unwrap());
    let tokens = JwtTokens::new(settings(KeySource::Url(url))).unwrap();
    let began = tokio::time::Instant::now();
    let answer = tokens.verify(&lasting(&signer), at(0)).await;
    assert!(matches!(answer, Err(TokenError::Unavailable(_))), "{answer:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
}
