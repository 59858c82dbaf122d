//! Six hundred stories in every test run, in twelve parts that run side by side; `make sim` tells more.

use lockgate_sim::{Injected, run};

fn fifty(part: u64) {
    let mut injected = Injected::default();
    for seed in part * 50..(part + 1) * 50 {
        match run(seed) {
            Ok(summary) => injected.add(&summary.injected),
            Err(violation) => panic!("seed {seed}: {violation}"),
        }
    }
    assert!(injected.is_complete(), "every kind of fault must happen: {injected:?}");
}

macro_rules! parts {
    ($($name:ident = $part:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                fifty($part);
            }
        )*
    };
}

parts! {
    seeds_0_to_49_keep_every_promise = 0,
    seeds_50_to_99_keep_every_promise = 1,
    seeds_100_to_149_keep_every_promise = 2,
    seeds_150_to_199_keep_every_promise = 3,
    seeds_200_to_249_keep_every_promise = 4,
    seeds_250_to_299_keep_every_promise = 5,
    seeds_300_to_349_keep_every_promise = 6,
    seeds_350_to_399_keep_every_promise = 7,
    seeds_400_to_449_keep_every_promise = 8,
    seeds_450_to_499_keep_every_promise = 9,
    seeds_500_to_549_keep_every_promise = 10,
    seeds_550_to_599_keep_every_promise = 11,
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    for seed in [3, 77, 4_711] {
        assert_eq!(run(seed), run(seed));
    }
}
