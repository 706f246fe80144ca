//! A port (`rte_eth_dev_…`): its device is added, configured with its queues, and started; dropped, it is stopped and removed.

use super::environment::Environment;
use super::layout::{conf, fast_path, link, rss, stats};
use super::library::Library;
use super::pool::Pool;
use super::port_info::{InfoRecord, Offloads, PortInfo};
use super::queue_pair::QueuePair;
use super::record::Record;
use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device of DPDK, which has one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// `vdev` or `pci`.
    pub bus: &'static str,
    /// As `net_tap0` or `0000:03:00.0`.
    pub name: String,
    /// What its driver takes, as `iface=mill0`.
    pub arguments: String,
}

/// A port's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Queues in each direction, at least one.
    pub queue_pairs: u16,
    /// Descriptors of each queue, as far as the driver goes along.
    pub descriptors: u16,
    pub mtu: u16,
    /// What is left to the device, of what it can do.
    pub offloads: Offloads,
    /// Hashes that spread flows over the queues, of those that it has; 0: none.
    pub hashes: u64,
    /// Bytes of a frame that one piece of memory has room for.
    pub room_bytes: u16,
    /// Frames that are with this process, beside those of the driver, for each queue.
    pub frames_held: u32,
}

/// A port that was found, not yet configured.
#[derive(Debug)]
pub struct FoundPort {
    device: Device,
    number: u16,
    info: PortInfo,
    on_receive: u64,
}

/// A running port.
#[derive(Debug)]
pub struct Port {
    // Before the pools, so that the driver gives its packets back first.
    device: Device,
    number: u16,
    info: PortInfo,
    settings: PortSettings,
    is_promiscuous: bool,
    pools: Vec<Arc<Pool>>,
    taken: Vec<AtomicBool>,
}

/// A port's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames that the device has dropped since no descriptor was free.
    pub missed: u64,
    /// Frames that came with an error, and that could not be sent.
    pub receive_errors: u64,
    pub transmit_errors: u64,
    /// Times that there was no memory for a frame.
    pub without_memory: u64,
}

/// Which call has failed, with what the result means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortError {
    pub call: &'static str,
    pub why: String,
}

/// A device that DPDK's bus has, removed when dropped.
#[derive(Debug)]
struct Device {
    library: &'static Library,
    name: DeviceName,
    /// The port, once it was started.
    started: Option<u16>,
}

impl FoundPort {
    /// Adds the device to DPDK's bus, unless it is there.
    pub fn find(environment: Environment, name: &DeviceName) -> Result<Self, PortError> {
        let library = environment.library;
        let device = Device::add(library, name)?;
        let number = device.port()?;
        let mut record = InfoRecord::new();
        // SAFETY: the record is of the size of what is written.
        let result = unsafe { (library.info)(number, record.address()) };
        device.check("rte_eth_dev_info_get", result)?;
        Ok(Self {
            device,
            number,
            info: PortInfo::of(&record),
            on_receive: record.u64_at(super::layout::dev_info::RX_OFFLOAD_CAPA),
        })
    }

    pub fn info(&self) -> &PortInfo {
        &self.info
    }

