//! What the process in charge knows: itself, and the figures that all workers have published.

use crate::cycle::Cycle;
use crate::launch::Launch;
use mill_config::config::ListenAddress;
use mill_device::specification::Specification;
use mill_metrics::WorkerFigures;
use mill_status::document::{FORMAT, OptionInForce, Server, Status, Total, Worker};
use mill_status::verdict::Observed;
use mill_sys::{clock, socket};
use std::time::Duration;

/// Facts about a server that do not change while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// `master`, or `single`.
    pub(crate) role: &'static str,
    /// On the monotonic clock.
    pub(crate) started_at: Duration,
    /// Features of the stack that could not be had as requested, as messages.
    pub(crate) fallbacks: Vec<String>,
}

/// The status without asking a worker. `boards`: the process id of each worker process, and its workers' published
/// figures.
pub(crate) fn status(
    identity: &Identity,
    launch: &Launch,
    cycle: &Cycle,
    boards: &[(u32, Vec<WorkerFigures>)],
) -> Status {
    let now = clock::monotonic();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let workers: Vec<Worker> = boards
        .iter()
        .flat_map(|(process, workers)| workers.iter().map(move |worker| (*process, worker)))
        .map(|(process, shown)| Worker::new(process, shown, now_ns, Observed::default()))
        .collect();
    let sockets = cycle.config.sockets();
    let listen = sockets.map(|socket| shown(socket.address)).collect();
    let speaks_tls = cycle.config.sockets().any(|socket| socket.ssl);
    let stack = launch.stack.as_ref();
    Status {
        format: FORMAT,
        server: Server {
            program: launch.program.to_owned(),
            version: launch.version.clone(),
            pid: std::process::id(),
            role: identity.role.to_owned(),
            uptime_s: now.saturating_sub(identity.started_at).as_secs_f64(),
            configuration: launch.options.conf_file().display().into_owned(),
            pid_file: cycle
                .pid_file
                .as_ref()
                .map(|file| file.path().to_string_lossy().into_owned()),
            generation: cycle.generation,
            listen,
            stack: stack.map(|stack| format!("{}:{}", stack.device.kind(), stack.device)),
            kernel_tls: speaks_tls.then(socket::has_kernel_tls),
            fallbacks: identity.fallbacks.clone(),
            options: stack.map_or_else(Vec::new, options),
        },
        total: Total::of(&workers),
        workers,
        ..Status::default()
    }
}

fn options(stack: &Specification) -> Vec<OptionInForce> {
    let options = stack.in_force().into_iter().map(|option| OptionInForce {
        name: option.name.to_owned(),
        value: option.value,
        from: option.from,
    });
    options.collect()
}

/// The serialized form.
pub(crate) fn encode(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values with names as keys become JSON")
}

fn shown(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Inet(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
    }
}
