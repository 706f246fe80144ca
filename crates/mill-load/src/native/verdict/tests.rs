//! Evidence in, verdict and checks out.

use super::VerdictKind::*;
use super::*;
use crate::failure::FailureKind;
use crate::plan::{Arrivals, Life, Opening, Pace, Plan};
use crate::platform::{LinkUse, Machine, ProgramsCpu, ServerCpu, ThreadCpu};
use crate::silence::Silence;
use crate::tally::Tally;
use crate::target::Endpoint;
use core::time::Duration;

/// A run that owns the data of its evidence.
struct Run {
    plan: Plan,
    tally: Tally,
    machine: Machine,
    measured: Duration,
    answers: Vec<u64>,
    mean_time: Duration,
    differing_sizes: Option<u64>,
    silences: Vec<Silence>,
}

/// Ten seconds of a closed loop at 10 000 requests a second, without faults.
fn sound() -> Run {
    let mut plan = Plan::new(Endpoint::example());
    plan.connections = 100;
    Run {
        plan,
        tally: Tally {
            started: 100_100,
            answered: 100_000,
            connects: 100,
            connected: 100,
            open: 100,
            open_max: 100,
            ..Tally::default()
        },
        machine: Machine {
            threads: vec![thread(40), thread(60)],
            listen_overflows: Some(0),
            retransmitted_segments: Some(0),
            sent_segments: Some(200_000),
            steal: Some(0.0),
            ..Machine::default()
        },
        measured: Duration::from_secs(10),
        answers: vec![10_000; 10],
        mean_time: Duration::from_millis(10),
        differing_sizes: Some(0),
        silences: Vec::new(),
    }
}

/// The same in an open loop that met its rate.
fn paced() -> Run {
    let mut run = sound();
    run.plan.pace = Pace::Open {
        rate: 10_000.0,
        arrivals: Arrivals::Uniform,
    };
    run.tally.started = 100_000;
    run.tally.answered = 99_900;
    run
}

fn thread(percent: u64) -> ThreadCpu {
    ThreadCpu {
        user: Duration::from_millis(percent * 60),
        system: Duration::from_millis(percent * 40),
        wall: Duration::from_secs(10),
        involuntary_switches: 10,
    }
}

fn server(busiest_thread: f64) -> Option<ServerCpu> {
    Some(ServerCpu {
        process: 7,
        command: String::from("nginx"),
        busiest_thread,
        ..ServerCpu::default()
    })
}

fn fail(tally: &mut Tally, kind: FailureKind, count: u64) {
    for _ in 0..count {
        tally.on_failure(kind);
    }
    tally.started += count;
}

fn verdict(run: &Run) -> Verdict {
    let evidence = Evidence {
        plan: &run.plan,
        tally: &run.tally,
        machine: &run.machine,
        measured: run.measured,
        interrupted: false,
        answers: &run.answers,
        mean_time: Some(run.mean_time),
        differing_sizes: run.differing_sizes,
        silences: &run.silences,
        is_of_search: false,
    };
    judge(&evidence, &Thresholds::default())
}

/// The verdict, and the names of the checks that warn (`name?`) or fail (`name!`).
fn check(run: Run, word: VerdictKind, expected: &[&str]) {
    let verdict = verdict(&run);
    let marks: Vec<String> = verdict
        .checks
        .iter()
        .filter_map(|check| match check.level {
            Level::Ok => None,
            Level::Warn => Some(format!("{}?", check.name)),
            Level::Fail => Some(format!("{}!", check.name)),
        })
        .collect();
    assert_eq!(
        (verdict.word, marks),
        (word, expected.iter().map(ToString::to_string).collect()),
        "{verdict:#?}"
    );
}

fn changed(mut run: Run, change: impl FnOnce(&mut Run)) -> Run {
    change(&mut run);
    run
}

#[test]
fn a_sound_closed_loop_is_bound_by_the_server_and_a_kept_rate_by_nothing() {
    check(sound(), ServerBound, &[]);
    check(paced(), Paced, &[]);
    let thinks = |run: &mut Run| {
        run.plan.pace = Pace::Closed {
            think: Duration::from_millis(1),
        };
    };
    check(changed(sound(), thinks), Paced, &[]);
    let opens_at_a_rate = |run: &mut Run| {
        run.plan.opening = Opening::Rate(100.0);
        run.plan.life = Life::Requests(1);
    };
    check(changed(sound(), opens_at_a_rate), Paced, &[]);
}

#[test]
fn a_busy_thread_makes_the_client_the_limit() {
    let busy = |percent| changed(sound(), |run| run.machine.threads.push(thread(percent)));
    check(busy(85), ServerBound, &[]);
    check(busy(90), ServerBound, &["client_cpu?"]);
    check(busy(95), ClientBound, &["client_cpu!"]);
    let put_aside = |run: &mut Run| run.machine.threads[0].involuntary_switches = 5000;
    check(changed(sound(), put_aside), ServerBound, &["preemptions?"]);
}

