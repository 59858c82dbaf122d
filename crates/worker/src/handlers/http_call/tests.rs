use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers every connection with `answer`; returns its address.
async fn server(answer: impl Into<String>) -> String {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let answer = answer.replace("{request}", &request.replace("\r\n", "|"));
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

fn answer(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{more}\r\n{body}")
}

async fn call(allow_private: bool, payload: &Value) -> Result<HttpCallOutput, JobError> {
    run(
        &HttpCaller::new(allow_private, Breakers::default()).unwrap(),
        &Payload::new(payload.to_string().into()),
        Some("00-t-s-01"),
    )
    .await
}

async fn refusal(payload: Value) -> JobError {
    call(true, &payload).await.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn a_response_becomes_the_result() {
    let url = server(answer("200 OK", "content-type: text/plain\r\n", "{request}")).await;
    let payload =
        serde_json::json!({"url": format!("{url}/a?b"), "method": "POST", "headers": {"x-one": "1"}, "body": {"k": 2}});
    let output = call(true, &payload).await.unwrap();
    assert_eq!((output.status, output.truncated), (200, false));
    assert_eq!(output.content_type.as_deref(), Some("text/plain"));
    let said = output.body;
    for part in ["POST /a?b HTTP/1.1", "x-one: 1", "content-type: application/json", "traceparent: 00-t-s-01", r#"{"k":2}"#]
    {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
}

#[tokio::test]
async fn the_status_decides_whether_another_attempt_is_worth_it() {
    let cases = [
        ("500 Oops", "", JobError::retryable("the server answered 500 Internal Server Error")),
        ("503 Busy", "retry-after: 7\r\n", {
            JobError::retry_after("the server answered 503 Service Unavailable", Duration::from_secs(7))
        }),
        ("429 Slow", "retry-after: 2\r\n", {
            JobError::retry_after("the server answered 429 Too Many Requests", Duration::from_secs(2))
        }),
        ("404 No", "", JobError::fatal("the server answered 404 Not Found")),
        ("302 There", "location: http://127.0.0.1/\r\n", {
            JobError::fatal("the server answered 302 Found; redirects are not followed")
        }),
    ];
    for (status, headers, error) in cases {
        let url = server(answer(status, headers, "")).await;
        assert_eq!(refusal(serde_json::json!({ "url": url })).await, error);
    }
    let url = server(answer("404 No", "", "")).await;
    assert!(call(true, &serde_json::json!({"url": url, "expect_status": 404})).await.is_ok());
}

#[tokio::test]
async fn a_large_response_is_cut_and_fits_into_a_result() {
    let url = server(answer("200 OK", "", &"\n".repeat(2 * BODY_BYTES_MAX))).await;
    let output = call(true, &serde_json::json!({ "url": url })).await.unwrap();
    assert!(output.truncated);
    assert!(serde_json::to_vec(&output).unwrap().len() <= BODY_BYTES_MAX);
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error = refusal(serde_json::json!({"url": url, "timeout_ms": 50})).await;
    assert!(error.to_string().contains("did not answer within 50ms"), "{error}");
}

#[tokio::test]
async fn private_hosts_are_refused_for_good() {
    for url in
        ["http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/", "http://[::ffff:127.0.0.1]:1/", "http://0x7f.1:1/"]
    {
        let error = call(false, &serde_json::json!({ "url": url })).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("this worker may not call it"), "{url}: {error}");
        assert!(matches!(error.into_outcome(), lockgate_proto::v1::result::Outcome::FailedFatal(_)), "{url}");
    }
}

#[tokio::test]
async fn a_host_that_fails_is_left_alone_for_a_while_and_no_attempt_is_spent_on_it() {
    let url = server(answer("500 Oops", "", "")).await;
    let caller = HttpCaller::new(true, Breakers::default()).unwrap();
    let payload = Payload::new(serde_json::json!({ "url": url }).to_string().into());
    for _ in 0..19 {
        assert!(run(&caller, &payload, None).await.unwrap_err().to_string().contains("500"));
    }
    // The call that opens the breaker, and the one that is not made.
    for _ in 0..2 {
        let outcome = run(&caller, &payload, None).await.unwrap_err().into_outcome();
        let lockgate_proto::v1::result::Outcome::Snooze(snooze) = outcome else { panic!("{outcome:?}") };
        assert!((1..=5_000).contains(&snooze.delay_ms), "until a probe may go out: {snooze:?}");
    }
    assert_eq!(caller.breakers.counts().refused, 1);
}

#[tokio::test]
async fn bad_payloads_name_the_field() {
    let cases = [
        (serde_json::json!({"url": "ftp://x/"}), "field `url`"),
        (serde_json::json!({"url": "http://u:p@x/"}), "field `url`"),
        (serde_json::json!({"url": "http://x/", "method": "G T"}), "field `method`"),
        (serde_json::json!({"url": "http://x/", "headers": {"Host": "y"}}), "field `headers.Host`"),
        (serde_json::json!({"url": "http://x/", "headers": {"a": "b\r\nc"}}), "field `headers.a`"),
        (serde_json::json!({"url": "http://x/", "timeout_ms": 0}), "field `timeout_ms`"),
        (serde_json::json!({"url": "http://x/", "verb": "GET"}), "unknown field `verb`"),
    ];
    for (payload, part) in cases {
        let error = refusal(payload).await;
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}
