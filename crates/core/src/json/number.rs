//! Which numbers keep their value.
//!
//! A whole number must lie within ±(2^53 - 1), where a double counts every one. Any other number stands for the double that is
//! nearest to it, and must not say more than a double can: at most 17 significant digits, which are enough to write every
//! double, and neither overflow nor vanish.

use std::fmt;

use serde_json::Value;

/// The largest whole number up to which doubles count every one (I-JSON, RFC 7493 section 2.2).
const WHOLE_MAX: u64 = (1 << 53) - 1;
/// Enough to tell every double from its neighbours.
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

/// What is wrong with a literal. One that is no number at all has no fault.
pub(crate) fn fault(literal: &str) -> Option<NumberFault> {
    value(literal).err()
}

/// The value of a literal by the grammar of JSON.
pub(super) fn value(literal: &str) -> Result<Value, NumberFault> {
    if is_whole(literal) {
        // A negative zero is one only as a double.
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

/// Digits between the first and the last that is not zero.
fn significant_digits(literal: &str) -> usize {
    let mantissa = literal.split(['e', 'E']).next().unwrap_or_default();
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let leading = digits().take_while(|digit| *digit == b'0').count();
    let all = digits().count();
    if leading == all { 0 } else { all - leading - digits().rev().take_while(|digit| *digit == b'0').count() }
}

/// Whether a literal by the grammar of JSON is written as this crate writes its value.
pub(super) fn is_canonical(literal: &str) -> bool {
    if is_whole(literal) {
        let number = literal.parse::<i64>().ok().filter(|number| number.unsigned_abs() <= WHOLE_MAX);
        return number.is_some() && literal != "-0";
    }
    let Some(double) = literal.parse::<f64>().ok().filter(|double| double.is_finite()) else { return false };
    // The longest double has 24 bytes.
    let mut written = [0; 32];
    let mut room = &mut written[..];
    let fits = serde_json::to_writer(&mut room, &double).is_ok();
    let used = 32 - room.len();
    fits && written[..used] == *literal.as_bytes()
}
