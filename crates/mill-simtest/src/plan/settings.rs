//! Settings that not every world has: limits of time, of memory, of segments; what listeners are told.

use super::Plan;
use mill_runtime::time::Duration;
use mill_sim::random::Random;
use mill_stack::limits::Limits;
use mill_tcp::config::Keepalive;

/// What servers are set to, beside what each station's `tcp` says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of the hosts that serve.
    pub limits: Limits,
    /// Some of these limits, or the backlog, are so small that they are reached.
    pub is_tight: bool,
    /// Connections that may wait to be accepted, if not as many as by default.
    pub backlog: Option<u32>,
    /// The length of the queue of Fast Open.
    pub fast_open: Option<u32>,
    /// Clients ask for Fast Open's cookies, and send their first bytes with a SYN where they have one.
    pub asks_fast_open: bool,
    /// Connections end when the peer is silent for so long: user timeouts and keep-alive at all stations.
    pub limits_time: bool,
}

impl Settings {
    pub(super) fn draw(plan: &mut Plan, random: &mut Random) {
        if random.happens(250_000) {
            for station in &mut plan.stations {
                station.tcp.mtu_probing = random.happens(700_000);
            }
        }
        if random.happens(200_000) {
            for station in &mut plan.stations {
                let any = u16::try_from(400 + random.up_to(1_060)).unwrap_or(536);
                station.tcp.mss_max = random.one_of(&[None, Some(536), Some(1_000), Some(any)]);
            }
        }
        if random.happens(200_000) {
            plan.settings.limits_time = true;
            for station in &mut plan.stations {
                station.tcp.keepalive = Some(keepalive(random));
                let timeout = Duration::from_secs(5 + random.up_to(55));
                station.tcp.user_timeout = random.happens(500_000).then_some(timeout);
            }
        }
        if random.happens(200_000) {
            plan.settings.fast_open = Some(random.one_of(&[1, 16]));
        }
        if random.happens(200_000) {
            plan.settings.tighten(random);
        }
    }

    /// Most often where the servers have it, too.
    pub(super) fn draw_fast_open(&mut self, random: &mut Random) {
        let share = if self.fast_open.is_some() {
            600_000
        } else {
            30_000
        };
        self.asks_fast_open = random.happens(share);
    }

    fn tighten(&mut self, random: &mut Random) {
        self.is_tight = true;
        let limits = &mut self.limits;
        let defaults = Limits::default();
        limits.connections_max = random.one_of(&[2, 4, 10, defaults.connections_max]);
        limits.half_open_max = random.one_of(&[1, 8, defaults.half_open_max]);
        limits.time_wait_max = random.one_of(&[1, 4, defaults.time_wait_max]);
        limits.receive_bytes_max =
            random.one_of(&[20_000, 100_000, 500_000, defaults.receive_bytes_max]);
        limits.neighbors_max = random.one_of(&[8, defaults.neighbors_max]);
        limits.neighbor_queue_max = random.one_of(&[1, 4, defaults.neighbor_queue_max]);
        limits.answers_per_second = random.one_of(&[10, defaults.answers_per_second]);
        limits.burst_max = random.one_of(&[1, 7, defaults.burst_max]);
        self.backlog = random.one_of(&[None, Some(1), Some(3)]);
    }
}

fn keepalive(random: &mut Random) -> Keepalive {
    Keepalive {
        idle: Duration::from_secs(1 + random.up_to(9)),
        interval: Duration::from_secs(1 + random.up_to(4)),
        count: u8::try_from(3 + random.up_to(6)).unwrap_or(3),
    }
}
