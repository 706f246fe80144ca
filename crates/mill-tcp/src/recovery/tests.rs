//! The transitions of recovery, each as a value in and a value out.

use super::*;

const NXT: SeqNumber = SeqNumber(10_000);

fn in_recovery() -> Recovery {
    let mut recovery = Recovery::default();
    recovery.enter_recovery(NXT);
    recovery
}

#[test]
fn a_phase_is_over_when_all_that_was_sent_before_it_is_acknowledged() {
    let recovery = in_recovery();
    assert_eq!(recovery.phase(), Phase::Recovery);
    assert!(!recovery.is_over(NXT - 1) && recovery.is_over(NXT));
    assert!(!recovery.has_sent_since(NXT) && recovery.has_sent_since(NXT + 1));
}

/// RFC 5681 3.1.
#[test]
fn a_timeout_is_a_new_loss_once_a_window_of_data() {
    let mut recovery = Recovery::default();
    assert!(recovery.is_new_loss(NXT - 500, 0));
    recovery.enter_loss(NXT, true);
    assert!(!recovery.is_new_loss(NXT - 500, 1));
    // Something was acknowledged meanwhile.
    assert!(recovery.is_new_loss(NXT - 400, 0));
    assert!(recovery.is_new_loss(NXT, 1));
    // The losses that fast recovery repairs are those that the timeout finds again.
    assert!(!in_recovery().is_new_loss(NXT - 500, 0));
}

#[test]
fn a_timeout_ends_whatever_else_was_concluded() {
    let mut recovery = in_recovery();
    recovery.on_loss_probe_timer();
    recovery.enter_loss(NXT + 1, false);
    assert_eq!(recovery.phase(), Phase::Loss);
    assert!(recovery.is_calm() && !recovery.is_loss_probe_due());
    assert_eq!(recovery.duplicates.count(), 0);
    recovery.enter_loss(NXT + 1, true);
    assert_eq!(recovery.frto, Frto::FirstAck);
    assert!(!recovery.is_calm() && !recovery.is_frto_sending());
}

#[test]
fn what_is_lost_by_its_size_can_not_be_undone_and_makes_no_timeout_spurious() {
    let mut recovery = Recovery::default();
    recovery.enter_loss_by_size(NXT);
    assert_eq!((recovery.phase(), recovery.frto), (Phase::Loss, Frto::Off));
    assert!(!recovery.is_idle() && !recovery.is_reducing());
    recovery.leave();
    assert!(recovery.is_idle());
}

/// As Linux does: repairing losses takes time, which counts from the last progress.
#[test]
fn what_was_sent_again_stalls_since_it_was_sent_first_or_since_the_last_progress() {
    let mut recovery = Recovery::default();
    recovery.on_front_resent(Moment(10));
    recovery.on_front_resent(Moment(20));
    assert_eq!(recovery.stalled_since(), Some(Moment(10)));
    recovery.on_progress(false, Moment(30));
    assert_eq!(recovery.stalled_since(), Some(Moment(30)));
    recovery.on_progress(true, Moment(40));
    assert_eq!(recovery.stalled_since(), None);
}

#[test]
fn rttvar_may_fall_once_a_round_trip() {
    let mut recovery = Recovery::default();
    assert!(recovery.begins_rtt_round(NXT - 500, NXT));
    assert!(!recovery.begins_rtt_round(NXT, NXT + 500));
    assert!(recovery.begins_rtt_round(NXT + 1, NXT + 500));
    assert!(!recovery.begins_rtt_round(NXT + 500, NXT + 900));
}
