//! One receive and one transmit queue of a port, for one thread: what `rte_eth_rx_burst` and its like compile to.

use super::environment::Registered;
use super::layout::fast_path;
use super::library::Library;
use super::packet::Packet;
use super::pool::Pool;
use super::port::Port;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// The queues. A thread that uses them is registered with DPDK, and stays the one that does.
#[derive(Debug)]
pub struct QueuePair {
    // In this order: packets go back to the pool, then the driver's do, then the pool goes.
    spare: Vec<Packet>,
    port: Arc<Port>,
    pool: Arc<Pool>,
    library: &'static Library,
    number: u16,
    registered: Option<Registered>,
    is_entered: bool,
}

/// What became of packets that were to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub count: usize,
    /// Packets that the driver can't send as they are, which are lost.
    pub refused: usize,
}

impl QueuePair {
    pub(super) fn new(
        port: Arc<Port>,
        pool: Arc<Pool>,
        library: &'static Library,
        number: u16,
    ) -> Self {
        Self {
            port,
            pool,
            library,
            number,
            spare: Vec::new(),
            registered: None,
            is_entered: false,
        }
    }

    /// The port that they are of.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// An empty packet in one piece; `None` while all are in use.
    #[inline]
    pub fn packet(&mut self) -> Option<Packet> {
        if self.spare.is_empty() {
            self.pool.take(&mut self.spare);
        }
        self.spare.pop()
    }

    /// Appends packets that have arrived, [`BURST`] at most. Returns how many.
    #[inline]
    pub fn receive(&mut self, into: &mut impl Extend<Packet>) -> usize {
        if !self.is_entered {
            self.enter();
        }
        let entry = self.entry();
        let Some(receive) = entry.function(fast_path::RX_PKT_BURST) else {
            return 0;
        };
        let Some(queue) = entry.queue(fast_path::RXQ_DATA, self.number) else {
            return 0;
        };
        let mut places = [std::ptr::null_mut::<c_void>(); BURST];
        // SAFETY: the driver's own function with its queue, which only this thread receives from, and a place for each packet.
        let count = unsafe { receive(queue, places.as_mut_ptr(), BURST_COUNT) };
        let count = usize::from(count).min(BURST);
        let arrived = places.get(..count).unwrap_or_default();
        // SAFETY: the driver has put so many packets there, which are ours from now on.
        into.extend(
            arrived
                .iter()
                .filter_map(|mbuf| NonNull::new(*mbuf))
                .map(|mbuf| unsafe { Packet::from_raw(mbuf) }),
        );
        count
    }

    /// Sends packets in their order, as many as the queue has room for; the others are left.
    pub fn send(&mut self, packets: &mut Vec<Packet>) -> Sent {
        let mut sent = Sent::default();
        while !packets.is_empty() {
            let count = packets.len().min(BURST);
            let prepared = self.prepare(packets, count);
            if prepared == 0 {
                drop(packets.remove(0));
                sent.refused += 1;
                continue;
            }
            let count = self.transmit(packets, prepared);
            for packet in packets.drain(..count) {
                // The driver's from now on.
                packet.into_raw();
            }
            sent.count += count;
            if count < prepared {
                break;
            }
        }
        sent
    }

    /// How many of the first packets the driver can send, which it completes for its device (`rte_eth_tx_prepare`).
    fn prepare(&self, packets: &mut [Packet], count: usize) -> usize {
        let entry = self.entry();
        let Some(prepare) = entry.function(fast_path::TX_PKT_PREPARE) else {
            return count;
        };
        let Some(queue) = entry.queue(fast_path::TXQ_DATA, self.number) else {
            return 0;
        };
        let first = packets.as_mut_ptr().cast::<*mut c_void>();
        // SAFETY: the driver's own function with its queue, and so many packets, which it changes at most.
        let prepared = unsafe { prepare(queue, first, u16::try_from(count).unwrap_or_default()) };
        usize::from(prepared).min(count)
    }

    /// How many of the first packets the driver has taken.
    fn transmit(&self, packets: &mut [Packet], count: usize) -> usize {
        let entry = self.entry();
        let Some(transmit) = entry.function(fast_path::TX_PKT_BURST) else {
            return 0;
        };
        let Some(queue) = entry.queue(fast_path::TXQ_DATA, self.number) else {
            return 0;
        };
        let first = packets.as_mut_ptr().cast::<*mut c_void>();
        // SAFETY: the driver's own function with its queue, which only this thread sends on, and so many packets. Those that it takes
        // are forgotten here.
        let taken = unsafe { transmit(queue, first, u16::try_from(count).unwrap_or_default()) };
        usize::from(taken).min(count)
    }

    /// The port's row in the table of drivers' functions.
    #[inline]
    fn entry(&self) -> Entry {
        let offset = usize::from(self.port.number()) * fast_path::BYTES;
        Entry(self.library.fast_path.at(offset))
    }

    #[cold]
    fn enter(&mut self) {
        self.is_entered = true;
        self.registered = Registered::new(self.library);
    }
}

/// A row of `rte_eth_fp_ops`. It changes only when the port is started or stopped, which is before and after its queues are used.
struct Entry(*const c_void);

impl Entry {
    #[inline]
    fn function(&self, offset: usize) -> Option<Burst> {
        let function = self.0.wrapping_byte_add(offset);
        // SAFETY: the table has a row for each port, with a pointer to a function at this offset (`layout`), or null.
        unsafe { function.cast::<Option<Burst>>().read() }
    }

    /// What the driver calls a queue by.
    #[inline]
    fn queue(&self, offset: usize, number: u16) -> Option<*mut c_void> {
        let queues = self.0.wrapping_byte_add(offset);
        // SAFETY: a row has a pointer to an array at this offset, or null.
        let queues = unsafe { queues.cast::<*const *mut c_void>().read() };
        if queues.is_null() {
            return None;
        }
        let queue = queues.wrapping_add(usize::from(number));
        // SAFETY: the array has an element for each queue that was set up, and this one was.
        Some(unsafe { queue.read() })
    }
}

/// Functions of receiving, preparing and sending have one signature.
type Burst = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, u16) -> u16;

/// Packets of a call. Drivers with vector instructions want 32 and not less.
pub const BURST: usize = 32;
const BURST_COUNT: u16 = 32;
