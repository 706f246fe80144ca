//! A launcher for tests, whose parts follow orders and report fixed results.

use super::message::{Order, PartMessage};
use crate::native::merge::tests::part;
use crate::platform::{ChildProcesses, FromPart, Launcher};
use core::time::Duration;
use mill_runtime::time::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Keeps the started command lines; the run with that number is interrupted.
pub(crate) struct Answering {
    started: RefCell<Vec<String>>,
    interrupted_in: usize,
    runs: Cell<usize>,
}

struct AnsweringTeam {
    says: VecDeque<FromPart>,
    is_interrupted: bool,
}

impl Answering {
    pub(crate) fn new(interrupted_in: usize) -> Self {
        Self {
            started: RefCell::default(),
            interrupted_in,
            runs: Cell::new(0),
        }
    }

    pub(crate) fn started(&self) -> Vec<String> {
        self.started.borrow().clone()
    }
}

impl Launcher for Answering {
    fn now(&self) -> Instant {
        Instant::from_nanos(1)
    }

    fn start(&self, arguments: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String> {
        let mut says = VecDeque::new();
        for (part, own) in (0..).zip(arguments) {
            let line = String::from_utf8(own.join(&b' ')).map_err(|error| error.to_string())?;
            self.started.borrow_mut().push(line);
            says.push_back(FromPart::Line(part, PartMessage::Ready.emit()));
        }
        let run = self.runs.replace(self.runs.get() + 1);
        Ok(Box::new(AnsweringTeam {
            says,
            is_interrupted: run == self.interrupted_in,
        }))
    }

    fn order(&self) -> Option<String> {
        None
    }

    fn interrupt_on_input(&self) {}
}

impl ChildProcesses for AnsweringTeam {
    fn send(&mut self, number: u32, line: &str) {
        assert!(matches!(Order::parse(line), Some(Order::Start(_))));
        let mut results = part(&[Duration::from_millis(1); 10]);
        results.interrupted = self.is_interrupted;
        let said = PartMessage::Result(Box::new(results));
        self.says.push_back(FromPart::Line(number, said.emit()));
    }

    fn receive(&mut self) -> FromPart {
        self.says
            .pop_front()
            .expect("no caller waits for more events")
    }
}
