//! Two versions on one Redis: while an installation is upgraded, processes of both run their own scripts over the same keys.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Over the rules of the lanes as the last release had them.
const RELEASED: &str = include_str!("released/scripts.sha256");

/// A change of the rules is fine if scripts of both versions may take turns on the same keys: then write the new sum into
/// `released/scripts.sha256`, and say in the commit why. If they may not, the name of the installation's keys must change with
/// them (`root` in options.rs), so that the new version starts from an empty Redis, which it fills from the Store.
#[test]
fn rules_that_changed_since_the_last_release_were_thought_about() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "lua"));
    files.sort();
    let mut sum = Sha256::new();
    for path in &files {
        sum.update(path.file_name().unwrap().as_encoded_bytes());
        sum.update(std::fs::read(path).unwrap());
    }
    let sum = lockgate_core::hex::write(&sum.finalize());
    assert_eq!(sum, RELEASED.trim(), "read what stands above this test");
}