    /// Configures its queues and starts it, in promiscuous mode if it has one.
    pub fn start(self, settings: PortSettings) -> Result<Arc<Port>, PortError> {
        let Self {
            mut device,
            number,
            info,
            on_receive,
        } = self;
        let (library, pairs) = (device.library, settings.queue_pairs);
        let mut configuration = Record::<{ conf::BYTES / 8 }>::new();
        configuration.set_u32(conf::RX_MTU, u32::from(settings.mtu));
        configuration.set_u64(conf::RX_OFFLOADS, settings.offloads.on_receive(on_receive));
        configuration.set_u64(conf::TX_OFFLOADS, settings.offloads.on_transmit());
        if settings.hashes != 0 && pairs > 1 {
            configuration.set_u32(conf::RX_MQ_MODE, rss::MODE);
            configuration.set_u64(conf::RSS_HF, settings.hashes);
        }
        // SAFETY: a configuration of the size that is read, with no pointers in it.
        let result = unsafe { (library.configure)(number, pairs, pairs, configuration.address()) };
        device.check("rte_eth_dev_configure", result)?;
        // SAFETY: the call takes numbers. Drivers without it have the MTU of the configuration.
        let _ = unsafe { (library.set_mtu)(number, settings.mtu) };
        let pools = device.set_up_queues(number, &settings)?;
        // SAFETY: the port is configured, with all of its queues.
        let result = unsafe { (library.start)(number) };
        device.check("rte_eth_dev_start", result)?;
        device.started = Some(number);
        // SAFETY: the call takes a number.
        let is_promiscuous = unsafe { (library.promiscuous)(number) } == 0;
        if !is_promiscuous {
            // SAFETY: as above. Without it IPv6's neighbours are not heard, which nothing can be done about.
            unsafe { (library.all_multicast)(number) };
        }
        Ok(Arc::new(Port {
            device,
            number,
            info,
            settings,
            is_promiscuous,
            pools,
            taken: (0..pairs).map(|_| AtomicBool::new(false)).collect(),
        }))
    }
}

impl Port {
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    pub fn info(&self) -> &PortInfo {
        &self.info
    }

    pub fn settings(&self) -> &PortSettings {
        &self.settings
    }

    /// Whether frames for other Ethernet addresses than its own come.
    pub fn is_promiscuous(&self) -> bool {
        self.is_promiscuous
    }

    /// A pair of its queues; `None` if there is none of that number, or if it was taken.
    pub fn queue_pair(self: &Arc<Self>, number: u16) -> Option<QueuePair> {
        let taken = self.taken.get(usize::from(number))?;
        let pool = self.pools.get(usize::from(number))?;
        let is_taken = taken.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| {
            QueuePair::new(
                Arc::clone(self),
                Arc::clone(pool),
                self.device.library,
                number,
            )
        })
    }

    /// The Ethernet address that its device has.
    pub fn address(&self) -> Option<[u8; 6]> {
        let mut record = Record::<1>::new();
        // SAFETY: six bytes are written.
        let result = unsafe { (self.device.library.address)(self.number, record.address()) };
        let [a, b, c, d, e, f, ..] = record.u64_at(0).to_le_bytes();
        (result == 0).then_some([a, b, c, d, e, f])
    }

    /// Whether its link is up; `None` if the driver does not say.
    pub fn is_up(&self) -> Option<bool> {
        let mut record = Record::<{ link::BYTES / 8 }>::new();
        // SAFETY: the record is of the size of what is written.
        let result = unsafe { (self.device.library.link)(self.number, record.address()) };
        (result == 0).then(|| record.u32_at(link::STATUS) & link::STATUS_BIT != 0)
    }

    /// What the device has counted; zeros if the driver does not count.
    pub fn counters(&self) -> PortCounters {
        let mut record = Record::<{ stats::BYTES / 8 }>::new();
        // SAFETY: the record is of the size of what is written.
        let _ = unsafe { (self.device.library.stats)(self.number, record.address()) };
        PortCounters {
            received: record.u64_at(stats::IPACKETS),
            received_bytes: record.u64_at(stats::IBYTES),
            transmitted: record.u64_at(stats::OPACKETS),
            transmitted_bytes: record.u64_at(stats::OBYTES),
            missed: record.u64_at(stats::IMISSED),
            receive_errors: record.u64_at(stats::IERRORS),
            transmit_errors: record.u64_at(stats::OERRORS),
            without_memory: record.u64_at(stats::RX_NOMBUF),
        }
    }
}

impl Device {
    fn add(library: &'static Library, name: &DeviceName) -> Result<Self, PortError> {
        let device = Self {
            library,
            name: name.clone(),
            started: None,
        };
        if device.port().is_ok() {
            return Ok(device);
        }
        let texts = [device.name.bus, &device.name.name, &device.name.arguments].map(CString::new);
        let [Ok(bus), Ok(name), Ok(arguments)] = texts else {
            return Err(PortError {
                call: "rte_eal_hotplug_add",
                why: String::from("a zero in a name"),
            });
        };
        // SAFETY: three texts that end with zeros, which are copied.
        let result =
            unsafe { (library.hotplug_add)(bus.as_ptr(), name.as_ptr(), arguments.as_ptr()) };
        device.check("rte_eal_hotplug_add", result)?;
        Ok(device)
    }

