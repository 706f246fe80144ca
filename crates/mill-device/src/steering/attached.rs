//! Identifies the program that an interface has already.

use mill_sys::bpf::program;
use mill_sys::netlink::{Netlink, Received};
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};
use std::fs;

/// Its name, its id, and the process that holds it, as far as they can be found: a program that was attached with
/// ip-link(8) is held by no process.
pub(super) fn describe(interface: u32) -> Option<String> {
    let id = number_at(interface)?;
    let name = match program::name(id) {
        Ok(name) if !name.is_empty() => format!("\"{name}\", number {id}"),
        _ => format!("number {id}"),
    };
    Some(match holder(id) {
        Some((process, command)) => format!("{name}, of process {process} ({command})"),
        None => name,
    })
}

/// The id of the program at an interface (RTM_GETLINK, IFLA_XDP).
fn number_at(interface: u32) -> Option<u32> {
    let mut question = LinkMessage::default();
    question.header.index = interface;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let question = NetlinkPayload::from(RouteNetlinkMessage::GetLink(question));
    let mut message = NetlinkMessage::new(header, question);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let socket = Netlink::open().ok()?;
    socket.send(&bytes).ok()?;
    let mut answer = vec![0; ANSWER_LEN_MAX];
    let Received::Messages(len) = socket.receive(&mut answer).ok()? else {
        return None;
    };
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer.get(..len)?).ok()?;
    let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = answer.payload else {
        return None;
    };
    link.attributes.into_iter().find_map(|attribute| {
        let LinkAttribute::Xdp(facts) = attribute else {
            return None;
        };
        facts.into_iter().find_map(|fact| match fact {
            LinkXdp::ProgId(id) if id != 0 => Some(id),
            _ => None,
        })
    })
}

/// The first process with a descriptor of the program's link to an interface, and its name.
fn holder(id: u32) -> Option<(u32, String)> {
    let processes = fs::read_dir("/proc").ok()?;
    let mut numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let process = numbers.find(|process: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo"));
        descriptors.into_iter().flatten().flatten().any(|entry| {
            let text = fs::read_to_string(entry.path());
            text.is_ok_and(|text| holds(&text, id))
        })
    })?;
    let command = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some((process, String::from(command.trim_end())))
}

/// Whether the text in fdinfo describes a link of this program to an interface.
fn holds(text: &str, id: u32) -> bool {
    let says = |key: &str, expected: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.any(|(name, value)| name == key && value.trim() == expected)
    };
    says("link_type", "xdp") && says("prog_id", &id.to_string())
}

/// Bytes of the longest link message: a page for the attributes, and more to spare.
const ANSWER_LEN_MAX: usize = 1 << 14;
