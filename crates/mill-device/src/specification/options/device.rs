//! Options of the device and its frames.

use super::{StackOption, Value, option, option_of};
use crate::specification::device::Devices;
use crate::specification::settings::{Mode, Role, StacksPer};

pub(super) const OPTIONS: &[StackOption] = &[
    option_of(
        Devices::OWN_ADDRESSES,
        "address",
        Value::Prefix(|to| &mut to.addresses),
        "needed",
        "an address of the stack; may stand several times",
    ),
    option_of(
        Devices::TAP,
        "host",
        Value::Prefix(|to| &mut to.host),
        "none",
        "an address that this machine gets on its side of the device; may stand several times",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
        "gateway",
        Value::Address(|to| &mut to.gateways),
        "none",
        "the router for everything that is not on the link; one of each family",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
        "mtu",
        Value::Number(576..=65521, |to| &mut to.mtu),
        "1500",
        "bytes of IP packet in a frame",
    ),
    option_of(
        Devices::AF_XDP,
        "queue",
        Value::Queues(1023, |to| &mut to.af_xdp.queues),
        "all",
        "the receive queues of the interface that are taken, counted from 0; may stand several times",
    ),
    option_of(
        Devices::AF_XDP,
        "mode",
        Value::Keyword(&[
            ("any", |to| to.af_xdp.mode = Mode::Any),
            ("native", |to| to.af_xdp.mode = Mode::Native),
            ("generic", |to| to.af_xdp.mode = Mode::Generic),
        ]),
        "any",
        "where frames are taken: in the driver, or for any driver behind it; any warns when it is the latter",
    ),
    option_of(
        Devices::AF_XDP,
        "zero-copy",
        Value::Switch(|to| &mut to.af_xdp.zero_copy),
        "on",
        "ask the driver to read and write packet memory itself; those that can't copy",
    ),
    option_of(
        Devices::AF_XDP,
        "hugepages",
        Value::Switch(|to| &mut to.af_xdp.hugepages),
        "on",
        "packet memory in pages of 2 MiB, if there are any",
    ),
    option_of(
        Devices::AF_XDP,
        "receive-frames",
        Value::Number(256..=65536, |to| &mut to.af_xdp.receive_frames),
        "4096",
        "frames received and not released, rounded up to a power of two: slots in packet memory, and the ring",
    ),
    option_of(
        Devices::AF_XDP,
        "transmit-frames",
        Value::Number(256..=65536, |to| &mut to.af_xdp.transmit_frames),
        "2048",
        "frames that may wait to be sent, likewise",
    ),
    option_of(
        Devices::AF_XDP,
        "ports",
        Value::Ports(|to| &mut to.af_xdp.ports),
        "10240-32767",
        "local ports of outgoing connections, taken from the kernel, which must not use them",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
        "ports",
        Value::Ports(|to| &mut to.ports),
        "32768-60999",
        "local ports of outgoing connections that do not ask for one",
    ),
    option_of(
        Devices::MEMIF,
        "role",
        Value::Keyword(&[
            ("master", |to| to.memif.role = Some(Role::Master)),
            ("slave", |to| to.memif.role = Some(Role::Slave)),
        ]),
        "needed",
        "which end makes the socket (master), and which one connects to it and owns the memory (slave)",
    ),
    option_of(
        Devices::MEMIF,
        "id",
        Value::Number(0..=u32::MAX, |to| &mut to.memif.id),
        "0",
        "which interface of the socket",
    ),
    option_of(
        Devices::MEMIF,
        "secret",
        Value::Secret(24, |to| &mut to.memif.secret),
        "none",
        "the secret that the slave has to send to a master that has one: a text without commas, seen in the list of processes unless it stands in the configuration",
    ),
    option_of(
        Devices::MEMIF,
        "rings",
        Value::Number(1..=16, |to| &mut to.memif.rings),
        "1",
        "rings in each direction: a slave makes this many if the master accepts them, a master accepts at most this many",
    ),
    option_of(
        Devices::MEMIF,
        "ring-size",
        Value::PowerOfTwo(64..=16384, |to| &mut to.memif.ring_size),
        "1024",
        "buffers of a ring; the smaller of both ends' counts",
    ),
    option_of(
        Devices::MEMIF,
        "buffer",
        Value::Bytes(128..=65536, |to| &mut to.memif.buffer_bytes),
        "2k",
        "size of a slave's buffers; a longer frame takes several",
    ),
    option(
        "offload",
        Value::Switch(|to| &mut to.offload),
        "on",
        "leave checksums (tap, memif) and the cutting of long segments to the device",
    ),
    option(
        "pcap",
        Value::Path(|to| &mut to.pcap),
        "none",
        "write all frames to this file, for tcpdump and Wireshark",
    ),
    option(
        "polling",
        Value::Polling(|to| &mut to.polling),
        "adaptive=50us",
        "when to look for frames: sleep until they come, spin for a while before that, sleep a while between two looks, never sleep, or look this many times a second",
    ),
    option(
        "stacks",
        Value::Keyword(&[
            ("process", |to| to.stacks = StacksPer::Process),
            ("thread", |to| to.stacks = StacksPer::Thread),
        ]),
        "process",
        "millstream run: whether the threads of a process share a stack, or have one each, up to eight; a connection is of the thread that opened it, or of the one that first waited at its listener",
    ),
    option(
        "burst",
        Value::Number(1..=4096, |to| &mut to.limits.burst_max),
        "64",
        "frames taken from the device at a time (memif: at most 16); what answers them goes out together",
    ),
];
