use axum::extract::Request as Incoming;
use axum::routing::{get, put};
use rcgen::{CertificateParams, DistinguishedName, DnType, SanType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::certificates::{self, Authority, Folder, Pair};

/// Nothing here takes long; what takes longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listener that answers with what it knows about who asks.
struct TestListener {
    address: SocketAddr,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl TestListener {
    async fn start(tls: Option<ListenerTls>, connections_max: usize) -> Self {
        let metrics = ConnectionMetrics::default();
        let reception = Reception { tls, connections_max, shared: true, metrics: metrics.clone() };
        let rest = Router::new().route("/", get(introduction)).route("/read", put(|body: String| async { body }));
        let surface = ListenerServices {
            hosts: Hosts::Any,
            gate: ConnectionAuth::Nobody,
            calls: CallLimits::new(9),
            grpc: None,
            rest,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let served = tokio::spawn(serve(listener, reception, surface, CancellationToken::new(), stopped));
        Self { address, metrics, stop, served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connections that say this and then nothing.
    async fn crowd(&self, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
        let mut crowd = Vec::new();
        for _ in 0..count {
            let mut stream = self.connect().await;
            stream.write_all(bytes).await.unwrap();
            crowd.push(stream);
        }
        crowd
    }

    async fn answer(&self) -> String {
        let asked = async { certificates::ask(&mut self.connect().await, "/").await.unwrap() };
        tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time")
    }
}

impl TestListener {
    /// How long the slowest of so many answers took.
    async fn slowest_of(&self, answers: usize) -> Duration {
        let mut slowest = Duration::ZERO;
        for _ in 0..answers {
            let asked = tokio::time::Instant::now();
            assert!(self.answer().await.contains("nobody from"));
            slowest = slowest.max(asked.elapsed());
        }
        slowest
    }
}

async fn introduction(request: Incoming) -> String {
    let certificate = request.extensions().get::<PeerCertificate>();
    let address = request.extensions().get::<PeerAddress>().unwrap();
    format!("{} from {}", certificate.map_or("nobody", |certificate| &certificate.subject), address.0)
}

fn tls(folder: &Folder, authority: &Authority) -> ListenerTls {
    let (cert, key) = folder.write_pair(&authority.server());
    ListenerTls::load(cert, key, Some(folder.write("clients.pem", &authority.pem()))).unwrap()
}

/// The certificate of a client of these names.
fn client_of(authority: &Authority, uris: &[&str], dns: &[&str], common_name: Option<&str>) -> Pair {
    let mut params = CertificateParams::new(dns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
    params.distinguished_name = DistinguishedName::new();
    if let Some(name) = common_name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    authority.issue(&params)
}

/// Polls until it is so.
async fn wait_until(is_so: impl Fn() -> bool) {
    let began = tokio::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it never came to be so");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_answer_before_the_body_was_read_says_that_the_connection_closes() {
    let stage = TestListener::start(None, 10).await;
    let head_of_answer = async |request: &str| {
        let mut stream = stage.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "an answer");
        }
        String::from_utf8(answer).unwrap().to_ascii_lowercase()
    };
    let unread = head_of_answer("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc").await;
    assert!(unread.starts_with("http/1.1 405") && unread.contains("\r\nconnection: close\r\n"), "{unread}");
    let without = head_of_answer("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(without.starts_with("http/1.1 200") && !without.contains("connection: close"), "{without}");
    let read = head_of_answer("PUT /read HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc").await;
    assert!(read.starts_with("http/1.1 200") && !read.contains("connection: close"), "{read}");
}

#[tokio::test]
async fn a_request_says_where_it_comes_from() {
    let stage = TestListener::start(None, 10).await;
    let mut stream = stage.connect().await;
    let from = stream.local_addr().unwrap();
    let answer = certificates::ask(&mut stream, "/").await.unwrap();
    assert!(answer.ends_with(&format!("nobody from {from}")), "{answer}");
}

#[tokio::test]
async fn answers_are_counted_by_how_they_went_and_probes_are_not() {
    let stage = TestListener::start(None, 10).await;
    for path in ["/", "/", "/nowhere", "/readyz", "/healthz"] {
        certificates::ask(&mut stage.connect().await, path).await.unwrap();
    }
    let mut registry = prometheus_client::registry::Registry::default();
    stage.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let series = text.lines().filter(|line| line.starts_with("lockgate_api_requests_total{"));
    let mut counted: Vec<&str> = series.filter(|line| !line.ends_with(" 0")).collect();
    counted.sort_unstable();
    assert_eq!(
        counted,
        [
            r#"lockgate_api_requests_total{door="rest",outcome="ok"} 2"#,
            r#"lockgate_api_requests_total{door="rest",outcome="refused"} 1"#
        ]
    );
}

#[tokio::test]
async fn a_verified_certificate_says_who_asks() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 10).await;
    let long = "x".repeat(600);
    let cases = [
        (
            client_of(&authority, &["spiffe://acme/a", "spiffe://acme/b"], &["dns.example"], Some("cn")),
            "uri:spiffe://acme/a",
        ),
        (client_of(&authority, &[], &["dns.example", "b.example"], Some("cn")), "dns:dns.example"),
        (client_of(&authority, &[], &[], Some("worker 7")), "cn:worker 7"),
        (client_of(&authority, &[], &[], None), "nobody"),
        (client_of(&authority, &[], &[], Some("a\nb")), "nobody"),
        (client_of(&authority, &[], &[], Some(&long)), "nobody"),
    ];
    for (pair, subject) in cases {
        let answer = certificates::get(stage.address, certificates::client(&authority, Some(&pair)), "/").await.unwrap();
        assert!(answer.contains(&format!("\r\n\r\n{subject} from 127.0.0.1:")), "{subject}: {answer}");
    }
    let without = certificates::get(stage.address, certificates::client(&authority, None), "/").await.unwrap();
    assert!(without.contains("nobody from"), "{without}");
    assert_eq!(stage.metrics.handshakes_failed.get(), 0);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_sent_away() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 10).await;
    let stranger = client_of(&Authority::new(), &[], &[], Some("admin"));
    let answer = certificates::get(stage.address, certificates::client(&authority, Some(&stranger)), "/").await;
    assert!(answer.is_err(), "{answer:?}");
    wait_until(|| stage.metrics.handshakes_failed.get() == 1).await;
}

#[tokio::test]
async fn half_open_handshakes_do_not_stop_others() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 1_000).await;
    let silent = stage.crowd(300, b"").await;
    let begun = stage.crowd(200, &[HANDSHAKE_RECORD, 3, 1, 2, 0]).await;
    wait_until(|| stage.metrics.open.get() == 500).await;
    let asked = certificates::get(stage.address, certificates::client(&authority, None), "/");
    let answer = tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time").unwrap();
    assert!(answer.contains("nobody from"), "{answer}");

    // Ten seconds later they are gone.
    tokio::time::pause();
    for mut stream in silent.into_iter().chain(begun) {
        assert!(!matches!(stream.read(&mut [0; 64]).await, Ok(1..)), "no answer to half a handshake");
    }
    assert_eq!(stage.metrics.handshakes_failed.get(), 500);
}

