//! Makes the device that a specification describes. Making it takes privileges; running it afterwards takes none.

/// A TAP device, made and set up.
mod tap;

/// One end of a memif.
pub(crate) mod memif;

/// A queue of an interface.
mod af_xdp;

/// A port of DPDK.
mod dpdk;

/// What a process that serves opens for itself.
mod opening;

/// A device that goes from process to process.
mod movable;

/// The worker threads of a process.
pub(crate) mod siblings;

/// Passing a device from one binary to its successor (USR2).
pub mod inherited_device;

use crate::any::AnyLink;
use crate::device_link::DeviceLink;
use crate::direct::DirectLink;
use crate::handover::{Aim, OwnershipLock, ProcessNumber};
use crate::network::{ENODEV, ENXIO};
use crate::pcap::Recorder;
use crate::specification::Specification;
use crate::specification::device::Device;
use crate::steering::Steering;
use crate::steering::table::opened::OpenedPorts;
use crate::vlan::Vlan;
use af_xdp::{AfXdp, Placed};
use dpdk::bridge::Bridge;
use dpdk::own_port::OwnPort;
use memif::Memif;
use mill_stack::config::HostConfig;
use mill_sys::descriptor;
use movable::trouble_of;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use tap::Tap;

/// One worker's attachment to a device whose interface is set up. A TAP or memif vanishes with the last duplicate of
/// its descriptors.
///
/// With the numbers of descriptors in their place it is for a thread that is about to leave this descriptor table.
#[derive(Clone, Debug)]
pub(crate) struct Attached<D = OwnedFd> {
    wire: Wire<D>,
    /// The lock by which other processes may own the device, if any can.
    ownership: Option<OwnershipLock<D>>,
    /// The file that frames are recorded in.
    pcap: Option<D>,
}

/// The kinds of devices.
#[derive(Clone, Debug)]
enum Wire<D> {
    Tap(Tap<D>),
    Memif(Memif<D>),
    AfXdp(AfXdp<D>),
    /// A port in this process, which has no descriptors of ours.
    Dpdk(OwnPort),
}

/// A device that was just made.
#[derive(Debug)]
pub(crate) struct Made {
    /// One for each worker the device can carry, at least one.
    pub(crate) attachments: Vec<Attached>,
    pub(crate) hold: Hold,
    /// Deviations from the specification, as sentences for the log.
    pub(crate) notices: Vec<String>,
}

/// What keeps a device beside its descriptors. The master process holds it; when that process ends, the kernel gets all
/// frames again.
#[derive(Debug, Default)]
pub struct Hold(Option<Held>);

/// The link of the steering program to the interface, or what the bridge to a port lives by.
#[derive(Debug)]
enum Held {
    Made(Steering),
    Bridge(Bridge),
    /// Received from the previous binary.
    Inherited(OwnedFd),
}

impl Hold {
    fn made(steering: Steering) -> Self {
        Self(Some(Held::Made(steering)))
    }

    fn bridge(bridge: Bridge) -> Self {
        Self(Some(Held::Bridge(bridge)))
    }

    fn inherited(link: OwnedFd) -> Self {
        Self(Some(Held::Inherited(link)))
    }
}

impl Held {
    fn link(&self) -> BorrowedFd<'_> {
        match self {
            Self::Made(steering) => steering.link(),
            Self::Bridge(bridge) => bridge.lifeline(),
            Self::Inherited(link) => link.as_fd(),
        }
    }
}

/// Events of a running link.
#[derive(Debug)]
pub enum Trouble {
    /// The interface was deleted: no frames pass any more.
    DeviceGone,
    /// The capture file cannot be written; capturing has stopped.
    Capture(io::Error),
    /// Another problem, as a sentence.
    Problem(String),
    /// An event that is no problem, as a sentence.
    Notice(String),
}

/// Why the device cannot be had: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachError(String);

