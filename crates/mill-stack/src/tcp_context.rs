//! The host's shared state that each call of a connection uses.

use alloc::vec::Vec;
use mill_tcp::config::{Config, Dscp};
use mill_tcp::connection::Connection;
use mill_tcp::env::{Env, Shared};
use mill_tcp::time::Instant;

/// Configurations, counters, pools, and how much memory is left.
#[derive(Debug)]
pub(crate) struct TcpContext {
    pub(crate) shared: Shared,
    /// The host's own comes first; listeners that differ from it add theirs.
    configs: Vec<Config>,
    /// One of them says how packets are to be treated.
    has_dscp: bool,
    segment_bytes_max: u32,
    receive_bytes_max: u64,
    /// Delivered by TCP and not taken by readers, or out of order.
    receive_bytes: u64,
}

impl TcpContext {
    pub(crate) fn new(
        config: Config,
        seed: u64,
        segment_bytes_max: u32,
        receive_bytes_max: u64,
    ) -> Self {
        Self {
            shared: Shared::new(seed),
            has_dscp: config.dscp != Dscp::default(),
            configs: alloc::vec![config],
            segment_bytes_max,
            receive_bytes_max,
            receive_bytes: 0,
        }
    }

    /// What a connection with the configuration of this number gets.
    #[inline]
    pub(crate) fn env(&mut self, config: u16, now: Instant) -> Env<'_> {
        let configs = &self.configs;
        Env {
            now,
            config: configs
                .get(usize::from(config))
                .or_else(|| configs.first())
                .expect("the host's own configuration is always there"),
            shared: &mut self.shared,
            segment_bytes_max: self.segment_bytes_max,
            memory_left_bytes: spendable(self.receive_bytes_max).saturating_sub(self.receive_bytes),
        }
    }

    pub(crate) fn config(&self, number: u16) -> &Config {
        self.configs
            .get(usize::from(number))
            .or_else(|| self.configs.first())
            .expect("the host's own configuration is always there")
    }

    pub(crate) const fn has_dscp(&self) -> bool {
        self.has_dscp
    }

    /// The link carries more or less now.
    pub(crate) const fn set_segment_bytes_max(&mut self, bytes: u32) {
        self.segment_bytes_max = bytes;
    }

    /// The number of a configuration, which is added if there is none like it. After 65 535 different ones the host's
    /// own is used.
    pub(crate) fn number_of(&mut self, config: Config) -> u16 {
        let found = self.configs.iter().position(|known| *known == config);
        let number = found.unwrap_or_else(|| {
            if self.configs.len() < usize::from(u16::MAX) {
                self.has_dscp |= config.dscp != Dscp::default();
                self.configs.push(config);
                self.configs.len() - 1
            } else {
                OWN
            }
        });
        u16::try_from(number).unwrap_or(0)
    }

    /// Bytes were delivered and wait for a reader.
    pub(crate) const fn add_unread(&mut self, bytes: usize) {
        self.receive_bytes += bytes as u64;
    }

    /// Bytes were read, or discarded.
    pub(crate) const fn sub_unread(&mut self, bytes: usize) {
        debug_assert!(self.receive_bytes >= bytes as u64);
        self.receive_bytes = self.receive_bytes.saturating_sub(bytes as u64);
    }

    /// Keeps the account of what a connection holds out of order; `known` is what was counted for it before.
    #[inline]
    pub(crate) fn count_reassembly(&mut self, known: &mut u32, connection: &Connection) {
        let held = connection.reassembly_bytes();
        if held != *known {
            self.receive_bytes += u64::from(held);
            self.sub_unread(*known as usize);
            *known = held;
        }
    }

    /// Whether no more data is to be taken, not even in order.
    pub(crate) const fn is_full(&self) -> bool {
        self.receive_bytes >= self.receive_bytes_max
    }

    pub(crate) const fn receive_bytes(&self) -> u64 {
        self.receive_bytes
    }
}

/// The part of the budget for wider windows and bytes out of order. The last fourth is for bytes in order only: they
/// fill the holes, after which readers take what lies behind; without it, data behind a hole could wait for ever.
const fn spendable(receive_bytes_max: u64) -> u64 {
    receive_bytes_max - receive_bytes_max / 4
}

/// The host's own configuration.
const OWN: usize = 0;
