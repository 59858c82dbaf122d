//! Rows that cannot be decoded, because a newer version or a person wrote them. Reads leave them out, so that other rows are
//! not affected, and report them to the operator.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many rows are named; further ones are only counted.
const NAMED_MAX: usize = 1_000;

/// A Store's record of its own unreadable rows.
#[derive(Debug, Default)]
pub struct Unreadable(Mutex<UnreadableRows>);

#[derive(Debug, Default)]
struct UnreadableRows {
    named: BTreeSet<String>,
    met: Met,
}

/// The rows that a Store left out since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// A row counts each time it is read, so the number grows as long as the row exists.
    pub rows: u64,
    /// The latest such row, and what is wrong with it.
    pub latest: Option<Arc<str>>,
}

/// An error of decoding a row.
pub trait Misread: Display {
    /// Whether the error is about this row only and says nothing about others.
    fn is_of_one_row(&self) -> bool;
}

impl Unreadable {
    /// The decoded row; None, and a report, if it cannot be decoded.
    pub fn or_told<T, E: Misread>(&self, name: impl FnOnce() -> String, read: Result<T, E>) -> Result<Option<T>, E> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_of_one_row() => {
                self.tell(&name(), &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reports a row that was left out.
    pub fn tell(&self, row: &str, why: &dyn Display) {
        if self.meet(row, why) {
            tracing::error!(
                row,
                %why,
                "a row cannot be read and is left out; its neighbours go on. Was it written by a newer version, or by hand? \
                 Upgrade this process, or mend the row"
            );
        }
    }

    /// Whether the row is read for the first time and must be named in the log.
    pub fn meet(&self, row: &str, why: &dyn Display) -> bool {
        let mut kept = self.0.lock();
        kept.met.rows += 1;
        kept.met.latest = Some(format!("{row}: {why}").into());
        !kept.named.contains(row) && kept.named.len() < NAMED_MAX && kept.named.insert(row.to_owned())
    }

    pub fn met(&self) -> Met {
        self.0.lock().met.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Wrong(bool);

    impl Display for Wrong {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("wrong")
        }
    }

    impl Misread for Wrong {
        fn is_of_one_row(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn only_what_is_wrong_with_one_row_is_left_out() {
        let unreadable = Unreadable::default();
        let name = || "job a".to_owned();
        assert_eq!(unreadable.or_told(name, Ok::<_, Wrong>(7)), Ok(Some(7)));
        assert_eq!(unreadable.or_told(name, Err::<(), _>(Wrong(false))), Err(Wrong(false)));
        assert_eq!(unreadable.met(), Met::default());
        assert_eq!(unreadable.or_told(name, Err::<(), _>(Wrong(true))), Ok(None));
        assert_eq!(unreadable.met(), Met { rows: 1, latest: Some("job a: wrong".into()) });
    }

    #[test]
    fn a_row_is_counted_whenever_it_is_met_and_named_once() {
        let unreadable = Unreadable::default();
        assert_eq!(unreadable.met(), Met::default());
        assert!(unreadable.meet("job a", &"no"));
        assert!(!unreadable.meet("job a", &"no"));
        assert!(unreadable.meet("job b", &"not at all"));
        assert_eq!(unreadable.met(), Met { rows: 3, latest: Some("job b: not at all".into()) });
    }

    #[test]
    fn the_names_are_bounded() {
        let unreadable = Unreadable::default();
        let named = (0..NAMED_MAX + 10).filter(|n| unreadable.meet(&format!("job {n}"), &"no")).count();
        assert_eq!((named, unreadable.met().rows), (NAMED_MAX, NAMED_MAX as u64 + 10));
    }
}
