//! Splitting a plan, and conducting scripted parts.

use super::message::{Order, PartMessage};
use super::*;
use crate::native::merge::tests::part;
use crate::native::results::Results;
use crate::plan::Arrivals;
use crate::platform::{ChildProcesses, FromPart, Launcher};
use crate::target::Endpoint;
use mill_runtime::time::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

fn plans(count: u32, whole: &Plan) -> Vec<Plan> {
    let share = |index| {
        let mut plan = whole.clone();
        PartIndex { index, count }.share(&mut plan);
        plan
    };
    (0..count).map(share).collect()
}

#[test]
fn places_are_counted_from_one() {
    let check = |text: &str, expected: Option<(u32, u32)>| {
        let place = PartIndex::parse(text);
        assert_eq!(
            place.map(|place| (place.index, place.count)),
            expected,
            "{text}"
        );
    };
    check("1/4", Some((0, 4)));
    check("4/4", Some((3, 4)));
    for text in ["", "0/4", "5/4", "1/0", "1", "a/b", "1/4/2"] {
        check(text, None);
    }
    assert_eq!(PartIndex { index: 1, count: 4 }.to_string(), "2/4");
}

#[test]
fn nothing_of_a_plan_is_lost_or_done_twice() {
    let mut whole = Plan::new(Endpoint::example());
    (whole.connections, whole.threads) = (100, 4);
    whole.stop.requests = Some(1001);
    whole.sources.ports = Some(10_000..=10_009);
    whole.opening = Opening::Rate(300.0);
    let parts = plans(3, &whole);
    let field = |of: fn(&Plan) -> u64| parts.iter().map(of).collect::<Vec<u64>>();
    assert_eq!(field(|plan| u64::from(plan.connections)), [34, 33, 33]);
    assert_eq!(field(|plan| u64::from(plan.threads)), [2, 1, 1]);
    assert_eq!(field(|plan| plan.stop.requests.unwrap()), [334, 334, 333]);
    let ports: Vec<_> = parts
        .iter()
        .map(|plan| plan.sources.ports.clone().unwrap())
        .collect();
    assert_eq!(ports, [10_000..=10_003, 10_004..=10_006, 10_007..=10_009]);
    assert!(
        parts
            .iter()
            .all(|plan| plan.opening == Opening::Rate(100.0))
    );
    let mut seeds = field(|plan| plan.seed);
    seeds.dedup();
    assert_eq!(seeds.len(), 3);
    assert_eq!(plans(1, &whole), [whole]);
}

#[test]
fn the_rate_is_split_and_even_arrivals_stay_even() {
    let mut whole = Plan::new(Endpoint::example());
    whole.connections = 30;
    whole.pace = Pace::Open {
        rate: 4000.0,
        arrivals: Arrivals::Uniform,
    };
    let parts = plans(4, &whole);
    let begins: Vec<Duration> = (0..4)
        .zip(&parts)
        .map(|(index, plan)| PartIndex { index, count: 4 }.offset(plan))
        .collect();
    assert_eq!(begins, [0, 250, 500, 750].map(Duration::from_micros));
    let rate = |plan: &Plan| match plan.pace {
        Pace::Open { rate, .. } | Pace::Each { rate } => rate,
        Pace::Closed { .. } => unreachable!("the plan is an open loop"),
    };
    assert!(parts.iter().all(|plan| rate(plan) == 1000.0));
    whole.pace = Pace::Each { rate: 300.0 };
    let rates: Vec<f64> = plans(4, &whole).iter().map(rate).collect();
    assert_eq!(rates, [80.0, 80.0, 70.0, 70.0]);
}

/// A launcher whose parts send the given messages.
struct ScriptedLauncher {
    says: RefCell<VecDeque<FromPart>>,
    received: Rc<RefCell<Vec<(u32, String)>>>,
    started: RefCell<Vec<String>>,
}

struct ScriptedProcesses {
    says: VecDeque<FromPart>,
    received: Rc<RefCell<Vec<(u32, String)>>>,
}

impl Launcher for ScriptedLauncher {
    fn now(&self) -> Instant {
        Instant::from_nanos(5_000_000_000)
    }

    fn start(&self, arguments: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String> {
        for own in arguments {
            let line = own.join(&b' ');
            self.started
                .borrow_mut()
                .push(String::from_utf8(line).unwrap());
        }
        Ok(Box::new(ScriptedProcesses {
            says: self.says.take(),
            received: Rc::clone(&self.received),
        }))
    }

    fn order(&self) -> Option<String> {
        None
    }

    fn interrupt_on_input(&self) {}
}

impl ChildProcesses for ScriptedProcesses {
    fn send(&mut self, part: u32, line: &str) {
        self.received.borrow_mut().push((part, String::from(line)));
    }

