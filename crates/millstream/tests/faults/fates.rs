//! The fate of every request: the client, and its counts.

use crate::server::Site;
use crate::transport::Transport;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use serde_json::Value;
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// Connections that a client keeps open or busy.
pub(crate) const CONNECTIONS: u64 = 32;

/// A running client, killed when it is dropped.
pub(crate) struct Client {
    child: Child,
    json: std::path::PathBuf,
}

/// Requests by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fates {
    pub(crate) started: u64,
    /// Answered with status 200 and the right bytes, all of them.
    pub(crate) answered: u64,
    /// No connection, or an answer with another status.
    pub(crate) refused: u64,
    /// The connection was reset before the whole answer was there.
    pub(crate) reset: u64,
    /// It was closed before that.
    pub(crate) cut: u64,
    /// Wrong bytes, or no HTTP.
    pub(crate) wrong: u64,
    pub(crate) timed_out: u64,
    /// In progress when the client was ended.
    pub(crate) under_way: u64,
    /// Of those answered: in the last whole interval of the run, which is as long as [`INTERVAL`], and after it.
    pub(crate) answered_last: u64,
}

impl Client {
    /// Requests a file of the site until it is ended: on connections for one request, for twenty, and without limit.
    /// The caller is in the clients' namespace.
    pub(crate) fn start(site: &Site, transport: Transport, file: &str) -> Self {
        let json = site.path("fates.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command
            .args(["load", "-q", "-c"])
            .arg(CONNECTIONS.to_string());
        command.args([
            "-t",
            "1",
            "-d",
            "300s",
            "--think",
            "5ms",
            "--timeout",
            TIMEOUT,
        ]);
        command.args(["--requests-per-connection", "1:4,20:3,1000000:3"]);
        command
            .args(["--interval", INTERVAL, "--expect"])
            .arg(site.path(file));
        command.arg("--json").arg(&json);
        if let Some(stack) = transport.of_client(site) {
            command.args(["--stack", &stack]);
        }
        command.arg(format!("http://{}/{file}", transport.host()));
        let errors = File::create(site.path("client.log")).unwrap();
        let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self {
            child: streams.stderr(errors).spawn().unwrap(),
            json,
        }
    }

    /// Ends it; returns its counts.
    pub(crate) fn end(mut self) -> Fates {
        let pid = Pid::new(i32::try_from(self.child.id()).unwrap()).unwrap();
        pid.kill(Signal::Interrupt.number()).unwrap();
        // The status reports the verdict, which does not matter here.
        self.child.wait().unwrap();
        let text = std::fs::read(&self.json).unwrap();
        let document = serde_json::from_slice(&text).unwrap();
        let fates = Fates::of(&document);
        assert_eq!(fates.started, fates.sum(), "{fates:?}");
        fates
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Fates {
    fn of(document: &Value) -> Self {
        let results = &document["results"];
        let count = |value: &Value| value.as_u64().unwrap();
        let tally = &results["tally"];
        let kinds = |names: &[&str]| -> u64 {
            let kind = |name: &&str| count(&tally["failures"][*name]);
            names.iter().map(kind).sum()
        };
        let bad = count(&tally["statuses_bad"]);
        let answered = count(&tally["answered"]);
        let failed: u64 = tally["failures"]
            .as_object()
            .unwrap()
            .values()
            .map(count)
            .sum();
        let started = count(&tally["started"]);
        // The last one ends with the run, and may be short.
        let periods = results["periods"].as_array().unwrap();
        let last = periods.iter().rev().take(2);
        Self {
            started,
            answered: answered - bad,
            refused: bad + kinds(&["connect", "connect_timeout", "no_descriptor", "no_port"]),
            reset: kinds(&["reset"]),
            cut: kinds(&["ended_early"]),
            wrong: kinds(&["garbage", "wrong_content"]),
            timed_out: kinds(&["timeout"]),
            under_way: started - answered - failed,
            answered_last: last.map(|period| count(&period["answered"])).sum(),
        }
    }

    /// All fates together.
    fn sum(&self) -> u64 {
        let ended = self.answered + self.refused + self.reset + self.cut;
        ended + self.wrong + self.timed_out + self.under_way
    }

    /// Requests that were not answered, although there was time.
    pub(crate) const fn lost(&self) -> u64 {
        self.refused + self.reset + self.cut + self.wrong + self.timed_out
    }
}

/// The time limit of an answer, including its connection.
const TIMEOUT: &str = "5s";

/// Of the time series.
const INTERVAL: &str = "500ms";
