//! Sizes as people write them.

/// `1024`, `500K`, `20M`, `1G`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; write it like 500K, 20M or 1G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(bytes("1024"), Ok(1_024));
        assert_eq!(bytes("500k"), Ok(512_000));
        assert_eq!(bytes("20M"), Ok(20 << 20));
        for wrong in ["", "M", "0", "-1M", "1.5M", "1T", "99999999999999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
