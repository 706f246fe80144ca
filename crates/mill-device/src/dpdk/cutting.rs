//! Which long segments a driver cuts rightly, where it says that it cuts them.

use super::work::header_len;
use mill_stack::link::Offload;

/// What a driver can be given to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cutting {
    /// Segments over IPv6, too.
    ipv6: bool,
    /// Bytes of the longest piece with its Ethernet header.
    frame_bytes_max: usize,
    /// Into how many pieces.
    pieces_max: usize,
}

impl Cutting {
    /// That of a driver, for an interface of this MTU.
    pub(super) fn of(driver: &str, mtu: u16) -> Self {
        match driver {
            // It cuts by DPDK's library (rte_gso), takes the Ethernet header for a part of the packet, and has room for 64 pieces (22.11,
            // rte_eth_tap.c): what goes beyond is never sent, and IPv6 is lost.
            "net_tap" => Self {
                ipv6: false,
                frame_bytes_max: usize::from(mtu),
                pieces_max: 63,
            },
            _ => Self {
                ipv6: true,
                frame_bytes_max: usize::MAX,
                pieces_max: usize::MAX,
            },
        }
    }

    /// What is asked of the driver for a frame of so many bytes, so that it does it rightly; `None` if it does not.
    pub(super) fn fitting(self, len: usize, offload: Offload) -> Option<Offload> {
        let Some(mut segmentation) = offload.segmentation else {
            return Some(offload);
        };
        let header_len = header_len(segmentation);
        let room = self.frame_bytes_max.saturating_sub(header_len);
        let mss = usize::from(segmentation.mss).min(room);
        let pieces = len.saturating_sub(header_len).div_ceil(mss.max(1));
        if segmentation.is_ipv6 && !self.ipv6 || mss == 0 || pieces > self.pieces_max {
            return None;
        }
        segmentation.mss = u16::try_from(mss).unwrap_or(u16::MAX);
        Some(Offload {
            segmentation: Some(segmentation),
            ..offload
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::Segmentation;

    #[test]
    fn a_driver_gets_what_it_cuts_rightly() {
        let check = |driver, payload: usize, mss, is_ipv6, expected: Option<u16>| {
            let header_len: u16 = if is_ipv6 { 86 } else { 66 };
            let offload = Offload {
                checksum: None,
                segmentation: Some(Segmentation {
                    mss,
                    header_len,
                    is_ipv6,
                }),
            };
            let fitting =
                Cutting::of(driver, 1500).fitting(payload + usize::from(header_len), offload);
            let found = fitting.map(|offload| offload.segmentation.unwrap().mss);
            assert_eq!(found, expected, "{driver} {payload} {mss} {is_ipv6}");
        };
        check("net_ixgbe", 60_000, 1448, false, Some(1448));
        check("net_ixgbe", 60_000, 1428, true, Some(1428));
        check("net_ixgbe", 60_000, 500, false, Some(500));
        check("net_tap", 60_000, 1448, false, Some(1434));
        check("net_tap", 60_000, 1400, false, Some(1400));
        check("net_tap", 60_000, 1428, true, None);
        check("net_tap", 63_000, 1000, false, Some(1000));
        check("net_tap", 63_001, 1000, false, None);
        let whole = Offload::default();
        assert_eq!(Cutting::of("net_tap", 1500).fitting(60, whole), Some(whole));
    }
}
