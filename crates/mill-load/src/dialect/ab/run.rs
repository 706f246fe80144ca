//! From a command line to a report: the plan, the run, and the lines printed around it.

use super::FATAL;
use super::arguments::Options;
use super::files::{Began, emit_csv, emit_gnuplot};
use super::message::{self, Message};
use super::progress::{Progress, every};
use super::recorder::Recorder;
use super::report::{self, Outcome};
use super::request::{Request, render};
use super::{html, statistics, strerror, tls, usage};
use crate::failure::{Failure, FailureKind};
use crate::generator::Part;
use crate::local::Abort;
use crate::plan::{AfterFailure, Ending, Life, Plan, Stop};
use crate::platform::{Platform, ThreadInput};
use crate::request::{Batch, Rendered, Requests};
use crate::silence::{remark, usual_rank};
use crate::tally::Tally;
use crate::target::Endpoint;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Carries out a command line; returns ab's exit status.
pub(super) fn run(
    options: &Options,
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let prepared = match tls::prepare(options) {
        Ok(prepared) => prepared,
        Err(message) => return end(&message, 0, out, err),
    };
    if let Some(notice) = &prepared.notice {
        writeln!(err, "{notice}")?;
    }
    let every = every(options);
    announce(options, every.is_some(), out)?;
    let Ok(request) = render(options) else {
        return end(&Message::fatal("Request too long\n"), 0, out, err);
    };
    show(options, &request, out)?;
    let plan = match plan(options, platform) {
        Ok(plan) => Plan {
            tls: prepared.plan,
            ..plan
        },
        Err(message) => return end(&message, 0, out, err),
    };
    let Ok(recorder) = Recorder::new(options) else {
        return end(&no_memory(options), 0, out, err);
    };
    if options.window_bytes != 0 {
        err.write_all(WINDOW_WARNING.as_bytes())?;
    }
    out.flush()?;
    let input = ThreadInput {
        requests: Requests::always(rendered(request)),
        recorder,
    };
    let now = || began(platform);
    let mut progress = Progress::new(every, &now, out, err);
    let ran = platform.run(&plan, vec![input], &mut progress);
    let (ran, part) = match ran.map(|mut ran| (ran.parts.pop(), ran)) {
        Ok((Some(part), ran)) => (ran, part),
        Ok((None, _)) => return end(&Message::fatal("ab: the run has no thread"), 0, out, err),
        Err(error) => return end(&Message::fatal(&format!("ab: {error}")), 0, out, err),
    };
    let Part {
        mut recorder,
        tally,
        aborted,
        gaps,
        ..
    } = part;
    let mut lines = recorder.take_lines();
    let failure = match aborted {
        Some(Abort::Failure(failure)) => Some(failure),
        _ => None,
    };
    if failure.is_some() {
        // ab ends at once, and does not count the failure that ended it.
        lines.done = lines.done.saturating_sub(1);
    }
    progress.tell(&lines);
    let began = progress.began;
    if let Some(failure) = failure {
        return give_up(options, failure, lines.done, out, err);
    }
    let mut taken = ran.measured;
    if !ran.interrupted {
        finished(every.is_some(), lines.done, out, err)?;
        taken = recorder.taken();
    }
    let mut outcome = outcome(options, &mut recorder, &tally, taken);
    let answers = outcome.rows.len() as u64;
    let rank = usize::try_from(usual_rank(answers, plan.connections)).unwrap_or(0);
    let usual = outcome.rows.get(rank).map_or(0, |row| row.total_us);
    let usual = Duration::from_micros(usual);
    outcome.unserved = remark((&gaps, &tally), plan.connections, ran.measured, usual);
    conclude(&outcome, began, ran.interrupted, out, err)
}

fn outcome<'a>(
    options: &'a Options,
    recorder: &'a mut Recorder,
    tally: &Tally,
    taken: Duration,
) -> Outcome<'a> {
    Outcome {
        options,
        server: recorder.server.as_deref().unwrap_or_default(),
        secured: recorder.secured.as_ref(),
        document_len: recorder.document_len.unwrap_or(0),
        taken,
        counts: recorder.counts,
        bytes_received: tally.bytes_received,
        content_bytes: tally.content_bytes,
        bytes_sent: tally.bytes_sent,
        times: statistics::measure(&mut recorder.rows),
        rows: &recorder.rows,
        unserved: None,
    }
}

/// The banner and the target.
fn announce(options: &Options, has_progress: bool, out: &mut dyn Write) -> io::Result<()> {
    usage::emit_banner(options.html.is_some(), out)?;
    if options.html.is_some() {
        return Ok(());
    }
    out.write_all(&[b"Benchmarking ", &*options.url.host, b" "].concat())?;
    if let Some((name, port)) = &options.proxy {
        out.write_all(&[b"[through ", &**name].concat())?;
        write!(out, ":{port}] ")?;
    }
    let end = if has_progress { "\n" } else { "..." };
    write!(out, "(be patient){end}")
}

fn show(options: &Options, request: &Request, out: &mut dyn Write) -> io::Result<()> {
    if options.verbosity < 2 {
        return Ok(());
    }
    let parts: [&[u8]; 5] = [
        b"INFO: ",
        options.method.name(),
        b" header == \n---\n",
        &request.head,
        b"\n---\n",
    ];
    out.write_all(&parts.concat())
}