#[test]
fn a_thread_that_spins_is_judged_by_its_late_sends() {
    let spinning = |late, waited| {
        changed(paced(), |run| {
            run.plan.spin = Duration::from_micros(50);
            run.machine.threads = vec![thread(100)];
            (run.tally.late_1ms, run.tally.waited_1ms) = (late, waited);
        })
    };
    check(spinning(0, 0), Paced, &[]);
    check(spinning(100, 0), Paced, &[]);
    check(spinning(200, 0), Paced, &["late_sends?"]);
    check(spinning(1000, 0), Invalid, &["late_sends!"]);
    check(spinning(1000, 1000), Paced, &[]);
    let sleeping = changed(spinning(0, 0), |run| run.plan.spin = Duration::ZERO);
    check(sleeping, ClientBound, &["client_cpu!"]);
}

#[test]
fn a_rate_that_was_not_achieved_names_the_limit() {
    let behind = |never_started, cpu| {
        changed(paced(), |run| {
            run.tally.never_started = never_started;
            run.tally.waited_1ms = run.tally.started;
            run.tally.late_1ms = run.tally.started;
            run.plan.spin = Duration::from_micros(50);
            run.machine.threads = vec![thread(cpu)];
        })
    };
    check(behind(0, 50), Paced, &[]);
    check(behind(2000, 50), Paced, &["rate?"]);
    check(behind(4000, 50), ServerBound, &["rate!"]);
    check(behind(4000, 100), ClientBound, &["rate!", "client_cpu!"]);
}

#[test]
fn answers_that_pile_up_are_a_rate_that_was_not_achieved() {
    let piling = |unfinished| {
        changed(paced(), |run| {
            run.plan.connections = 50_000;
            (run.tally.open_max, run.tally.connects) = (50_000, 50_000);
            run.tally.connected = 50_000;
            run.tally.answered = run.tally.started - unfinished;
        })
    };
    check(piling(150), Paced, &[]);
    check(piling(20_000), ServerBound, &["rate!"]);
}

#[test]
fn each_connections_schedule_is_judged_by_its_rate() {
    let each = |rate| changed(paced(), |run| run.plan.pace = Pace::Each { rate });
    check(each(10_000.0), Paced, &[]);
    check(each(10_200.0), Paced, &["rate?"]);
    check(each(10_500.0), ServerBound, &["rate!"]);
}

#[test]
fn missing_connections_make_a_run_invalid() {
    let open = |count| changed(sound(), |run| run.tally.open_max = count);
    check(open(99), ServerBound, &["connections?"]);
    check(open(98), Invalid, &["connections!"]);
    let short_lived = |refused| {
        changed(sound(), |run| {
            run.plan.life = Life::Requests(1);
            (run.tally.open_max, run.tally.connected) = (70, 100_000);
            run.tally.connects = 100_000 + refused;
            fail(&mut run.tally, FailureKind::Connect, refused);
        })
    };
    check(short_lived(0), ServerBound, &[]);
    check(short_lived(2000), Invalid, &["errors!", "connections!"]);
    let few_requests = |run: &mut Run| {
        run.plan.stop.requests = Some(50);
        run.tally.open_max = 50;
    };
    check(changed(sound(), few_requests), ServerBound, &[]);
}

#[test]
fn errors_and_other_answers_make_a_run_invalid() {
    let failed = |count| {
        changed(sound(), |run| {
            fail(&mut run.tally, FailureKind::Timeout, count)
        })
    };
    check(failed(1), ServerBound, &[]);
    check(failed(2), ServerBound, &["errors?"]);
    check(failed(2000), Invalid, &["errors!"]);
    let bad = |count| changed(sound(), |run| run.tally.statuses_bad = count);
    check(bad(1), ServerBound, &["error_statuses?"]);
    check(bad(50_000), Invalid, &["error_statuses!"]);
    let differing = |count| changed(sound(), |run| run.differing_sizes = count);
    check(differing(None), ServerBound, &[]);
    check(differing(Some(1)), ServerBound, &["sizes?"]);
    check(differing(Some(1000)), Invalid, &["sizes!"]);
}

#[test]
fn a_run_without_answers_or_time_is_invalid() {
    let nothing = |run: &mut Run| {
        (run.tally.started, run.tally.answered) = (100, 0);
        run.answers = vec![0; 10];
    };
    check(changed(sound(), nothing), Invalid, &["answers!"]);
    let lasting = |millis| changed(sound(), |run| run.measured = Duration::from_millis(millis));
    check(lasting(5000), ServerBound, &[]);
    check(lasting(4999), ServerBound, &["duration?"]);
    check(lasting(999), Invalid, &["duration!"]);
    let empty = Run {
        tally: Tally::default(),
        machine: Machine::default(),
        measured: Duration::ZERO,
        answers: Vec::new(),
        ..sound()
    };
    assert_eq!(verdict(&empty).word, Invalid);
}

