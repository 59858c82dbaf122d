//! What every Lanes must do, by property.
//!
//! An adapter runs all of it with two lines in its tests:
//!
//! ```ignore
//! lockgate_ports::lanes_conformance! { lanes }
//! lockgate_ports::lanes_lose_nothing! { lanes, cases: 256 }
//! ```
//!
//! where `lanes` is a function that returns an `Arc<dyn Lanes>` over empty lanes. An adapter that holds the backlog in
//! windows runs it with small ones too, so that they overflow.

pub mod fairness;
pub mod random;
pub mod refill;
pub mod settling;
pub mod stage;

pub use random::loses_nothing;

/// One test per case for the adapter behind `$lanes`.
#[macro_export]
macro_rules! lanes_conformance {
    ($lanes:ident) => {
        $crate::lanes_conformance! { $lanes:
            fairness {
                low_is_served_within_85_claims_of_a_steady_critical_stream,
                a_quiet_tenant_is_served_next_to_100_000_jobs_of_a_noisy_one,
                tenants_of_one_priority_take_turns,
                a_shape_that_fits_nobody_delays_nobody,
                a_priority_that_fits_nobody_yields,
                jobs_of_a_tenant_come_in_ready_order_over_shapes,
                seats_share_the_load,
                each_seat_gets_only_shapes_it_fits,
            }
            settling {
                never_more_than_the_seats_ask_for,
                a_waiting_job_is_not_added_twice,
                a_claimed_job_is_not_added_again,
                a_newer_version_replaces_the_waiting_one,
                a_returned_job_goes_back_to_its_place,
                a_gone_job_is_not_claimed,
                a_dispatched_job_may_wait_again_later,
                settling_unknown_jobs_changes_nothing,
                depths_count_what_waits_deepest_first,
                shapes_say_when_they_changed,
                shapes_that_nothing_waits_for_are_dropped_in_the_end,
            }
            refill {
                a_backlog_larger_than_any_window_is_drained_in_order,
                a_job_committed_behind_a_running_refill_is_not_lost,
                many_jobs_committed_behind_a_running_refill_are_not_lost,
                an_ask_that_was_never_answered_is_made_again,
                the_late_answer_to_an_old_ask_is_ignored,
                a_steady_stream_catches_up_with_its_refills,
                rebuilt_lanes_are_read_from_their_start,
                a_job_offered_while_the_lanes_are_rebuilt_is_not_lost,
                a_claim_is_forgotten_when_its_lane_is_rebuilt,
            }
        }
    };
    ($lanes:ident: $($group:ident { $($case:ident,)* })*) => {
        $(mod $group {
            $(#[tokio::test]
            async fn $case() {
                let stage = $crate::conformance::lanes::stage::Stage::new(super::$lanes());
                $crate::conformance::lanes::$group::$case(stage).await;
            })*
        })*
    };
}

/// Random interleavings of everything that happens to lanes.
#[macro_export]
macro_rules! lanes_lose_nothing {
    ($lanes:ident, cases: $cases:expr) => {
        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases($cases))]
            #[test]
            fn every_job_is_claimed_once_whatever_the_order(
                words in proptest::collection::vec(proptest::prelude::any::<u64>(), 1..300)
            ) {
                $crate::conformance::lanes::loses_nothing($lanes(), &words);
            }
        }
    };
}
