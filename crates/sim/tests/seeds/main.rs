//! A thousand stories in every test run, in ten parts that run side by side; `make sim` tells more.

mod outages;
mod planted_bugs;
mod restores;

use lockgate_sim::{Injected, Story, run};

fn hundred(part: u64) {
    let mut injected = Injected::default();
    let (mut lost, mut closed) = (0, 0);
    for seed in part * 100..(part + 1) * 100 {
        match run(seed) {
            Ok(summary) => {
                injected.add(&summary.injected);
                lost += summary.lost;
                closed += summary.closed;
            }
            Err(violation) => panic!("seed {seed}: {violation}"),
        }
    }
    assert_eq!(injected.missing(), [], "every kind of fault must happen");
    assert!(lost > 0 && closed > 0, "silence must be noticed while faults are on: {lost} lost, {closed} closed");
}

macro_rules! parts {
    ($($name:ident = $part:literal;)*) => {
        $(
            #[test]
            fn $name() {
                hundred($part);
            }
        )*
    };
}

parts! {
    seeds_0_to_99_keep_every_promise = 0;
    seeds_100_to_199_keep_every_promise = 1;
    seeds_200_to_299_keep_every_promise = 2;
    seeds_300_to_399_keep_every_promise = 3;
    seeds_400_to_499_keep_every_promise = 4;
    seeds_500_to_599_keep_every_promise = 5;
    seeds_600_to_699_keep_every_promise = 6;
    seeds_700_to_799_keep_every_promise = 7;
    seeds_800_to_899_keep_every_promise = 8;
    seeds_900_to_999_keep_every_promise = 9;
}

#[test]
fn some_stories_go_without_some_faults_and_say_so() {
    let stories: Vec<Story> = (0..300).map(Story::of).collect();
    let whole = stories.iter().filter(|story| story.without.is_empty()).count();
    assert!((70..140).contains(&whole), "one of three: {whole}");
    for story in stories {
        let without: Vec<&str> = story.without.iter().map(|fault| fault.as_str()).collect();
        let told = if without.is_empty() { "none".to_owned() } else { without.join(",") };
        assert!(story.to_string().ends_with(&format!(" --without {told}")), "{story}");
    }
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    for seed in [3, 44, 77, 238, 580, 678, 4_711] {
        assert_eq!(run(seed), run(seed));
    }
}
