//! Makes the sockets of a plan with their memory, and distributes them among the workers.

use super::plan::Plan;
use super::sentences::not_bound;
use super::shared_resources::SharedResources;
use super::{AfXdp, Socket};
use crate::af_xdp::setup;
use crate::network::{LinkState, Network};
use crate::partitions::PARTITION_QUEUES_MAX;
use crate::queues::QUEUES_MAX;
use crate::specification::settings::{AfXdpSettings, Mode, Spread, Workers};
use crate::steering::Steering;
use crate::steering::layout::WORKERS_MAX;
use crate::vlan::Vlan;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{Copying, XskOptions, create_sharing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Makes the sockets of a plan, in its order; the second value says why their memory is not of huge pages.
pub(super) fn make_sockets(
    link: &LinkState,
    settings: &AfXdpSettings,
    plan: &Plan,
) -> Result<(Vec<Socket<OwnedFd>>, Option<io::Error>), String> {
    let pages = if settings.hugepages {
        Pages::Huge
    } else {
        Pages::Small
    };
    let duplicate = |descriptor: &SharedMemory| {
        let copy = descriptor.as_fd().try_clone_to_owned();
        copy.map_err(|error| format!("dup() failed: {error}"))
    };
    let mut sockets: Vec<Socket<OwnedFd>> = Vec::with_capacity(plan.sockets.len());
    let mut not_huge = None;
    for of_queue in plan.sockets.chunk_by(|one, other| one.queue == other.queue) {
        let Some(first) = of_queue.first() else {
            continue;
        };
        let mut options = xsk_options(link.mtu, settings, plan, first.sharers);
        if options.copying == Copying::AsDriverCan && takes_whole_kib(&link.name) {
            options = setup::for_whole_kib(options);
        }
        if may_be_merged(link, settings.mode) {
            options = setup::for_merged(options);
        }
        let made = setup::memory(&options, pages)
            .map_err(|error| format!("there is no packet memory: {error}"))?;
        not_huge = not_huge.or(made.not_huge);
        let queue = first.queue;
        let start = sockets.len();
        for planned in of_queue {
            let descriptor = match sockets.get(start) {
                None => setup::socket(link.index, queue, &made.memory, &options),
                Some(first) => {
                    let first = first.descriptor.as_fd();
                    create_sharing(first, link.index, queue, &options)
                }
            };
            sockets.push(Socket {
                descriptor: descriptor.map_err(|error| not_bound(&error, queue))?,
                memory: duplicate(&made.memory)?,
                queue,
                place: planned.place,
                options,
            });
        }
    }
    Ok((sockets, not_huge))
}

/// Gives each worker its sockets.
pub(super) fn attachments(
    workers: Workers,
    (plan, sockets): (&Plan, Vec<Socket<OwnedFd>>),
    steering: &Steering,
    (network, vlan): (Network, Option<Vlan>),
) -> io::Result<Vec<AfXdp<OwnedFd>>> {
    let count = workers.count;
    // A partition shares nothing with the others.
    let sharers = if plan.is_partitioned { 1 } else { count };
    let shared = Arc::new(SharedResources::new(sharers, plan.workers_a_queue));
    let mut attachments = Vec::new();
    for worker in 0..count.max(1) {
        let [served, counters] = steering.rules().descriptors(worker as usize);
        attachments.push(AfXdp {
            sockets: Vec::new(),
            outlet: None,
            table: [served.try_clone_to_owned()?, counters.try_clone_to_owned()?],
            shared: Arc::clone(&shared),
            opened: Arc::default(),
            worker,
            is_partition: plan.is_partitioned,
            network: Box::new(network.clone()),
            vlan,
        });
    }
    for (planned, socket) in plan.sockets.iter().zip(sockets) {
        if let Some(attachment) = attachments.get_mut(planned.worker as usize) {
            let at = if planned.sends {
                0
            } else {
                attachment.sockets.len()
            };
            attachment.sockets.insert(at, socket);
        }
    }
    Ok(attachments)
}

/// A worker with several queues divides its frames among them, by what each may need.
fn xsk_options(mtu: u16, settings: &AfXdpSettings, plan: &Plan, sharers: u32) -> XskOptions {
    // Without a native program a driver may take the socket for zero copy and then refuse to be woken (ixgbe_xsk_wakeup).
    let copying = match settings.zero_copy && settings.mode != Mode::Generic {
        true => Copying::AsDriverCan,
        false => Copying::Always,
    };
    let of_one = |worker| {
        plan.sockets
            .iter()
            .filter(move |socket| socket.worker == worker)
    };
    let queues = u32::try_from(of_one(0).count()).unwrap_or(u32::MAX).max(1);
    let wanted = settings.receive_frames;
    let receive_frames = (wanted / queues).max(RECEIVE_FRAMES_MIN.min(wanted));
    XskOptions {
        receive_frames: receive_frames.next_power_of_two(),
        transmit_frames: settings.transmit_frames.next_power_of_two(),
        sharers,
        ..setup::xsk_options(mtu, copying)
    }
}

/// Whether the driver tells its device the room of a slot in whole KiB, rounded down (SRRCTL.BSIZEPKT of `igb_setup_srrctl`,
/// `igc_configure_rx_ring`, and `ixgbe_configure_srrctl` for 82599): of a slot of 2048 bytes, less the headroom, 1024 stay.
/// igb cuts a longer frame into several then, and gives each to the program.
fn takes_whole_kib(interface: &str) -> bool {
    let driver = mill_sys::interface::driver(interface);
    driver.is_ok_and(|driver| matches!(driver.name.as_str(), "igb" | "igc" | "ixgbe"))
}

/// Whether frames may be merged segments. Drivers that run programs natively do not merge; the kernel merges none from
/// a card while it has a program (netif_elide_gro).
fn may_be_merged(link: &LinkState, mode: Mode) -> bool {
    let is_behind_driver = match mode {
        Mode::Native => false,
        Mode::Generic => true,
        Mode::Any => !matches!(link.kind.as_deref(), Some("veth" | "tun")),
    };
    is_behind_driver && link.peer_may_be_local()
}

/// Whether merged segments are lost because the driver was expected to run the program natively and does not: packet
/// memory was made before it was tried.
pub(super) fn loses_merged(link: &LinkState, mode: Mode) -> bool {
    link.peer_may_be_local() && !may_be_merged(link, mode)
}

/// The queues to use.
pub(super) fn queues_of(link: &LinkState, settings: &AfXdpSettings) -> Vec<u32> {
    match settings.queues.as_slice() {
        [] => (0..link.receive_queues).collect(),
        some => some.to_vec(),
    }
}

/// Checks what can be checked before anything is made; returns the queues.
pub(super) fn check(
    link: &LinkState,
    settings: &AfXdpSettings,
    workers: Workers,
) -> Result<Vec<u32>, String> {
    if !link.is_up {
        let name = &link.name;
        return Err(format!(
            "the interface is down; \"ip link set {name} up\" switches it on"
        ));
    }
    let count = link.receive_queues;
    if let Some(queue) = settings.queues.iter().find(|queue| **queue >= count) {
        return Err(format!(
            "there is no queue {queue}: the interface receives by {count}, counted from 0"
        ));
    }
    let queues = queues_of(link, settings);
    let (workers, spread, found) = (workers.count.max(1), workers.spread, queues.len());
    if spread != Spread::ByPartition && workers > WORKERS_MAX && found < workers as usize {
        return Err(format!(
            "{workers} workers can't share {found} queues: {WORKERS_MAX} can at most"
        ));
    }
    Ok(queues)
}

/// Checks that no worker gets more queues than it can have.
pub(super) fn check_share(workers: Workers, queues: &[u32]) -> Result<(), String> {
    let (count, found) = (workers.count.max(1), queues.len());
    let most = match workers.spread == Spread::ByPartition && count > 1 {
        true => PARTITION_QUEUES_MAX,
        false => QUEUES_MAX,
    };
    if found.div_ceil(count as usize) > most {
        return Err(format!(
            "{count} workers can't have {found} queues, {most} each at most: \
             name fewer (queue=0-{}), or have more workers",
            most - 1
        ));
    }
    Ok(())
}

/// The fewest receive frames of a queue beside others: what a burst was seen to need.
const RECEIVE_FRAMES_MIN: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::ethernet::MacAddress;

    /// Checks, for an interface of this kind and a requested mode, whether there is room for merged segments, and
    /// whether they are lost if the driver does not run the program.
    /// lost if the driver takes no program.
    fn check(kind: Option<&str>, mode: Mode, has_room: bool, loses: bool) {
        let link = LinkState {
            name: String::from("eth0"),
            index: 2,
            mac: MacAddress::UNSPECIFIED,
            mtu: 1500,
            is_up: true,
            is_running: true,
            kind: kind.map(String::from),
            receive_queues: 1,
            transmit_queues: 1,
            vlan: None,
        };
        let found = (may_be_merged(&link, mode), loses_merged(&link, mode));
        assert_eq!(found, (has_room, loses), "{kind:?} {mode:?}");
    }

    #[test]
    fn there_is_room_for_merged_segments_or_a_notice() {
        check(Some("macvlan"), Mode::Any, true, false);
        check(Some("veth"), Mode::Generic, true, false);
        check(Some("veth"), Mode::Any, false, true);
        check(Some("tun"), Mode::Any, false, true);
        check(None, Mode::Any, false, false);
        check(None, Mode::Generic, false, false);
    }
}