    fn receive(&mut self) -> FromPart {
        self.says
            .pop_front()
            .expect("the conductor should not wait for more")
    }
}

/// The result of a run.
type Conducted = Result<Vec<Results>, PartError>;

/// Conducts two parts that send these messages; returns the result and the orders they got.
fn conducted(says: Vec<FromPart>) -> (Conducted, Vec<(u32, Order)>) {
    let launcher = ScriptedLauncher {
        says: RefCell::new(says.into()),
        received: Rc::default(),
        started: RefCell::default(),
    };
    let arguments = [b"-c".to_vec(), b"8".to_vec()];
    let outcome = conduct(&launcher, &arguments, 2, &mut |_, _| {});
    assert_eq!(
        *launcher.started.borrow(),
        ["--part 1/2 -c 8", "--part 2/2 -c 8"]
    );
    let received = launcher.received.borrow();
    let orders = received
        .iter()
        .map(|(part, line)| (*part, Order::parse(line).unwrap()));
    (outcome, orders.collect())
}

fn line(part: u32, said: &PartMessage) -> FromPart {
    FromPart::Line(part, said.emit())
}

fn hello() -> PartMessage {
    PartMessage::Hello {
        version: String::from(env!("CARGO_PKG_VERSION")),
    }
}

fn result(millis: u64) -> PartMessage {
    PartMessage::Result(Box::new(part(&[Duration::from_millis(millis); 4])))
}

fn begun() -> Vec<FromPart> {
    vec![
        line(1, &hello()),
        line(0, &hello()),
        line(0, &PartMessage::Ready),
        line(1, &PartMessage::Ready),
    ]
}

#[test]
fn all_parts_begin_at_one_moment_and_bring_their_results_in_their_order() {
    let mut says = begun();
    says.extend([
        line(1, &result(2)),
        FromPart::Ended(1, String::from("exit status: 0")),
        line(0, &result(1)),
    ]);
    let (outcome, orders) = conducted(says);
    let results = outcome.unwrap();
    let medians: Vec<u128> = results
        .iter()
        .map(|part| part.measures.latency.percentile(50.0).as_millis())
        .collect();
    assert_eq!(medians, [1, 2]);
    let at = Instant::from_nanos(5_140_000_000);
    assert_eq!(orders, [(0, Order::Start(at)), (1, Order::Start(at))]);
}

#[test]
fn no_part_is_started_before_all_are_ready() {
    let says = vec![
        line(0, &hello()),
        line(0, &PartMessage::Ready),
        FromPart::Ended(1, String::from("signal: 9")),
    ];
    let (outcome, orders) = conducted(says);
    let sentence = outcome.unwrap_err().to_string();
    assert_eq!(
        sentence,
        "part 2/2 was lost (signal: 9): the run is void, because the load was not the one asked for"
    );
    assert_eq!(orders, []);
}

#[test]
fn a_part_that_fails_or_sends_malformed_lines_voids_the_run() {
    let check = |part: FromPart, expected: &str| {
        let mut says = begun();
        says.extend([line(0, &result(1)), part]);
        let sentence = conducted(says).0.unwrap_err().to_string();
        assert!(sentence.contains(expected), "{sentence}");
    };
    check(
        FromPart::Ended(1, String::from("exit status: 1")),
        "part 2/2 was lost (exit status: 1)",
    );
    check(
        FromPart::Line(1, String::from("oops")),
        "part 2/2 was lost (sent a malformed line: \"oops\")",
    );
    check(
        line(1, &PartMessage::Failed(String::from("no descriptor left"))),
        "no descriptor left",
    );
    let old = PartMessage::Hello {
        version: String::from("0.0.0"),
    };
    check(line(1, &old), "part 2/2 is version 0.0.0");
}

#[test]
fn an_interrupt_reaches_all_parts_once_and_their_results_count() {
    let mut says = begun();
    says.extend([
        FromPart::Interrupted,
        FromPart::Interrupted,
        line(0, &result(1)),
        line(1, &result(2)),
    ]);
    let (outcome, orders) = conducted(says);
    assert_eq!(outcome.unwrap().len(), 2);
    assert_eq!(orders[2..], [(0, Order::Stop), (1, Order::Stop)]);
    let (outcome, orders) = conducted(vec![line(0, &hello()), FromPart::Interrupted]);
    assert!(
        outcome
            .unwrap_err()
            .to_string()
            .contains("interrupted before")
    );
    assert_eq!(orders, []);
}
