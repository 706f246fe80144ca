//! Whole runs on this machine's sockets: a generator and a responder, both of this process.

use mill_load::failure::{Failure, FailureKind};
use mill_load::plan::{AfterFailure, Arrivals, Life, Pace, Plan};
use mill_load::platform::{Platform, RunOutcome, ThreadInput, Unwatched, Watch};
use mill_load::record::Record;
use mill_load::request::{Batch, Rendered, Requests};
use mill_load::responder::{Conduct, Law, RespondOptions, Served};
use mill_load::sample::Sample;
use mill_load::tally::Tally;
use mill_load::target::Endpoint;
use mill_load_host::{Interrupts, KernelPlatform, Responding};
use mill_runtime::time::{Duration, Instant};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A recorder that counts.
#[derive(Debug, Default)]
struct Count {
    samples: u64,
    failures: Vec<Failure>,
    fastest: Option<Duration>,
}

impl Record for Count {
    type Interval = Tally;

    fn on_sample(&mut self, sample: &Sample) {
        self.samples += 1;
        let took = sample.service_time();
        self.fastest = Some(self.fastest.map_or(took, |fastest| fastest.min(took)));
    }

    fn on_failure(&mut self, failure: Failure, _now: Instant) {
        self.failures.push(failure);
    }

    fn cut(&mut self, _now: Instant, tally: &Tally) -> Tally {
        *tally
    }
}

/// What a watcher of the run has seen.
#[derive(Debug, Default)]
struct Seen {
    begun: u32,
    threads: Vec<u32>,
    elapsed: Vec<Duration>,
    /// Interrupted at the first interval.
    interrupts: Option<Interrupts>,
}

impl Watch<Tally> for Seen {
    fn on_begin(&mut self) {
        self.begun += 1;
    }

    fn on_interval(&mut self, thread: u32, elapsed: Duration, _interval: Tally) {
        self.threads.push(thread);
        self.elapsed.push(elapsed);
        if let Some(interrupts) = self.interrupts.take() {
            interrupts.ask();
        }
    }
}

fn requests() -> Requests {
    Requests::always(Rendered {
        bytes: Arc::from(&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        batch: Batch::ONE,
    })
}

fn inputs(plan: &Plan) -> Vec<ThreadInput<Count>> {
    let input = |_| ThreadInput {
        requests: requests(),
        recorder: Count::default(),
    };
    (0..plan.threads).map(input).collect()
}

fn run(platform: &KernelPlatform, plan: &Plan, watch: &mut dyn Watch<Tally>) -> RunOutcome<Count> {
    let ran = platform.run(plan, inputs(plan), watch);
    let ran = ran.expect("this machine has threads and descriptors");
    let tally = ran.tally();
    let accounted = tally.answered + tally.failed() + tally.unfinished();
    assert_eq!(tally.started, accounted, "every request is accounted for");
    ran
}

/// Runs `test` with a responder on a free port; returns what that has served.
fn beside(threads: u32, conduct: Conduct, test: impl FnOnce(SocketAddr)) -> Served {
    let interrupts = Interrupts::default();
    let options = RespondOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        threads,
        conduct,
    };
    let responding = Responding::start(&options, &interrupts).expect("some port is free");
    test(responding.address);
    interrupts.ask();
    responding.join()
}

fn plan_at(address: SocketAddr) -> Plan {
    let mut plan = Plan::new(Endpoint::Ip(address));
    plan.threads = 3;
    plan.connections = 7;
    plan.stop.after = Some(Duration::from_secs(30));
    plan
}

#[test]
fn both_sides_count_the_same_with_three_threads() {
    let check = |life: Life, connections: u64| {
        let served = beside(2, Conduct::default(), |address| {
            let mut plan = plan_at(address);
            plan.life = life;
            plan.stop.requests = Some(1000);
            let mut seen = Seen::default();
            let ran = run(&KernelPlatform::default(), &plan, &mut seen);
            assert_eq!(seen.begun, 1);
            assert!(!ran.interrupted);
            assert_eq!(ran.tally().answered, 1000);
            assert_eq!(ran.tally().connected, connections);
            let samples: Vec<u64> = ran.parts.iter().map(|part| part.recorder.samples).collect();
            assert_eq!(samples, [334, 333, 333]);
            assert_eq!(ran.machine.threads.len(), 3);
            for thread in &ran.machine.threads {
                assert!(thread.wall >= thread.user + thread.system, "{thread:?}");
                assert!(thread.user + thread.system > Duration::ZERO, "{thread:?}");
            }
        });
        assert_eq!((served.answered, served.connections), (1000, connections));
    };
    check(Life::Unlimited, 7);
    check(Life::Requests(1), 1000);
}

