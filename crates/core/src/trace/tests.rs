use proptest::prelude::*;

use super::*;
use crate::ids::JobId;
use crate::request::{Caller, JobRequest, NewJob};

const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn request(new: NewJob) -> JobRequest {
    let new = NewJob { topic: "t".to_owned(), ..new };
    JobRequest::check(new, &Caller::new("acme", "ann"), || JobId::from("j-1")).expect("good")
}

#[test]
fn a_context_is_read_as_it_was_sent() {
    let parent: TraceParent = SENT.parse().expect("good");
    assert_eq!(parent.to_string(), SENT);
    assert!(parent.sampled);
    assert!(!SENT.replace("-01", "-00").parse::<TraceParent>().expect("good").sampled);
    // A later version says more behind what is known.
    assert_eq!(format!("cc{}-more", &SENT[2..]).parse::<TraceParent>().map(|p| p.trace), Ok(parent.trace));
    assert_eq!(serde_json::from_str::<TraceParent>(&format!("\"{SENT}\"")).ok(), Some(parent));
}

#[test]
fn what_is_not_a_context_is_told_apart() {
    let no_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
    for text in [
        "",
        "00",
        no_span,
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
    ] {
        assert!(text.parse::<TraceParent>().is_err(), "{text}");
    }
    // Stored by us it means that the trace began here.
    let begun = serde_json::from_str::<TraceParent>(&format!("\"{no_span}\"")).expect("ours");
    assert_eq!((begun.span, begun.to_string().as_str()), (None, no_span));
}

#[test]
fn a_job_is_in_the_trace_that_it_was_given() {
    let parent: TraceParent = SENT.parse().expect("good");
    let linked = request(NewJob { traceparent: Some(SENT.to_owned()), ..NewJob::default() });
    assert_eq!((linked.trace(), linked.trace_id.as_deref()), (parent.trace, Some("0af7651916cd43dd8448eb211c80319c")));
    let id = request(NewJob { trace_id: Some("0AF7651916CD43DD8448EB211C80319C".to_owned()), ..NewJob::default() });
    assert_eq!(id.trace(), parent.trace);
    let named = |name: &str| request(NewJob { trace_id: Some(name.to_owned()), ..NewJob::default() });
    assert_eq!(named("order-7").trace(), named("order-7").trace());
    assert_ne!(named("order-7").trace(), named("order-8").trace());
    let plain = request(NewJob::default());
    assert_eq!(plain.trace_name(), plain.trace().to_string());
    assert_eq!(named("order-7").trace_name(), "order-7");
}

#[test]
fn a_header_never_moves_a_job_out_of_the_trace_it_names() {
    let caller = Caller { trace: SENT.parse().ok(), ..Caller::new("acme", "ann") };
    let check = |new: NewJob| {
        let new = NewJob { topic: "t".to_owned(), ..new };
        JobRequest::check(new, &caller, || JobId::from("j-1"))
    };
    let taken = check(NewJob::default()).expect("good");
    assert_eq!(taken.parent, caller.trace);
    let same = check(NewJob { trace_id: taken.trace_id.as_deref().map(ToOwned::to_owned), ..NewJob::default() });
    assert_eq!(same.expect("good").parent, caller.trace);
    let other = check(NewJob { trace_id: Some("mine".to_owned()), ..NewJob::default() }).expect("good");
    assert_eq!((other.parent, other.trace_id.as_deref()), (None, Some("mine")));
    let torn = NewJob { trace_id: Some("mine".to_owned()), traceparent: Some(SENT.to_owned()), ..NewJob::default() };
    let errors = check(torn).expect_err("two traces");
    assert_eq!(errors[0].field, "traceparent");
    let bad = check(NewJob { traceparent: Some("00-1".to_owned()), ..NewJob::default() }).expect_err("no context");
    assert_eq!(bad[0].field, "traceparent");
}

#[test]
fn the_trace_is_not_what_was_asked() {
    let linked = request(NewJob { traceparent: Some(SENT.to_owned()), ..NewJob::default() });
    assert_eq!(linked.hash(), request(NewJob::default()).hash());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-f-]{0,60}") {
        if let Ok(parent) = text.parse::<TraceParent>() {
            prop_assert_eq!(parent.to_string().parse::<TraceParent>(), Ok(parent));
        }
    }

    #[test]
    fn places_lie_on_the_line(bytes in any::<[u8; 16]>()) {
        if let Some(trace) = TraceId::new(bytes) {
            prop_assert!((0.0..=1.0).contains(&trace.place()));
        }
    }
}