fn plan(options: &Options, platform: &impl Platform) -> Result<Plan, Message> {
    let source = match &options.source {
        None => None,
        Some(name) => resolve(platform, name, 0)?.first().map(SocketAddr::ip),
    };
    let (host, port) = match &options.proxy {
        Some((name, port)) => (name.as_slice(), *port),
        None => (options.url.host.as_slice(), options.url.port),
    };
    let addresses = resolve(platform, host, port)?;
    let Some(address) = choose(platform, &addresses, source) else {
        let reason = "no address of the family that -B asks for";
        return Err(message::unresolved(&text(host), reason));
    };
    if options.concurrency == 0 {
        return Err(message::no_connections());
    }
    let mut plan = Plan::new(Endpoint::Ip(address));
    plan.connections = options.concurrency;
    plan.sources.addresses = source.into_iter().collect();
    // ab leaves Nagle's algorithm on.
    plan.nodelay = false;
    plan.stop = Stop {
        after: options.time_limit,
        requests: Some(u64::from(options.requests)),
    };
    (plan.life, plan.ending) = if options.keep_alive {
        (Life::Unlimited, Ending::FramedOrClose)
    } else {
        (Life::Requests(1), Ending::Close)
    };
    plan.timeout = options.timeout;
    plan.after_failure = AfterFailure::AbortOn(if options.goes_on {
        &ENDING_ALWAYS
    } else {
        &ENDING
    });
    plan.interval = INTERVAL;
    Ok(plan)
}

fn resolve(platform: &impl Platform, host: &[u8], port: u16) -> Result<Vec<SocketAddr>, Message> {
    let host = text(host);
    platform
        .resolve(&host, port)
        .map_err(|reason| message::unresolved(&host, &reason))
}

/// The first address that accepts connections, the last if none does: ab goes on to the next address of a name as long
/// as nothing was answered. Nothing is probed if there is no choice.
fn choose(
    platform: &impl Platform,
    addresses: &[SocketAddr],
    source: Option<IpAddr>,
) -> Option<SocketAddr> {
    let fits =
        |address: &&SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
    let mut fitting = addresses.iter().copied().filter(|address| fits(&address));
    let mut chosen = fitting.next()?;
    for next in fitting {
        if platform.accepts(chosen) {
            break;
        }
        chosen = next;
    }
    Some(chosen)
}

fn rendered(request: Request) -> Rendered {
    Rendered {
        bytes: Arc::from([request.head, request.body].concat()),
        batch: Batch {
            is_head: request.is_head,
            ..Batch::ONE
        },
    }
}

fn began(platform: &impl Platform) -> Began {
    let clock = platform.wall_clock();
    Began {
        unix_us: clock
            .seconds
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(clock.nanos / 1000)),
        utc_offset_seconds: platform.utc_offset_seconds(clock.seconds),
    }
}

/// ab's output when a run ends early.
fn end(message: &Message, done: u64, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    writeln!(err, "{}", message.text)?;
    if done > 0 {
        writeln!(out, "Total of {done} requests completed")?;
    }
    Ok(message.status)
}

fn give_up(
    options: &Options,
    failure: Failure,
    done: u64,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let message = if failure == Failure::NoPort && options.source.is_some() {
        message::bind()
    } else {
        message::of(failure)
    };
    let status = end(&message, done, out, err)?;
    if !options.goes_on && !ENDING_ALWAYS.contains(&failure.kind()) {
        err.write_all(FAILURE_WARNING.as_bytes())?;
    }
    Ok(status)
}

fn finished(
    has_progress: bool,
    done: u64,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    if has_progress {
        writeln!(err, "Finished {done} requests")
    } else {
        out.write_all(b"..done\n")
    }
}

/// The report, the files, our own line. An interrupted run is always reported as text, and fails.
fn conclude(
    outcome: &Outcome<'_>,
    began: Began,
    interrupted: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    match &outcome.options.html {
        Some(html) if !interrupted => html::emit(outcome, html, out)?,
        _ => report::emit(outcome, out)?,
    }
    out.flush()?;
    if !outcome.rows.is_empty() {
        let csv = save(outcome.options.csv.as_deref(), |file| {
            emit_csv(outcome.rows, file)
        });
        let gnuplot = save(outcome.options.gnuplot.as_deref(), |file| {
            emit_gnuplot(outcome.rows, began, file)
        });
        for (saved, what) in [(csv, "CSV"), (gnuplot, "gnuplot")] {
            if let Err(error) = saved {
                let reason = strerror::text(&error);
                writeln!(err, "Cannot open {what} output file: {reason}")?;
                return Ok(FATAL);
            }
        }
    }
    if let Some(line) = report::warning(outcome) {
        writeln!(err, "{line}")?;
    }
    Ok(u8::from(interrupted))
}

fn save(
    path: Option<&[u8]>,
    emit: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let mut file = BufWriter::new(File::create(Path::new(OsStr::from_bytes(path)))?);
    emit(&mut file)?;
    file.flush()
}

fn no_memory(options: &Options) -> Message {
    let bytes = u64::from(options.requests) * size_of::<super::recorder::Row>() as u64;
    Message::fatal(&format!("Could not allocate memory ({bytes} bytes)"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Failures that end ab's runs with any options.
pub(super) const ENDING_ALWAYS: [FailureKind; 4] = [
    FailureKind::ConnectTimeout,
    FailureKind::NoDescriptor,
    FailureKind::NoPort,
    FailureKind::Timeout,
];

/// Failures that end ab's runs without `-r`.
const ENDING: [FailureKind; 6] = [
    FailureKind::Connect,
    FailureKind::ConnectTimeout,
    FailureKind::NoDescriptor,
    FailureKind::NoPort,
    FailureKind::Reset,
    FailureKind::Timeout,
];

/// How often progress is checked: lines are late by at most this, which is not visible.
const INTERVAL: Duration = Duration::from_millis(50);

const WINDOW_WARNING: &str =
    "millstream: -b is not carried out, the sizes of the socket's buffers are the system's\n";

const FAILURE_WARNING: &str =
    "millstream: one failure ended the run, as it ends ab's; with -r it goes on and counts them\n";
