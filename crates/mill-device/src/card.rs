//! An interface as far as AF_XDP is concerned: what its driver and the kernel tell of it, and what is in the way.
//!
//! What drivers ask for, and where that is written: docs/cards.md.

use crate::network::{LinkQuery, LinkState, NetworkError};
use mill_sys::interface::{self, Channels, Driver, RingSizes};
use mill_sys::netlink::{XdpFeatures, xdp_features};

/// What can be told of an interface; `None` where its driver, or the kernel, does not tell.
#[derive(Clone, Debug)]
pub struct Card {
    pub link: LinkState,
    pub driver: Option<Driver>,
    pub channels: Option<Channels>,
    pub rings: Option<RingSizes>,
    pub features: Option<XdpFeatures>,
    /// Segments of TCP leave whole, and the device cuts them.
    pub cuts_segments: Option<bool>,
    /// Segments of TCP are merged before the kernel sees them.
    pub merges_segments: Option<bool>,
    /// Tags of virtual networks are taken off before the stack sees them.
    pub strips_tags: Option<bool>,
    /// The XDP program that is attached.
    pub program: Option<AttachedProgram>,
}

/// An XDP program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedProgram {
    /// As `bpftool prog` numbers it.
    pub number: u32,
    /// In the driver or device, not behind it.
    pub is_native: bool,
}

impl Card {
    /// Asks the kernel, which takes no privileges.
    pub fn of(name: &str) -> Result<Self, NetworkError> {
        let query = LinkQuery::begin(name)?;
        Ok(Self {
            link: query.link()?,
            program: query.program()?,
            driver: interface::driver(name).ok(),
            channels: interface::channels(name).ok(),
            rings: interface::ring_sizes(name).ok(),
            features: xdp_features(query.index()).ok(),
            cuts_segments: interface::has_segmentation(name).ok(),
            merges_segments: interface::merges_segments(name).ok(),
            strips_tags: interface::strips_vlan_tags(name).ok(),
        })
    }

    fn driver_name(&self) -> &str {
        self.driver.as_ref().map_or("", |driver| &driver.name)
    }

    /// What should be changed before `--stack af_xdp:` takes the interface: a sentence each, with the command where there is one.
    pub fn advice(&self) -> Vec<String> {
        let name = &self.link.name;
        let mut advice = Vec::new();
        if !self.link.is_up {
            advice.push(format!("it is down: \"ip link set {name} up\""));
        }
        if let Some(program) = self.program {
            let number = program.number;
            advice.push(format!(
                "it has an XDP program already, number {number}, and takes one only: \"ip link set dev {name} xdp off\", unless that is a server's of Millstream"
            ));
        }
        if self.features.is_some_and(|features| !features.is_native()) {
            advice.push(String::from(
                "its driver runs no XDP programs: the stack takes frames behind it (mode=generic), which costs the kernel's packet memory for each",
            ));
        }
        if self.merges_segments == Some(true) {
            advice.push(format!(
                "it merges segments (LRO), which most drivers refuse with a program: \"ethtool -K {name} lro off\""
            ));
        }
        if self.cuts_segments == Some(false) {
            advice.push(format!(
                "it cuts no long segments, so the stack does: \"ethtool -K {name} tso on\", if the device can"
            ));
        }
        advice.extend(self.advice_on_mtu());
        advice.extend(self.advice_on_channels());
        advice
    }

    fn advice_on_mtu(&self) -> Option<String> {
        let (name, mtu) = (&self.link.name, self.link.mtu);
        let driver = self.driver_name();
        let limit = LIMITS.iter().find(|(known, _)| *known == driver);
        if let Some((_, most)) = limit
            && mtu > *most
        {
            return Some(format!(
                "with a program its driver takes an MTU of {most} at most: \"ip link set {name} mtu {most}\""
            ));
        }
        let is_single = self.features.is_some_and(|it| !it.has_multi_buffer());
        (mtu > SLOT_MTU_MAX && is_single).then(|| {
            format!(
                "an MTU above {SLOT_MTU_MAX} needs a driver that takes frames of several slots, and this one tells of no such: \"ip link set {name} mtu {SLOT_MTU_MAX}\", or mode=generic"
            )
        })
    }

    fn advice_on_channels(&self) -> Option<String> {
        let name = &self.link.name;
        let channels = self.channels?;
        let driver = self.driver_name();
        let half = (channels.receive_max / 2).max(1);
        if HALVED.contains(&driver) && channels.receive > half {
            return Some(format!(
                "with a program its driver takes half of its queues at most: \"ethtool -L {name} combined {half}\""
            ));
        }
        if let Some(why) = added_queues(name, driver, channels, possible_cpus()) {
            return Some(why);
        }
        (channels.transmit < channels.receive).then(|| {
            format!(
                "it has fewer transmit queues than receive queues, and each that the stack takes needs both: \"ethtool -L {name}\" sets them"
            )
        })
    }
}

/// What the administrator is told if the driver of an interface adds queues while it has a program; the sentence goes behind
/// the interface's name.
pub(crate) fn added_queues_of(name: &str) -> Option<String> {
    let driver = interface::driver(name).ok()?;
    let channels = interface::channels(name).ok()?;
    added_queues(name, &driver.name, channels, possible_cpus())
}

