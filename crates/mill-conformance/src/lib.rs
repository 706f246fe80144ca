//! What every engine must do, as tests that run over any engine. It is used by tests only.
//!
//! An engine's test implements [`Testbed`] and runs all behaviours, one `#[test]` each, by one line:
//!
//! ```text
//! mill_conformance::conformance!(crate::server::Kernel);
//! ```
//!
//! Worker and peers share the test's thread: a peer acts, the worker turns until what is expected has happened. Nothing
//! polls a task but the engine's own reports, so that a lost one fails the test.
//!
//! Invariants:
//! - A behaviour that is not in the list below is unused code, which the compiler reports: none gets lost.
//! - No behaviour sleeps or measures time; [`Testbed::TIMEOUT`] only ends a test that waits for something lost.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in the functions that it calls as well"
)]

/// The worker that a behaviour runs, the servers on it, and what an engine has to bring for that.
pub mod server;

/// The other end of a connection, and what it expects.
pub mod client;

/// Peers that are streams of another engine of the same kind.
pub mod stream_peer;

/// What servers do with a connection.
pub mod serving;

/// A server that connects.
pub mod connector;

/// What tasks tell the test, in order.
pub mod story;

/// What caches must do, as cases.
pub mod caching;

/// Bytes that streams carry.
pub mod content;

/// Reading: splits, contiguous bytes, what is left unread.
mod reading;

/// Writing: order, gathering, slow readers, fairness.
mod writing;

/// Files that are sent.
mod file_payloads;

/// FIN and RST, both ways.
mod ending;

/// A stream goes from one task to another.
mod handing_over;

/// Sockets of datagrams: batches, local address, ECN, segments, errors, readiness, bounded queues.
mod datagrams;

/// Accepting: pauses, limits, clients that are gone, and the end of it.
mod accepting;

pub use client::{Client, End, Peer};
pub use server::{Around, Directory, Listener, Server, Task, Testbed};

/// Makes [`conformance!`], which is the list of all behaviours with a `#[test]` each.
macro_rules! behaviours {
    ($dollar:tt $($group:ident { $($name:ident,)* })*) => {
        /// The behaviours, by group: functions that take the testbed as their type parameter.
        pub mod behaviours {
            $(pub mod $group {
                pub use crate::$group::{$($name),*};
            })*
        }

        /// Runs all behaviours over a [`Testbed`], which is named by a path that is valid everywhere in the crate.
        #[macro_export]
        macro_rules! conformance {
            ($dollar testbed:ty) => {
                $(mod $group {
                    $(#[test]
                    fn $name() {
                        $crate::behaviours::$group::$name::<$dollar testbed>();
                    })*
                })*
            };
        }
    };
}

behaviours! { $
    reading {
        a_message_split_at_every_byte_is_read_whole,
        each_byte_in_a_segment_of_its_own_makes_the_same_answer,
        several_segments_are_lent_in_one_piece,
        what_is_left_is_kept_over_turns_and_over_the_reads_of_others,
        a_long_content_is_read_whole_though_it_is_asked_for_at_once,
        bytes_that_are_given_away_stay_what_they_are,
        bytes_that_come_between_a_short_receive_and_the_wait_are_seen,
        fin_that_comes_with_the_last_bytes_is_seen_after_a_short_receive,
        a_task_that_waits_for_nothing_is_ready_at_once_and_reads_nothing,
    }
    writing {
        ten_megabytes_of_all_kinds_pass_small_buffers_whole_and_in_order,
        small_writes_leave_in_one_segment_even_when_the_task_waits_for_something_else,
        what_was_handed_over_is_sent_while_the_task_waits_for_the_peer,
        what_was_handed_over_is_sent_while_the_task_sleeps,
        what_remains_below_the_bound_that_was_waited_for_is_sent_too,
        a_fin_that_is_due_follows_the_queue_though_no_task_waits_for_it,
        queued_and_sent_tell_how_far_it_is,
        a_long_send_leaves_the_others_their_turns,
        gathered_bytes_of_several_connections_do_not_mix,
        some_of_much_is_taken_again_and_again_and_little_of_it_is_queued,
        a_range_outside_its_bytes_breaks_the_stream_and_not_the_engine,
    }
    file_payloads {
        a_range_of_a_file_arrives_whole,
        a_file_that_was_shorter_than_promised_resets_the_stream,
        a_file_that_shrinks_while_it_is_sent_resets_the_stream,
        a_task_that_waits_for_its_peer_is_told_that_the_file_was_too_short,
        a_file_that_is_replaced_and_removed_is_sent_as_it_was,
        ranges_beyond_what_a_file_can_be_fail,
        what_cannot_be_sent_as_a_file_fails,
    }
    ending {
        fin_of_the_client_leaves_the_servers_direction_open,
        shutdown_sends_fin_and_reading_goes_on,
        rst_of_the_client_wakes_the_task_that_waits,
        bytes_that_came_before_a_reset_are_to_be_had_although_writing_failed,
        a_reset_is_known_before_what_came_earlier_is_read,
        reset_on_close_is_seen_as_a_reset,
        what_was_gathered_leaves_before_the_stream_closes,
        a_worker_that_is_dropped_ends_its_connections,
        tcp_tells_what_it_measured,
    }
    handing_over {
        a_stream_wakes_the_task_that_it_was_handed_to_and_no_longer_the_former_one,
        what_arrived_before_the_hand_over_is_there_for_the_new_task,
        a_queue_that_empties_wakes_the_new_task,
        a_task_that_waits_for_a_reset_stream_learns_of_it_after_the_hand_over,
        what_is_written_in_the_turn_of_the_hand_over_leaves_whole,
    }
    datagrams {
        a_datagram_wakes_the_task_that_waits_and_is_echoed,
        batches_keep_their_order,
        a_wildcard_socket_knows_where_each_datagram_came_to_and_answers_from_there,
        ecn_bits_arrive_as_they_were_sent,
        a_segmented_send_arrives_as_separate_datagrams,
        what_is_too_large_is_an_error_and_what_stands_around_it_is_sent,
        an_unreachable_port_refuses_a_socket_with_a_peer_which_goes_on,
        a_receive_queue_is_bounded_and_counts_what_it_drops,
        a_sender_that_outruns_the_network_waits_for_room,
        a_socket_that_is_handed_over_wakes_the_new_task_and_no_longer_the_former_one,
        an_address_in_use_is_an_error,
    }
    accepting {
        a_listener_that_pauses_accepts_nothing_until_it_goes_on,
        at_the_limit_of_tasks_connections_wait_for_the_first_task_that_ends,
        closing_a_listener_accepts_what_waits,
        a_client_that_is_gone_before_it_was_accepted_does_no_harm,
    }
}
