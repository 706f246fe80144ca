//! Whether what was found is as the plan says.

use super::orphans::Orphans;
use super::{Actors, Failure};
use crate::plain_tcp::application::Finding;
use crate::plain_tcp::host::PlainHost;
use crate::plan::{Leave, PlainPlan, Plan};
use crate::talk::{Client, Problem, Report};
use mill_runtime::time::Duration;

/// Talks that wait for ever for a server that has given up: so many connections stay.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By client.
    clients: Vec<usize>,
    pub(super) plain: usize,
}

impl Waiting {
    /// Those of a station's host.
    pub(super) fn of_station(&self, station: usize) -> usize {
        let client = station.checked_sub(2);
        let count = client.and_then(|client| self.clients.get(client));
        count.map_or(0, |count| *count)
    }
}

/// Whether all have come to an end, and what they found is as the plan says.
pub(super) fn judge(plan: &Plan, actors: &Actors, orphans: &Orphans, failures: &mut Vec<Failure>) {
    look_for_stuck(plan, actors, orphans, failures);
    judge_clients(plan, actors, orphans, failures);
    if let Some(plain) = &actors.plain {
        judge_plain(plan, plain, orphans, failures);
    }
}

/// Those of a world that has ended.
pub(super) fn waiting(plan: &Plan, actors: &Actors, orphans: &Orphans) -> Waiting {
    let mut waiting = Waiting::default();
    for actor in &actors.clients {
        let client = &actor.client;
        let open = open_talks(plan, client);
        // Of a host that has vanished nothing is asked for any more.
        let count = if plan.vanishes(client.index + 2) {
            0
        } else {
            open.filter(|talk| orphans.has_talk(plan, client, *talk))
                .count()
        };
        waiting.clients.push(count);
    }
    if let Some(plain) = &actors.plain {
        let open = plain_open_talks(plain);
        let given_up = open.filter(|number| orphans.has_plain_talk(plan, plain, *number));
        waiting.plain = given_up.count();
    }
    waiting
}

/// Talks that have not come to an end.
fn open_talks(plan: &Plan, client: &Client) -> impl Iterator<Item = usize> {
    let count = plan.talks[client.index].len();
    let reports = client.reports.borrow();
    let ended: Vec<_> = reports.iter().map(|report| report.talk).collect();
    (0..count).filter(move |talk| !ended.contains(talk))
}

fn plain_open_talks(host: &PlainHost) -> impl Iterator<Item = usize> {
    let findings = host.findings().into_iter();
    let open = findings.filter(|(_, finding)| *finding == Finding::Open);
    open.map(|(number, _)| number)
}

fn look_for_stuck(plan: &Plan, actors: &Actors, orphans: &Orphans, failures: &mut Vec<Failure>) {
    let waiting = waiting(plan, actors, orphans);
    for actor in &actors.clients {
        let client = actor.client.index;
        let tasks = actor.tasks - waiting.of_station(client + 2).min(actor.tasks);
        if tasks > 0 && !plan.vanishes(client + 2) {
            failures.push(Failure::Stuck { client, tasks });
        }
    }
    if let Some(load) = &actors.load {
        failures.push(Failure::Load(format!("stuck: {load:?}")));
    }
    let plain = actors.plain.as_ref();
    if let Some(plain) = plain.filter(|it| it.unfinished() > waiting.plain) {
        failures.push(Failure::Plain(format!("stuck: {}", plain.describe())));
    }
}

fn judge_clients(plan: &Plan, actors: &Actors, orphans: &Orphans, failures: &mut Vec<Failure>) {
    for actor in &actors.clients {
        let station = actor.client.index + 2;
        for report in actor.client.reports.borrow().iter() {
            let is_cut = matches!(
                report.result,
                Err(Problem::Refused(_) | Problem::Broken { .. } | Problem::Short { .. })
            );
            let is_given_up = is_cut && orphans.has_talk(plan, &actor.client, report.talk);
            if !is_given_up && !is_as_planned(plan, station, report) {
                failures.push(Failure::Talk(report.to_string()));
            }
            let longest = longest(plan, station, report);
            let is_timed = plan.is_faithful(station) && plan.is_ample();
            let is_for_plain = plan.talks[report.client][report.talk].is_for_plain;
            if is_timed && !is_for_plain && report.took > longest {
                failures.push(Failure::Slow(format!("{report}, more than {longest:?}")));
            }
        }
    }
}

