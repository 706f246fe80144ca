//! The checks, one function a subject. A subject without evidence has no check.

use super::check::Check;
use super::evidence::Evidence;
use super::steadiness::{drift, spread};
use super::thresholds::{Subject, Thresholds};
use super::{Level, VerdictKind};
use crate::failure::FailureKind;
use crate::native::units;
use crate::plan::{Life, Pace};
use crate::platform::ThreadCpu;
use crate::silence::{total, words};

/// All checks for which there is evidence, in the order of reports.
pub(super) fn all(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Vec<Check> {
    let checks: [fn(&Evidence<'_>, &Thresholds) -> Option<Check>; 20] = [
        silence,
        lost,
        answers,
        duration,
        errors,
        error_statuses,
        connections,
        late_sends,
        rate,
        sizes,
        steal,
        other_cpu,
        client_cpu,
        preemptions,
        link,
        retransmissions,
        listen_overflows,
        rate_spread,
        rate_drift,
        server_cpu,
    ];
    checks
        .iter()
        .filter_map(|check| check(evidence, thresholds))
        .collect()
}

type Checked = Option<Check>;

/// Comes first: if it fails, it explains all other failures.
fn silence(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let silences = evidence.silences;
    let share = total(silences).as_secs_f64() / evidence.measured.as_secs_f64().max(f64::EPSILON);
    let seen = words(silences, evidence.measured)
        .unwrap_or_else(|| String::from("answers came all the time"));
    Some(Check::compare(
        thresholds.of(Subject::Silence),
        (share * 100.0).min(100.0),
        VerdictKind::Invalid,
        &seen,
        "the server had ended, hung or stood still, or could not be reached, and the figures are of the rest; look at its log and repeat the run",
    ))
}

fn lost(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let figure = evidence.lost_share() * 100.0;
    let hanging = evidence.tally.hanging;
    let still = match hanging {
        0 => String::new(),
        1 => String::from("; 1 request still hung at the end"),
        _ => format!("; {hanging} requests still hung at the end"),
    };
    Some(Check::compare(
        thresholds.of(Subject::Lost),
        figure,
        VerdictKind::Invalid,
        &format!(
            "connections could not be served for {figure:.1} % of their time, because requests failed or were never answered{still}"
        ),
        "the load was less than the one asked for; look at the failures and at the server's limits",
    ))
}

fn answers(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let answered = evidence.tally.answered;
    Some(Check::compare(
        thresholds.of(Subject::Answers),
        answered as f64,
        VerdictKind::Invalid,
        &format!("{answered} requests were answered"),
        "too few for the 99th percentile to mean something; run longer, and look at the errors",
    ))
}

fn duration(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let seconds = evidence.measured.as_secs_f64();
    let interrupted = if evidence.interrupted {
        ", until it was interrupted"
    } else {
        ""
    };
    let of_search = if evidence.is_of_search {
        " in the trial that confirms what the search found"
    } else {
        ""
    };
    Some(Check::compare(
        thresholds.of(Subject::Duration),
        seconds,
        VerdictKind::Invalid,
        &format!("{seconds:.2} s were measured{of_search}{interrupted}"),
        "too short to tell a steady state; run longer",
    ))
}

fn errors(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let tally = evidence.tally;
    let failed = tally.failed();
    let mut seen = format!("{failed} of {} requests failed", tally.started);
    let kinds: Vec<String> = FailureKind::ALL
        .iter()
        .map(|kind| (kind.name(), tally.failures_of(*kind)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !kinds.is_empty() {
        seen = format!("{seen} ({})", kinds.join(", "));
    }
    Some(Check::compare(
        thresholds.of(Subject::Errors),
        percent(failed, tally.started),
        VerdictKind::Invalid,
        &seen,
        "the figures are of those that did not; find the cause, or use fewer connections or a lower rate",
    ))
}

fn error_statuses(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let tally = evidence.tally;
    let bad = tally.statuses_bad;
    Some(Check::compare(
        thresholds.of(Subject::ErrorStatuses),
        percent(bad, tally.answered),
        VerdictKind::Invalid,
        &format!("{bad} answers had a status of 400 or more"),
        "what was measured are error pages; check the URL, the server's log and its limits",
    ))
}

/// Persistent connections are counted by the number open at a time, others by successful attempts.
fn connections(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let (plan, tally) = (evidence.plan, evidence.tally);
    let wanted = u64::from(plan.connections);
    let stay = plan.life == Life::Unlimited;
    // With fewer requests than connections some are never opened; a server that closes turns one into many.
    let needed = plan.stop.requests.is_none_or(|requests| requests >= wanted);
    let kept = tally.connects <= wanted + tally.failed();
    let failed: u64 = FailureKind::ALL
        .iter()
        .filter(|kind| kind.is_connecting())
        .map(|kind| tally.failures_of(*kind))
        .sum();
    let (achieved, requested, words) = if stay && needed && kept {
        (tally.open_max, wanted, "connections were open at a time")
    } else {
        let attempts = tally.connected + failed;
        (tally.connected, attempts, "attempts to connect succeeded")
    };
    if requested == 0 {
        return None;
    }
    Some(Check::compare(
        thresholds.of(Subject::Connections),
        percent(achieved, requested).min(100.0),
        VerdictKind::Invalid,
        &format!("{achieved} of {requested} {words}"),
        "the load was not the one asked for; check ulimit -n, the source ports, and the server's backlog and limits",
    ))
}

fn late_sends(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    if !evidence.has_schedule() {
        return None;
    }
    let tally = evidence.tally;
    let late = tally.late_1ms.saturating_sub(tally.waited_1ms);
    Some(Check::compare(
        thresholds.of(Subject::LateSends),
        percent(late, evidence.due()),
        VerdictKind::Invalid,
        &format!("{late} requests began more than 1 ms late although a connection was idle"),
        "the client did not keep time; use more threads or a lower rate, and keep other work off its CPUs",
    ))
}

/// Achieved and offered rate. A client that sends in time still does not achieve a rate whose answers pile up.
fn rate(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let tally = evidence.tally;
    let seconds = evidence.measured.as_secs_f64();
    let offered = match evidence.plan.pace {
        Pace::Closed { .. } => return None,
        Pace::Open { .. } => evidence.due() as f64,
        Pace::Each { rate } => evidence
            .plan
            .stop
            .requests
            .map_or(f64::INFINITY, |requests| requests as f64)
            .min(rate * seconds),
    };
    if offered <= 0.0 {
        return None;
    }
    let backlog = backlog(evidence);
    let achieved = (tally.started as f64 - backlog).max(0.0);
    let figure = (achieved / offered * 100.0).min(100.0);
    let cpu = thresholds.of(Subject::ClientCpu);
    let client = evidence
        .busiest_thread()
        .is_some_and(|share| cpu.level(share * 100.0) == Level::Fail);
    let word = if client {
        VerdictKind::ClientBound
    } else {
        VerdictKind::ServerBound
    };
    let advice = if client {
        "the client's threads were busy; use more threads or more processes"
    } else if tally.waited_1ms + tally.never_started > 0 {
        "all connections waited for answers; the server can't do more, or more connections are needed"
    } else {
        "answers came more slowly than requests were sent; the server can't do more"
    };
    Some(Check::compare(
        thresholds.of(Subject::Rate),
        figure,
        word,
        &format!("{figure:.2} % of the rate asked for was achieved"),
        advice,
    ))
}

/// Requests in progress at the end beyond those of a steady state: by Little's law (1961) rate × time. Half as much
/// again is allowed, and the random variation of a small number.
fn backlog(evidence: &Evidence<'_>) -> f64 {
    let seconds = evidence.measured.as_secs_f64();
    let Some(time) = evidence.mean_time.filter(|_| seconds > 0.0) else {
        return 0.0;
    };
    let steady = evidence.tally.answered as f64 / seconds * time.as_secs_f64();
    let allowed = 1.5 * steady + 3.0 * steady.sqrt() + 1.0;
    (evidence.tally.unfinished() as f64 - allowed).max(0.0)
}

fn sizes(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let differing = evidence.differing_sizes?;
    Some(Check::compare(
        thresholds.of(Subject::Sizes),
        percent(differing, evidence.tally.answered),
        VerdictKind::Invalid,
        &format!("{differing} answers differed in status or length from the first"),
        "the same request had different answers; if that is meant, raise the threshold sizes",
    ))
}

fn steal(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let figure = evidence.machine.steal? * 100.0;
    Some(Check::compare(
        thresholds.of(Subject::Steal),
        figure,
        VerdictKind::Invalid,
        &format!("{figure:.1} % of the CPU time went to other guests of the host"),
        "the machine was not ours alone; repeat the run",
    ))
}

fn other_cpu(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let figure = evidence.other_cpu()? * 100.0;
    Some(Check::compare(
        thresholds.of(Subject::OtherCpu),
        figure,
        VerdictKind::Invalid,
        &format!(
            "{figure:.0} % of this machine's CPU time went to programs other than the load generator and the server"
        ),
        "end them, or give the run CPUs of its own, and repeat it",
    ))
}

fn client_cpu(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let figure = evidence.busiest_thread()? * 100.0;
    Some(Check::compare(
        thresholds.of(Subject::ClientCpu),
        figure,
        VerdictKind::ClientBound,
        &format!("the client's busiest thread used {figure:.0} % of a CPU"),
        "what was measured is the client; use more threads, more processes or another machine",
    ))
}

fn preemptions(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let per_second = |cpu: &ThreadCpu| {
        let wall = cpu.wall.as_secs_f64();
        (wall > 0.0).then(|| cpu.involuntary_switches as f64 / wall)
    };
    let figure = evidence
        .machine
        .threads
        .iter()
        .filter_map(per_second)
        .reduce(f64::max)?;
    Some(Check::compare(
        thresholds.of(Subject::Preemptions),
        figure,
        VerdictKind::ClientBound,
        &format!("a client's thread was put aside {figure:.0} times a second"),
        "something else wanted its CPU; give client and server CPUs of their own",
    ))
}

fn link(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let link = evidence.machine.link_use.as_ref()?;
    let figure = link.share? * 100.0;
    Some(Check::compare(
        thresholds.of(Subject::Link),
        figure,
        VerdictKind::LinkBound,
        &format!(
            "{figure:.0} % of what {} can carry was used",
            link.interface
        ),
        "the link is the limit; use a faster one, or smaller answers",
    ))
}

/// Segments are also retransmitted because a queue of connections is full; that has a check of its own.
fn retransmissions(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let machine = evidence.machine;
    let (again, sent) = (machine.retransmitted_segments?, machine.sent_segments?);
    let check = Check::compare(
        thresholds.of(Subject::Retransmissions),
        percent(again, sent),
        VerdictKind::LinkBound,
        &format!("{again} of {sent} segments were sent again"),
        "the path loses segments; look at the interface's drops, and at the switches between",
    );
    let overflowed = machine.listen_overflows.is_some_and(|count| count > 0);
    Some(if overflowed {
        check.at_most_warn()
    } else {
        check
    })
}

fn listen_overflows(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let refused = evidence.machine.listen_overflows?;
    Some(Check::compare(
        thresholds.of(Subject::ListenOverflows),
        percent(refused, evidence.tally.connects.max(refused)),
        VerdictKind::ServerBound,
        &format!("{refused} connections found the server's queue full"),
        "the server accepts too slowly or its queue is short; raise its backlog and net.core.somaxconn",
    ))
}

fn rate_spread(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let figure = spread(evidence.answers)? * 100.0;
    Some(Check::compare(
        thresholds.of(Subject::RateSpread),
        figure,
        VerdictKind::Unstable,
        &format!("the rate varied by {figure:.1} % from interval to interval"),
        "a mean says little about it; look at the time series for stalls, and at other work on the machines",
    ))
}

fn rate_drift(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let drift = drift(evidence.answers)?;
    let figure = drift.change() * 100.0;
    let threshold = thresholds.of(Subject::RateDrift);
    let verb = if drift.to < drift.from {
        "fell"
    } else {
        "rose"
    };
    let interval = evidence.plan.interval.as_secs_f64().max(f64::MIN_POSITIVE);
    let [from, to] = [drift.from, drift.to].map(|count| units::rate(count / interval));
    let seen = format!("the rate {verb} from {from} to {to} over the run");
    Some(if drift.is_significant {
        let advice = "it was no steady state; warm up longer, or find out what fills up";
        Check::compare(threshold, figure, VerdictKind::Unstable, &seen, advice)
    } else {
        let mut check = Check::compare(threshold, 0.0, None, &seen, "");
        check.advice = format!("{seen}, which chance explains.");
        check.figure = figure;
        check
    })
}

/// Reported, not judged: a busy server is the aim of a run.
fn server_cpu(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Checked {
    let server = evidence.machine.server.as_ref()?;
    let figure = server.busiest_thread * 100.0;
    let threshold = thresholds.of(Subject::ServerCpu);
    Some(Check {
        name: threshold.name,
        figure,
        unit: threshold.unit,
        threshold: threshold.fail,
        level: Level::Ok,
        advice: format!(
            "the busiest thread of {} (process {}) used {figure:.0} % of a CPU.",
            server.command, server.process
        ),
        means: None,
    })
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64 * 100.0
}
