//! One measurement as the lints see it: a block of a text, or a trial of the lab.

use crate::command::ClientCommand;
use crate::record::{Figures, Point, Status, TrialRecord};

/// A measurement, its place, and its labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// The server named by its label.
    pub(super) label: String,
    /// Samples of one scope requested the same object.
    pub(super) scope: String,
    /// Samples of one section are meant to be compared.
    pub(super) section: String,
    /// Its place for the reader.
    pub(super) place: String,
    pub(super) figures: Figures,
    /// The URL that the output itself names.
    pub(super) url: Option<String>,
    pub(super) asked: Option<ClientCommand>,
    pub(super) interrupted: bool,
    /// Allocators that the text has named up to here, other than libc's.
    pub(super) allocators: Vec<String>,
}

impl Sample {
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    /// Bytes of an answer, and how exact that is.
    pub(super) fn size(&self) -> Option<(f64, f64)> {
        let half_width = self.figure("bytes_per_response.half_width").unwrap_or(0.0);
        let size = self.figure("bytes_per_response")?;
        Some((size, half_width + size * self.open_share(size)))
    }

    /// Which share of its bytes a client may have read of answers that it did not wait for the end of: one a connection. Small answers
    /// come whole.
    fn open_share(&self, size: f64) -> f64 {
        let connections = self.figure("connections_asked").unwrap_or(0.0);
        match self.figure("requests") {
            Some(requests) if requests > 0.0 && size > WHOLE_BYTES_MAX => connections / requests,
            _ => 0.0,
        }
    }

    /// Of a measured trial; the server is its system, and all other axes describe the load.
    pub(super) fn of(trial: &TrialRecord) -> Option<Self> {
        if trial.status != Status::Measured {
            return None;
        }
        Some(Self {
            label: trial.point.get("system").cloned().unwrap_or_default(),
            scope: rest_of(&trial.point),
            section: rest_of(&trial.point),
            place: format!("trial {}", trial.number + 1),
            figures: trial.figures.clone(),
            asked: clients(trial),
            ..Self::default()
        })
    }
}

/// What a socket's buffers take at once, about: an answer up to this size is there or not.
const WHOLE_BYTES_MAX: f64 = 65_536.0;

/// The point without its system: "workers = 1, test = tps".
pub(super) fn rest_of(point: &Point) -> String {
    let parts: Vec<String> = point
        .iter()
        .filter(|(axis, _)| *axis != "system")
        .map(|(axis, value)| format!("{axis} = {value}"))
        .collect();
    parts.join(", ")
}

/// The total load of all client processes.
fn clients(trial: &TrialRecord) -> Option<ClientCommand> {
    let each: Option<Vec<ClientCommand>> = trial
        .commands
        .iter()
        .filter(|command| command.role.starts_with("client"))
        .map(|command| ClientCommand::parse(&command.line))
        .collect();
    let mut each = each?.into_iter();
    let mut whole = each.next()?;
    for one in each {
        let add = |sum: Option<f64>, part: Option<f64>| Some(sum? + part?);
        whole.connections = add(whole.connections, one.connections);
        whole.threads = add(whole.threads, one.threads);
        whole.requests = add(whole.requests, one.requests);
    }
    Some(whole)
}
