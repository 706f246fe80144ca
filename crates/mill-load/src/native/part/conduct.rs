//! The conductor: starts the parts.

use super::message::{Order, PartMessage};
use super::{PartError, PartIndex};
use crate::native::results::Results;
use crate::native::series::Period;
use crate::platform::{ChildProcesses, FromPart, Launcher};
use core::time::Duration;

/// Runs the command line `arguments` in `count` processes and returns the results of each. `on_period` gets each part's
/// intervals during the run.
pub fn conduct(
    launcher: &dyn Launcher,
    arguments: &[Vec<u8>],
    count: u32,
    on_period: &mut dyn FnMut(PartIndex, &Period),
) -> Result<Vec<Results>, PartError> {
    let places = (0..count).map(|index| PartIndex { index, count });
    let all: Vec<Vec<Vec<u8>>> = places
        .map(|place| {
            let mut own = vec![b"--part".to_vec(), place.to_string().into_bytes()];
            own.extend_from_slice(arguments);
            own
        })
        .collect();
    let mut conductor = Conductor {
        children: launcher.start(&all).map_err(PartError)?,
        count,
        ready: vec![false; count as usize],
        results: vec![None; count as usize],
        interrupted: false,
    };
    while conductor.ready.iter().any(|ready| !ready) {
        conductor.on_event(on_period)?;
    }
    let lead = START_LEAD + START_LEAD_OF_PART * count;
    conductor.say_to_all(Order::Start(launcher.now() + lead));
    while conductor.results.iter().any(Option::is_none) {
        conductor.on_event(on_period)?;
    }
    Ok(conductor.results.into_iter().flatten().collect())
}

/// The state of the parts.
struct Conductor {
    children: Box<dyn ChildProcesses>,
    count: u32,
    ready: Vec<bool>,
    results: Vec<Option<Results>>,
    interrupted: bool,
}

impl Conductor {
    /// Handles the next event.
    fn on_event(&mut self, on_period: &mut dyn FnMut(PartIndex, &Period)) -> Result<(), PartError> {
        let (part, line) = match self.children.receive() {
            FromPart::Line(part, line) => (part, line),
            FromPart::Ended(part, how) => {
                let is_done = self.results.get(part as usize).is_none_or(Option::is_some);
                return if is_done {
                    Ok(())
                } else {
                    Err(self.lost(part, &how))
                };
            }
            FromPart::Interrupted => return self.interrupt(),
        };
        let place = self.place(part);
        match PartMessage::parse(&line) {
            Some(PartMessage::Hello { version }) if version == VERSION => {}
            Some(PartMessage::Hello { version }) => {
                return Err(PartError(format!(
                    "part {place} is version {version} and this is {VERSION}: the program was replaced meanwhile; \
                     start again"
                )));
            }
            Some(PartMessage::Ready) => {
                if let Some(ready) = self.ready.get_mut(part as usize) {
                    *ready = true;
                }
            }
            Some(PartMessage::Interval(period)) => on_period(place, &period),
            Some(PartMessage::Result(results)) => {
                if let Some(result) = self.results.get_mut(part as usize) {
                    *result = Some(*results);
                }
            }
            Some(PartMessage::Failed(sentence)) => return Err(PartError(sentence)),
            None => {
                let shown: String = line.chars().take(SHOWN_MAX).collect();
                return Err(self.lost(part, &format!("sent a malformed line: {shown:?}")));
            }
        }
        Ok(())
    }

    /// The parts end early and their results count; before they have begun there are none.
    fn interrupt(&mut self) -> Result<(), PartError> {
        if self.ready.iter().any(|ready| !ready) {
            return Err(PartError(String::from("interrupted before the run began")));
        }
        if !self.interrupted {
            self.interrupted = true;
            self.say_to_all(Order::Stop);
        }
        Ok(())
    }

    fn say_to_all(&mut self, order: Order) {
        for part in 0..self.count {
            self.children.send(part, &order.emit());
        }
    }

    fn lost(&self, part: u32, how: &str) -> PartError {
        let place = self.place(part);
        PartError(format!(
            "part {place} was lost ({how}): the run is void, because the load was not the one asked for"
        ))
    }

    const fn place(&self, part: u32) -> PartIndex {
        PartIndex {
            index: part,
            count: self.count,
        }
    }
}

/// The version that all parts have.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The time between the announcement and the common beginning: a part has to read a line and to start its threads,
/// while all of them share the machine's CPUs. A longer one only costs the wait.
const START_LEAD: Duration = Duration::from_millis(100);
const START_LEAD_OF_PART: Duration = Duration::from_millis(20);

/// Characters of a malformed line that are shown.
const SHOWN_MAX: usize = 80;