    /// The number of its port: by its name, or the first one that there is, as a driver may name the ports of a card.
    fn port(&self) -> Result<u16, PortError> {
        let library = self.library;
        let mut number = 0_u16;
        let name = CString::new(self.name.name.as_str()).unwrap_or_default();
        // SAFETY: a text that ends with a zero, and room for a number.
        let result = unsafe { (library.find_port)(name.as_ptr(), &raw mut number) };
        if result != 0 && self.name.bus == "pci" {
            // SAFETY: the call takes a number.
            number = unsafe { (library.next_port)(0) };
        } else {
            self.check("rte_eth_dev_get_port_by_name", result)?;
        }
        match number < fast_path::PORTS {
            true => Ok(number),
            false => Err(PortError {
                call: "rte_eth_find_next",
                why: String::from("no driver has made a port of it"),
            }),
        }
    }

    /// A pool for each pair of queues, from which the driver takes memory.
    fn set_up_queues(
        &self,
        port: u16,
        settings: &PortSettings,
    ) -> Result<Vec<Arc<Pool>>, PortError> {
        let library = self.library;
        let (mut receive, mut transmit) = (settings.descriptors, settings.descriptors);
        // SAFETY: two numbers, which are changed to what the driver goes along with.
        let result =
            unsafe { (library.adjust_descriptors)(port, &raw mut receive, &raw mut transmit) };
        self.check("rte_eth_dev_adjust_nb_rx_tx_desc", result)?;
        // SAFETY: the call takes a number.
        let socket = unsafe { (library.socket_of)(port) };
        let near = c_uint_of(socket);
        let count = u32::from(receive) + u32::from(transmit) + settings.frames_held + CACHES;
        let mut pools = Vec::new();
        for queue in 0..settings.queue_pairs {
            let pool = Pool::new(library, count, settings.room_bytes, socket);
            let pool = pool.ok_or_else(|| PortError {
                call: "rte_pktmbuf_pool_create",
                why: format!("there is no memory for {count} frames"),
            })?;
            let pointer: *mut c_void = pool.as_ptr();
            pools.push(Arc::new(pool));
            let default = std::ptr::null();
            // SAFETY: the port is configured and stopped; the pool outlives it; null stands for the driver's defaults.
            let result =
                unsafe { (library.set_up_receive)(port, queue, receive, near, default, pointer) };
            self.check("rte_eth_rx_queue_setup", result)?;
            // SAFETY: as above.
            let result = unsafe { (library.set_up_transmit)(port, queue, transmit, near, default) };
            self.check("rte_eth_tx_queue_setup", result)?;
        }
        Ok(pools)
    }

    fn check(&self, call: &'static str, result: c_int) -> Result<(), PortError> {
        match result {
            0.. => Ok(()),
            _ => Err(PortError {
                call,
                why: self.library.describe(result),
            }),
        }
    }
}

/// The queues are no thread's any more.
impl Drop for Device {
    fn drop(&mut self) {
        if let Some(number) = self.started {
            // SAFETY: the call takes a number.
            unsafe { (self.library.stop)(number) };
        }
        let texts = [self.name.bus, &self.name.name].map(CString::new);
        if let [Ok(bus), Ok(name)] = texts {
            // SAFETY: two texts that end with zeros. A device that is not there is an error of the call's.
            unsafe { (self.library.hotplug_remove)(bus.as_ptr(), name.as_ptr()) };
        }
    }
}

/// SOCKET_ID_ANY is -1, in either form.
fn c_uint_of(socket: c_int) -> u32 {
    u32::from_ne_bytes(socket.to_ne_bytes())
}

/// Frames that lie in caches: DPDK keeps up to one and a half times 256 for each thread, and the control thread may have some too.
const CACHES: u32 = 2 * 384 + 64;
