//! Do the judges bite? Each test plants one bug and says which promise is seen to break, in the first of at most 600 seeds that
//! breaks it. What the design calls harmless is planted too, and must not be noticed.

use lockgate_sim::{Bug, Story};

/// Stories that are told until one of them breaks the rule. Some bugs need a rare one.
const SEEDS: u64 = 600;

/// Some story breaks a rule that begins with one of `rules`. Those before it that broke another one, which may follow from the
/// same bug, are passed over and counted.
fn is_caught(bug: Bug, rules: &[&str]) {
    let mut others = Vec::new();
    for story in (0..SEEDS).map(|seed| Story { bug: Some(bug), ..Story::of(seed) }) {
        let Err(violation) = story.tell() else { continue };
        if rules.iter().any(|rule| violation.rule.starts_with(rule)) {
            println!("{bug:?}: seed {} broke {violation}; {} before it broke another rule", story.seed, others.len());
            return;
        }
        others.push(format!("seed {}: {violation}", story.seed));
    }
    panic!("{bug:?} is not noticed as {rules:?} in {SEEDS} seeds; what was: {others:#?}");
}

fn is_harmless(bug: Bug) {
    for seed in 0..12 {
        let story = Story { bug: Some(bug), ..Story::of(seed) };
        if let Err(violation) = story.tell() {
            panic!("{bug:?} must be harmless, seed {seed}: {violation}");
        }
    }
}

macro_rules! caught {
    ($($name:ident = $bug:ident: $($rule:literal)|+;)*) => {
        $(
            #[test]
            fn $name() {
                is_caught(Bug::$bug, &[$($rule),+]);
            }
        )*
    };
}

caught! {
    a_version_that_is_not_compared = VersionIgnored: "S-1" | "J-1";
    evidence_that_is_not_looked_at = EvidenceIgnored: "S-1";
    evidence_that_nobody_offers = EvidenceOmitted: "S-1 nobody";
    a_batch_that_is_written_in_part = BatchCutShort: "S-1" | "S-2" | "A-5 a worker holds" | "F-";
    an_answer_before_the_change_is_on_disk = AnsweredTooEarly: "S-1" | "S-2";
    events_that_are_not_written = EventsDropped: "S-4";
    jobs_that_end_again_otherwise = EndedTwice: "J-3";
    dead_letters_that_are_not_written = LettersDropped: "J-4";
    idempotency_keys_that_are_forgotten = KeysForgotten: "S-3";
    rows_that_no_index_names = RowsForgotten: "everything ends";
    losses_that_the_client_pays_for = LossesCharged: "A-6";
    deadlines_that_nobody_looks_at = DeadlinesForgotten: "a deadline" | "everything ends";
    steps_of_a_run_that_are_not_compared = StepsNotCompared: "R-1";
    news_that_a_run_never_hears = NewsForgotten: "everything ends";
    an_undo_that_is_issued_twice = UndoneTwice: "R-7";
    an_undo_that_a_run_does_not_know_to_be_due = UndoSkipped: "R-4";
    undos_of_a_workflow_that_are_never_issued = UndosDropped: "everything ends";
    entries_of_a_workflow_that_are_forgotten = EntriesForgotten: "R-8";
    news_that_a_workflow_hears_in_the_wrong_order = NewsReversed: "R-8";
    undos_that_do_not_wait_for_a_worker_that_was_told_to_stop = CancelsBelieved: "R-5 nothing is undone while";
    edges_that_are_closed_alive = EdgesClosedAlive: "S-1";
    a_session_that_is_closed_under_another_epoch = EpochIgnored: "S-1";
    a_promise_to_a_worker_that_is_forgotten = PromisesForgotten: "A-10";
    a_child_of_an_attempt_that_no_longer_counts = BirthsUnfenced: "F-1";
    children_that_are_taken_for_ended = ChildrenOverlooked: "F-2";
    parents_that_nobody_wakes = GatherForgotten: "F-2";
    children_that_nobody_stops = DisownForgotten: "F-3";
    a_report_with_another_token_that_counts = FenceIgnored: "A-1";
    places_that_are_given_away_before_they_are_free = StopsBelieved: "A-5 a worker is sent";
    a_late_report_that_counts_when_the_next_attempt_runs = GuessesKept: "A-4";
    clocks_whose_jumps_are_followed = JumpsFollowed: "everything ends";
    jobs_that_no_lane_gives = JobsNeverClaimed: "everything ends";
    jobs_that_wait_for_a_worker_unjudged = VerdictsAssumed: "A-7";
    activations_that_are_not_compared = ActivationsNotCompared: "S-7";
    audit_rows_that_no_block_seals = RowsUnsealed: "S-6";
    an_audit_trail_that_nobody_seals = NothingSealed: "S-6";
    results_that_nobody_looks_at = ResultsUnchecked: "G-4";
    results_that_are_never_looked_at_again = ScansForgotten: "G-3" | "everything ends";
    results_that_outlive_their_life = FirstResultsKept: "S-8";
    a_policy_that_is_not_compared = PolicyIgnored: "S-1" | "G-1";
    a_pause_that_is_not_compared = StatesAssumed: "S-1 a paused pool";
    a_kernel_that_allows_everything = EverythingAllowed: "G-1" | "G-2";
    limits_that_are_not_kept = LimitsIgnored: "L-6";
    limits_that_are_never_freed = LimitsNeverFreed: "everything ends";
    turns_of_a_schedule_that_are_not_compared = TurnsNotCompared: "T-1";
    schedules_that_are_never_due = SchedulesForgotten: "everything ends";
}

#[test]
fn a_story_is_shrunk_to_one_that_breaks_the_same_rule() {
    let mut stories = (0..SEEDS).map(|seed| Story { bug: Some(Bug::EventsDropped), ..Story::of(seed) });
    let told = stories.find_map(|story| Some((story.tell().err()?, story)));
    let Some((violation, story)) = told else { panic!("no story breaks anything") };
    let shorter = story.clone().shrunk(violation.rule);
    assert!(shorter.chaos <= story.chaos && shorter.without.is_superset(&story.without), "{shorter}");
    assert_eq!(shorter.tell().map_err(|broken| broken.rule), Err(violation.rule), "{shorter}");
}

#[test]
fn claims_that_are_given_twice_are_harmless() {
    is_harmless(Bug::ClaimsDoubled);
}

#[test]
fn leaders_that_overlap_are_harmless() {
    is_harmless(Bug::EverybodyLeads);
}

#[test]
fn bells_that_ring_too_often_are_harmless() {
    is_harmless(Bug::BellsTripled);
}
