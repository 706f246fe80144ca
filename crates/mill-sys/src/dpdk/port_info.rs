//! What a driver says of its port (`rte_eth_dev_info`).

use super::layout::{dev_info, rss, rx, tx};
use super::library::text_at;
use super::record::Record;

/// What a port can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// As `net_tap`.
    pub driver: String,
    /// The least and the greatest MTU.
    pub mtu: (u16, u16),
    pub receive_queues: u16,
    pub transmit_queues: u16,
    /// Hashes that can spread flows over queues (RTE_ETH_RSS_…).
    pub hashes: u64,
    pub offloads: Offloads,
}

/// What is left to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Checksums of TCP and UDP that arrive are verified.
    pub verifies: bool,
    /// A long frame may arrive in several pieces.
    pub scatters: bool,
    /// Checksums of TCP and UDP are completed.
    pub completes: bool,
    /// Long segments of TCP are cut.
    pub cuts: bool,
    /// A packet to be sent may have several pieces.
    pub gathers: bool,
}

pub(super) type InfoRecord = Record<{ dev_info::BYTES / 8 }>;

impl PortInfo {
    pub(super) fn of(record: &InfoRecord) -> Self {
        let name = usize::try_from(record.u64_at(dev_info::DRIVER_NAME)).unwrap_or_default();
        let received = record.u64_at(dev_info::RX_OFFLOAD_CAPA);
        let sent = record.u64_at(dev_info::TX_OFFLOAD_CAPA);
        let has = |all: u64, wanted: u64| all & wanted == wanted;
        let gathers = has(sent, tx::MULTI_SEGS);
        let completes = has(sent, tx::TCP_CKSUM | tx::UDP_CKSUM);
        Self {
            driver: text_at(std::ptr::with_exposed_provenance(name)),
            mtu: (record.u16_at(dev_info::MIN_MTU), mtu_max(record)),
            receive_queues: record.u16_at(dev_info::MAX_RX_QUEUES),
            transmit_queues: record.u16_at(dev_info::MAX_TX_QUEUES),
            hashes: record.u64_at(dev_info::FLOW_TYPE_RSS_OFFLOADS)
                & (rss::IP | rss::TCP | rss::UDP),
            offloads: Offloads {
                verifies: has(received, rx::TCP_CKSUM | rx::UDP_CKSUM),
                scatters: has(received, rx::SCATTER),
                completes,
                // Long segments are in several pieces, and the checksums of IPv4 headers are made anew.
                cuts: completes && gathers && has(sent, tx::TCP_TSO | tx::IPV4_CKSUM),
                gathers,
            },
        }
    }
}

/// The greatest MTU that `rte_eth_dev_configure` lets pass, which looks at the longest frame, too.
fn mtu_max(record: &InfoRecord) -> u16 {
    let (most, longest) = (
        record.u16_at(dev_info::MAX_MTU),
        record.u32_at(dev_info::MAX_RX_PKTLEN),
    );
    match longest.checked_sub(HEADERS_AND_CHECK) {
        Some(rest) if most == u16::MAX => u16::try_from(rest).unwrap_or(most),
        _ => most,
    }
}

/// RTE_ETHER_HDR_LEN and RTE_ETHER_CRC_LEN (rte_ether.h).
const HEADERS_AND_CHECK: u32 = 14 + 4;

impl Offloads {
    /// RTE_ETH_RX_OFFLOAD_…
    pub(super) fn on_receive(self, all: u64) -> u64 {
        let checksums = if self.verifies {
            rx::TCP_CKSUM | rx::UDP_CKSUM | rx::IPV4_CKSUM & all
        } else {
            0
        };
        checksums | if self.scatters { rx::SCATTER } else { 0 }
    }

    /// RTE_ETH_TX_OFFLOAD_…
    pub(super) fn on_transmit(self) -> u64 {
        let bits = [
            (self.completes, tx::TCP_CKSUM | tx::UDP_CKSUM),
            (self.cuts, tx::TCP_TSO | tx::IPV4_CKSUM),
            (self.gathers, tx::MULTI_SEGS),
        ];
        bits.into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, bits)| bits)
            .sum()
    }

    /// In words, for a report.
    pub fn words(self) -> String {
        let words = [
            (self.verifies, "checksums on receive"),
            (self.completes, "checksums on transmit"),
            (self.cuts, "long segments"),
        ];
        let words: Vec<_> = words
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, word)| *word)
            .collect();
        match words.is_empty() {
            true => String::from("nothing"),
            false => words.join(", "),
        }
    }
}
