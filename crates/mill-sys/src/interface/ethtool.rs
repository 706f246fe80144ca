//! What ethtool(8) tells of an interface: its driver (-i), queues (-l) and rings (-g), and what it does with segments (-k).

use super::{control, request};
use std::io;

/// Queues in use, and how many the driver could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    pub receive: u32,
    pub transmit: u32,
    pub receive_max: u32,
    pub transmit_max: u32,
    /// Of those in use, pairs of a receive and a transmit queue.
    pub combined: u32,
}

/// The queues in use of an interface; `EOPNOTSUPP` if its driver does not report them.
pub fn channels(name: &str) -> io::Result<Channels> {
    let mut answer = EthtoolChannels {
        command: ETHTOOL_GCHANNELS,
        ..EthtoolChannels::default()
    };
    ask(name, &mut answer)?;
    Ok(Channels {
        receive: answer.combined.saturating_add(answer.receive),
        transmit: answer.combined.saturating_add(answer.transmit),
        receive_max: answer.combined_max.saturating_add(answer.receive_max),
        transmit_max: answer.combined_max.saturating_add(answer.transmit_max),
        combined: answer.combined,
    })
}

/// Asks about an interface; `question` is a structure of linux/ethtool.h, with its command, that the answer fills.
fn ask<T>(name: &str, question: &mut T) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = core::ptr::from_mut(question).cast();
    control(SIOCETHTOOL, &mut request)
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
    Ok(value(name, ETHTOOL_GTSO)? != 0)
}

/// Whether it merges segments before the kernel sees them (ethtool -k, large-receive-offload).
pub fn merges_segments(name: &str) -> io::Result<bool> {
    Ok(value(name, ETHTOOL_GFLAGS)? & ETH_FLAG_LRO != 0)
}

/// Whether it takes the tags of virtual networks off received frames, and tells them to the kernel beside the frame (ethtool -k,
/// rx-vlan-offload; the kernel's rx-vlan-hw-parse).
pub fn strips_vlan_tags(name: &str) -> io::Result<bool> {
    Ok(value(name, ETHTOOL_GFLAGS)? & ETH_FLAG_RXVLAN != 0)
}

fn value(name: &str, command: u32) -> io::Result<u32> {
    let mut answer = EthtoolValue { command, value: 0 };
    ask(name, &mut answer)?;
    Ok(answer.value)
}

/// The names of a driver, its version and its device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    pub name: String,
    /// Usually that of the kernel.
    pub version: String,
    /// As on its bus, such as `0000:03:00.0`; empty if it is on none.
    pub bus: String,
}

/// The driver of an interface (ethtool -i).
pub fn driver(name: &str) -> io::Result<Driver> {
    let mut answer = EthtoolDriver {
        command: ETHTOOL_GDRVINFO,
        ..EthtoolDriver::default()
    };
    ask(name, &mut answer)?;
    Ok(Driver {
        name: text(&answer.driver),
        version: text(&answer.version),
        bus: text(&answer.bus_info),
    })
}

fn text(bytes: &[u8]) -> String {
    let word = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(word).into_owned()
}

/// struct ethtool_drvinfo of the kernel's linux/ethtool.h.
#[derive(Default)]
#[repr(C)]
struct EthtoolDriver {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus_info: [u8; 32],
    rom: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// Frames that the rings of one queue hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    pub receive: u32,
    pub transmit: u32,
    pub receive_max: u32,
    pub transmit_max: u32,
}

/// The rings of an interface (ethtool -g); `EOPNOTSUPP` if its driver does not report them.
pub fn ring_sizes(name: &str) -> io::Result<RingSizes> {
    let mut answer = EthtoolRings {
        command: ETHTOOL_GRINGPARAM,
        ..EthtoolRings::default()
    };
    ask(name, &mut answer)?;
    Ok(RingSizes {
        receive: answer.receive,
        transmit: answer.transmit,
        receive_max: answer.receive_max,
        transmit_max: answer.transmit_max,
    })
}

/// struct ethtool_ringparam of the kernel's linux/ethtool.h.
#[derive(Default)]
#[repr(C)]
struct EthtoolRings {
    command: u32,
    receive_max: u32,
    receive_mini_max: u32,
    receive_jumbo_max: u32,
    transmit_max: u32,
    receive: u32,
    receive_mini: u32,
    receive_jumbo: u32,
    transmit: u32,
}

/// struct ethtool_value of the kernel's linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

// linux/ethtool.h: the commands that read.
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Flags of `ETHTOOL_GFLAGS`.
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETH_FLAG_LRO: u32 = 1 << 15;

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
        assert!(!merges_segments("lo").unwrap());
        assert!(!strips_vlan_tags("lo").unwrap());
    }

    #[test]
    fn what_the_loopback_has_no_driver_for_is_an_error() {
        let refused = ring_sizes("lo").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
        let refused = driver("no-such-device").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
    }
}
