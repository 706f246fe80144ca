//! What wrk and wrk2 do before a run: read the command line, find the server, make the requests.

use crate::dialect::wrk::arguments::{Arguments, Reading, Refusal, Tool, parse};
use crate::dialect::wrk::request::{field, render};
use crate::dialect::wrk::{usage, warnings};
use crate::plan::{AfterFailure, Life, Plan, Stop};
use crate::request::{Requests, ScriptError};
use crate::script::{Environment, Stage};
use crate::target::{Endpoint, Scheme};
use crate::tls::{Handshakes, TlsPlan, TlsVersions};
use mill_runtime::time::Duration;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The result of the preparation.
#[derive(Debug)]
pub(crate) enum Preparation<'a> {
    Ready(Box<Prepared<'a>>),
    /// There is no run; the reason has been printed.
    Exit(u8),
    /// The command line has wrk2's options.
    ConstantRate,
}

/// The data of a run.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    pub(crate) arguments: Arguments,
    /// The first of the server's addresses.
    first: Endpoint,
    /// Where each thread's connections go, if a script chose.
    endpoints: Vec<Endpoint>,
    /// What each thread sends.
    pub(crate) requests: Vec<Requests>,
    pub(crate) stage: Option<Stage<'a>>,
}

/// Reads a command line and finds its server; prints the version if asked, or why it can't go on.
pub(crate) fn prepare<'a>(
    tool: Tool,
    arguments: &[Vec<u8>],
    environment: Environment<'a>,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> io::Result<Preparation<'a>> {
    let Reading { versions, result } = parse(tool, arguments);
    if result == Err(Refusal::ConstantRate) {
        return Ok(Preparation::ConstantRate);
    }
    let (version, usage) = match tool {
        Tool::Wrk => ("4.1.0", usage::WRK),
        Tool::Wrk2 => ("4.0.0", usage::WRK2),
    };
    for _ in 0..versions {
        out.write_all(usage::version(version).as_bytes())?;
    }
    let arguments = match result {
        Ok(arguments) => arguments,
        Err(Refusal::Sentence(sentence)) => return exit(&format!("millstream: {sentence}"), err),
        Err(refusal) => {
            if let Refusal::Usage(Some(complaint)) = refusal {
                writeln!(err, "{complaint}")?;
            }
            out.write_all(usage.as_bytes())?;
            return Ok(Preparation::Exit(EXIT_FAILURE));
        }
    };
    let addresses = match find(&arguments, &environment) {
        Ok(addresses) => addresses,
        Err(sentence) => return exit(&sentence, err),
    };
    warnings::emit_before(&arguments, err)?;
    match Prepared::new(arguments, addresses, environment) {
        Ok(prepared) => Ok(Preparation::Ready(Box::new(prepared))),
        Err(error) => exit(&format!("millstream: {error}"), err),
    }
}

fn exit<'a>(sentence: &str, err: &mut dyn Write) -> io::Result<Preparation<'a>> {
    writeln!(err, "{sentence}")?;
    Ok(Preparation::Exit(EXIT_FAILURE))
}

/// The server's addresses that accept a connection: one, and others if there are.
fn find(
    arguments: &Arguments,
    environment: &Environment<'_>,
) -> Result<(Endpoint, Vec<Endpoint>), String> {
    let url = &arguments.url;
    let service = url
        .port
        .map_or(String::from("http"), |port| port.to_string());
    let place = format!("{}:{service}", url.host);
    let mut addresses =
        (environment.resolve)(&url.host, url.port_or_default()).map_err(|error| {
            let named = format!("unable to resolve {}: ", url.host);
            let reason = error.strip_prefix(&named).unwrap_or(&error);
            format!("unable to resolve {place} {reason}")
        })?;
    addresses.retain(|address| (environment.accepts)(*address));
    let addresses: Vec<Endpoint> = addresses.into_iter().map(Endpoint::from).collect();
    match addresses.first().cloned() {
        Some(first) => Ok((first, addresses)),
        None => Err(format!("unable to connect to {place} Connection refused")),
    }
}

impl<'a> Prepared<'a> {
    /// Makes the requests of each thread, by the script if there is one.
    fn new(
        arguments: Arguments,
        (first, addresses): (Endpoint, Vec<Endpoint>),
        environment: Environment<'a>,
    ) -> Result<Self, ScriptError> {
        let Some(path) = &arguments.script else {
            let rendered = render(&arguments.url, &arguments.headers);
            let requests = (0..arguments.threads).map(|_| Requests::always(rendered.clone()));
            return Ok(Self {
                requests: requests.collect(),
                endpoints: Vec::new(),
                first,
                arguments,
                stage: None,
            });
        };
        let headers = arguments.headers.iter();
        let headers: Vec<(&[u8], &[u8])> = headers.filter_map(|line| field(line)).collect();
        let path = Path::new(OsStr::from_bytes(path));
        let stage = Stage::load(path, &arguments.url, &headers, environment)?;
        let mut words = vec![arguments.url_text.clone().into_bytes()];
        words.extend(arguments.operands.iter().cloned());
        let threads = stage.setup(arguments.threads, &addresses, &words)?;
        let (endpoints, requests) = threads
            .into_iter()
            .map(|thread| (thread.endpoint, thread.requests))
            .unzip();
        Ok(Self {
            arguments,
            first,
            endpoints,
            requests,
            stage: Some(stage),
        })
    }

    /// wrk's plan: a closed loop over persistent connections, for a time, without a time limit of requests.
    pub(crate) fn plan(&self) -> Plan {
        let arguments = &self.arguments;
        let mut plan = Plan::new(self.first.clone());
        plan.endpoints_of_threads.clone_from(&self.endpoints);
        plan.threads = arguments.threads;
        plan.connections = arguments.connections_opened();
        plan.stop = Stop {
            after: Some(Duration::from_secs(arguments.duration_s)),
            requests: None,
        };
        plan.life = match arguments.beyond.connreqs {
            None => Life::Unlimited,
            // The branch compares after a response: zero and one are the same.
            Some(count) => Life::Requests(u32::try_from(count.max(1)).unwrap_or(u32::MAX)),
        };
        if arguments.url.scheme == Scheme::Https {
            // As with wrk, each handshake is a full one. The settings never fail.
            plan.tls = TlsPlan::new(&arguments.url.host, Handshakes::Full, TlsVersions::Both).ok();
        }
        plan.nodelay = arguments.beyond.nodelay;
        plan.after_failure = AfterFailure::GiveUpConnecting;
        plan
    }
}

/// The exit status of a run. A closed output is no failure for wrk.
pub(crate) fn exit_status(result: io::Result<u8>) -> u8 {
    match result {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(_) => EXIT_FAILURE,
    }
}

/// wrk's exit status whenever it does not run.
pub(crate) const EXIT_FAILURE: u8 = 1;
