//! A Store that was brought back: its jobs end once, and workers of the time that was lost cannot end them.

use std::time::Duration;

use lockgate_sim::{Restored, SecondEnds};

const SEEDS: std::ops::Range<u64> = 0..60;

fn story(seed: u64, renewed: bool) -> Restored {
    Restored { seed, lost: Duration::from_secs(2 + seed % 20), renewed }
}

#[test]
fn every_job_of_a_backup_ends_once_in_the_new_timeline() {
    let mut again = 0;
    for seed in SEEDS {
        let told = story(seed, true).tell();
        let SecondEnds { jobs, ended, again: repeated } = told.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
        assert_eq!(ended, jobs, "seed {seed}: everything goes on to its end");
        again += repeated;
    }
    assert!(again > 0, "in some of them work was done that had to be done again");
}

#[test]
fn without_new_tokens_two_workers_would_hold_the_same_fence() {
    let broken = SEEDS.filter(|seed| story(*seed, false).tell().is_err()).count();
    assert!(broken > 0, "the story would notice");
}
