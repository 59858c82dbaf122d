//! Parses the values of command-line options.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use lockgate_core::limits::SPAN_MS_MAX;
use lockgate_core::request::Json;
use lockgate_worker::LeaseLoss;

/// `500ms`, `30s`, `5m`, `2h`, `1d`, and sums such as `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time span; write it like 500ms, 30s, 5m or 1h30m");
    let mut rest = text;
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(unit_ms(unit).ok_or_else(wrong)?);
        total_ms = part.and_then(|part| total_ms.checked_add(part)).ok_or_else(wrong)?;
        rest = tail;
    }
    match total_ms {
        0 => Err(wrong()),
        ms if ms > SPAN_MS_MAX => Err(format!("{text:?} is longer than a year")),
        ms => Ok(Duration::from_millis(ms)),
    }
}

const fn unit_ms(unit: &str) -> Option<u64> {
    match unit.as_bytes() {
        b"ms" => Some(1),
        b"s" => Some(1_000),
        b"m" => Some(60_000),
        b"h" => Some(3_600_000),
        b"d" => Some(86_400_000),
        _ => None,
    }
}

/// `name=value`; the value may contain further `=`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not of the form name=value")),
    }
}

/// A name. The empty text is refused: `--key "$UNSET"` must not mean that there is no key.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Topics with slots of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotGroup {
    pub(crate) name: String,
    pub(crate) slots: u32,
    pub(crate) topics: Vec<String>,
}

/// `io=8:job.http_call,mail.*`.
pub(crate) fn group(text: &str) -> Result<SlotGroup, String> {
    let wrong = || format!("{text:?} is not of the form GROUP=SLOTS:TOPIC,TOPIC; write it like io=8:job.http_call,mail.*");
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (slots, topics) = rest.split_once(':').ok_or_else(wrong)?;
    let slots: u32 = slots.parse().ok().filter(|slots| (1..=10_000).contains(slots)).ok_or_else(wrong)?;
    let topics: Vec<String> = topics.split(',').map(str::to_owned).collect();
    if name.is_empty() || topics.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(SlotGroup { name: name.to_owned(), slots, topics })
}

/// `job.http_call=stop`, `mail.*=continue`.
pub(crate) fn lease_loss(text: &str) -> Result<(String, LeaseLoss), String> {
    let wrong = || format!("{text:?} is not of the form TOPIC=stop or TOPIC=continue; write it like job.http_call=stop");
    let (topic, choice) = text.split_once('=').filter(|(topic, _)| !topic.is_empty()).ok_or_else(wrong)?;
    let choice = match choice {
        "stop" => LeaseLoss::Stop,
        "continue" => LeaseLoss::Continue,
        _ => return Err(wrong()),
    };
    Ok((topic.to_owned(), choice))
}

/// `4..64`.
pub(crate) fn bounds(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("{text:?} is not of the form MIN..MAX, both between 1 and 10000");
    let (min, max) = text.split_once("..").ok_or_else(wrong)?;
    let bound = |text: &str| text.parse().ok().filter(|bound: &u32| (1..=10_000).contains(bound)).ok_or_else(wrong);
    let (min, max) = (bound(min)?, bound(max)?);
    if min > max { Err(wrong()) } else { Ok((min, max)) }
}

/// A moment with its offset, as RFC 3339 has it.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("{text:?} is not a time; write it like 2030-01-31T08:00:00Z"))
}

/// One JSON value: the text itself, the content of `@file`, or standard input for `-`.
pub(crate) fn payload(text: &str, stdin: &mut dyn Read) -> Result<Bytes, String> {
    let (json, source) = match text.strip_prefix('@') {
        Some(path) => (std::fs::read_to_string(path).map_err(|error| format!("payload file {path}: {error}"))?, path),
        None if text == "-" => {
            let mut json = String::new();
            stdin.read_to_string(&mut json).map_err(|error| format!("payload from standard input: {error}"))?;
            (json, "standard input")
        }
        None => (text.to_owned(), "--payload"),
    };
    match Json::read(&json) {
        Ok(_) => Ok(Bytes::from(json)),
        Err(error) => Err(format!("the payload in {source} cannot be taken: {}", error.in_field("payload"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_bounds_of_slots_are_read_or_refused() {
        let io =
            SlotGroup { name: "io".to_owned(), slots: 8, topics: vec!["job.http_call".to_owned(), "mail.*".to_owned()] };
        assert_eq!(group("io=8:job.http_call,mail.*"), Ok(io));
        for wrong in ["io", "io=8", "io=0:a", "io=x:a", "=8:a", "io=8:", "io=8:a,,b", "io=10001:a"] {
            assert!(group(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bounds("4..64"), Ok((4, 64)));
        for wrong in ["4", "..4", "4..", "0..4", "5..4", "1..10001"] {
            assert!(bounds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_becomes_of_a_topic_without_a_server_is_read_or_refused() {
        assert_eq!(lease_loss("job.http_call=stop"), Ok(("job.http_call".to_owned(), LeaseLoss::Stop)));
        assert_eq!(lease_loss("mail.*=continue"), Ok(("mail.*".to_owned(), LeaseLoss::Continue)));
        for wrong in ["", "mail.*", "=stop", "mail=", "mail=Stop", "mail=stop=stop"] {
            assert!(lease_loss(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_spans_are_read_with_their_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("2d"), Ok(Duration::from_secs(172_800)));
    }

    #[test]
    fn time_spans_without_unit_number_or_length_are_refused() {
        for text in ["", "30", "s", "-1s", "1.5s", "1y", "0s", "99999999999999999999s", "400d", "1 h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_split_at_the_first_equals_sign() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("a").is_err());
        assert!(pair("=b").is_err());
    }

    #[test]
    fn times_carry_an_offset() {
        assert_eq!(timestamp("2030-01-31T09:00:00+01:00"), timestamp("2030-01-31T08:00:00Z"));
        assert!(timestamp("2030-01-31").is_err());
    }

    #[test]
    fn a_payload_comes_from_the_argument_a_file_or_standard_input() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("p.json");
        std::fs::write(&file, "[1]").expect("written");
        assert_eq!(payload("{\"a\": 1}", &mut &b""[..]), Ok(Bytes::from_static(b"{\"a\": 1}")));
        assert_eq!(payload(&format!("@{}", file.display()), &mut &b""[..]), Ok(Bytes::from_static(b"[1]")));
        assert_eq!(payload("-", &mut &b"null"[..]), Ok(Bytes::from_static(b"null")));
    }

    #[test]
    fn a_payload_that_is_not_json_is_refused_before_it_is_sent() {
        let error = payload("{hello}", &mut &b""[..]).expect_err("not JSON");
        assert!(error.contains("in --payload cannot be taken: payload: must be JSON"), "{error}");
        let error = payload(r#"{"to":1,"to":2}"#, &mut &b""[..]).expect_err("two faces");
        assert!(error.contains("payload.to: is given twice"), "{error}");
        assert!(payload("@/no/such/file", &mut &b""[..]).is_err());
    }
}
