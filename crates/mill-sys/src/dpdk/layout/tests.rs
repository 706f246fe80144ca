//! The layouts beside DPDK's own headers.

use super::*;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// Folders in which distributions have the headers, each with the one of the machine's own.
const INCLUDES: [&str; 4] = [
    "/usr/include/dpdk",
    "/usr/include/x86_64-linux-gnu/dpdk",
    "/usr/include/aarch64-linux-gnu/dpdk",
    "/usr/local/include",
];

#[test]
fn the_headers_of_this_abi_say_the_same() {
    let folder = std::env::temp_dir().join(format!("mill-dpdk-layout-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    let mut text = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <rte_ethdev.h>\n#include <rte_version.h>\n\
         int main(void) {\nprintf(\"%d.%d\\n\", RTE_VER_YEAR, RTE_VER_MONTH);\n",
    );
    for (expression, _) in EXPRESSIONS {
        writeln!(
            text,
            "printf(\"%llu\\n\", (unsigned long long)({expression}));"
        )
        .unwrap();
    }
    text.push_str("return 0; }\n");
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(INCLUDES.map(|folder| format!("-I{folder}")));
    compiler
        .args(["-march=native", "-w", "-o"])
        .arg(&program)
        .arg(&source);
    let compiled = compiler
        .output()
        .is_ok_and(|output| output.status.success());
    let output = compiled.then(|| Command::new(&program).output().unwrap());
    fs::remove_dir_all(&folder).unwrap();
    let Some(output) = output else {
        println!("not tested: there is no C compiler, or no headers of DPDK (Debian: libdpdk-dev)");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let version = lines.next().unwrap();
    if version != "22.11" {
        println!("not tested: the headers are of DPDK {version}, and the layouts of 22.11");
        return;
    }
    for (expression, expected) in EXPRESSIONS {
        let found: u64 = lines.next().unwrap().parse().unwrap();
        assert_eq!(found, *expected, "{expression}");
    }
}

/// Each of them as an expression of C, and what the headers have to give for it.
const EXPRESSIONS: &[(&str, u64)] = &[
    ("offsetof(struct rte_mbuf, buf_addr)", mbuf::BUF_ADDR as u64),
    ("offsetof(struct rte_mbuf, data_off)", mbuf::DATA_OFF as u64),
    ("offsetof(struct rte_mbuf, nb_segs)", mbuf::NB_SEGS as u64),
    ("offsetof(struct rte_mbuf, port)", mbuf::PORT as u64),
    ("offsetof(struct rte_mbuf, ol_flags)", mbuf::OL_FLAGS as u64),
    (
        "offsetof(struct rte_mbuf, packet_type)",
        mbuf::PACKET_TYPE as u64,
    ),
    ("offsetof(struct rte_mbuf, pkt_len)", mbuf::PKT_LEN as u64),
    ("offsetof(struct rte_mbuf, data_len)", mbuf::DATA_LEN as u64),
    ("offsetof(struct rte_mbuf, vlan_tci)", mbuf::VLAN_TCI as u64),
    (
        "offsetof(struct rte_mbuf, vlan_tci_outer)",
        mbuf::VLAN_TCI_OUTER as u64,
    ),
    ("offsetof(struct rte_mbuf, buf_len)", mbuf::BUF_LEN as u64),
    ("offsetof(struct rte_mbuf, next)", mbuf::NEXT as u64),
    (
        "offsetof(struct rte_mbuf, tx_offload)",
        mbuf::TX_OFFLOAD as u64,
    ),
    (
        "offsetof(struct rte_mempool, ops_index)",
        mempool::OPS_INDEX as u64,
    ),
    (
        "offsetof(struct rte_mempool_ops_table, ops)",
        mempool::OPS as u64,
    ),
    (
        "offsetof(struct rte_mempool_ops, dequeue)",
        mempool::DEQUEUE as u64,
    ),
    ("sizeof(struct rte_mempool_ops)", mempool::OPS_BYTES as u64),
    ("RTE_MEMPOOL_MAX_OPS_IDX", mempool::OPS_COUNT as u64),
    (
        "offsetof(struct rte_eth_fp_ops, rx_pkt_burst)",
        fast_path::RX_PKT_BURST as u64,
    ),
    (
        "offsetof(struct rte_eth_fp_ops, rxq.data)",
        fast_path::RXQ_DATA as u64,
    ),
    (
        "offsetof(struct rte_eth_fp_ops, tx_pkt_burst)",
        fast_path::TX_PKT_BURST as u64,
    ),
    (
        "offsetof(struct rte_eth_fp_ops, tx_pkt_prepare)",
        fast_path::TX_PKT_PREPARE as u64,
    ),
    (
        "offsetof(struct rte_eth_fp_ops, txq.data)",
        fast_path::TXQ_DATA as u64,
    ),
    ("sizeof(struct rte_eth_fp_ops)", fast_path::BYTES as u64),
    ("RTE_MAX_ETHPORTS", fast_path::PORTS as u64),
    (
        "offsetof(struct rte_eth_dev_info, driver_name)",
        dev_info::DRIVER_NAME as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, min_mtu)",
        dev_info::MIN_MTU as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, max_mtu)",
        dev_info::MAX_MTU as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, max_rx_pktlen)",
        dev_info::MAX_RX_PKTLEN as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, max_rx_queues)",
        dev_info::MAX_RX_QUEUES as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, max_tx_queues)",
        dev_info::MAX_TX_QUEUES as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, rx_offload_capa)",
        dev_info::RX_OFFLOAD_CAPA as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, tx_offload_capa)",
        dev_info::TX_OFFLOAD_CAPA as u64,
    ),
    (
        "offsetof(struct rte_eth_dev_info, flow_type_rss_offloads)",
        dev_info::FLOW_TYPE_RSS_OFFLOADS as u64,
    ),
    ("sizeof(struct rte_eth_dev_info)", dev_info::BYTES as u64),
    (
        "offsetof(struct rte_eth_conf, rxmode.mq_mode)",
        conf::RX_MQ_MODE as u64,
    ),
    (
        "offsetof(struct rte_eth_conf, rxmode.mtu)",
        conf::RX_MTU as u64,
    ),
    (
        "offsetof(struct rte_eth_conf, rxmode.offloads)",
        conf::RX_OFFLOADS as u64,
    ),
    (
        "offsetof(struct rte_eth_conf, txmode.offloads)",
        conf::TX_OFFLOADS as u64,
    ),
    (
        "offsetof(struct rte_eth_conf, rx_adv_conf.rss_conf.rss_hf)",
        conf::RSS_HF as u64,
    ),
    ("sizeof(struct rte_eth_conf)", conf::BYTES as u64),
    (
        "offsetof(struct rte_eth_stats, ipackets)",
        stats::IPACKETS as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, opackets)",
        stats::OPACKETS as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, ibytes)",
        stats::IBYTES as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, obytes)",
        stats::OBYTES as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, imissed)",
        stats::IMISSED as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, ierrors)",
        stats::IERRORS as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, oerrors)",
        stats::OERRORS as u64,
    ),
    (
        "offsetof(struct rte_eth_stats, rx_nombuf)",
        stats::RX_NOMBUF as u64,
    ),
    ("sizeof(struct rte_eth_stats)", stats::BYTES as u64),
    (
        "offsetof(struct rte_eth_link, link_speed)",
        link::SPEED as u64,
    ),
    ("sizeof(struct rte_eth_link)", link::BYTES as u64),
    (
        "((union { struct rte_eth_link link; uint32_t words[2]; }) { .link = { .link_status = 1 } }).words[1]",
        link::STATUS_BIT as u64,
    ),
    ("RTE_MBUF_F_RX_L4_CKSUM_BAD", flag::RX_L4_BAD),
    ("RTE_MBUF_F_RX_L4_CKSUM_GOOD", flag::RX_L4_GOOD),
    ("RTE_MBUF_F_TX_TCP_SEG", flag::TX_TCP_SEG),
    ("RTE_MBUF_F_TX_TCP_CKSUM", flag::TX_TCP_CKSUM),
    ("RTE_MBUF_F_TX_UDP_CKSUM", flag::TX_UDP_CKSUM),
    ("RTE_MBUF_F_TX_IP_CKSUM", flag::TX_IP_CKSUM),
    ("RTE_MBUF_F_TX_IPV4", flag::TX_IPV4),
    ("RTE_MBUF_F_TX_IPV6", flag::TX_IPV6),
    (
        "((struct rte_mbuf) { .l2_len = 1 }).tx_offload",
        1 << tx_offload::L2_SHIFT,
    ),
    (
        "((struct rte_mbuf) { .l3_len = 1 }).tx_offload",
        1 << tx_offload::L3_SHIFT,
    ),
    (
        "((struct rte_mbuf) { .l4_len = 1 }).tx_offload",
        1 << tx_offload::L4_SHIFT,
    ),
    (
        "((struct rte_mbuf) { .tso_segsz = 1 }).tx_offload",
        1 << tx_offload::SEGMENT_SHIFT,
    ),
    ("RTE_ETH_RX_OFFLOAD_IPV4_CKSUM", rx::IPV4_CKSUM),
    ("RTE_ETH_RX_OFFLOAD_UDP_CKSUM", rx::UDP_CKSUM),
    ("RTE_ETH_RX_OFFLOAD_TCP_CKSUM", rx::TCP_CKSUM),
    ("RTE_ETH_RX_OFFLOAD_SCATTER", rx::SCATTER),
    ("RTE_ETH_TX_OFFLOAD_IPV4_CKSUM", tx::IPV4_CKSUM),
    ("RTE_ETH_TX_OFFLOAD_UDP_CKSUM", tx::UDP_CKSUM),
    ("RTE_ETH_TX_OFFLOAD_TCP_CKSUM", tx::TCP_CKSUM),
    ("RTE_ETH_TX_OFFLOAD_TCP_TSO", tx::TCP_TSO),
    ("RTE_ETH_TX_OFFLOAD_MULTI_SEGS", tx::MULTI_SEGS),
    ("RTE_ETH_MQ_RX_RSS", rss::MODE as u64),
    ("RTE_ETH_RSS_IP", rss::IP),
    ("RTE_ETH_RSS_TCP", rss::TCP),
    ("RTE_ETH_RSS_UDP", rss::UDP),
    ("RTE_PKTMBUF_HEADROOM", HEADROOM as u64),
];
