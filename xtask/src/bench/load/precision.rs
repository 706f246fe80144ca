//! How well an open loop keeps its times: sends within 50 µs of when they were due.

use std::fs;

use super::block::Setting;
use super::case::CONCURRENCY;
use super::client::CommandLine;
use super::run;
use super::server::{Server, Service};
use crate::bench::failure::{Failure, Result};
use crate::bench::told::native::{self, Native};

/// Requests per second.
pub(super) const RATE: u32 = 20_000;

/// The client has a core of its own, so it may stay awake all the time.
const SPIN: &str = "200us";

/// Of 1: how many sends must be within 50 µs of their time.
pub(super) const IN_TIME_MIN: f64 = 0.999;

/// How many blocks an open loop's run is long.
const BLOCKS: u64 = 5;

/// What the load generator said of a run, and how its CPU was.
#[derive(Clone, Debug)]
pub(super) struct Precision {
    pub(super) native: Native,
    /// Of 1: how long others kept it waiting for its CPU.
    pub(super) waited: f64,
}

impl Precision {
    /// Requests that were due.
    fn due(&self) -> f64 {
        (self.native.started + self.native.never_started) as f64
    }

    /// Of 1, of all that were due: sent within 50 µs.
    pub(super) fn in_50us(&self) -> f64 {
        let missed = self.native.late_50us + self.native.never_started;
        1.0 - missed as f64 / self.due()
    }

    /// Of 1: sent within 1 ms.
    pub(super) fn in_1ms(&self) -> f64 {
        let missed = self.native.late_1ms + self.native.never_started;
        1.0 - missed as f64 / self.due()
    }
}

pub(super) fn measure(setting: Setting<'_>) -> Result<Precision> {
    let seconds = BLOCKS * setting.seconds;
    let service = Service::of_bytes(0);
    let server = Server::start(setting.lab, setting.programs, setting.server, &service)?;
    run::forget(setting.files);
    let json = &setting.files.json;
    let mut line = CommandLine::new(&setting.programs.millstream);
    line.add(&format!(
        "load --quiet -t1 -c{CONCURRENCY} -d{seconds}s --rate {RATE} --spin {SPIN} --json"
    ));
    line.file(json).add(&server.url());
    let ended = run::run(setting.lab, &line.0, seconds)?;
    server.stop()?;
    let text = fs::read_to_string(json).unwrap_or_default();
    let native = native::parse(&text).filter(|native| native.started > 0);
    let native = native.ok_or_else(|| {
        Failure(format!(
            "millstream load told no figures: {}",
            ended.text.trim()
        ))
    })?;
    Ok(Precision {
        native,
        waited: ended.waited(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Native, Precision};

    pub(in super::super) fn precision() -> Precision {
        Precision {
            native: Native {
                started: 9_990,
                never_started: 10,
                late_50us: 20,
                late_1ms: 5,
                word: "paced".to_owned(),
                ..Native::default()
            },
            waited: 0.0,
        }
    }

    #[test]
    fn who_was_never_begun_was_not_in_time() {
        assert!((precision().in_50us() - 0.997).abs() < 1e-9);
        assert!((precision().in_1ms() - 0.9985).abs() < 1e-9);
    }
}
