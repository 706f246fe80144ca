//! What wrk and wrk2 do before a run: read the command line, find the server, make the requests.

use crate::dialect::wrk::arguments::{Arguments, Reading, Refusal, Tool, parse};
use crate::dialect::wrk::request::render;
use crate::dialect::wrk::{usage, warnings};
use crate::ground::Ground;
use crate::plan::{AfterFailure, Life, Plan, Stop};
use crate::request::{Rendered, Requests};
use crate::target::{Endpoint, Scheme};
use core::net::SocketAddr;
use mill_runtime::time::Duration;
use std::io::{self, Write};

/// What came of preparing.
#[derive(Debug)]
pub(crate) enum Preparation {
    Ready(Box<Prepared>),
    /// There is nothing to run; why has been printed.
    Exit(u8),
    /// The command line has wrk2's options.
    ConstantRate,
}

/// All that a run needs.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) arguments: Arguments,
    pub(crate) address: SocketAddr,
    rendered: Rendered,
}

/// Reads a command line and finds its server; prints the version if asked and why it can't go on.
pub(crate) fn prepare(
    tool: Tool,
    arguments: &[Vec<u8>],
    ground: &impl Ground,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> io::Result<Preparation> {
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
    if arguments.url.scheme == Scheme::Https {
        return exit(
            "millstream: https:// is not supported yet; use http://",
            err,
        );
    }
    if arguments.script.is_some() {
        return exit("millstream: scripts are not supported yet", err);
    }
    let address = match find(&arguments, ground) {
        Ok(address) => address,
        Err(sentence) => return exit(&sentence, err),
    };
    warnings::emit_before(&arguments, err)?;
    let rendered = render(&arguments.url, &arguments.headers);
    Ok(Preparation::Ready(Box::new(Prepared {
        arguments,
        address,
        rendered,
    })))
}

fn exit(sentence: &str, err: &mut dyn Write) -> io::Result<Preparation> {
    writeln!(err, "{sentence}")?;
    Ok(Preparation::Exit(EXIT_FAILURE))
}

/// The first of the server's addresses that accepts a connection.
fn find(arguments: &Arguments, ground: &impl Ground) -> Result<SocketAddr, String> {
    let url = &arguments.url;
    let service = url
        .port
        .map_or(String::from("http"), |port| port.to_string());
    let place = format!("{}:{service}", url.host);
    let addresses = ground
        .resolve(&url.host, url.port_or_default())
        .map_err(|error| format!("unable to resolve {place} {error}"))?;
    let mut addresses = addresses.into_iter();
    addresses
        .find(|address| ground.accepts(*address))
        .ok_or_else(|| format!("unable to connect to {place} Connection refused"))
}

impl Prepared {
    /// One for each thread.
    pub(crate) fn requests(&self) -> Vec<Requests> {
        let threads = 0..self.arguments.threads;
        threads
            .map(|_| Requests::always(self.rendered.clone()))
            .collect()
    }

    /// wrk's plan: a closed loop over connections that stay, for a time, and no end to a request.
    pub(crate) fn plan(&self) -> Plan {
        let arguments = &self.arguments;
        let mut plan = Plan::new(Endpoint::from(self.address));
        plan.threads = arguments.threads;
        plan.connections = arguments.connections_opened();
        plan.stop = Stop {
            after: Some(Duration::from_secs(arguments.duration_s)),
            requests: None,
        };
        plan.life = match arguments.beyond.connreqs {
            None => Life::Unlimited,
            // His branch compares after a response: none and one are the same.
            Some(count) => Life::Requests(u32::try_from(count.max(1)).unwrap_or(u32::MAX)),
        };
        plan.nodelay = arguments.beyond.nodelay;
        plan.after_failure = AfterFailure::GiveUpConnecting;
        plan
    }
}

/// wrk's exit status whenever it does not run.
pub(crate) const EXIT_FAILURE: u8 = 1;