impl Attached {
    /// Makes the device with an attachment for each of the specification's workers, configures addresses on this
    /// machine's side, and creates the capture file.
    pub(crate) fn make(specification: &Specification) -> Result<Made, AttachError> {
        let mut hold = Hold::default();
        let mut notices = Vec::new();
        let wires = match &specification.device {
            Device::Tap { name } => {
                let attachments = Tap::make(name, specification)?;
                attachments.into_iter().map(Wire::Tap).collect()
            }
            Device::Memif { socket } => {
                let attachments = Memif::make(socket, specification)?;
                attachments.into_iter().map(Wire::Memif).collect()
            }
            Device::Dpdk { .. } if !specification.dpdk.bridge => {
                let parts = OwnPort::parts(specification.attachments());
                parts.into_iter().map(Wire::Dpdk).collect()
            }
            Device::Dpdk { port } => {
                let made = dpdk::make(port, specification)?;
                hold = Hold::bridge(made.bridge);
                notices = made.notices;
                vec![Wire::Memif(Memif::of_bridge(made.socket, made.output)?)]
            }
            Device::AfXdp { interface } => {
                let workers = specification.workers;
                let settings = (&specification.af_xdp, specification.offload);
                let interface = (interface.as_str(), specification.vlan());
                let made = AfXdp::make(interface, settings, workers)?;
                hold = made.hold;
                notices = made.notices;
                made.attachments.into_iter().map(Wire::AfXdp).collect()
            }
        };
        // Last, so that a start that fails for another reason does not truncate the file.
        let pcap = specification.pcap.as_deref().map(create).transpose()?;
        let attachments = wires.into_iter().map(|wire| {
            // A capture has one writer, and devices move between processes, which a capture file does not.
            let is_movable = pcap.is_none() && wire.is_movable(specification);
            let ownership = is_movable.then(OwnershipLock::new).transpose()?;
            // All workers append whole frames through one file offset.
            let pcap = pcap.as_ref().map(File::try_clone).transpose()?;
            let pcap = pcap.map(OwnedFd::from);
            Ok(Self {
                wire,
                ownership,
                pcap,
            })
        });
        let attachments = attachments.collect::<io::Result<_>>();
        Ok(Made {
            attachments: attachments.map_err(|error| {
                AttachError(format!("a worker's attachment can't be made: {error}"))
            })?,
            hold,
            notices,
        })
    }

    /// Sets up what the workers of a process share, before the first of them makes its link; `attachments` are all of a
    /// device. A single worker needs none.
    pub(crate) fn prepare(
        attachments: &mut [Self],
        specification: &Specification,
    ) -> io::Result<()> {
        Self::share_opened(attachments, specification)?;
        let of_interface = attachments.iter().filter_map(Self::interface);
        AfXdp::prepare(&of_interface.collect::<Vec<_>>())
    }

    /// Has the parts of an interface open ports together, see [`crate::steering::table::opened`]; `attachments` are all of a device.
    pub(crate) fn share_opened(
        attachments: &mut [Self],
        specification: &Specification,
    ) -> io::Result<()> {
        let of_interface = attachments.iter_mut().filter_map(Self::interface_mut);
        let ports = specification.local_ports();
        AfXdp::share_opened(&mut of_interface.collect::<Vec<_>>(), ports)
    }

    /// The ports that all parts of an interface bring; other devices have none.
    pub(crate) fn opened_ports(
        attachments: &[Self],
        specification: &Specification,
    ) -> io::Result<OpenedPorts> {
        let of_interface = attachments.iter().filter_map(Self::interface);
        AfXdp::opened_ports(of_interface, specification.local_ports())
    }

    /// Whether each worker has queues of its own, so that the workers of a process forward frames to each other.
    pub(crate) fn forward(attachments: &[Self]) -> bool {
        let has_queues = |attachment: &Self| match &attachment.wire {
            Wire::Tap(_) | Wire::Memif(_) => true,
            Wire::AfXdp(queues) => queues.are_one_workers(),
            Wire::Dpdk(_) => true,
        };
        attachments.len() > 1 && attachments.iter().all(has_queues)
    }

    /// The interface's queues that it has; none of a device that is no interface of this machine.
    pub(crate) fn queues(&self) -> Vec<u32> {
        match &self.wire {
            Wire::AfXdp(queues) => queues.numbers().collect(),
            Wire::Tap(_) | Wire::Memif(_) | Wire::Dpdk(_) => Vec::new(),
        }
    }

