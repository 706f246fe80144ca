//! The kernel's figures, as JSON and back.

use super::{count, duration, ns};
use crate::platform::{LinkUse, Machine, ProgramsCpu, ServerCpu, ThreadCpu};
use serde_json::{Value, json};

pub(super) fn emit(machine: &Machine) -> Value {
    let Machine {
        threads,
        listen_overflows,
        retransmitted_segments,
        sent_segments,
        link_use,
        steal,
        programs,
        server,
    } = machine;
    let threads: Vec<Value> = threads.iter().map(emit_thread).collect();
    json!({
        "threads": threads,
        "listen_overflows": listen_overflows,
        "retransmitted_segments": retransmitted_segments,
        "sent_segments": sent_segments,
        "link_use": link_use.as_ref().map(emit_link),
        "steal": steal,
        "programs": programs.as_ref().map(emit_programs),
        "server": server.as_ref().map(emit_server),
    })
}

pub(super) fn parse(value: &Value) -> Option<Machine> {
    let threads = value.get("threads")?.as_array()?.iter();
    Some(Machine {
        threads: threads.map(parse_thread).collect::<Option<_>>()?,
        listen_overflows: optional(value, "listen_overflows", Value::as_u64)?,
        retransmitted_segments: optional(value, "retransmitted_segments", Value::as_u64)?,
        sent_segments: optional(value, "sent_segments", Value::as_u64)?,
        link_use: optional(value, "link_use", parse_link)?,
        steal: optional(value, "steal", Value::as_f64)?,
        programs: optional(value, "programs", parse_programs)?,
        server: optional(value, "server", parse_server)?,
    })
}

fn emit_thread(cpu: &ThreadCpu) -> Value {
    json!({
        "user_ns": ns(cpu.user),
        "system_ns": ns(cpu.system),
        "wall_ns": ns(cpu.wall),
        "involuntary_switches": cpu.involuntary_switches,
    })
}

fn parse_thread(value: &Value) -> Option<ThreadCpu> {
    Some(ThreadCpu {
        user: duration(value, "user_ns")?,
        system: duration(value, "system_ns")?,
        wall: duration(value, "wall_ns")?,
        involuntary_switches: count(value, "involuntary_switches")?,
    })
}

fn emit_programs(cpu: &ProgramsCpu) -> Value {
    json!({ "used_ns": ns(cpu.used), "available_ns": ns(cpu.available) })
}

fn parse_programs(value: &Value) -> Option<ProgramsCpu> {
    Some(ProgramsCpu {
        used: duration(value, "used_ns")?,
        available: duration(value, "available_ns")?,
    })
}

fn emit_link(link: &LinkUse) -> Value {
    json!({
        "interface": link.interface,
        "bits_per_second": link.bits_per_second,
        "share": link.share,
    })
}

fn parse_link(value: &Value) -> Option<LinkUse> {
    Some(LinkUse {
        interface: String::from(value.get("interface")?.as_str()?),
        bits_per_second: value.get("bits_per_second")?.as_f64()?,
        share: optional(value, "share", Value::as_f64)?,
    })
}

fn emit_server(server: &ServerCpu) -> Value {
    json!({
        "process": server.process,
        "command": server.command,
        "user_ns": ns(server.user),
        "system_ns": ns(server.system),
        "busiest_thread": server.busiest_thread,
    })
}

fn parse_server(value: &Value) -> Option<ServerCpu> {
    Some(ServerCpu {
        process: u32::try_from(count(value, "process")?).ok()?,
        command: String::from(value.get("command")?.as_str()?),
        user: duration(value, "user_ns")?,
        system: duration(value, "system_ns")?,
        busiest_thread: value.get("busiest_thread")?.as_f64()?,
    })
}

/// `None` if it is missing or wrong, `Some(None)` if it is null.
fn optional<T>(
    value: &Value,
    name: &str,
    parse: impl FnOnce(&Value) -> Option<T>,
) -> Option<Option<T>> {
    match value.get(name)? {
        Value::Null => Some(None),
        value => parse(value).map(Some),
    }
}