/// Whether what the other TCP's clients found is as the plan says.
fn judge_plain(plan: &Plan, host: &PlainHost, orphans: &Orphans, failures: &mut Vec<Failure>) {
    let is_faithful = plan.plain.as_ref().is_none_or(PlainPlan::is_faithful);
    let talks = plan.plain.as_ref().map_or(&[][..], |plain| &plain.talks);
    for (number, finding) in host.findings() {
        let habits = &talks[number].habits;
        let is_patient = habits.is_patient();
        // What follows data that the SYN carried in vain is out of order, too.
        let is_in_order = is_faithful && !habits.data_with_syn;
        let is_as_planned = match &finding {
            Finding::Whole => true,
            Finding::Refused(_) if plan.may_refuse(is_in_order) => true,
            Finding::Refused(_) | Finding::Broken(_) => {
                plan.settings.limits_time && !(is_faithful && is_patient && plan.is_ample())
            }
            Finding::Open | Finding::Wrong(_) => false,
        };
        let is_given_up =
            !matches!(finding, Finding::Wrong(_)) && orphans.has_plain_talk(plan, host, number);
        if !is_given_up && !is_as_planned {
            failures.push(Failure::Plain(format!("talk {number}: {finding:?}")));
        }
    }
}

fn is_as_planned(plan: &Plan, station: usize, report: &Report) -> bool {
    match &report.result {
        Ok(()) => true,
        Err(Problem::WrongByte { .. } | Problem::Surplus | Problem::WrongHash) => false,
        // A host that has vanished notices only that its peer is silent; a client that ends early may have been left.
        Err(problem) => {
            let is_for_plain = plan.talks[report.client][report.talk].is_for_plain;
            let is_refused = matches!(problem, Problem::Connect(_) | Problem::Refused(_));
            plan.vanishes(station)
                || plan.may_break(station, is_for_plain)
                || is_refused && !is_for_plain && plan.may_refuse(plan.is_faithful(station))
        }
    }
}

/// Virtual time that a talk may take on a faithful wire: generous, so that only what stands still is found.
fn longest(plan: &Plan, station: usize, report: &Report) -> Duration {
    let wires = &plan.stations[station];
    let rtt = wires.outward.delay + wires.inward.delay + wires.outward.jitter + wires.inward.jitter;
    let talk = &plan.talks[report.client][report.talk];
    let rates = [wires.outward.bits_per_second, wires.inward.bits_per_second];
    let rate = rates.into_iter().flatten().min();
    let all: usize = plan.talks[report.client]
        .iter()
        .map(|it| it.what.bytes())
        .sum();
    let sending = rate.map_or(Duration::ZERO, |rate| {
        Duration::from_nanos(all as u64 * 8 * 1_000_000_000 / rate)
    });
    // The smallest window of a plan, once in each round trip and the longest delay of an acknowledgement (a buffer of
    // less than two segments waits for it); and many round trips for each connection's beginning.
    let rtt = rtt + LONGEST_DELAYED_ACK;
    let windows = u32::try_from(talk.what.bytes() / SMALLEST_WINDOW_BYTES).unwrap_or(u32::MAX);
    let early = if talk.leaves == Leave::Whole { 1 } else { 2 };
    (Duration::from_secs(20) + sending * 5 + rtt * (windows + 200) + talk.pause * 3) * early
}

/// The longest that a plan has.
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// Bytes: the least receive buffer that a plan has, less what segments leave unused.
const SMALLEST_WINDOW_BYTES: usize = 1_400;
