//! `--faults`: injects faults into built-in handlers.

use std::collections::BTreeSet;

use lockgate_worker::handlers::{Chance, Faults, Slow};

use crate::args;
use crate::output::{Output, Tone};

/// `error=0.1,hang=0.01,slow=0.2:500ms,crash=0.001`.
pub(crate) fn read(text: &str) -> Result<Faults, String> {
    let mut faults = Faults::default();
    let mut named = BTreeSet::new();
    for fault in text.split(',') {
        let wrong = || format!("{fault:?} is not of the form NAME=CHANCE; write it like error=0.1 or slow=0.2:500ms");
        let (name, value) = fault.split_once('=').ok_or_else(wrong)?;
        if !named.insert(name) {
            return Err(format!("{name} is named twice"));
        }
        match name {
            "error" => faults.error = chance(value)?,
            "hang" => faults.hang = chance(value)?,
            "slow" => faults.slow = Some(slow(value)?),
            "crash" => faults.crash = chance(value)?,
            _ => return Err(format!("there is no fault {name:?}; there are error, hang, slow and crash")),
        }
    }
    Ok(faults)
}

fn chance(text: &str) -> Result<Chance, String> {
    let wrong = || format!("{text:?} is no chance; write a number from 0 to 1, like 0.1");
    text.parse::<f64>().ok().and_then(Chance::new).ok_or_else(wrong)
}

fn slow(text: &str) -> Result<Slow, String> {
    let wrong = || format!("slow={text} does not say how slow; write it like slow=0.2:500ms");
    let (often, span) = text.split_once(':').ok_or_else(wrong)?;
    Ok(Slow { chance: chance(often)?, up_to: args::duration(span)? })
}

/// Fault injection must not go unnoticed: people are told whatever --log says, programs in a log line.
pub(crate) fn announce(faults: Option<&Faults>, out: Output) {
    let Some(faults) = faults else { return };
    let text = "for drills only: built-in handlers fail on purpose";
    if out.is_json() {
        tracing::warn!(%faults, "{text}");
    } else {
        eprintln!("{} {text}: {faults}", out.paint("warning:", Tone::Waiting));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn faults_are_read_with_their_chances() {
        let of = |chance: f64| Chance::new(chance).expect("a probability");
        let faults = read("error=0.1,hang=0.01,slow=0.2:500ms,crash=1").expect("good");
        let slow = Slow { chance: of(0.2), up_to: Duration::from_millis(500) };
        assert_eq!(faults, Faults { error: of(0.1), hang: of(0.01), slow: Some(slow), crash: of(1.0) });
        assert_eq!(read("hang=0").expect("good"), Faults::default());
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_named() {
        for (wrong, named) in [
            ("", "\"\""),
            ("error", "\"error\""),
            ("error=0.1,", "\"\""),
            ("error=", "\"\" is no chance"),
            ("error=1.5", "1.5"),
            ("hang=-0.1", "-0.1"),
            ("crash=NaN", "NaN"),
            ("error=10%", "10%"),
            ("moon=0.1", "error, hang, slow and crash"),
            ("error=0.1,error=0.2", "named twice"),
            ("slow=0.2", "slow=0.2:500ms"),
            ("slow=0.2:soon", "soon"),
            ("slow=2:1s", "\"2\""),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(named), "{wrong}: {error}");
        }
    }
}
