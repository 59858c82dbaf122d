//! What every Counters must do, by property.
//!
//! An adapter runs all of it with one line in its tests:
//!
//! ```ignore
//! lockgate_conformance::counters_conformance! { stage }
//! ```
//!
//! where `stage` is an async function that returns a [`Stage`] over fresh counters.

pub mod breaker;
pub mod random;
pub mod rates;
pub mod registry;
pub mod velocity;

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::counters::Counters;

/// Two processes that share counters, and their clock.
pub struct Stage {
    pub a: Arc<dyn Counters>,
    pub b: Arc<dyn Counters>,
    /// Returns when this much time has passed for the counters.
    pass: Box<dyn Fn(Duration) + Send + Sync>,
}

impl Stage {
    pub fn new(a: Arc<dyn Counters>, b: Arc<dyn Counters>, pass: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { a, b, pass: Box::new(pass) }
    }

    pub fn pass(&self, span: Duration) {
        (self.pass)(span);
    }
}

/// One test per case for the adapter behind `$stage`.
#[macro_export]
macro_rules! counters_conformance {
    ($stage:ident) => {
        $crate::counters_conformance! { $stage:
            breaker {
                three_failures_over_two_handles_open_it_for_both,
                a_success_in_between_starts_the_count_over,
                an_open_breaker_says_when_to_ask_again,
                at_most_three_probes_are_in_flight_over_all_handles,
                two_successful_probes_close_it_for_all,
                a_failed_probe_opens_it_again_for_the_whole_time,
                a_probe_nobody_answers_for_is_given_up,
                answers_to_calls_from_before_change_nothing,
                breakers_of_other_names_are_others,
                looking_changes_nothing,
            }
            velocity {
                a_job_counts_once_over_all_handles,
                jobs_of_one_batch_take_their_places_in_order,
                a_job_leaves_after_the_span_and_those_behind_move_up,
                other_rules_and_keys_have_other_windows,
                looking_enters_nothing,
                nothing_asked_is_nothing_answered,
            }
            rates {
                a_bucket_is_shared_and_says_when_it_has_more,
                what_one_bucket_lacks_is_taken_from_none,
                buckets_fill_with_time,
                another_rate_is_another_bucket,
            }
            registry {
                one_holds_a_lock_until_it_lets_go,
                a_lock_that_nobody_keeps_is_free_again,
                only_the_holder_can_give_a_lock_back,
                the_latest_snapshot_of_workers_is_read_with_its_age,
            }
        }
    };
    ($stage:ident: $($group:ident { $($case:ident,)* })*) => {
        $(mod $group {
            $(#[tokio::test]
            async fn $case() {
                $crate::counters::$group::$case(super::$stage().await).await;
            })*
        })*
    };
}
