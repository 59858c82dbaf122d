//! What every Store must do, by property.
//!
//! An adapter runs all of it with two lines in its tests:
//!
//! ```ignore
//! lockgate_conformance::store_conformance! { harness }
//! lockgate_conformance::store_agrees_with_memory! { harness, cases: 32 }
//! ```
//!
//! where `harness` is a function that returns a [`StoreHarness`] over a new, empty Store, with a way to spoil a row of it. One that must wait for its server is an
//! `async fn`, and is named `async harness`.

pub mod children;
pub mod commits;
pub mod credentials;
pub mod damage;
pub mod duties;
pub mod endings;
pub mod evidence;
pub mod keys;
pub mod listings;
pub mod losses;
pub mod outputs;
pub mod queues;
pub mod random;
pub mod runs_dags;
pub mod runs_keys;
pub mod runs_lists;
pub mod runs_memos;
pub mod runs_news;
mod runs_snapshot;
mod runs_stage;
pub mod runs_steps;
pub mod runs_upkeep;
pub mod schedules_lists;
mod schedules_snapshot;
pub mod schedules_stage;
pub mod schedules_turns;
pub mod sessions;
mod snapshot;
pub mod snapshots;
pub mod stage;
pub mod tenants;
pub mod tenants_erased;
pub mod timelines;
pub mod trail;
pub mod tries;
pub mod upkeep;

pub use random::agrees_with_memory;
pub use stage::{Proof, Spoiling, Spoilt, StoreHarness};

