//! Numbers that keep their value.
//!
//! A whole number must lie within ±(2^53 - 1), where a double represents every one. Any other number means the double
//! nearest to it and must not claim more precision than a double has: at most 17 significant digits, which suffice to write
//! every double; it must neither overflow nor underflow to zero.

use std::fmt;

use serde_json::Value;

/// The largest whole number up to which doubles represent every one (I-JSON, RFC 7493 section 2.2).
const WHOLE_MAX: u64 = (1 << 53) - 1;
/// Enough digits to tell every double from its neighbours.
const DIGITS_MAX: usize = 17;

/// Why a number would not keep its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFault {
    Whole,
    Digits,
    TooLarge,
    TooSmall,
}

impl fmt::Display for NumberFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(f, "is a whole number beyond ±{WHOLE_MAX} (2^53 - 1), which not every reader keeps exact"),
            Self::Digits => write!(f, "has more than {DIGITS_MAX} significant digits, which no double keeps"),
            Self::TooLarge => f.write_str("is too large for a double"),
            Self::TooSmall => f.write_str("is too small for a double and would become 0"),
        }
    }
}

/// The fault of a number literal. A text that is no number has none.
pub(crate) fn fault(literal: &str) -> Option<NumberFault> {
    value(literal).err()
}

/// The value of a literal by the grammar of JSON.
pub(super) fn value(literal: &str) -> Result<Value, NumberFault> {
    if is_whole(literal) {
        // Negative zero exists only as a double.
        let digits = literal.trim_start_matches(['-', '+']);
        return match digits.parse::<u64>() {
            Ok(0) if literal.starts_with('-') => Ok((-0.0).into()),
            Ok(_) if literal.starts_with('-') => signed(literal),
            Ok(number) if number <= WHOLE_MAX => Ok(number.into()),
            _ => Err(NumberFault::Whole),
        };
    }
    let Ok(double) = literal.parse::<f64>() else { return Ok(Value::Null) };
    let digits = significant_digits(literal);
    match digits {
        _ if double.is_infinite() => Err(NumberFault::TooLarge),
        1.. if double == 0.0 => Err(NumberFault::TooSmall),
        digits if digits > DIGITS_MAX => Err(NumberFault::Digits),
        _ => Ok(double.into()),
    }
}

fn signed(literal: &str) -> Result<Value, NumberFault> {
    let number = literal.parse::<i64>().map_err(|_| NumberFault::Whole)?;
    if number.unsigned_abs() <= WHOLE_MAX { Ok(number.into()) } else { Err(NumberFault::Whole) }
}

fn is_whole(literal: &str) -> bool {
    let digits = literal.strip_prefix(['-', '+']).unwrap_or(literal);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits from the first to the last non-zero one.
fn significant_digits(literal: &str) -> usize {
    let mantissa = literal.split(['e', 'E']).next().unwrap_or_default();
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let leading = digits().take_while(|digit| *digit == b'0').count();
    let all = digits().count();
    if leading == all { 0 } else { all - leading - digits().rev().take_while(|digit| *digit == b'0').count() }
}

/// Whether a literal of the JSON grammar is written as this crate writes its value.
pub(super) fn is_canonical(literal: &str) -> bool {
    if is_whole(literal) {
        let number = literal.parse::<i64>().ok().filter(|number| number.unsigned_abs() <= WHOLE_MAX);
        return number.is_some() && literal != "-0";
    }
    let Some(double) = literal.parse::<f64>().ok().filter(|double| double.is_finite()) else { return false };
    // The longest text of a double has 24 bytes.
    let mut written = [0; 32];
    let mut room = &mut written[..];
    let fits = serde_json::to_writer(&mut room, &double).is_ok();
    let used = 32 - room.len();
    fits && written[..used] == *literal.as_bytes()
}
