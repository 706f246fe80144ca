//! Connections and their path MTU: new ones begin with the one known for their target, others follow changes, and
//! what one of them finds holds for all (RFC 1191 6.3, RFC 8201 5.2, RFC 4821 5.2).

use crate::host::Host;
use crate::path_mtu::PathMtus;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use core::net::IpAddr;
use mill_tcp::path_mtu::PathNews;

impl<Q: SendQueue> Host<Q> {
    /// Paths that carry less than the link.
    pub const fn paths(&self) -> &PathMtus {
        &self.next_hops.paths
    }

    /// The handshake is complete: the agreed MSS is the most that the connection ever sends at once.
    pub(crate) fn begin_path(&mut self, index: u32) {
        let knows_paths = !self.next_hops.paths.is_empty();
        if let Some(slot) = self.slots.at_mut(index) {
            slot.mss_agreed = slot.connection.mss();
            if knows_paths {
                // The next hop is looked up again before anything is sent, and the path with it.
                slot.next_hop_version = 0;
            }
        }
    }

    /// Segments become as large as the path carries now, smaller or larger.
    pub(crate) fn fit_to_path(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        if slot.mss_agreed == 0 {
            return;
        }
        let remote = slot.flow.remote;
        let mtu = self.next_hops.paths.path_mtu(remote, self.now);
        let mss = mtu.saturating_sub(headers(remote));
        let env = &mut self.tcp_context.env(slot.config, self.now);
        slot.connection.on_path(mss, slot.mss_agreed, env);
        if slot.connection.mss() < slot.mss_agreed {
            slot.flags.set(SlotFlags::SMALL_PATH);
        } else {
            slot.flags.clear(SlotFlags::SMALL_PATH);
        }
    }

    /// A connection whose path carries less than the agreed MSS is about to send: the path may carry more by now, or
    /// a probe is due.
    #[cold]
    pub(crate) fn search_path(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let remote = slot.flow.remote;
        let paths = &mut self.next_hops.paths;
        let Some(mtu) = paths.next_probe(remote, self.now) else {
            let mss = paths.path_mtu(remote, self.now) - headers(remote);
            if slot.connection.mss() < mss.min(slot.mss_agreed) {
                self.fit_to_path(index);
            }
            return;
        };
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        let env = &mut self.tcp_context.env(slot.config, self.now);
        let mss = mtu - headers(remote);
        if slot
            .connection
            .want_larger(mss, slot.mss_agreed, queued, env)
        {
            paths.note_probe(remote, self.now);
        }
    }

    /// A connection has learnt the size of its path.
    #[cold]
    pub(crate) fn on_path_news(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        let Some(news) = slot.connection.take_path_news(env) else {
            return;
        };
        let remote = slot.flow.remote;
        let paths = &mut self.next_hops.paths;
        let headers = headers(remote);
        match news {
            PathNews::BlackHole { arrived, lost } => {
                self.counters.black_holes += 1;
                paths.on_black_hole(remote, arrived + headers, lost + headers, self.now);
            }
            PathNews::Arrived(mss) => paths.on_probe(remote, mss + headers, true, self.now),
            PathNews::Lost(mss) => paths.on_probe(remote, mss + headers, false, self.now),
        }
        self.fit_to_path(index);
        // The others see it when they send next.
        self.next_hops.outdate();
    }
}

/// Bytes of IP and TCP headers without options.
pub(crate) const fn headers(remote: IpAddr) -> u16 {
    match remote {
        IpAddr::V4(_) => 40,
        IpAddr::V6(_) => 60,
    }
}
