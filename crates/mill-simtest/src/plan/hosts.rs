//! Cards and the stack's settings.

use super::{CardPlan, small};
use mill_runtime::time::Duration;
use mill_sim::random::Random;
use mill_stack::link::ReceivedChecksum;
use mill_tcp::config::{Algorithm, Config, EcnMode};

/// Mostly Ethernet's; else the least of the family, jumbo frames, or any.
pub(crate) fn mtu(is_ipv6: bool, random: &mut Random) -> u16 {
    let least = if is_ipv6 { 1280 } else { 576 };
    match random.up_to(9) {
        0..=5 => 1500,
        6 => least,
        7 => 9000,
        _ => u16::try_from(u64::from(least) + random.up_to(3000)).unwrap_or(1500),
    }
}

pub(crate) fn card(mtu: u16, random: &mut Random) -> CardPlan {
    let completes_checksums = random.happens(500_000);
    let cuts = completes_checksums && random.happens(600_000);
    CardPlan {
        mtu,
        completes_checksums,
        segment_bytes_max: if cuts { 65_535 } else { u32::from(mtu) },
        vouches: random.one_of(&[
            ReceivedChecksum::Unverified,
            ReceivedChecksum::Verified,
            ReceivedChecksum::MaybePartial,
        ]),
        merges: random.happens(300_000),
        card_bytes: random
            .happens(300_000)
            .then(|| 20_000 + random.up_to(200_000)),
    }
}

pub(crate) fn tcp(random: &mut Random) -> Config {
    let defaults = Config::default();
    let receive_buffer_bytes = random.one_of(&[4_000, 30_000, 64 * 1024]);
    Config {
        initial_window_segments: random.one_of(&[1, 2, 10, 10, 10, 30]),
        window_scaling: random.happens(800_000),
        timestamps: random.happens(750_000),
        sack: random.happens(750_000),
        ecn: random.one_of(&[EcnMode::Off, EcnMode::Accept, EcnMode::Ask]),
        congestion: random.one_of(&[Algorithm::Cubic, Algorithm::Bbr, Algorithm::Reno]),
        hystart: random.happens(500_000),
        receive_buffer_bytes,
        receive_buffer_bytes_max: random.one_of(&[
            receive_buffer_bytes,
            256 * 1024,
            defaults.receive_buffer_bytes_max,
        ]),
        reassembly_bytes_max: random.one_of(&[20_000, defaults.reassembly_bytes_max]),
        reassembly_ranges_max: random.one_of(&[4, defaults.reassembly_ranges_max]),
        delayed_ack: Duration::from_millis(random.one_of(&[10, 40, 200])),
        quick_acks: u8::try_from(random.one_of(&[0, 1, 16])).unwrap_or(0),
        msl: Duration::from_millis(1000 + random.up_to(30_000)),
        nodelay: random.happens(800_000),
        fin_wait_2: Duration::from_secs(u64::from(small(10 + random.up_to(50)))),
        // No draw of its own: the other settings of each seed stay what they were.
        pacing: receive_buffer_bytes == 30_000,
        ..defaults
    }
}
