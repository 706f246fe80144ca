//! The part of a connection's rings that one of several workers has, and the ring that a flow takes.

/// One worker among those that share the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) worker: u32,
    pub(crate) workers: u32,
}

impl Share {
    /// Of a worker that shares them with no other.
    pub(crate) const WHOLE: Self = Self {
        worker: 0,
        workers: 1,
    };

    /// Whether a ring is this worker's: ring r belongs to worker r modulo their number.
    pub(crate) fn has(self, ring: usize) -> bool {
        let (worker, workers) = self.numbers();
        ring % workers == worker
    }

    /// The place of a flow's ring among the `own` ones of this worker, of `all` that the workers have together. A flow whose ring
    /// is another worker's takes one of this worker's.
    pub(super) fn place(self, flow: usize, own: usize, all: usize) -> usize {
        let (_, workers) = self.numbers();
        let ring = flow % all.max(1);
        match self.has(ring) {
            true => ring / workers,
            false => ring % own.max(1),
        }
    }

    fn numbers(self) -> (usize, usize) {
        let number = |of: u32| usize::try_from(of).unwrap_or(0);
        (number(self.worker), number(self.workers).max(1))
    }
}

/// The number of a frame's flow, the same in both directions: the sum of its ports. So the answers to what came by a ring leave
/// by the ring with the same number, also where one worker at this end has rings of several at the other; and a worker that
/// opens a connection chooses its port so that the flow takes one of its rings (`forwarding.rs`). All other frames, and
/// fragments, of which only the first one has ports, are flow 0.
pub(super) fn flow(frame: &[u8]) -> usize {
    let word = |at: usize| frame.get(at..)?.first_chunk().copied();
    let number = |at: usize| word(at).map(u16::from_be_bytes);
    let ethernet_len = match number(12) {
        Some(VLAN) => 18,
        _ => 14,
    };
    let byte = |at: usize| frame.get(ethernet_len + at).copied().unwrap_or(0);
    let (protocol, ip_len) = match number(ethernet_len - 2) {
        Some(IPV4) if number(ethernet_len + 6).is_some_and(|word| word & FRAGMENT == 0) => {
            (byte(9), usize::from(byte(0) & 15) * 4)
        }
        Some(IPV6) => (byte(6), 40),
        _ => return 0,
    };
    let at = ethernet_len + ip_len;
    match (protocol, number(at), number(at + 2)) {
        (TCP | UDP, Some(source), Some(target)) => source.wrapping_add(target).into(),
        _ => 0,
    }
}

// Types of Ethernet frames.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;

// Protocols of IP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// RFC 791 3.1: more fragments follow, or the offset is not 0.
const FRAGMENT: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of this protocol between two ports.
    fn frame(kind: u16, protocol: u8, [source, target]: [u16; 2], tagged: bool) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 10]);
        }
        frame.extend(kind.to_be_bytes());
        let at = frame.len();
        frame.resize(at + if kind == IPV4 { 20 } else { 40 }, 0);
        match kind {
            IPV4 => (frame[at], frame[at + 9]) = (0x45, protocol),
            _ => (frame[at], frame[at + 6]) = (0x60, protocol),
        }
        frame.extend(source.to_be_bytes());
        frame.extend(target.to_be_bytes());
        frame
    }

    #[test]
    fn both_directions_are_one_flow() {
        for kind in [IPV4, IPV6] {
            for protocol in [TCP, UDP] {
                for tagged in [false, true] {
                    let there = flow(&frame(kind, protocol, [40_001, 80], tagged));
                    let back = flow(&frame(kind, protocol, [80, 40_001], tagged));
                    assert_eq!((there, back), (40_081, 40_081));
                }
            }
        }
        assert_eq!(flow(&frame(IPV4, TCP, [65_000, 65_000], false)), 64_464);
    }

    #[test]
    fn what_has_no_ports_is_flow_0() {
        assert_eq!(flow(&frame(IPV4, 1, [1, 2], false)), 0);
        assert_eq!(flow(&frame(0x0806, TCP, [1, 2], false)), 0);
        for fragment in [0x2000_u16, 1] {
            let mut part = frame(IPV4, UDP, [1, 2], false);
            part[20..22].copy_from_slice(&fragment.to_be_bytes());
            assert_eq!(flow(&part), 0);
        }
        let whole = frame(IPV6, TCP, [1, 2], true);
        for len in 0..whole.len() {
            assert_eq!(flow(&whole[..len]), 0, "{len}");
        }
    }

    #[test]
    fn each_ring_is_one_workers_and_each_flow_takes_a_ring_of_its_sender() {
        for (workers, rings) in [(1, 1), (1, 4), (2, 2), (3, 7), (4, 2)] {
            let shares = (0..workers).map(|worker| Share { worker, workers });
            let mut owners = vec![0; rings];
            for share in shares {
                let own: Vec<usize> = (0..rings).filter(|ring| share.has(*ring)).collect();
                own.iter().for_each(|ring| owners[*ring] += 1);
                if own.is_empty() {
                    continue;
                }
                for number in 0..100 {
                    let ring = own[share.place(number, own.len(), rings)];
                    assert!(ring == number % rings || !share.has(number % rings));
                }
            }
            assert_eq!(owners, vec![1; rings]);
        }
    }
}
