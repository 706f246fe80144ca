//! Defaults, and checks of options against each other.

use super::{Body, Draft, Message, Options, Refused};
use crate::plan::{Arrivals, Life};
use crate::request::is_safe;
use crate::target::{Scheme, Url};
use crate::tls::{Handshakes, TlsVersions};
use core::time::Duration;

/// Sets defaults, and refuses contradictory options.
pub(super) fn finish(mut draft: Draft) -> Result<Options, Refused> {
    check(&draft)?;
    let connections = draft.connections.unwrap_or(CONNECTIONS);
    let is_open = draft.rate.is_some() || draft.search.is_some();
    let has_end = draft.duration.is_some() || draft.requests.is_some();
    let spin = if is_open { SPIN } else { Duration::ZERO };
    let timeout = draft.timeout.unwrap_or(TIMEOUT);
    // Opening the connections would delay the first requests, which are due all the same.
    let warm_up = if is_open && draft.requests.is_none() {
        WARM_UP
    } else {
        Duration::ZERO
    };
    let life = match draft.life.take() {
        Some(life) => life,
        None if draft.closes => Life::Requests(1),
        None => Life::Unlimited,
    };
    Ok(Options {
        connections,
        // What answers is part of one thread.
        threads: draft.threads.or(draft.origin.map(|_| 1)),
        duration: draft.duration.or((!has_end).then_some(DURATION)),
        requests: draft.requests,
        warm_up: draft.warm_up.unwrap_or(warm_up),
        rate: draft.rate,
        arrivals: draft.arrivals.unwrap_or(Arrivals::Uniform),
        think: draft.think.unwrap_or_default(),
        life,
        connection_rate: draft.connection_rate,
        ramp: draft.ramp,
        timeout: (!timeout.is_zero()).then_some(timeout),
        message: message(&mut draft),
        urls: draft.urls,
        sources: draft.sources,
        tls_versions: draft.tls_versions,
        handshakes: draft.handshakes,
        streams: draft.streams,
        nodelay: !draft.delays_small,
        spin: draft.spin.unwrap_or(spin),
        pin: draft.pin,
        seed: draft.seed.unwrap_or(1),
        interval: draft.interval.unwrap_or(INTERVAL),
        processes: draft.processes.unwrap_or(1),
        start_at: draft.start_at,
        part: draft.part,
        search: draft.search,
        sweep: draft.sweep,
        server_pid: draft.server_pid,
        origin: draft.origin,
        requirements: draft.requirements,
        thresholds: draft.thresholds,
        outputs: draft.outputs,
        quiet: draft.quiet,
        colour: !draft.no_colour,
    })
}

fn message(draft: &mut Draft) -> Message {
    let method = draft.method.take().unwrap_or_else(|| {
        String::from(match draft.body {
            Body::None => "GET",
            Body::Text(_) | Body::File(_) => "POST",
        })
    });
    Message {
        method,
        version: draft.version.unwrap_or_default(),
        headers: core::mem::take(&mut draft.headers),
        body: core::mem::take(&mut draft.body),
        user: draft.user.take(),
        keep_alive: !draft.closes,
        replay: draft.replay.take(),
        expect: draft.expect.take(),
    }
}

fn check(draft: &Draft) -> Result<(), Refused> {
    check_urls(&draft.urls)?;
    check_load(draft)?;
    check_early(draft)?;
    check_processes(draft)
}

/// Checks what goes with the first flight.
fn check_early(draft: &Draft) -> Result<(), Refused> {
    if draft.handshakes != Handshakes::Early {
        return Ok(());
    }
    let has_body = draft.body != Body::None;
    let method = draft.method.as_deref();
    let is_unsafe = method.map_or(has_body, |method| !is_safe(method.as_bytes()));
    refuse_first([
        (
            draft
                .urls
                .iter()
                .all(|(url, _)| url.scheme != Scheme::Https),
            "--tls-early is of https://",
        ),
        (
            draft.tls_versions == TlsVersions::Only12,
            "--tls-early is of TLS 1.3; leave out --tls 1.2",
        ),
        (
            draft.streams.is_some(),
            "--tls-early is for HTTP/1; leave out --h2 and --streams",
        ),
        (
            draft.replay.is_none() && is_unsafe,
            "--tls-early sends only safe requests early, as a copy may reach the server twice: GET, HEAD, OPTIONS, TRACE",
        ),
    ])
}

