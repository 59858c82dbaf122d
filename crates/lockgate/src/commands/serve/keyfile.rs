//! Secrets of an installation: made once and kept in a file that only its owner can read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lockgate_core::hex;

use crate::error::CliError;

/// The bytes in the file; `fresh` ones if there is no file yet. `loss` says what is lost with a damaged file.
pub(super) fn kept(path: &Path, fresh: [u8; 32], loss: &str) -> Result<[u8; 32], CliError> {
    let wrong = |error: std::io::Error| CliError::Usage(format!("{}: {error}", path.display()));
    if !path.exists() {
        let whole = written_aside(path, &fresh)?;
        // A hard link is atomic, and fails if another process created the file first.
        match std::fs::hard_link(&whole, path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(wrong(error)),
            _ => std::fs::remove_file(&whole).map_err(wrong)?,
        }
    }
    let bytes = std::fs::read(path).map_err(wrong)?;
    <[u8; 32]>::try_from(bytes).map_err(|_| CliError::Usage(format!("{} is damaged; remove it and {loss}", path.display())))
}

/// Writes a secret, replacing the file.
pub(super) fn put(path: &Path, text: &str) -> Result<(), CliError> {
    let wrong = |error: std::io::Error| CliError::Usage(format!("{}: {error}", path.display()));
    std::fs::rename(written_aside(path, text.as_bytes())?, path).map_err(wrong)
}

/// Writes and syncs a temporary file beside `path`, readable by its owner only.
fn written_aside(path: &Path, bytes: &[u8]) -> Result<PathBuf, CliError> {
    let aside = path.with_extension(format!("key-{}", std::process::id()));
    let wrong = |error: std::io::Error| CliError::Usage(format!("{}: {error}", aside.display()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(wrong)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(wrong)?;
    Ok(aside)
}

/// Reads a secret that was made elsewhere: 64 hexadecimal digits.
pub(super) fn given(path: &Path) -> Result<[u8; 32], CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))?;
    hex::read(text.trim()).ok_or_else(|| {
        let make = "openssl rand -hex 32";
        CliError::Usage(format!("{} must have 64 hexadecimal digits and nothing else; `{make}` makes some", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_made_once_for_its_owner_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("some.key");
        assert_eq!(kept(&path, [1; 32], "all is lost").ok(), Some([1; 32]));
        assert_eq!(kept(&path, [2; 32], "all is lost").ok(), Some([1; 32]));
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "short").expect("written");
        let error = kept(&path, [3; 32], "all is lost").expect_err("damaged");
        assert!(error.to_string().contains("some.key is damaged; remove it and all is lost"), "{error}");
    }

    #[test]
    fn a_given_secret_is_hexadecimal() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("some.key");
        std::fs::write(&path, format!("{}\n", "0a".repeat(32))).expect("written");
        assert_eq!(given(&path).ok(), Some([10; 32]));
        for bad in ["", "00", &"0g".repeat(32), &"ä".repeat(32)] {
            std::fs::write(&path, bad).expect("written");
            let error = given(&path).expect_err("bad");
            assert!(error.to_string().contains("openssl rand -hex 32"), "{error}");
        }
    }
}
