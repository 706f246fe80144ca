//! `millstream status --link`: what network interfaces have for AF_XDP.

use crate::help;
use mill_device::card::{AttachedProgram, Card};
use mill_sys::interface::{self, Channels, RingSizes};
use mill_sys::netlink::XdpFeatures;
use std::process::ExitCode;

/// Shows one interface, or all but the loopback.
pub(super) fn run(name: Option<&str>) -> ExitCode {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => match interface::names() {
            Ok(names) => names.into_iter().filter(|name| name != "lo").collect(),
            Err(error) => return complain(&format!("the interfaces can't be listed: {error}")),
        },
    };
    if names.is_empty() {
        return complain("there is no interface here but the loopback");
    }
    let mut text = String::new();
    for name in names {
        match Card::of(&name) {
            Ok(card) => text.push_str(&about(&card)),
            Err(error) => return complain(&error.to_string()),
        }
    }
    help::print(&text);
    ExitCode::SUCCESS
}

fn complain(what: &str) -> ExitCode {
    help::complain(&format!("millstream status: {what}\n"));
    ExitCode::FAILURE
}

fn about(card: &Card) -> String {
    let link = &card.link;
    let driver = match &card.driver {
        Some(driver) => [&driver.name, &driver.version, &driver.bus]
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        None => link.kind.clone().unwrap_or_default(),
    };
    let state = match (link.is_up, link.is_running) {
        (true, true) => "up",
        (true, false) => "up, no carrier",
        (false, _) => "down",
    };
    let mut text = format!("{}: {driver}, {state}, MTU {}\n", link.name, link.mtu);
    let rows = [
        ("queues", queues(card)),
        ("rings", rings(card.rings)),
        ("program in the driver", native(card.features)),
        ("zero copy", zero_copy(card.features)),
        ("frames in several slots", multi_buffer(card.features)),
        ("long segments", segments(card.cuts_segments).to_owned()),
        ("VLAN tags", tags(card)),
        ("XDP program", program(card.program)),
    ];
    for (what, value) in rows {
        text.push_str(&format!("  {what:<24} {value}\n"));
    }
    for advice in card.advice() {
        text.push_str(&format!("  ! {advice}\n"));
    }
    text
}

fn tags(card: &Card) -> String {
    let name = &card.link.name;
    match card.strips_tags {
        Some(true) => format!(
            "taken off: a stack of a VLAN needs \"ethtool -K {name} rxvlan off\", unless the interface is virtual"
        ),
        Some(false) => String::from("left in frames"),
        None => String::from("not told"),
    }
}

fn queues(card: &Card) -> String {
    match card.channels {
        Some(Channels {
            receive,
            transmit,
            receive_max,
            combined,
            ..
        }) => {
            let kind = match combined == receive && combined == transmit {
                true => String::from("combined"),
                false => format!("{transmit} to transmit"),
            };
            format!("{receive} of {receive_max} ({kind})")
        }
        None => {
            let (receive, transmit) = (card.link.receive_queues, card.link.transmit_queues);
            format!("{receive}, and {transmit} to transmit; its driver has no \"ethtool -l\"")
        }
    }
}

fn rings(rings: Option<RingSizes>) -> String {
    rings.map_or_else(
        || String::from("its driver does not tell"),
        |rings| {
            format!(
                "{} of {} to receive, {} of {} to transmit",
                rings.receive, rings.receive_max, rings.transmit, rings.transmit_max
            )
        },
    )
}

fn native(features: Option<XdpFeatures>) -> String {
    told(features, |features| match features.is_native() {
        true => String::from("yes (native)"),
        false => String::from("no: behind it, for any driver (generic)"),
    })
}

fn zero_copy(features: Option<XdpFeatures>) -> String {
    told(features, |features| {
        let slots = features.zero_copy_segments_max;
        match (features.has_zero_copy(), slots) {
            (true, 2..) => format!("yes, in up to {slots} slots"),
            (true, _) => String::from("yes, for frames of one slot"),
            (false, _) => String::from("no: the kernel copies frames"),
        }
    })
}

fn multi_buffer(features: Option<XdpFeatures>) -> String {
    told(features, |features| match features.has_multi_buffer() {
        true => String::from("yes"),
        false => String::from("no: an MTU up to 3818"),
    })
}

fn told(features: Option<XdpFeatures>, say: impl FnOnce(XdpFeatures) -> String) -> String {
    let unknown = || String::from("not told: the kernel is older than 6.3");
    features.map_or_else(unknown, say)
}

const fn segments(cuts: Option<bool>) -> &'static str {
    match cuts {
        Some(true) => "left to the device (TSO)",
        Some(false) => "cut by the stack: TSO is off",
        None => "cut by the stack: its driver tells of no TSO",
    }
}

fn program(program: Option<AttachedProgram>) -> String {
    program.map_or_else(
        || String::from("none"),
        |program| {
            let place = match program.is_native {
                true => "in the driver",
                false => "behind the driver",
            };
            format!("number {}, {place}", program.number)
        },
    )
}
