//! Far more requests than a server can answer that gets a share of its CPU only: what it answers then, as a series over time, beside what
//! it answers when nobody asks for more than that.

use super::block::answered;
use super::cell::{Cell, Pace};
use super::client::{Client, Told};
use super::confinement::Confinement;
use super::server::Server;
use super::setting::Setting;
use super::subject::Subject;
use crate::bench::failure::{Failure, Result};
use crate::bench::told::Latency;
use std::time::Duration;

/// One overload of one subject.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overload {
    pub(super) subject: Subject,
    /// Answers a second where each connection asks when it was answered: of few connections or of many, whichever brings more out of it.
    pub(super) alone_per_s: f64,
    /// The same of as many connections as the overload has.
    pub(super) many_per_s: f64,
    /// Requests that are due a second.
    pub(super) offered_per_s: f64,
    pub(super) goodput_per_s: f64,
    pub(super) errors: u64,
    pub(super) latency: Latency,
    /// Answers a second in each period of the overload.
    pub(super) series: Vec<f64>,
}

/// Few: they make it busy without anybody having to wait for long.
const CONNECTIONS_ALONE: u32 = 64;

/// How many times as much as it can do is asked for.
const TIMES: f64 = 4.0;

/// How long a client may last beyond its seconds.
const PATIENCE_PAST_END: Duration = Duration::from_secs(15);

impl Overload {
    /// What is left of what it can do, of 1.
    pub(super) fn kept(&self) -> f64 {
        self.goodput_per_s / self.alone_per_s
    }

    /// The fewest answers a second of a whole period, of 1.
    pub(super) fn least_kept(&self) -> Option<f64> {
        // The last one may be short.
        let (_, whole) = self.series.split_last()?;
        let least = whole.iter().copied().reduce(f64::min)?;
        Some(least / self.alone_per_s)
    }
}

/// Measures a fresh server, both times the same one.
pub(super) fn measure(
    setting: Setting<'_>,
    cell: &Cell,
    subject: Subject,
    client: Client,
) -> Result<Overload> {
    let setting = Setting {
        seconds: cell.seconds(setting.seconds),
        ..setting
    };
    let mut server = Server::start(setting, cell, subject.kind)?;
    let confinement = Confinement::of(setting, &server.pids)?;
    let found = both(setting, cell, subject, client, &server);
    drop(confinement);
    // A server that has died tells more than the client that it has left alone.
    server.check()?;
    let found = found?;
    server.stop()?;
    Ok(found)
}

fn both(
    setting: Setting<'_>,
    cell: &Cell,
    subject: Subject,
    client: Client,
    server: &Server<'_>,
) -> Result<Overload> {
    let load = |cell: &Cell| -> Result<(f64, Told)> {
        let told = run(setting, cell, client, server)?;
        let answers = answered(cell, subject.kind, &told, server.answer_bytes)
            .map_err(|what| Failure(format!("{} told {what}", client.name())))?;
        Ok((answers / told.duration.as_secs_f64(), told))
    };
    let closed = |concurrency: u32| -> Result<f64> {
        let (answered_per_s, _) = load(&Cell {
            concurrency,
            ..cell.at(Pace::Closed)
        })?;
        Ok(answered_per_s)
    };
    let few_per_s = closed(CONNECTIONS_ALONE)?;
    let many_per_s = closed(cell.concurrency)?;
    let alone_per_s = few_per_s.max(many_per_s);
    let offered_per_s = (TIMES * alone_per_s).floor();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "requests a second are positive, and fewer than four billion"
    )]
    let open = cell.at(Pace::PerSecond(offered_per_s as u32));
    let (goodput_per_s, told) = load(&open)?;
    Ok(Overload {
        subject,
        alone_per_s,
        many_per_s,
        offered_per_s,
        goodput_per_s,
        errors: told.errors,
        latency: told.latency,
        series: told.series,
    })
}

fn run(setting: Setting<'_>, cell: &Cell, client: Client, server: &Server<'_>) -> Result<Told> {
    let mut child = client.start(setting, cell, server)?;
    let seconds = Duration::from_secs(setting.seconds.into());
    let patience = client.warm_up(cell) + seconds + PATIENCE_PAST_END;
    if child.wait(patience).is_none() {
        return Err(Failure(format!("{} did not end", client.name())));
    }
    client.told(setting, cell)
}

#[cfg(test)]
mod tests {
    use super::{Latency, Overload};
    use crate::bench::bypass::subject::XDP;

    #[test]
    fn what_is_left_is_told_of_the_whole_and_of_the_worst_whole_period() {
        let overload = Overload {
            subject: XDP,
            alone_per_s: 100.0,
            many_per_s: 95.0,
            offered_per_s: 400.0,
            goodput_per_s: 90.0,
            errors: 0,
            latency: Latency::default(),
            series: vec![95.0, 50.0, 99.0, 1.0],
        };
        assert_eq!(overload.kept(), 0.9);
        assert_eq!(overload.least_kept(), Some(0.5));
        let short = Overload {
            series: vec![1.0],
            ..overload
        };
        assert_eq!(short.least_kept(), None);
    }
}