/// virtio_net adds a pair of queues for each CPU, if it has as many that are not in use (`virtnet_xdp_set`). They are meant
/// for sending, yet the host delivers to them too, and what arrives there can't be bound (`virtnet_xsk_pool_enable` and
/// ethtool know only those before): the kernel takes it, and resets connections that it does not know.
fn added_queues(name: &str, driver: &str, channels: Channels, cpus: u32) -> Option<String> {
    let unused = channels.receive_max.saturating_sub(channels.receive);
    if driver != "virtio_net" || cpus == 0 || unused < cpus {
        return None;
    }
    let most = channels.receive_max;
    Some(format!(
        "with a program its driver uses {cpus} queues more, and the kernel resets connections whose frames the host sends there: \"ethtool -L {name} combined {most}\" before the start leaves it none"
    ))
}

/// How many CPUs the kernel could have (`nr_cpu_ids`); 0 if it does not tell.
fn possible_cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    last_of_list(&text).map_or(0, |last| last.saturating_add(1))
}

/// The last number of a list such as `0-3` or `0`.
fn last_of_list(text: &str) -> Option<u32> {
    text.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// The largest MTU that drivers take with a program (docs/cards.md).
const LIMITS: [(&str, u16); 5] = [
    ("ixgbe", 3050),
    ("igb", 3046),
    ("igc", 1500),
    ("ena", 3498),
    ("gve", 2032),
];

/// Drivers that need a transmit queue more for each queue with a program (docs/cards.md).
const HALVED: [&str; 2] = ["ena", "gve"];

/// The largest MTU whose frames take one slot of packet memory (docs/cards.md).
const SLOT_MTU_MAX: u16 = 3818;

#[cfg(test)]
mod tests {
    use super::*;

    fn card(driver: &str, mtu: u16) -> Card {
        let link = LinkState {
            name: String::from("eth0"),
            index: 2,
            mac: mill_wire::ethernet::MacAddress([2, 0, 0, 0, 0, 1]),
            mtu,
            is_up: true,
            is_running: true,
            kind: None,
            receive_queues: 4,
            transmit_queues: 4,
            vlan: None,
        };
        Card {
            link,
            driver: Some(Driver {
                name: driver.to_owned(),
                ..Driver::default()
            }),
            channels: Some(Channels {
                receive: 4,
                transmit: 4,
                receive_max: 8,
                transmit_max: 8,
                combined: 4,
            }),
            rings: None,
            features: None,
            cuts_segments: Some(true),
            merges_segments: Some(false),
            strips_tags: Some(true),
            program: None,
        }
    }

    fn check(card: &Card, expected: &[&str]) {
        let advice = card.advice();
        assert_eq!(advice.len(), expected.len(), "{advice:?}");
        for (advice, words) in advice.iter().zip(expected) {
            assert!(advice.contains(words), "{advice:?}");
        }
    }

    #[test]
    fn a_card_that_is_ready_needs_nothing() {
        check(&card("ice", 1500), &[]);
        check(&card("ena", 3498), &[]);
    }

    #[test]
    fn what_a_driver_would_refuse_is_said_before_with_the_command() {
        check(&card("igc", 9000), &["ip link set eth0 mtu 1500"]);
        check(&card("ena", 9001), &["ip link set eth0 mtu 3498"]);
        let mut all = card("ena", 1500);
        all.channels = all.channels.map(|channels| Channels {
            receive: 8,
            ..channels
        });
        check(&all, &["ethtool -L eth0 combined 4"]);
        let mut other = card("ixgbe", 1500);
        other.merges_segments = Some(true);
        other.cuts_segments = Some(false);
        other.link.is_up = false;
        other.program = Some(AttachedProgram {
            number: 17,
            is_native: true,
        });
        other.features = Some(XdpFeatures::default());
        check(
            &other,
            &[
                "ip link set eth0 up",
                "number 17",
                "mode=generic",
                "lro off",
                "tso on",
            ],
        );
    }

    #[test]
    fn queues_that_a_driver_adds_for_a_program_are_told_before() {
        let check = |driver: &str, (receive, receive_max), cpus, is_told| {
            let channels = Channels {
                receive,
                transmit: receive,
                receive_max,
                transmit_max: receive_max,
                combined: receive,
            };
            let told = added_queues("eth0", driver, channels, cpus);
            assert_eq!(told.is_some(), is_told, "{driver} {receive} {cpus}");
            told.unwrap_or_default()
        };
        let told = check("virtio_net", (2, 6), 2, true);
        assert!(
            told.contains("2 queues more") && told.contains("ethtool -L eth0 combined 6"),
            "{told}"
        );
        check("virtio_net", (4, 6), 2, true);
        check("virtio_net", (5, 6), 2, false);
        check("virtio_net", (2, 2), 2, false);
        check("virtio_net", (2, 6), 0, false);
        check("igb", (2, 8), 2, false);
        for (text, last) in [
            ("0-3\n", Some(3)),
            ("0\n", Some(0)),
            ("0,2-7\n", Some(7)),
            ("", None),
        ] {
            assert_eq!(last_of_list(text), last, "{text:?}");
        }
    }

    #[test]
    fn long_frames_need_a_driver_that_takes_several_slots() {
        let mut long = card("other", 9000);
        check(&long, &[]);
        long.features = Some(XdpFeatures::default());
        check(&long, &["mode=generic", "mtu 3818"]);
    }
}
