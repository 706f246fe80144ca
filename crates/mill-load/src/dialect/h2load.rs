//! h2load (nghttp2 1.52): its command line and its report.
//!
//! Requests are sent in a closed loop, so many at once on each connection as `-m` says. Times, rates and bytes are measured as
//! h2load does it; our own messages go to standard error.

/// Its command line.
mod arguments;
/// What a thread records.
mod recorder;
/// Its report.
mod report;
/// The requests that it sends.
mod requests;

use crate::failure::FailureKind;
use crate::plan::{AfterFailure, Opening, Pace, Plan, Stop};
use crate::platform::{Platform, ThreadInput, Watch};
use crate::target::{Endpoint, Scheme};
use crate::tls::{Handshakes, TlsPlan, TlsVersions};
use arguments::{Arguments, Base, Refusal};
use core::num::NonZeroU32;
use mill_runtime::time::Duration;
use recorder::{Progressed, Recorder};
use report::Figures;
use std::io::{self, Write};

/// Runs a command line of h2load, without its first word; returns the exit status.
pub fn main(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    match run(arguments, platform, out, err) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(_) => EXIT_FAILURE,
    }
}

fn run(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let arguments = match arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(Refusal::Text(text)) => {
            out.write_all(text.as_bytes())?;
            return Ok(0);
        }
        Err(Refusal::Sentence(sentence)) => {
            writeln!(err, "{sentence}")?;
            return Ok(EXIT_FAILURE);
        }
    };
    let prepared = plan(&arguments, platform).and_then(|plan| {
        platform.prepare().map_err(|error| error.to_string())?;
        Ok(plan)
    });
    let plan = match prepared {
        Ok(plan) => plan,
        Err(sentence) => {
            writeln!(err, "h2load: {sentence}")?;
            return Ok(EXIT_FAILURE);
        }
    };
    measure(&arguments, &plan, platform, out, err)
}

fn measure(
    arguments: &Arguments,
    plan: &Plan,
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    report::emit_banner(arguments, plan, out)?;
    out.flush()?;
    let inputs = plan.shares().map(|share| ThreadInput {
        requests: requests::of_thread(arguments),
        recorder: Recorder::new(share.connections),
    });
    let mut progress = Progress::new(plan, out);
    let ran = platform.run(plan, inputs.collect(), &mut progress);
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            writeln!(err, "h2load: {error}")?;
            return Ok(EXIT_FAILURE);
        }
    };
    let mut sum = Recorder::new(0..0);
    let mut tally = crate::tally::Tally::default();
    for part in &ran.parts {
        sum.add(&part.recorder);
        tally += part.tally;
    }
    progress.end(tally.answered);
    let figures = Figures {
        recorder: &sum,
        is_http1: arguments.http1,
        timeouts: tally.failures_of(FailureKind::Timeout),
        requests: plan.stop.requests,
        measured: ran.measured,
        tally,
    };
    report::emit(&figures, out)?;
    out.flush()?;
    Ok(0)
}

/// What the command line means.
fn plan(arguments: &Arguments, platform: &impl Platform) -> Result<Plan, String> {
    let url = &arguments.url;
    let endpoint = match &arguments.base {
        Some(Base::Unix(path)) => Endpoint::Unix(path.as_slice().into()),
        base => {
            let (host, port) = match base {
                Some(Base::Address(host, port)) => (host.as_str(), *port),
                _ => (url.host.as_str(), url.port_or_default()),
            };
            let found = platform.resolve(host, port)?;
            let first = found.first().copied();
            Endpoint::Ip(first.ok_or_else(|| format!("{host} has no address"))?)
        }
    };
    let mut plan = Plan::new(endpoint);
    plan.connections = arguments.clients;
    plan.threads = arguments.threads;
    plan.streams = (!arguments.http1).then_some(arguments.streams);
    plan.window_bytes = arguments.window_bytes;
    plan.stop = match arguments.duration {
        Some(duration) => Stop {
            after: Some(duration),
            requests: None,
        },
        None => Stop {
            after: None,
            requests: Some(arguments.requests),
        },
    };
    plan.warm_up = arguments.warm_up;
    if let Some(rate) = arguments.rate {
        plan.opening = Opening::Rate(rate);
    }
    if let Some(rate) = arguments.requests_per_second {
        plan.pace = Pace::Each {
            rate: rate * f64::from(arguments.clients),
        };
    }
    plan.timeout = arguments.timeout;
    plan.interval = PROGRESS_INTERVAL;
    plan.after_failure = AfterFailure::GiveUpConnecting;
    if url.scheme == Scheme::Https {
        plan.tls = Some(TlsPlan::new(
            &url.host,
            Handshakes::Full,
            TlsVersions::Both,
        )?);
    }
    Ok(plan)
}

/// The lines during a run: each tenth of the requests.
struct Progress<'a> {
    out: &'a mut dyn Write,
    requests: Option<u64>,
    done: u64,
    tenths: u64,
    of_threads: Vec<u64>,
}

impl<'a> Progress<'a> {
    fn new(plan: &Plan, out: &'a mut dyn Write) -> Self {
        Self {
            out,
            requests: plan.stop.requests,
            done: 0,
            tenths: 0,
            of_threads: vec![0; plan.threads as usize],
        }
    }

    fn tell(&mut self) {
        let Some(requests) = self.requests else {
            return;
        };
        while self.tenths < 10 && self.done * 10 >= requests * (self.tenths + 1) {
            self.tenths += 1;
            // It could not be reported either.
            let _ = writeln!(self.out, "progress: {}0% done", self.tenths);
            let _ = self.out.flush();
        }
    }

    /// So many requests were answered in all.
    fn end(&mut self, answered: u64) {
        self.done = answered;
        self.tell();
    }
}

impl Watch<Progressed> for Progress<'_> {
    fn on_interval(&mut self, thread: u32, _: Duration, progressed: Progressed) {
        if let Some(of_thread) = self.of_threads.get_mut(thread as usize) {
            *of_thread = progressed.0;
        }
        self.done = self.of_threads.iter().sum();
        self.tell();
    }
}

const EXIT_FAILURE: u8 = 1;

/// How often it is looked whether a tenth is done.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Requests at once without `-m`.
const STREAMS: NonZeroU32 = NonZeroU32::MIN;
