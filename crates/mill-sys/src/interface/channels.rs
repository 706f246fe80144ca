//! The number of an interface's queues (ethtool -l), and what its device does with segments (ethtool -k).

use super::{control, request};
use std::io;

/// Queues in use, not those that the driver could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    pub receive: u32,
    pub transmit: u32,
}

/// The queues in use of an interface; `EOPNOTSUPP` if its driver does not report them.
pub fn channels(name: &str) -> io::Result<Channels> {
    let mut answer = EthtoolChannels {
        command: ETHTOOL_GCHANNELS,
        ..EthtoolChannels::default()
    };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut answer).cast();
    control(SIOCETHTOOL, &mut request)?;
    Ok(Channels {
        receive: answer.combined.saturating_add(answer.receive),
        transmit: answer.combined.saturating_add(answer.transmit),
    })
}

/// struct ethtool_channels of the kernel's linux/ethtool.h.
#[derive(Default)]
#[repr(C)]
struct EthtoolChannels {
    command: u32,
    receive_max: u32,
    transmit_max: u32,
    other_max: u32,
    combined_max: u32,
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Whether the interface takes segments of TCP that are longer than its MTU (ethtool -k, tcp-segmentation-offload).
pub fn has_segmentation(name: &str) -> io::Result<bool> {
    let mut answer = EthtoolValue {
        command: ETHTOOL_GTSO,
        value: 0,
    };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut answer).cast();
    control(SIOCETHTOOL, &mut request)?;
    Ok(answer.value != 0)
}

/// struct ethtool_value of the kernel's linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

// linux/ethtool.h: the commands that read the numbers of channels, and whether TCP is segmented.
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GTSO: u32 = 0x1e;

/// linux/sockios.h: an ethtool request, whose structure `ifr_data` points to.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_channels() {
        let refused = channels("lo").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }

    #[test]
    fn the_loopback_takes_long_segments() {
        assert!(has_segmentation("lo").unwrap());
    }
}