    /// Duplicates of the descriptors, for another process or thread.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        self.try_map(OwnedFd::try_clone)
    }

    /// For a thread that is about to leave this descriptor table; valid as long as this value lives.
    pub(crate) fn lend(&self) -> Attached<RawFd> {
        let lent = self.try_map(|descriptor| Ok(descriptor.as_raw_fd()));
        lent.expect("numbers are copied, which can't fail")
    }

    /// All descriptors, in the order of `InheritedDevice`.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let of_wire: Vec<&OwnedFd> = match &self.wire {
            Wire::Tap(tap) => tap.descriptors().collect(),
            Wire::Memif(memif) => memif.descriptors().collect(),
            Wire::AfXdp(queue) => queue.descriptors().collect(),
            Wire::Dpdk(_) => Vec::new(),
        };
        let of_lock = self.ownership.iter().flat_map(OwnershipLock::descriptors);
        let all = of_wire.into_iter().chain(of_lock).chain(&self.pcap);
        all.map(AsFd::as_fd)
    }

    /// Makes the link that the specification describes. `on_trouble` is called once for each kind of trouble.
    pub(crate) fn link(
        mut self,
        specification: &Specification,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<AnyLink> {
        let on_gone = on_trouble.clone();
        let recorder = self.pcap.take().map(|file| {
            let on_error = Box::new(move |error| on_trouble(Trouble::Capture(error)));
            Recorder::to_file(File::from(file), on_error)
        });
        let vlan = self.vlan(specification);
        let device = self.device(specification, (Aim::Take, 0), on_gone)?;
        Ok(AnyLink::new(device, recorder).with_vlan(vlan))
    }

    /// The same without a capture, with what this process wants of an interface that another one owns, and its number.
    pub(crate) fn device(
        self,
        specification: &Specification,
        aim: (Aim, ProcessNumber),
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<DeviceLink> {
        let movable = match self.wire {
            Wire::AfXdp(queue) => {
                return Ok(match queue.link(self.ownership, aim, on_trouble)? {
                    Placed::Owner(link) => DeviceLink::AfXdp(*link),
                    Placed::Standby(link) => DeviceLink::Standby(link),
                });
            }
            Wire::Dpdk(port) => {
                let link = port.link(specification, on_trouble)?;
                return Ok(DeviceLink::Direct(DirectLink::Dpdk(Box::new(link))));
            }
            Wire::Tap(tap) => tap.movable(specification, on_trouble.clone()),
            Wire::Memif(memif) => memif.movable(specification, on_trouble.clone()),
        };
        let on_fault = Box::new(move |fault| on_trouble(trouble_of(fault)));
        movable.link(self.ownership, aim, on_fault)
    }
}

impl Wire<OwnedFd> {
    /// Whether it can go from process to process: nothing of it is shared by the workers of one.
    fn is_movable(&self, specification: &Specification) -> bool {
        match self {
            Self::AfXdp(queues) => queues.is_movable(),
            // What is on an impaired wire is lost with the process.
            Self::Tap(_) => specification.impairment.is_none(),
            Self::Memif(_) => true,
            Self::Dpdk(_) => false,
        }
    }
}

impl Attached<RawFd> {
    /// Duplicates in the caller's descriptor table.
    pub(crate) fn take(self) -> io::Result<Attached> {
        self.try_map(|number| descriptor::duplicate(*number))
    }
}

impl<D> Attached<D> {
    /// The configuration of a host on this device, with freshly drawn secrets. Errors are the kernel's.
    pub(crate) fn host_config(&self, specification: &Specification) -> io::Result<HostConfig> {
        let mut config = specification.drawn_host_config()?;
        if let Wire::AfXdp(queue) = &self.wire {
            queue.configure(&mut config, &specification.af_xdp);
        }
        Ok(config)
    }

    /// The virtual network whose tag its frames have.
    pub(crate) fn vlan(&self, specification: &Specification) -> Option<Vlan> {
        match &self.wire {
            Wire::AfXdp(queue) => queue.vlan(),
            Wire::Tap(_) | Wire::Memif(_) | Wire::Dpdk(_) => specification.vlan(),
        }
    }

    fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<Attached<E>> {
        let wire = match &self.wire {
            Wire::Tap(tap) => Wire::Tap(tap.try_map(&copy)?),
            Wire::Memif(memif) => Wire::Memif(memif.try_map(&copy)?),
            Wire::AfXdp(queue) => Wire::AfXdp(queue.try_map(&copy)?),
            Wire::Dpdk(port) => Wire::Dpdk(port.clone()),
        };
        Ok(Attached {
            wire,
            ownership: match &self.ownership {
                Some(ownership) => Some(ownership.try_map(&copy)?),
                None => None,
            },
            pcap: self.pcap.as_ref().map(&copy).transpose()?,
        })
    }
}

/// Whether the error says that the interface was deleted meanwhile.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(ENODEV | ENXIO))
}

fn create(path: &Path) -> Result<File, AttachError> {
    File::create(path).map_err(|error| {
        let path = path.display();
        AttachError(format!("\"{path}\" can't be written: {error}"))
    })
}

impl fmt::Display for AttachError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AttachError {}
