//! How the stack is set for a script: `--initial-window=4`.

use mill_stack::config::{HostConfig, Prefix};
use mill_tcp::config::{Algorithm, Config, EcnMode, Keepalive};
use mill_tcp::time::Duration;
use std::str::FromStr;

use crate::packet::Ends;

/// Everything that a script's first lines can say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) host: HostConfig,
    /// Of IPv4; for IPv6 it is larger by what the IP header is, so that the numbers of a script hold for both.
    pub(crate) mtu: u16,
    pub(crate) family: Family,
    /// The peer's ISN; scripts count from it.
    pub(crate) peer_isn: u32,
}

/// Over which IP a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Both,
    V4,
    V6,
}

impl Settings {
    pub(crate) fn new(settings: &[(String, String)], ends: &Ends) -> Result<Self, String> {
        let address = Prefix {
            address: ends.local,
            len: if ends.is_ipv6() { 64 } else { 24 },
        };
        let mut host = HostConfig::new(vec![address], *b"scripts, replay.");
        // Scripts turn Nagle's algorithm off by setsockopt, as programs do.
        host.tcp.nodelay = false;
        // What is sent again has the size that it had, unless a script is about that.
        host.tcp.mtu_probing = false;
        let mut made = Self {
            host,
            mtu: 1500,
            family: Family::Both,
            peer_isn: 1_000_000,
        };
        for (name, value) in settings {
            made.set(name, value)
                .map_err(|problem| format!("--{name}={value}: {problem}"))?;
        }
        Ok(made)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "mtu" => self.mtu = number(value)?,
            "ip" => {
                self.family = match value {
                    "4" => Family::V4,
                    "6" => Family::V6,
                    _ => return Err("4 or 6".into()),
                }
            }
            "peer-isn" => self.peer_isn = number(value)?,
            "half-open" => self.host.limits.half_open_max = number(value)?,
            "time-wait-max" => self.host.limits.time_wait_max = number(value)?,
            "connections" => self.host.limits.connections_max = number(value)?,
            "answers-per-second" => self.host.limits.answers_per_second = number(value)?,
            _ => return set_tcp(&mut self.host.tcp, name, value),
        }
        Ok(())
    }
}

fn set_tcp(tcp: &mut Config, name: &str, value: &str) -> Result<(), String> {
    match name {
        "initial-window" => tcp.initial_window_segments = number(value)?,
        "window-scaling" => tcp.window_scaling = switch(value)?,
        "timestamps" => tcp.timestamps = switch(value)?,
        "sack" => tcp.sack = switch(value)?,
        "hystart" => tcp.hystart = switch(value)?,
        "slow-start-after-idle" => tcp.slow_start_after_idle = switch(value)?,
        "mtu-probing" => tcp.mtu_probing = switch(value)?,
        "receive-buffer" => tcp.receive_buffer_bytes = number(value)?,
        "receive-buffer-max" => tcp.receive_buffer_bytes_max = number(value)?,
        "reassembly-bytes" => tcp.reassembly_bytes_max = number(value)?,
        "reassembly-ranges" => tcp.reassembly_ranges_max = number(value)?,
        "rto-min" => tcp.rto_min = duration(value)?,
        "rto-max" => tcp.rto_max = duration(value)?,
        "rto-initial" => tcp.rto_initial = duration(value)?,
        "delayed-ack" => tcp.delayed_ack = duration(value)?,
        "msl" => tcp.msl = duration(value)?,
        "fin-wait-2" => tcp.fin_wait_2 = duration(value)?,
        "invalid-ratelimit" => tcp.invalid_ratelimit = duration(value)?,
        "user-timeout" => tcp.user_timeout = Some(duration(value)?),
        "syn-retries" => tcp.syn_retries_max = number(value)?,
        "syn-ack-retries" => tcp.syn_ack_retries_max = number(value)?,
        "retries" => tcp.retries_max = number(value)?,
        "orphan-retries" => tcp.orphan_retries_max = number(value)?,
        "quick-acks" => tcp.quick_acks = number(value)?,
        "challenge-acks" => tcp.challenge_acks_per_second = number(value)?,
        "ecn" => {
            tcp.ecn = match value {
                "off" => EcnMode::Off,
                "accept" => EcnMode::Accept,
                "accurate" => EcnMode::AcceptAccurate,
                "ask" => EcnMode::Ask,
                _ => return Err("off, accept, accurate or ask".into()),
            }
        }
        "congestion" => tcp.congestion = congestion(value)?,
        "rfc1337" => tcp.rfc1337 = switch(value)?,
        "keepalive" => tcp.keepalive = Some(keepalive(value)?),
        _ => return Err("no such setting".into()),
    }
    Ok(())
}

pub(crate) fn congestion(name: &str) -> Result<Algorithm, String> {
    match name {
        "cubic" => Ok(Algorithm::Cubic),
        "reno" => Ok(Algorithm::Reno),
        _ => Err("cubic or reno".into()),
    }
}

/// `10s,2s,3`: idle, interval, count.
pub(crate) fn keepalive(text: &str) -> Result<Keepalive, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [idle, interval, count] = parts[..] else {
        return Err("idle,interval,count".into());
    };
    Ok(Keepalive {
        idle: duration(idle)?,
        interval: duration(interval)?,
        count: number(count)?,
    })
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "not such a number".into())
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off".into()),
    }
}

/// `200ms` or `2s`.
fn duration(text: &str) -> Result<Duration, String> {
    if let Some(millis) = text.strip_suffix("ms") {
        return Ok(Duration::from_millis(number(millis)?));
    }
    let seconds = text.strip_suffix('s').ok_or("ms or s")?;
    Ok(Duration::from_secs(number(seconds)?))
}
