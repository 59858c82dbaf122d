//! Tries that are kept over restarts.

use super::stage::{Proof, StoreHarness};

pub async fn nothing_is_kept_before_something_was(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.kept_tries().await?, None);
    Ok(())
}

pub async fn the_text_that_was_kept_last_is_read(h: &StoreHarness) -> Proof {
    let long = "ü".repeat(100_000);
    for text in ["[]", r#"[{"shape":{"topic":"t"}}]"#, &long, ""] {
        h.store.keep_tries(text).await?;
        assert_eq!(h.store.kept_tries().await?.as_deref(), Some(text));
    }
    Ok(())
}