/// One test per case for the adapter behind `$harness`.
#[macro_export]
macro_rules! store_conformance {
    ($harness:ident) => {
        $crate::store_conformance! { @list [super::$harness()] }
    };
    (async $harness:ident) => {
        $crate::store_conformance! { @list [super::$harness().await] }
    };
    (@list $harness:tt) => {
        $crate::store_conformance! { @tests $harness
            commits {
                a_new_job_is_loaded_as_it_was_committed,
                a_job_id_is_taken_once,
                an_id_stays_taken_after_the_job_ended,
                a_stale_version_conflicts_and_its_neighbours_do_not,
                a_version_from_the_future_conflicts,
                a_change_to_an_unknown_job_conflicts,
                one_call_may_change_the_same_job_in_sequence,
                what_builds_on_a_refused_item_is_refused,
                sequence_numbers_grow_in_commit_order,
                a_refused_birth_does_not_change_the_order_of_those_after_it,
                payloads_of_every_size_come_back,
                loads_answer_in_the_order_asked,
                an_empty_commit_is_answered,
                concurrent_changes_of_one_version_have_one_winner,
            }
            keys {
                whoever_asks_first_is_told_what_a_submit_would_find,
                a_key_names_its_job_to_later_submits,
                a_key_belongs_to_its_tenant,
                a_key_is_free_after_its_life,
                a_key_is_free_when_its_job_was_pruned,
                a_reused_key_outlives_the_pruning_of_its_first_job,
                one_of_many_concurrent_submits_gets_the_key,
            }
            evidence {
                a_dispatch_needs_the_session_attached_with_its_epoch,
                a_loss_needs_the_session_closed_with_its_epoch,
                a_time_is_reached_by_the_stores_own_clock,
                evidence_holds_within_one_call_too,
            }
            endings {
                an_ended_job_leaves_every_queue,
                an_ended_job_keeps_its_events_and_result,
                a_denied_submit_is_stored_as_ended,
                a_dead_job_leaves_one_letter_until_it_is_replayed,
                a_replay_that_is_denied_renews_the_letter,
                a_discarded_letter_is_found_only_among_the_discarded,
                events_are_numbered_without_gaps_over_lives,
                an_ended_job_changes_only_by_replay,
            }
            duties {
                a_question_to_people_is_owed_until_it_is_answered,
                a_question_lapses_when_its_time_is_over,
                a_scan_is_owed_until_it_is_done_before_and_after_the_end,
                owing_pages_go_on_after_a_sequence_number,
                a_refused_change_neither_begins_nor_ends_a_duty,
                a_duty_may_begin_and_end_within_one_call,
                duties_go_with_their_job,
            }
            children {
                a_child_is_born_only_while_its_parent_is_unchanged,
                a_family_tells_how_many_have_not_ended,
                a_look_at_a_family_names_the_latest_child_under_way,
                a_child_denied_at_birth_belongs_to_its_family,
                children_come_in_order_with_results_that_are_out,
                a_page_of_children_has_no_more_bytes_than_it_may,
                children_are_told_of_all_or_not_at_all,
                children_under_way_come_without_those_that_ended,
                the_list_of_jobs_is_narrowed_to_the_children_of_one,
                a_parent_that_waits_owes_it_until_its_barrier_opens,
                what_ended_badly_owes_its_children_an_end_until_they_have_one,
                a_child_is_kept_until_its_parent_has_ended,
                one_call_may_bring_a_wide_family,
            }
            outputs {
                a_held_result_is_kept_and_nobody_holds_its_job,
                a_held_result_comes_out_with_the_end,
                a_held_result_does_not_outlive_its_life,
                held_results_of_every_size_come_back,
                late_quarantine_and_release_keep_letters_and_totals_right,
                a_late_redaction_replaces_the_result,
                a_late_change_without_a_result_keeps_the_one_there,
                a_late_change_of_an_older_version_conflicts,
                a_late_change_does_not_move_the_end,
                a_new_life_has_no_result_of_the_one_before,
            }
            snapshots {
                the_builtin_policy_is_in_force_until_one_is_activated,
                an_activation_is_in_force_at_once,
                a_dispatch_under_another_policy_conflicts_and_its_neighbours_do_not,
                a_dispatch_under_other_pools_or_states_of_pools_conflicts,
                an_activation_with_a_stale_version_changes_nothing,
                an_activation_and_its_audit_row_are_one_commit,
                a_former_text_can_be_put_in_force_again,
                an_id_names_one_text_for_ever,
                texts_are_listed_by_their_latest_activation,
                concurrent_activations_of_one_version_have_one_winner,
            }
            trail {
                audit_rows_come_with_the_commit_they_are_about,
                a_refused_change_leaves_no_audit_row,
                audit_numbers_grow_and_pages_go_on_after_one,
                rows_without_a_commit_of_their_own_are_appended,
                blocks_seal_what_was_read_and_verify_when_read_again,
                a_block_is_added_only_on_the_head,
                concurrent_sealers_have_one_winner,
                pruning_spares_the_trail,
            }
            queues {
                ready_jobs_come_in_ready_order_by_lane,
                ready_pages_go_on_after_a_key,
                delayed_jobs_become_ready_when_due,
                due_has_only_jobs_that_had_to_wait,
                due_has_all_that_the_stores_clock_had_yet_to_reach,
                pending_jobs_wait_for_their_time,
                expired_has_live_jobs_past_their_deadline,
                expired_pages_go_on_after_a_key,
                held_has_the_jobs_of_one_session,
                a_job_waits_in_the_lane_that_its_latest_verdict_says,
            }
            damage {
                ready_jobs_are_read_past_a_spoilt_one,
                a_lane_is_known_although_its_head_is_spoilt,
                jobs_that_wait_for_a_time_are_read_past_a_spoilt_one,
                jobs_that_wait_for_a_verdict_are_read_past_a_spoilt_one,
                what_a_session_holds_is_read_past_a_spoilt_job,
                what_is_owed_is_read_past_a_spoilt_job,
                schedules_are_read_past_pages_of_spoilt_ones,
                lists_of_schedules_leave_spoilt_ones_out_and_a_call_that_names_one_is_told,
                news_are_read_past_pages_of_spoilt_jobs,
                lists_for_people_leave_a_spoilt_job_out,
                what_a_newer_version_wrote_is_read_and_kept,
                what_a_newer_version_decided_is_read_and_kept,
                whoever_names_a_spoilt_job_is_told,
            }
            listings {
                jobs_are_listed_newest_first_over_pages,
                each_filter_narrows_the_list,
                jobs_are_listed_by_labels_of_the_platform_and_by_trace,
                listed_jobs_have_no_payload,
                dead_letters_are_listed_newest_first_with_each_filter,
                a_limit_of_zero_still_moves_on,
                logs_are_kept_in_order_and_bounded,
                an_unknown_job_has_nothing,
            }
            sessions {
                an_edge_is_renewed_until_it_is_closed,
                an_edge_is_closed_only_after_its_grace,
                an_edge_is_closed_only_as_it_was_seen,
                nobody_attaches_to_an_edge_that_was_closed,
                every_attach_bumps_the_epoch,
                a_session_is_taken_up_again_only_by_its_owner,
                a_session_is_closed_once_and_by_its_epoch,
                an_open_session_shows_that_its_edge_was_closed,
                a_closed_session_is_listed_while_it_holds_jobs,
                a_session_that_was_sent_away_is_so_wherever_it_attaches,
                an_edge_that_never_renewed_is_closed_too,
                a_lease_has_one_holder,
                a_lease_that_lies_far_ahead_of_the_clock_is_free,
                an_edge_whose_lease_lies_far_ahead_of_the_clock_can_be_closed,
                a_released_lease_is_free_at_once,
                a_lease_is_renewed_under_the_same_epoch,
                leases_tell_who_holds_them_and_for_how_long,
            }
            upkeep {
                the_outbox_is_read_in_order_until_acknowledged,
                the_outbox_is_read_by_age_and_by_job,
                what_a_step_of_a_run_sends_out_is_in_its_commit,
                a_refused_change_leaves_no_outbox_row,
                pruning_takes_the_oldest_ends_first,
                pruning_spares_live_jobs_and_takes_all_that_belongs,
                pruned_sequence_numbers_are_not_used_again,
                a_pruned_job_does_not_take_its_outbox_along,
                closed_sessions_and_edges_are_forgotten_after_their_life,
                totals_follow_every_change,
                the_store_says_it_is_well,
            }
            runs_dags {
                versions_of_a_dag_count_from_one,
                the_latest_text_again_is_the_same_version,
                a_dag_belongs_to_its_tenant,
                concurrent_texts_get_versions_of_their_own,
                dags_are_listed_by_name_with_their_latest_version,
            }
            runs_steps {
                a_new_run_is_loaded_as_it_was_committed,
                runs_are_loaded_in_the_order_asked,
                a_step_replaces_the_head_and_writes_its_nodes_whole,
                run_since_has_the_nodes_that_changed_after_a_version,
                a_stale_step_leaves_nothing_and_its_neighbours_are_done,
                a_run_id_is_taken_once,
                one_call_may_take_several_steps_of_one_run,
                jobs_of_a_step_are_jobs_like_any_other,
                a_taken_job_id_refuses_the_whole_step,
                audit_rows_come_with_the_step,
                a_wide_step_is_written_whole,
                concurrent_steps_of_one_version_have_one_winner,
            }
            runs_keys {
                a_key_names_its_run_to_later_starts,
                a_key_of_a_run_is_free_after_its_life,
                a_key_of_a_run_is_free_when_the_run_was_pruned,
                a_refused_start_does_not_take_its_key,
                one_of_many_concurrent_starts_gets_the_key,
            }
            runs_memos {
                work_that_was_done_is_known_by_its_key,
                what_stands_for_earlier_work_makes_nothing_last_longer,
                what_is_held_back_stands_for_nothing,
                earlier_work_stands_only_under_the_policy_in_force,
                work_is_forgotten_with_its_job_and_its_tenant,
            }
            runs_news {
                every_end_of_a_job_is_told_to_its_run,
                a_job_denied_at_birth_is_told_to_its_run,
                a_refused_end_is_not_told,
                a_late_change_of_an_ended_job_is_told_again,
                work_that_was_done_late_is_told_with_its_result,
                what_was_heard_is_gone_and_the_rest_stays,
                news_come_in_order_and_within_the_limit,
                a_run_that_is_over_is_told_to_its_parent,
                runs_that_have_not_heard_are_found_by_the_age_of_their_news,
                a_saga_hears_of_its_jobs_from_their_birth_on,
                a_saga_is_found_by_its_news_before_it_has_begun,
                an_undo_that_people_are_asked_about_is_told_at_birth,
            }
            runs_lists {
                runs_are_listed_newest_first_over_pages,
                each_filter_narrows_the_list_of_runs,
                sagas_are_told_from_runs_of_dags,
                runs_wake_by_the_stores_own_clock,
                live_runs_are_paged_by_their_ids,
            }
            runs_upkeep {
                jobs_of_a_live_run_are_kept_until_it_is_over,
                a_run_is_pruned_with_all_that_belongs_to_it,
                a_run_inside_of_another_is_kept_until_that_is_over,
                whole_runs_are_pruned_oldest_first_within_the_limit,
                a_run_that_goes_on_again_is_not_pruned,
                news_of_a_run_that_is_gone_are_forgotten,
            }
            schedules_turns {
                a_new_schedule_is_loaded_as_it_was_committed,
                schedules_are_loaded_in_the_order_asked,
                a_turn_replaces_the_schedule_and_writes_its_slots,
                a_stale_turn_leaves_nothing_and_its_neighbours_are_done,
                a_name_is_taken_once_by_each_tenant,
                a_time_is_decided_once,
                one_call_may_take_several_turns_of_one_schedule,
                a_schedule_that_goes_leaves_its_slots,
                many_turns_are_written_at_once,
                concurrent_turns_of_one_version_have_one_winner,
                concurrent_schedules_of_one_name_have_one_winner,
            }
            schedules_lists {
                schedules_are_listed_by_name,
                schedules_wake_by_the_stores_own_clock,
                slots_are_listed_latest_time_first_over_pages,
                a_page_goes_on_below_a_slot_that_is_gone,
                slots_are_pruned_oldest_decision_first_within_the_limit,
                a_pruned_time_can_be_decided_again,
            }
            credentials {
                a_new_credential_is_found_as_it_was_added,
                an_id_of_a_credential_is_taken_once,
                one_of_many_concurrent_credentials_gets_the_id,
                a_credential_never_lives_longer_again,
                what_is_not_there_cannot_be_ended,
                concurrent_ends_keep_the_earliest,
                a_credential_is_ended_only_while_the_one_it_is_given_goes_on,
                of_two_credentials_that_end_each_given_the_other_one_stays,
                credentials_are_listed_by_id_and_kept_for_ever,
            }
            tenants {
                usage_follows_every_change_of_a_job,
                a_result_counts_as_it_is_kept_now,
                what_is_refused_does_not_count,
                runs_count_until_they_are_over,
                tenants_are_listed_by_name_with_what_they_take,
                usage_is_exact_when_many_write_at_once,
            }
            tenants_erased {
                erasing_takes_all_of_one_tenant_and_nothing_of_another,
                an_erased_tenant_may_begin_anew,
                erasing_spares_what_goes_on_and_counts_it,
                erasing_goes_on_call_by_call,
                erasing_is_told_once_and_the_chain_still_verifies,
                what_was_pruned_while_erasing_is_told_too,
            }
            timelines {
                tokens_of_another_timeline_do_not_count,
                the_lost_attempt_of_another_timeline_does_not_count_either,
                nothing_is_renewed_while_somebody_is_at_work,
                a_long_list_of_jobs_is_renewed_to_its_end,
            }
            tries {
                nothing_is_kept_before_something_was,
                the_text_that_was_kept_last_is_read,
            }
        }
    };
    (@tests $harness:tt $($group:ident { $($case:ident,)* })*) => {
        $($crate::store_conformance! { @group $harness $group { $($case,)* } })*
    };
    (@group [$harness:expr] $group:ident { $($case:ident,)* }) => {
        $crate::store_conformance! { @each $group $($case [$harness])* }
    };
    (@each $group:ident $($case:ident [$harness:expr])*) => {
        mod $group {
            $(#[tokio::test]
            async fn $case() -> $crate::store::Proof {
                $crate::store::$group::$case(&$harness).await
            })*
        }
    };
}

/// Random sequences of decisions leave the adapter behind `$harness` and the memory Store in the same state.
#[macro_export]
macro_rules! store_agrees_with_memory {
    ($harness:ident, cases: $cases:expr) => {
        $crate::store_agrees_with_memory! { @with (|| std::future::ready($harness())), $cases }
    };
    (async $harness:ident, cases: $cases:expr) => {
        $crate::store_agrees_with_memory! { @with $harness, $cases }
    };
    (@with $harness:expr, $cases:expr) => {
        ::proptest::proptest! {
            #![proptest_config(::proptest::prelude::ProptestConfig { failure_persistence: None, ..::proptest::prelude::ProptestConfig::with_cases($cases) })]
            #[test]
            fn random_decisions_leave_the_same_store(words in ::proptest::collection::vec(::proptest::prelude::any::<u64>(), 1..250)) {
                $crate::store::agrees_with_memory($harness, &words);
            }
        }
    };
}
