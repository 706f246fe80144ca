//! Ten standard paths, on which `cargo xtask bench paths` compares the stack with the kernel, and tests what it reaches in
//! simulation.

use mill_runtime::time::Duration;
use mill_sim::packet::wire::{Loss, Wire};

/// A path from a server to a client and back. What is dear is the way to the client; the other has a rate only where links of the
/// kind have one that matters.
#[derive(Clone, Copy, Debug)]
pub struct StandardPath {
    pub name: &'static str,
    rate_kbit: u64,
    back_kbit: Option<u64>,
    pub round_trip_ms: u64,
    /// Of the queue before the wire.
    pub buffer_bytes: u64,
    lost_per_million: u32,
    corrupt_per_million: u32,
    jitter_ms: u64,
    /// Of one download.
    pub seconds: u32,
}

const PLAIN: StandardPath = StandardPath {
    name: "",
    rate_kbit: 100_000,
    back_kbit: None,
    round_trip_ms: 20,
    buffer_bytes: 250_000,
    lost_per_million: 0,
    corrupt_per_million: 0,
    jitter_ms: 0,
    seconds: 8,
};

/// In parts of what the path carries in a round trip, the buffer is: ten in the LAN, three of DSL, four and a half of LTE, one of the satellite
/// and of lossy paths, a tenth of the shallow one and five of the deep one.
pub const PATHS: [StandardPath; 10] = [
    StandardPath {
        name: "lan",
        rate_kbit: 200_000,
        round_trip_ms: 1,
        ..PLAIN
    },
    StandardPath {
        name: "dsl",
        rate_kbit: 16_000,
        back_kbit: Some(1_000),
        round_trip_ms: 30,
        buffer_bytes: 180_000,
        ..PLAIN
    },
    StandardPath {
        name: "lte",
        rate_kbit: 40_000,
        back_kbit: Some(10_000),
        round_trip_ms: 50,
        buffer_bytes: 1_125_000,
        jitter_ms: 4,
        ..PLAIN
    },
    StandardPath {
        name: "satellite",
        rate_kbit: 20_000,
        back_kbit: Some(2_000),
        round_trip_ms: 600,
        buffer_bytes: 1_500_000,
        seconds: 20,
        ..PLAIN
    },
    StandardPath {
        name: "loss-0.1",
        lost_per_million: 1_000,
        ..PLAIN
    },
    StandardPath {
        name: "loss-1",
        lost_per_million: 10_000,
        ..PLAIN
    },
    StandardPath {
        name: "loss-5",
        lost_per_million: 50_000,
        ..PLAIN
    },
    StandardPath {
        name: "corrupt-0.5",
        corrupt_per_million: 5_000,
        ..PLAIN
    },
    StandardPath {
        name: "shallow",
        round_trip_ms: 40,
        buffer_bytes: 50_000,
        ..PLAIN
    },
    StandardPath {
        name: "deep",
        rate_kbit: 50_000,
        round_trip_ms: 40,
        buffer_bytes: 1_250_000,
        ..PLAIN
    },
];

impl StandardPath {
    pub fn named(name: &str) -> Option<Self> {
        PATHS.into_iter().find(|path| path.name == name)
    }

    pub const fn round_trip(&self) -> Duration {
        Duration::from_millis(self.round_trip_ms)
    }

    /// From the server to the client.
    pub fn down(&self) -> Wire {
        let loss = match self.lost_per_million {
            0 => Loss::Never,
            per_million => Loss::Random { per_million },
        };
        Wire {
            bits_per_second: Some(self.rate_kbit * 1_000),
            queue_bytes: self.buffer_bytes,
            loss,
            corrupt_per_million: self.corrupt_per_million,
            jitter: Duration::from_millis(self.jitter_ms),
            ..Wire::delayed(self.round_trip() / 2)
        }
    }

    /// From the client to the server: nothing is lost, and there is room for all.
    pub fn up(&self) -> Wire {
        Wire {
            bits_per_second: self.back_kbit.map(|kbit| kbit * 1_000),
            ..Wire::delayed(self.round_trip() / 2)
        }
    }

    /// How long so many bytes occupy the wire.
    pub fn milliseconds_of(&self, bytes: f64) -> f64 {
        bytes * 8.0 / self.rate_kbit as f64
    }

    /// In words.
    pub fn description(&self) -> String {
        let mut text = format!(
            "{} Mbit/s, {} ms, buffer {} kB",
            self.rate_kbit / 1_000,
            self.round_trip_ms,
            self.buffer_bytes / 1_000
        );
        let percent = |per_million: u32| f64::from(per_million) / 10_000.0;
        for (per_million, what) in [
            (self.lost_per_million, "lost"),
            (self.corrupt_per_million, "corrupted"),
        ] {
            if per_million > 0 {
                text.push_str(&format!(", {} % {what}", percent(per_million)));
            }
        }
        if self.jitter_ms > 0 {
            text.push_str(&format!(", jitter {} ms", self.jitter_ms));
        }
        if let Some(kbit) = self.back_kbit {
            text.push_str(&format!(", back {} Mbit/s", kbit / 1_000));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_names_of_their_own_by_which_they_are_found() {
        for (index, path) in PATHS.iter().enumerate() {
            let first = PATHS.iter().position(|other| other.name == path.name);
            assert_eq!(first, Some(index), "{}", path.name);
            assert_eq!(
                StandardPath::named(path.name).unwrap().buffer_bytes,
                path.buffer_bytes
            );
        }
        assert!(StandardPath::named("moon").is_none());
    }

    #[test]
    fn a_path_is_described_by_all_that_is_unusual_of_it() {
        for (name, expected) in [
            ("lan", "200 Mbit/s, 1 ms, buffer 250 kB"),
            (
                "lte",
                "40 Mbit/s, 50 ms, buffer 1125 kB, jitter 4 ms, back 10 Mbit/s",
            ),
            ("loss-0.1", "100 Mbit/s, 20 ms, buffer 250 kB, 0.1 % lost"),
            (
                "corrupt-0.5",
                "100 Mbit/s, 20 ms, buffer 250 kB, 0.5 % corrupted",
            ),
        ] {
            assert_eq!(StandardPath::named(name).unwrap().description(), expected);
        }
    }

    #[test]
    fn only_the_way_to_the_client_loses() {
        for path in PATHS {
            assert!(path.up().is_faithful(), "{}", path.name);
        }
        let lossy = PATHS.iter().filter(|path| !path.down().is_faithful());
        assert_eq!(lossy.count(), 4);
    }

    #[test]
    fn a_queue_is_as_long_as_the_wire_needs_for_it() {
        let path = StandardPath::named("dsl").unwrap();
        assert!((path.milliseconds_of(180_000.0) - 90.0).abs() < 1e-9);
    }
}