const HANDSHAKE_RECORD: u8 = 0x16;

/// Everything that a client says before it needs an answer.
fn first_words(authority: &Authority) -> Vec<u8> {
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut client = rustls::ClientConnection::new(certificates::client(authority, None), name).unwrap();
    let mut words = Vec::new();
    client.write_tls(&mut words).unwrap();
    words
}

#[tokio::test]
async fn handshakes_that_nobody_ends_do_not_stop_others() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 1_000).await;
    let words = first_words(&authority);
    let begun = stage.crowd(300, &[HANDSHAKE_RECORD]).await;
    let half = stage.crowd(100, &words[..words.len() / 2]).await;
    let mut answered = stage.crowd(300, &words).await;
    for stream in &mut answered {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 64])).await.expect("an answer in time").unwrap();
        assert!(read > 0, "nobody is kept waiting by those who say no more");
    }
    let asked = certificates::get(stage.address, certificates::client(&authority, None), "/");
    let answer = tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time").unwrap();
    assert!(answer.contains("nobody from"), "{answer}");

    // Ten seconds later they are gone.
    tokio::time::pause();
    for mut stream in begun.into_iter().chain(half).chain(answered) {
        let _ended = stream.read_to_end(&mut Vec::new()).await;
    }
    wait_until(|| stage.metrics.open.get() == 0).await;
    assert_eq!(stage.metrics.handshakes_failed.get(), 700);
}