/// Checks the pace and the requests.
fn check_load(draft: &Draft) -> Result<(), Refused> {
    let connections = draft.connections.unwrap_or(CONNECTIONS);
    let replays = draft.replay.is_some();
    let names_request = draft.method.is_some() || draft.body != Body::None;
    let many_lives = draft
        .life
        .as_ref()
        .is_some_and(|life| *life != Life::Requests(1));
    let standard_outputs = draft.outputs.all().filter(|file| *file == "-").count();
    let contradictions = [
        (
            draft.threads.is_some_and(|threads| threads > connections),
            "--threads is more than --connections: a thread without a connection does nothing",
        ),
        (
            (draft.rate.is_some() || draft.search.is_some()) && draft.think.is_some(),
            "--think is for a closed loop; the requests of --rate and --search come at their own times",
        ),
        (
            draft.rate.is_none() && draft.search.is_none() && draft.arrivals.is_some(),
            "--arrivals says how the requests of --rate lie in time; give --rate, too",
        ),
        (
            draft.connection_rate.is_some() && draft.ramp.is_some(),
            "--connection-rate and --ramp both say when connections are opened; give one of them",
        ),
        (
            draft.closes && many_lives,
            "--no-keepalive is one request per connection; leave out --requests-per-connection",
        ),
        (
            replays && (names_request || draft.urls.len() > 1),
            "--replay takes methods and targets from its file; give one URL and no method or body",
        ),
        (
            draft.expect.is_some() && (replays || draft.urls.len() > 1),
            "--expect compares the answers of one URL; leave out --replay and all URLs but one",
        ),
        (
            standard_outputs > 1,
            "only one of --json, --hlog, --csv and --svg can go to standard output",
        ),
    ];
    refuse_first(contradictions)
}

/// Checks repeated runs and several processes.
fn check_processes(draft: &Draft) -> Result<(), Refused> {
    let connections = draft.connections.unwrap_or(CONNECTIONS);
    let processes = draft.processes.unwrap_or(1);
    let searches = draft.search.is_some();
    // A part gets the whole command line, and does only its own part.
    let sweeps = draft.sweep.is_some() && draft.part.is_none();
    let writes = draft.outputs.all().next().is_some();
    refuse_first([
        (
            processes > connections,
            "--processes is more than --connections: a process without a connection does nothing",
        ),
        (
            draft.start_at.is_some() && (processes > 1 || searches || sweeps),
            "--start-at is for one process; those of --processes begin together by themselves",
        ),
        (
            searches && processes > 1,
            "--search is for one process; give it threads",
        ),
        (
            searches && draft.requests.is_some(),
            "--search has trials of its own length; leave out --requests",
        ),
        (
            searches && sweeps,
            "--search and --sweep are two things; give one of them",
        ),
        (
            sweeps && (draft.connections.is_some() || draft.processes.is_some()),
            "--sweep says how many connections and processes; leave out --connections and --processes",
        ),
        (
            sweeps && writes,
            "--sweep writes its table to standard output and no files",
        ),
        (
            draft.streams.is_some() && (draft.closes || draft.life.is_some()),
            "--h2 keeps its connections: leave out --no-keepalive and --requests-per-connection",
        ),
        (
            draft.streams.is_some() && draft.version.is_some(),
            "--http is a version of HTTP/1; leave it out with --h2",
        ),
        (
            draft.origin.is_some() && draft.threads.is_some_and(|threads| threads > 1),
            "--origin answers in the thread that sends: leave out --threads",
        ),
        (
            draft.origin.is_some() && (processes > 1 || searches || draft.sweep.is_some()),
            "--origin is for one process and one run; leave out --processes, --search and --sweep",
        ),
    ])
}

fn refuse_first<const N: usize>(contradictions: [(bool, &str); N]) -> Result<(), Refused> {
    match contradictions.into_iter().find(|(holds, _)| *holds) {
        Some((_, why)) => Err(Refused(String::from(why))),
        None => Ok(()),
    }
}

/// All URLs must have the same host and port.
fn check_urls(urls: &[(Url, f64)]) -> Result<(), Refused> {
    let Some((first, _)) = urls.first() else {
        return Err(Refused(String::from("there is no URL")));
    };
    for (url, _) in urls {
        if url.scheme != first.scheme {
            let why = "some URLs are https:// and others http://; start one run for each";
            return Err(Refused(String::from(why)));
        }
        let same_place = url.host == first.host && url.port_or_default() == first.port_or_default();
        if !same_place {
            return Err(Refused(format!(
                "{} and {} are two servers; all URLs of a run have the same host and port for now, \
                 start one run for each",
                first.authority(),
                url.authority()
            )));
        }
    }
    Ok(())
}

/// wrk's default.
const CONNECTIONS: u32 = 10;

/// Long enough for steady figures, short enough to wait for.
const DURATION: Duration = Duration::from_secs(10);

/// Enough to open connections and fill caches; long measurements of a steady state need more.
const WARM_UP: Duration = Duration::from_secs(1);

/// ab's; a user would have given up by then.
const TIMEOUT: Duration = Duration::from_secs(30);

/// About how late the kernel wakes a thread on a busy machine.
const SPIN: Duration = Duration::from_micros(50);

const INTERVAL: Duration = Duration::from_secs(1);
