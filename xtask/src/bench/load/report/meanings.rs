//! What the columns mean, so that a page can be read alone.

use super::Report;
use crate::bench::accounting::SoftirqAccount;
use crate::bench::load::accuracy::Delays;
use crate::bench::load::case::CONCURRENCY;
use crate::bench::load::precision::RATE;

pub(super) fn lines(report: &Report) -> Vec<String> {
    let seconds = report.seconds;
    let mut lines = speed(report, seconds);
    lines.extend([
        format!(
            "An open loop's times: `millstream load --rate {RATE} -c{CONCURRENCY} -t1 --spin 200us` for {} s. in 50 µs, in \
             1 ms: share of the requests that were due which began no later than that; what was never \
             begun counts as late. lateness: how much later than due.",
            5 * seconds
        ),
        format!(
            "Known delays: `millstream load respond --delay`, {CONCURRENCY} connections, {} requests/s ({} \
             with the stall) for the open loop and wrk2; the others ask as fast as they are answered. \
             told: the client's figure; true: what the responder wrote down of the delays it gave in the \
             same run, and with the stall what users who come at that rate wait, computed from rate, \
             delay and stall. worst: the largest error up to p99.9.",
            Delays::Constant.rate(),
            Delays::Stall.rate()
        ),
        "What is true of a run depends on its load: with the stall the true figures are those of the \
         given rate, which closed loops do not keep; how far off they are is the point."
            .to_owned(),
        "Verdicts: the word that `millstream load` ends in; expected: what the situation was made for."
            .to_owned(),
        "A dash stands for what a client does not tell.".to_owned(),
    ]);
    lines
}

fn speed(report: &Report, seconds: u64) -> Vec<String> {
    let softirq = match report.softirq_account {
        SoftirqAccount::InTask => "The network stack's work in softirqs is in it",
        SoftirqAccount::Apart => "The network stack's work in softirqs was added",
        SoftirqAccount::Unknown => {
            "Whether the network stack's work in softirqs is in it could not be found out"
        }
    };
    vec![
        format!(
            "Speed: {CONCURRENCY} connections and one thread, a fresh server (`{}`) for each block of {seconds} \
             s; the clients take turns, forth and back. Figures are medians of the blocks. How many answers \
             came was checked by their bytes.",
            report.server.name()
        ),
        "requests/s: answers by the time that the client gives for its run.".to_owned(),
        format!(
            "CPU µs: run time of all threads of the client, user and system, from outside (schedstat), by \
             answers: with its start, connecting, and what it does after the last answer (ab sorts); only \
             its last 5 ms may be missing. {softirq}; on loopback a sender does the receiver's share of it."
        ),
        "p50, p99: milliseconds as the client tells them, which mean different things: ab's and ours \
         include connecting, wrk's do not."
            .to_owned(),
        "calls: system calls per request, by strace, a run of one second taken off one of two.".to_owned(),
        "busy: share of the time in which client and server ran or wanted to; bound: which of them could \
         do no more. requests/s compare clients only where the client is the bound; CPU µs always do."
            .to_owned(),
        "Ratios: our figure by that of the neighbouring block, geometric mean with the 95 % interval by \
         Student's t on the logarithms. A target is open when it lies inside."
            .to_owned(),
    ]
}
