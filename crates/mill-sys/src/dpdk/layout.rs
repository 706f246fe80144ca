//! Offsets, sizes and numbers of DPDK's headers, for the ABI of `ABI`.
//!
//! They hold on 64-bit machines of low byte order. A test compiles DPDK's own headers, where they are installed, and compares.

/// The ABI's number, which is in the names of the libraries' files: that of DPDK 22.11 (Debian 12).
pub const ABI: &str = "23";

/// `struct rte_mbuf` (rte_mbuf_core.h).
pub mod mbuf {
    pub const BUF_ADDR: usize = 0;
    pub const DATA_OFF: usize = 16;
    pub const NB_SEGS: usize = 20;
    pub const PORT: usize = 22;
    pub const OL_FLAGS: usize = 24;
    pub const PACKET_TYPE: usize = 32;
    pub const PKT_LEN: usize = 36;
    pub const DATA_LEN: usize = 40;
    pub const VLAN_TCI: usize = 42;
    pub const VLAN_TCI_OUTER: usize = 52;
    pub const BUF_LEN: usize = 54;
    pub const NEXT: usize = 64;
    pub const TX_OFFLOAD: usize = 72;
}

/// `struct rte_mempool` (rte_mempool.h), and what its drivers are called by.
pub mod mempool {
    /// Of `struct rte_mempool`.
    pub const OPS_INDEX: usize = 88;
    /// Of `struct rte_mempool_ops_table`.
    pub const OPS: usize = 64;
    /// Of `struct rte_mempool_ops`.
    pub const DEQUEUE: usize = 56;
    pub const OPS_BYTES: usize = 128;
    /// RTE_MEMPOOL_MAX_OPS_IDX.
    pub const OPS_COUNT: usize = 16;
}

/// `struct rte_eth_fp_ops` (rte_ethdev_core.h).
pub mod fast_path {
    pub const RX_PKT_BURST: usize = 0;
    pub const RXQ_DATA: usize = 24;
    pub const TX_PKT_BURST: usize = 64;
    pub const TX_PKT_PREPARE: usize = 72;
    pub const TXQ_DATA: usize = 88;
    pub const BYTES: usize = 128;
    /// RTE_MAX_ETHPORTS (rte_config.h): entries of `rte_eth_fp_ops`.
    pub const PORTS: u16 = 32;
}

/// `struct rte_eth_dev_info` (rte_ethdev.h).
pub mod dev_info {
    pub const DRIVER_NAME: usize = 8;
    pub const MIN_MTU: usize = 20;
    pub const MAX_MTU: usize = 22;
    pub const MAX_RX_PKTLEN: usize = 36;
    pub const MAX_RX_QUEUES: usize = 44;
    pub const MAX_TX_QUEUES: usize = 46;
    pub const RX_OFFLOAD_CAPA: usize = 72;
    pub const TX_OFFLOAD_CAPA: usize = 80;
    pub const FLOW_TYPE_RSS_OFFLOADS: usize = 112;
    pub const BYTES: usize = 376;
}

/// `struct rte_eth_conf` (rte_ethdev.h).
pub mod conf {
    pub const RX_MQ_MODE: usize = 8;
    pub const RX_MTU: usize = 12;
    pub const RX_OFFLOADS: usize = 24;
    pub const TX_OFFLOADS: usize = 72;
    pub const RSS_HF: usize = 144;
    pub const BYTES: usize = 2272;
}

/// `struct rte_eth_stats` (rte_ethdev.h).
pub mod stats {
    pub const IPACKETS: usize = 0;
    pub const OPACKETS: usize = 8;
    pub const IBYTES: usize = 16;
    pub const OBYTES: usize = 24;
    pub const IMISSED: usize = 32;
    pub const IERRORS: usize = 40;
    pub const OERRORS: usize = 48;
    pub const RX_NOMBUF: usize = 56;
    pub const BYTES: usize = 704;
}

/// `struct rte_eth_link` (rte_ethdev.h).
pub mod link {
    /// Megabits a second; all ones where it is not known.
    pub const SPEED: usize = 0;
    /// The byte with `link_status`, and its bit.
    pub const STATUS: usize = 4;
    pub const STATUS_BIT: u32 = 4;
    pub const BYTES: usize = 8;
}

/// Bits of a packet's `ol_flags` (rte_mbuf_core.h).
pub mod flag {
    /// RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_L4_CKSUM_GOOD. Both: there is none, and the data are whole.
    pub const RX_L4_BAD: u64 = 1 << 3;
    pub const RX_L4_GOOD: u64 = 1 << 8;
    /// RTE_MBUF_F_TX_TCP_SEG.
    pub const TX_TCP_SEG: u64 = 1 << 50;
    /// RTE_MBUF_F_TX_TCP_CKSUM.
    pub const TX_TCP_CKSUM: u64 = 1 << 52;
    /// RTE_MBUF_F_TX_UDP_CKSUM.
    pub const TX_UDP_CKSUM: u64 = 3 << 52;
    /// RTE_MBUF_F_TX_IP_CKSUM.
    pub const TX_IP_CKSUM: u64 = 1 << 54;
    /// RTE_MBUF_F_TX_IPV4.
    pub const TX_IPV4: u64 = 1 << 55;
    /// RTE_MBUF_F_TX_IPV6.
    pub const TX_IPV6: u64 = 1 << 56;
}

/// Where lengths stand in `tx_offload` (rte_mbuf_core.h).
pub mod tx_offload {
    pub const L2_SHIFT: u32 = 0;
    pub const L3_SHIFT: u32 = 7;
    pub const L4_SHIFT: u32 = 16;
    pub const SEGMENT_SHIFT: u32 = 24;
}

/// Offloads on receive (RTE_ETH_RX_OFFLOAD_… of rte_ethdev.h).
pub mod rx {
    pub const IPV4_CKSUM: u64 = 1 << 1;
    pub const UDP_CKSUM: u64 = 1 << 2;
    pub const TCP_CKSUM: u64 = 1 << 3;
    pub const SCATTER: u64 = 1 << 13;
}

/// Offloads on transmit (RTE_ETH_TX_OFFLOAD_… of rte_ethdev.h).
pub mod tx {
    pub const IPV4_CKSUM: u64 = 1 << 1;
    pub const UDP_CKSUM: u64 = 1 << 2;
    pub const TCP_CKSUM: u64 = 1 << 3;
    pub const TCP_TSO: u64 = 1 << 5;
    pub const MULTI_SEGS: u64 = 1 << 15;
}

/// Hashes that spread flows (RTE_ETH_RSS_… and RTE_ETH_MQ_RX_RSS of rte_ethdev.h).
pub mod rss {
    pub const MODE: u32 = 1;
    pub const IP: u64 = 0xa38c;
    pub const TCP: u64 = 0x1_0410;
    pub const UDP: u64 = 0x2_0820;
}

/// RTE_PKTMBUF_HEADROOM (rte_config.h): bytes that stay free before a packet.
pub const HEADROOM: u16 = 128;

#[cfg(test)]
mod tests;
