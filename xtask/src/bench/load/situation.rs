//! Situations whose bound is known, and the word that `millstream load` ends in.

use std::fs;

use super::block::Setting;
use super::client::CommandLine;
use super::results::Measured;
use super::run;
use super::server::{Kind, Server, Service};
use crate::bench::failure::{Failure, Result};
use crate::bench::told::native;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Situation {
    SlowServer,
    BusyClient,
    RateTooHigh,
    RateKept,
    ImpatientClient,
}

/// What was said of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) word: String,
    pub(super) sentence: String,
    /// Of 1: how long others kept the client waiting for its CPU.
    pub(super) waited: f64,
}

#[derive(Debug)]
pub(super) struct SituationResult {
    pub(super) situation: Situation,
    pub(super) judged: Measured<Judged>,
}

impl Situation {
    pub(super) const ALL: [Self; 5] = [
        Self::SlowServer,
        Self::BusyClient,
        Self::RateTooHigh,
        Self::RateKept,
        Self::ImpatientClient,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SlowServer => "closed loop of 64 connections, answers after 5 ms",
            Self::BusyClient => {
                "closed loop of 1024 connections, one client thread, a server that parses nothing"
            }
            Self::RateTooHigh => "10 000 000 requests/s asked for",
            Self::RateKept => "2000 requests/s asked for",
            Self::ImpatientClient => "answers after 5 ms, given up after 2 ms",
        }
    }

    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::SlowServer => "server-bound",
            Self::BusyClient => "client-bound",
            // What the one thread can't ask for is its own limit.
            Self::RateTooHigh => "client-bound",
            Self::RateKept => "paced",
            Self::ImpatientClient => "invalid",
        }
    }

    const fn load(self) -> &'static str {
        match self {
            Self::SlowServer => "-c64",
            Self::BusyClient => "-c1024",
            Self::RateTooHigh => "-c64 --rate 10000000",
            Self::RateKept => "-c64 --rate 2000",
            Self::ImpatientClient => "-c64 --timeout 2ms",
        }
    }

    /// What the server is: slow, or the fastest there is.
    fn server(self) -> (Kind, Service) {
        match self {
            Self::SlowServer | Self::ImpatientClient => {
                let delay = Some("5ms".to_owned());
                (
                    Kind::Respond,
                    Service {
                        body_bytes: 0,
                        delay,
                    },
                )
            }
            Self::BusyClient | Self::RateTooHigh | Self::RateKept => {
                (Kind::Floor, Service::of_bytes(0))
            }
        }
    }
}

/// Shorter runs have too few intervals for a judgement.
const SECONDS_MIN: u64 = 3;

pub(super) fn measure(setting: Setting<'_>, situation: Situation) -> SituationResult {
    SituationResult {
        situation,
        judged: judge(setting, situation).map_err(|failure| failure.to_string()),
    }
}

fn judge(setting: Setting<'_>, situation: Situation) -> Result<Judged> {
    let seconds = setting.seconds.max(SECONDS_MIN);
    let (kind, service) = situation.server();
    let server = Server::start(setting.lab, setting.programs, kind, &service)?;
    run::forget(setting.files);
    let json = &setting.files.json;
    let mut line = CommandLine::new(&setting.programs.millstream);
    line.add(&format!(
        "load --quiet -t1 -d{seconds}s {} --json",
        situation.load()
    ));
    line.file(json).add(&server.url());
    let ended = run::run(setting.lab, &line.0, seconds)?;
    server.stop()?;
    let text = fs::read_to_string(json).unwrap_or_default();
    let native = native::parse(&text).ok_or_else(|| {
        Failure(format!(
            "millstream load told no verdict: {}",
            ended.text.trim()
        ))
    })?;
    Ok(Judged {
        word: native.word,
        sentence: native.sentence,
        waited: ended.waited(),
    })
}