#[tokio::test]
async fn a_plain_request_to_a_tls_port_is_told_so() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 10).await;
    let answer = stage.answer().await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    assert_eq!(stage.metrics.handshakes_failed.get(), 1);
    drop(stage.connect().await);
    wait_until(|| stage.metrics.open.get() == 0).await;
    assert_eq!(stage.metrics.handshakes_failed.get(), 1, "a probe that leaves without a word is no failure");
}

#[tokio::test]
async fn slow_clients_are_cut_off_and_do_not_stop_others() {
    let stage = TestListener::start(None, 1_000).await;
    let mut slow = stage.crowd(100, b"GET / HTTP/1.1\r\nhost: loc").await;
    slow.extend(stage.crowd(50, b"PRI * HT").await);
    slow.extend(stage.crowd(50, b"").await);
    wait_until(|| stage.metrics.open.get() == 200).await;
    assert!(stage.answer().await.contains("nobody from"));

    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for mut stream in slow {
        let mut rest = Vec::new();
        let _ended = stream.read_to_end(&mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
    }
    assert!(began.elapsed() <= HEAD_WITHIN * 2, "{:?}", began.elapsed());
    wait_until(|| stage.metrics.open.get() == 0).await;
}

#[tokio::test]
async fn a_thousand_idle_and_two_hundred_slow_connections_keep_nobody_waiting() {
    let stage = TestListener::start(None, 2_000).await;
    let alone = stage.slowest_of(50).await;
    let _idle = stage.crowd(1_000, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let _slow = stage.crowd(200, b"GET / HTTP/1.1\r\nhost: loc").await;
    wait_until(|| stage.metrics.open.get() >= 1_200).await;
    let beside = stage.slowest_of(50).await;
    // Far from what a head may take, and from what a busy machine does by itself.
    assert!(beside < alone * 20 + Duration::from_secs(1), "{beside:?} beside them, {alone:?} alone");
    assert_eq!(stage.metrics.full.get(), 0);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let stage = TestListener::start(None, 10).await;
    let mut stream = stage.connect().await;
    let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-large: {}\r\n\r\n", "x".repeat(2 * HEAD_BYTES_MAX as usize));
    let _sent = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    assert!(stage.answer().await.contains("nobody from"));
}

#[tokio::test]
async fn beyond_the_limit_a_connection_waits_for_its_turn() {
    let stage = TestListener::start(None, 2).await;
    let mut first = stage.connect().await;
    let second = stage.connect().await;
    wait_until(|| stage.metrics.full.get() == 1).await;
    let mut third = stage.connect().await;
    let third = tokio::spawn(async move { certificates::ask(&mut third, "/").await.unwrap() });
    assert!(certificates::ask(&mut first, "/").await.unwrap().contains("nobody from"), "those who are in are served");
    let answer = tokio::time::timeout(PATIENCE, third).await.expect("its turn comes").unwrap();
    assert!(answer.contains("nobody from"), "{answer}");
    drop(second);
    wait_until(|| stage.metrics.open.get() == 0).await;
}

/// What an HTTP/2 client says before it asks anything: such a connection may be idle for as long as it likes.
const IDLE_CLIENT: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn idle_connections_make_room_for_new_ones() {
    let stage = TestListener::start(None, 32).await;
    let _idle = stage.crowd(32, IDLE_CLIENT).await;
    wait_until(|| stage.metrics.full.get() == 1).await;
    // More than there are places: those in the backlog are let in as well, and leave in their turn.
    let _more = stage.crowd(16, IDLE_CLIENT).await;
    assert!(stage.answer().await.contains("nobody from"));
    let later = stage.slowest_of(20).await;
    assert!(later < Duration::from_secs(1), "once places are kept free, a new connection finds one at once: {later:?}");
    assert!(stage.metrics.dismissed.get() >= 17, "{}", stage.metrics.dismissed.get());
    assert!(stage.metrics.open.get() <= 32);
}

#[tokio::test]
async fn a_handshake_under_way_does_not_hold_up_the_end() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let stage = TestListener::start(Some(tls(&folder, &authority)), 10).await;
    let _silent = stage.crowd(3, b"").await;
    wait_until(|| stage.metrics.open.get() == 3).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    stage.stop.cancel();
    stage.served.await.unwrap();
    assert!(began.elapsed() < DRAIN, "{:?}", began.elapsed());
}