#[test]
fn the_machine_may_void_or_explain_a_run() {
    let machine = |change: fn(&mut Machine)| changed(sound(), |run| change(&mut run.machine));
    let link = |share| {
        changed(sound(), |run| {
            run.machine.link_use = Some(LinkUse {
                interface: String::from("eth0"),
                bits_per_second: 1e9,
                share,
            });
        })
    };
    check(
        machine(|it| it.steal = Some(0.03)),
        ServerBound,
        &["steal?"],
    );
    check(machine(|it| it.steal = Some(0.05)), Invalid, &["steal!"]);
    // The client's threads used ten seconds of twenty.
    let programs = |used_s| {
        changed(sound(), |run| {
            run.machine.programs = Some(ProgramsCpu {
                used: Duration::from_secs(used_s),
                available: Duration::from_secs(20),
            });
        })
    };
    check(programs(11), ServerBound, &[]);
    check(programs(12), ServerBound, &["other_cpu?"]);
    check(programs(16), Invalid, &["other_cpu!"]);
    check(link(None), ServerBound, &[]);
    check(link(Some(0.92)), ServerBound, &["link?"]);
    check(link(Some(0.96)), LinkBound, &["link!"]);
    check(
        machine(|it| it.retransmitted_segments = Some(400)),
        ServerBound,
        &["retransmissions?"],
    );
    check(
        machine(|it| it.retransmitted_segments = Some(2000)),
        LinkBound,
        &["retransmissions!"],
    );
    check(
        machine(|it| it.listen_overflows = Some(1)),
        ServerBound,
        &["listen_overflows!"],
    );
    let full_queue = |it: &mut Machine| {
        (it.retransmitted_segments, it.listen_overflows) = (Some(4000), Some(30));
    };
    check(
        machine(full_queue),
        ServerBound,
        &["retransmissions?", "listen_overflows!"],
    );
}

#[test]
fn a_rate_that_wavers_or_drifts_is_unstable() {
    let answers = |answers: &[u64]| changed(sound(), |run| run.answers = answers.to_vec());
    check(
        answers(&[9, 11, 9, 11, 9, 11].map(|n| n * 1000)),
        ServerBound,
        &["rate_spread?"],
    );
    let stall = [10, 10, 10, 0, 10, 10, 10, 10, 10, 10].map(|n| n * 1000);
    check(answers(&stall), Unstable, &["rate_spread!"]);
    let slope: Vec<u64> = (0..10).map(|n| 10_000 + n * 70).collect();
    check(answers(&slope), ServerBound, &["rate_drift?"]);
    let slope: Vec<u64> = (0..10).map(|n| 10_000 - n * 150).collect();
    check(answers(&slope), Unstable, &["rate_drift!"]);
    check(answers(&[1000, 10, 10, 10]), ServerBound, &[]);
    check(answers(&[11, 9, 14, 8, 12, 10, 7, 13]), ServerBound, &[]);
}

#[test]
fn the_check_that_explains_the_others_decides() {
    let wavering = |run: &mut Run| run.answers = vec![10_000, 2000, 10_000, 2000, 10_000];
    let busy = |run: &mut Run| run.machine.threads.push(thread(99));
    let stolen = |run: &mut Run| run.machine.steal = Some(0.2);
    let run = changed(changed(sound(), wavering), busy);
    check(run, ClientBound, &["client_cpu!", "rate_spread!"]);
    let run = changed(changed(sound(), busy), stolen);
    check(run, Invalid, &["steal!", "client_cpu!"]);
}

#[test]
fn the_servers_cpu_decides_the_kind_of_limit() {
    let sentence = |share, client| {
        let run = changed(sound(), |run| {
            run.machine.server = server(share);
            run.machine.threads = vec![thread(client)];
        });
        let verdict = verdict(&run);
        assert_eq!(verdict.word, ServerBound);
        verdict.sentence
    };
    assert!(sentence(0.97, 60).contains("this is what the server can do"));
    assert!(sentence(0.2, 20).contains("requests in flight"));
    assert!(sentence(0.7, 20).contains("Try more connections"));
    assert!(sentence(0.2, 70).contains("Try more connections"));
    assert!(verdict(&sound()).sentence.contains("not seen from here"));
}

#[test]
fn thresholds_that_were_set_are_the_ones_that_count() {
    let run = sound();
    let mut thresholds = Thresholds::default();
    thresholds.set("client_cpu=40:50").unwrap();
    let evidence = Evidence {
        plan: &run.plan,
        tally: &run.tally,
        machine: &run.machine,
        measured: run.measured,
        interrupted: true,
        answers: &run.answers,
        mean_time: None,
        differing_sizes: None,
        silences: &[],
        is_of_search: true,
    };
    let verdict = judge(&evidence, &thresholds);
    assert_eq!(verdict.word, ClientBound);
    assert!(
        verdict
            .sentence
            .contains("used 60 % of a CPU: what was measured is the client")
    );
    let duration = verdict.checks.iter().find(|check| check.name == "duration");
    assert!(duration.unwrap().advice.contains("interrupted"));
}
