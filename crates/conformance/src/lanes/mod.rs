//! What every Lanes must do, by property.
//!
//! An adapter runs all of it with two lines in its tests:
//!
//! ```ignore
//! lockgate_conformance::lanes_conformance! { lanes }
//! lockgate_conformance::lanes_lose_nothing! { lanes, cases: 256 }
//! ```
//!
//! where `lanes` is a function that returns an `Arc<dyn Lanes>` over empty lanes. An adapter that holds the backlog in
//! windows runs it with small ones too, so that they overflow.

pub mod crowd;
pub mod fairness;
pub mod holding;
pub mod limits;
pub mod random;
pub mod rates;
pub mod refill;
pub mod settling;
pub mod stage;

pub use crowd::keeps_limits;
pub use random::loses_nothing;

/// One test per case for the adapter behind `$lanes`.
#[macro_export]
macro_rules! lanes_conformance {
    ($lanes:ident) => {
        $crate::lanes_conformance! { $lanes:
            fairness {
                low_is_served_within_85_claims_of_a_steady_critical_stream,
                ten_jobs_of_a_quiet_tenant_start_within_20_claims_next_to_100_000_of_a_noisy_one,
                tenants_of_one_priority_take_turns,
                tenants_get_turns_by_their_weights_in_every_round,
                tenants_get_turns_by_their_weights_at_a_full_limit,
                priorities_get_turns_by_their_weights_in_every_round,
                strict_priorities_serve_nothing_while_something_more_urgent_waits,
                shares_say_what_tenants_got_and_were_entitled_to,
                a_tenant_without_work_is_entitled_to_nothing,
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
                demand_counts_what_could_be_claimed_by_shape,
                jobs_that_differ_for_limits_only_are_one_demand,
                what_no_pool_takes_is_counted_and_never_claimed,
                jobs_wait_in_the_first_pool_of_their_topic,
                seats_that_fit_what_waits_in_another_pool_take_what_waits_in_the_one_asked,
            }
            limits {
                a_full_limit_delays_no_other_lane,
                jobs_that_wait_for_a_limit_are_no_demand,
                what_waited_for_a_limit_comes_first_when_it_frees,
                a_newcomer_does_not_overtake_what_waited_for_a_limit,
                room_that_is_never_used_up_goes_round_too,
                a_tenant_with_many_keys_leaves_its_turn_to_one_with_few,
                room_is_not_kept_for_a_worker_that_does_not_come,
                room_goes_to_the_most_urgent_and_low_is_not_forgotten,
                jobs_with_one_key_run_one_at_a_time_and_others_beside_them,
                tenants_have_their_own_limits_in_a_pool,
                policy_bounds_jobs_of_a_tenant_and_topic,
                a_pool_takes_no_more_than_its_own_bound_whatever_its_jobs_prefer,
                a_lane_passes_all_its_limits_or_none,
                the_limits_of_a_lane_say_what_is_used,
                a_cancelled_job_leaves_the_line,
                room_that_was_given_to_a_cancelled_job_goes_to_the_next,
                lanes_of_several_priorities_share_a_limit,
            }
            holding {
                a_limit_is_taken_by_claims_and_freed_by_the_end_of_their_attempts,
                a_claim_that_came_to_nothing_frees_its_limits,
                attempts_that_run_already_count_after_a_start,
                more_may_run_than_a_limit_allows_and_then_nothing_starts,
                a_token_freed_twice_frees_once,
                new_pools_keep_what_is_held,
                an_attempt_whose_claim_was_forgotten_counts,
                what_is_said_of_a_claim_ends_no_later_one,
                a_claim_that_new_pools_found_ends_as_any_other,
            }
            rates {
                a_rate_lets_a_burst_through_and_then_says_when,
                a_rate_delays_no_other_lane_and_is_shared_by_tenants,
                what_a_rate_held_back_is_demanded_after_a_claim_at_its_time,
                a_claim_that_came_to_nothing_is_not_charged_to_a_rate,
                the_limits_of_a_lane_say_when_its_rate_has_room,
                a_rate_outlives_new_pools_that_keep_it,
                a_limit_may_bound_both_at_once_and_by_time,
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
                let stage = $crate::lanes::stage::Stage::new(super::$lanes());
                $crate::lanes::$group::$case(stage).await;
            })*
        })*
    };
}

/// Random interleavings of everything that happens to lanes. Those with limits are fewer: each does more.
#[macro_export]
macro_rules! lanes_lose_nothing {
    ($lanes:ident, cases: $cases:expr) => {
        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases($cases))]
            #[test]
            fn every_job_is_claimed_once_whatever_the_order(
                words in proptest::collection::vec(proptest::prelude::any::<u64>(), 1..300)
            ) {
                $crate::lanes::loses_nothing($lanes(), &words);
            }
        }

        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases($cases / 8))]
            #[test]
            fn no_limit_is_exceeded_and_nothing_is_stuck(
                words in proptest::collection::vec(proptest::prelude::any::<u64>(), 1..200)
            ) {
                $crate::lanes::keeps_limits($lanes(), &words);
            }
        }
    };
}