#[test]
fn no_answer_is_faster_than_the_responder_gave_it() {
    let conduct = Conduct {
        law: Law::parse("3ms").expect("a law"),
        ..Conduct::default()
    };
    let served = beside(1, conduct, |address| {
        let mut plan = plan_at(address);
        plan.stop.requests = Some(60);
        let ran = run(&KernelPlatform::default(), &plan, &mut Unwatched);
        let fastest = ran.parts.iter().filter_map(|part| part.recorder.fastest);
        assert!(fastest.min() >= Some(Duration::from_millis(3)));
    });
    assert_eq!(served.given.count(), 60);
    assert!(served.given.min() >= Duration::from_micros(2_990));
}

#[test]
fn an_open_loop_sends_due_requests_and_each_thread_reports_its_intervals() {
    let served = beside(1, Conduct::default(), |address| {
        let mut plan = plan_at(address);
        plan.pin = true;
        plan.pace = Pace::Open {
            rate: 600.0,
            arrivals: Arrivals::Uniform,
        };
        plan.warm_up = Duration::from_millis(100);
        plan.interval = Duration::from_millis(50);
        plan.stop.after = Some(Duration::from_millis(500));
        let mut seen = Seen::default();
        let ran = run(&KernelPlatform::default(), &plan, &mut seen);
        let tally = ran.tally();
        // 300 are due in half a second; a thread that gets no CPU at its end makes the period longer.
        let due = tally.started + tally.never_started;
        let due_max = u64::try_from(ran.measured.as_micros() * 600 / 1_000_000).unwrap() + 4;
        assert!((298..=due_max).contains(&due), "{tally:?}");
        for thread in 0..3 {
            assert!(seen.threads.contains(&thread), "{:?}", seen.threads);
        }
        assert!(seen.elapsed.iter().all(|elapsed| *elapsed >= plan.interval));
        assert!(ran.measured >= Duration::from_millis(500));
    });
    assert!(served.answered > 0);
}

#[test]
fn a_refused_port_is_counted_and_ends_the_run_if_planned() {
    // Bound and closed again: no socket listens there.
    let listener = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let mut plan = plan_at(address);
    plan.after_failure = AfterFailure::Abort;
    let ran = run(&KernelPlatform::default(), &plan, &mut Unwatched);
    let tally = ran.tally();
    assert!(tally.failures_of(FailureKind::Connect) >= 1, "{tally:?}");
    assert_eq!(tally.answered, 0);
    assert!(ran.measured < Duration::from_secs(10), "all threads ended");
}

#[test]
fn an_interrupt_ends_the_run_and_the_runs_after_it() {
    beside(1, Conduct::default(), |address| {
        let interrupts = Interrupts::default();
        let platform = KernelPlatform::new(interrupts.clone());
        let mut plan = plan_at(address);
        plan.interval = Duration::from_millis(20);
        let mut seen = Seen {
            interrupts: Some(interrupts),
            ..Seen::default()
        };
        let ran = run(&platform, &plan, &mut seen);
        assert!(ran.interrupted);
        assert!(ran.tally().answered > 0);
        assert!(ran.measured < Duration::from_secs(10), "{:?}", ran.measured);
        let again = run(&platform, &plan, &mut Unwatched);
        assert!(again.interrupted);
        assert_eq!(again.tally().started, 0);
    });
}

#[test]
fn an_address_in_use_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let options = RespondOptions {
        address: listener.local_addr().expect("it is bound"),
        threads: 1,
        conduct: Conduct::default(),
    };
    let refused = Responding::start(&options, &Interrupts::default());
    let sentence = refused.expect_err("the port is in use");
    assert!(sentence.starts_with("bind() at 127.0.0.1:"), "{sentence}");
}
