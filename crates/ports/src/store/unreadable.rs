//! Rows that cannot be decoded: written by a newer version, or by hand. They are left out of what is read, so that their
//! neighbours go on, and whoever looks after the installation is told.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// Rows that are told apart. Beyond this number they are only counted.
const NAMED_MAX: usize = 1_000;

/// Kept by a Store about itself.
#[derive(Debug, Default)]
pub struct Unreadable(Mutex<UnreadableRows>);

#[derive(Debug, Default)]
struct UnreadableRows {
    named: BTreeSet<String>,
    met: Met,
}

/// What a Store had to leave out since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// One that is met again counts again: the number grows for as long as it is there.
    pub rows: u64,
    /// The latest, and what is wrong with it.
    pub latest: Option<Arc<str>>,
}

/// An error of reading.
pub trait Misread: Display {
    /// One row makes no sense, and says nothing about the others.
    fn is_of_one_row(&self) -> bool;
}

impl Unreadable {
    /// What was read of a row, if it could be.
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

    /// One was left out.
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

    /// Whether it was met for the first time, and is to be named in the log.
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
