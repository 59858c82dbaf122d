//! Bytes as people copy them.

/// Two digits a byte, in lower case.
pub fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So many bytes, in either case, and nothing else.
pub fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let bytes: [u8; 32] = std::array::from_fn(|n| u8::try_from(n * 8).expect("below 256"));
        assert_eq!(read(&write(&bytes)), Some(bytes));
        assert_eq!(read(&write(&bytes).to_uppercase()), Some(bytes));
        for wrong in ["", "00", &"+1".repeat(32), &"é".repeat(32), &"0".repeat(65), &"0g".repeat(32)] {
            assert_eq!(read::<32>(wrong), None, "{wrong:?}");
        }
    }
}
