//! How attempts are tried again, as words on the command line and in tables.

use std::time::Duration;

use lockgate_api::view;
use lockgate_proto::v1;

use crate::args;

/// One part of a retry policy, like `base=1s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RetryPart {
    Base(u64),
    Factor(u32),
    Cap(u64),
    Jitter(u32),
    Total(u64),
    NonRetryable(String),
    Losses(u32),
}

/// The words are those of `timeouts.yaml`.
pub(crate) fn part(text: &str) -> Result<RetryPart, String> {
    let (name, value) = args::pair(text)?;
    let span = || args::duration(&value).map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let whole = || value.parse::<u32>().map_err(|_| format!("{name} must be a whole number, not {value:?}"));
    match name.as_str() {
        "base" => span().map(RetryPart::Base),
        "cap" => span().map(RetryPart::Cap),
        "total" => span().map(RetryPart::Total),
        "factor" => factor(&value).map(RetryPart::Factor),
        "jitter_percent" => whole().map(RetryPart::Jitter),
        "losses" => whole().map(RetryPart::Losses),
        "non_retryable" => args::name(&value).map(RetryPart::NonRetryable),
        _ => Err(format!(
            "unknown part {name:?}; it must be one of base, factor, cap, jitter_percent, total, non_retryable, losses"
        )),
    }
}

/// `2` or `1.5`, in hundredths.
fn factor(text: &str) -> Result<u32, String> {
    let wrong = || format!("factor must be a number between 1 and 10, such as 1.5, not {text:?}");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 2 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let hundredths: u32 = format!("{part:0<2}").parse().map_err(|_| wrong())?;
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    whole.checked_mul(100).and_then(|whole| whole.checked_add(hundredths)).ok_or_else(wrong)
}

/// Absent if nothing was said.
pub(crate) fn policy(parts: &[RetryPart]) -> Option<v1::RetryPolicy> {
    let mut policy = v1::RetryPolicy::default();
    for part in parts {
        match part {
            RetryPart::Base(millis) => policy.base_ms = Some(*millis),
            RetryPart::Factor(percent) => policy.factor_percent = Some(*percent),
            RetryPart::Cap(millis) => policy.cap_ms = Some(*millis),
            RetryPart::Jitter(percent) => policy.jitter_percent = Some(*percent),
            RetryPart::Total(millis) => policy.total_ms = Some(*millis),
            RetryPart::NonRetryable(code) => policy.non_retryable.push(code.clone()),
            RetryPart::Losses(losses) => policy.losses = Some(*losses),
        }
    }
    (!parts.is_empty()).then_some(policy)
}

/// For people.
pub(super) fn line(job: &view::Job) -> String {
    let retry = &job.retry;
    let span = |millis| format!("{:?}", Duration::from_millis(millis));
    let factor = format!("{}.{:02}", retry.factor_percent / 100, retry.factor_percent % 100);
    let mut text = format!(
        "{} attempts, {} losses; after {}, × {} each, at most {}, + up to {} %",
        job.max_attempts,
        retry.losses,
        span(retry.base_ms),
        factor.trim_end_matches('0').trim_end_matches('.'),
        span(retry.cap_ms),
        retry.jitter_percent
    );
    if let Some(total) = retry.total_ms {
        text += &format!("; none is planned for later than {}", span(total));
    }
    if !retry.non_retryable.is_empty() {
        text += &format!("; not after {}", retry.non_retryable.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_timeouts_file_make_a_policy() {
        let words = ["base=250ms", "factor=1.5", "cap=1m", "jitter_percent=0", "total=1h", "losses=2", "non_retryable=gone"];
        let parts: Vec<RetryPart> = words.iter().map(|word| part(word).expect("good")).collect();
        let expected = v1::RetryPolicy {
            base_ms: Some(250),
            factor_percent: Some(150),
            cap_ms: Some(60_000),
            jitter_percent: Some(0),
            total_ms: Some(3_600_000),
            non_retryable: vec!["gone".to_owned()],
            losses: Some(2),
        };
        assert_eq!(policy(&parts), Some(expected));
        assert_eq!(policy(&[]), None);
        for wrong in
            ["base=1", "factor=two", "factor=1.234", "factor=1.-1", "losses=-1", "bases=1s", "base", "non_retryable="]
        {
            assert!(part(wrong).is_err(), "{wrong}");
        }
        assert_eq!(part("factor=2"), Ok(RetryPart::Factor(200)));
    }
}
