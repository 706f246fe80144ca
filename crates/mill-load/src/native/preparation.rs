//! From options to a plan and the requests to send: reads the named files and resolves addresses.

use crate::native::message;
use crate::native::options::{Body, Options, Refused};
use crate::native::{replay, runs};
use crate::plan::{AfterFailure, Ending, Opening, Plan, Stop};
use crate::platform::Platform;
use crate::request::{Rendered, Requests};
use crate::target::Endpoint;
use crate::target::Scheme;
use crate::tls::TlsPlan;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

/// The data of a run.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub plan: Plan,
    pub sending: Sending,
}

/// The requests, before they are given to threads.
#[derive(Clone, Debug, PartialEq)]
pub enum Sending {
    Mix(Vec<(Rendered, f64)>),
    Replay(Arc<[Rendered]>),
}

impl Sending {
    /// One thread's copy; the bytes are shared.
    pub fn requests(&self) -> Requests {
        match self {
            Self::Mix(mix) => Requests::Mix(mix.clone()),
            Self::Replay(all) => Requests::Replay(Arc::clone(all)),
        }
    }

    /// Whether every request is the same, so that every answer should be.
    pub fn is_one(&self) -> bool {
        match self {
            Self::Mix(mix) => mix.len() == 1,
            Self::Replay(all) => all.len() == 1,
        }
    }
}

/// Prepares a run. Each error is a message.
pub fn prepare(options: &Options, platform: &impl Platform) -> Result<Prepared, Refused> {
    let sending = sending(options)?;
    let expected = options.message.expect.as_deref();
    let expected = expected.map(|file| read("--expect", file)).transpose()?;
    let endpoints = endpoints(options, platform)?;
    let threads = options
        .threads
        .unwrap_or_else(|| platform.cpus().min(options.connections))
        .max(1);
    let opening = match (options.connection_rate, options.ramp) {
        (Some(rate), _) => Opening::Rate(rate),
        (None, Some(ramp)) => Opening::Ramp(ramp),
        (None, None) => Opening::Together,
    };
    let pace = runs::pace(options);
    let first = endpoints.first().cloned();
    let first = first.ok_or_else(|| Refused(String::from("the name has no address")))?;
    let plan = Plan {
        endpoints,
        connections: options.connections,
        threads,
        pace,
        life: options.life.clone(),
        opening,
        stop: Stop {
            after: options.duration,
            requests: options.requests,
        },
        warm_up: options.warm_up,
        sources: options.sources.clone(),
        tls: tls(options)?,
        streams: options.streams,
        nodelay: options.nodelay,
        timeout: options.timeout,
        after_failure: AfterFailure::Retry { pause: RETRY_PAUSE },
        ending: Ending::Framed,
        spin: options.spin,
        interval: options.interval,
        pin: options.pin,
        server_pid: options.server_pid,
        observe: true,
        expected: expected.map(Arc::from),
        seed: options.seed,
        origin: options.origin,
        ..Plan::new(first)
    };
    Ok(Prepared { plan, sending })
}

fn tls(options: &Options) -> Result<Option<TlsPlan>, Refused> {
    let secured = options
        .urls
        .iter()
        .find(|(url, _)| url.scheme == Scheme::Https);
    let Some((url, _)) = secured else {
        return Ok(None);
    };
    TlsPlan::new(&url.host, options.handshakes, options.tls_versions)
        .map(Some)
        .map_err(Refused)
}

fn sending(options: &Options) -> Result<Sending, Refused> {
    let message = &options.message;
    let body = match &message.body {
        Body::None => None,
        Body::Text(text) => Some(text.clone().into_bytes()),
        Body::File(file) => Some(read("--body-file", file)?),
    };
    let Some(file) = &message.replay else {
        let render = |url, target| message::render(message, url, target, body.as_deref());
        let mix = options.urls.iter().map(|(url, weight)| {
            let rendered = render(url, (&*message.method, &*url.target));
            (rendered, *weight)
        });
        return Ok(Sending::Mix(mix.collect()));
    };
    let text = read("--replay", file)?;
    let lines = replay::parse(&text).map_err(|why| Refused(format!("--replay {file}: {why}")))?;
    let Some((url, _)) = options.urls.first() else {
        return Err(Refused(String::from("there is no URL")));
    };
    let all: Vec<Rendered> = lines
        .iter()
        .map(|line| message::render(message, url, (&line.method, &line.target), None))
        .collect();
    Ok(Sending::Replay(all.into()))
}

/// The first address of the name, or the first of the family of the source addresses.
fn endpoints(options: &Options, platform: &impl Platform) -> Result<Vec<Endpoint>, Refused> {
    let Some((url, _)) = options.urls.first() else {
        return Err(Refused(String::from("there is no URL")));
    };
    let found = platform
        .resolve(&url.host, url.port_or_default())
        .map_err(|why| Refused(format!("{}: {why}", url.host)))?;
    let sources = &options.sources.addresses;
    let suits = |address: &&SocketAddr| {
        sources
            .iter()
            .all(|source| source.is_ipv4() == address.is_ipv4())
    };
    match found.iter().find(suits) {
        Some(address) => Ok(vec![Endpoint::Ip(*address)]),
        None if found.is_empty() => Err(Refused(format!("{} has no address", url.host))),
        None => Err(Refused(format!(
            "--source: {} has no address of the IP version of all of them",
            url.host
        ))),
    }
}

fn read(option: &str, file: &str) -> Result<Vec<u8>, Refused> {
    std::fs::read(file).map_err(|error| Refused(format!("{option} {file}: {error}")))
}

/// The first pause after a failed connect; it doubles up to a hundred times that (`AfterFailure::Retry`).
const RETRY_PAUSE: Duration = Duration::from_millis(10);
