//! Publishes the figures of a worker's stack after each turn; the server publishes its own.

use super::inspect::{Ask, InspectionQueue};
use super::snapshot;
use mill_device::AnyLink;
use mill_device::standby::StandbyLink;
use mill_engine::combined::CombinedEngine;
use mill_metrics::StackCounters;
use mill_metrics::board::Board;
use mill_stack::drop_reason::DropReason;
use mill_tcp::arrived::SegmentDrop;

/// Publishes the figures of a worker's stack. A turn that changed none costs two loads, one that did little a few more;
/// all figures are copied when frames stop coming, and every [`INTERVAL_NS`] while they do.
pub(crate) struct StackPublisher {
    engine: CombinedEngine,
    board: Board,
    number: u32,
    asked: InspectionQueue,
    /// Frames of the last turn, and when all figures were published last.
    frames: u64,
    shown_frames: u64,
    shown_at_ns: u64,
    turns_busy: u64,
    /// When the figures that take system calls were read last, and their values.
    asked_at_ns: u64,
    of_kernel: StackCounters,
}

impl StackPublisher {
    pub(crate) fn new(
        engine: CombinedEngine,
        board: Board,
        number: u32,
        asked: InspectionQueue,
    ) -> Self {
        let mut show = Self {
            engine,
            board,
            number,
            asked,
            frames: 0,
            shown_frames: 0,
            shown_at_ns: 0,
            turns_busy: 0,
            asked_at_ns: 0,
            of_kernel: StackCounters::default(),
        };
        show.now();
        show
    }

    /// To be called at the end of each turn, after the server has published its figures.
    #[inline]
    pub(crate) fn after_turn(&mut self) {
        if let Some(ask) = self.asked.next() {
            self.answer(&ask);
        }
        let frames = self.engine.with_host(|host| {
            let counters = host.counters();
            counters.frames_in.wrapping_add(counters.frames_out)
        });
        let Some(frames) = frames else { return };
        let Some(place) = self.board.place(self.number) else {
            return;
        };
        let (now_ns, turns_busy) = place.last_turn();
        let has_frames = std::mem::replace(&mut self.frames, frames) != frames;
        if has_frames && turns_busy == self.turns_busy {
            place.show_busy();
            self.turns_busy = turns_busy.wrapping_add(1);
        } else {
            self.turns_busy = turns_busy;
        }
        if frames == self.shown_frames {
            return;
        }
        // A turn without frames always precedes a sleep: the figures published there are final.
        if !has_frames || now_ns.saturating_sub(self.shown_at_ns) >= INTERVAL_NS {
            self.show(now_ns);
        }
    }

    #[cold]
    fn answer(&mut self, ask: &Ask) {
        self.now();
        snapshot::answer(&self.engine, self.number, ask);
    }

    /// Publishes everything as of now.
    pub(crate) fn now(&mut self) {
        self.asked_at_ns = 0;
        let place = self.board.place(self.number);
        let now_ns = place.map_or(0, |place| place.last_turn().0);
        self.show(now_ns);
    }

    fn show(&mut self, now_ns: u64) {
        self.shown_frames = self.frames;
        self.shown_at_ns = now_ns;
        if self.asked_at_ns == 0 || now_ns.saturating_sub(self.asked_at_ns) >= ASK_INTERVAL_NS {
            self.asked_at_ns = now_ns.max(1);
            let mut found = StackCounters::default();
            self.engine.with_link(|link| ask_kernel(link, &mut found));
            self.of_kernel = found;
        }
        let mut figures = self.of_kernel;
        if !gather(&self.engine, &mut figures) {
            return;
        }
        if let Some(place) = self.board.place(self.number) {
            place.show_stack(&figures);
        }
    }
}

/// Figures that cost only their loads. False without a stack.
fn gather(engine: &CombinedEngine, into: &mut StackCounters) -> bool {
    let has_stack = engine.with_host(|host| {
        let (own, tcp, usage) = (host.counters(), host.tcp_counters(), host.usage());
        into.frames_received = own.frames_in;
        into.frames_transmitted = own.frames_out;
        into.frames_handled = own.frames_handled;
        into.frames_handed_over = own.handed_over;
        into.opens_passive = own.passive_opens;
        into.opens_active = own.active_opens;
        into.opens_failed = own.failed_opens;
        into.syns_received = own.syns_in;
        into.syn_cookies_sent = own.cookies_sent;
        into.syn_cookies_taken = own.cookies_taken;
        into.syn_cookies_refused = own.cookies_refused;
        into.fast_opens = own.fast_opens;
        into.fast_open_cookies_sent = own.fast_open_cookies_sent;
        into.fast_opens_out = own.fast_opens_out;
        into.fast_opens_lost = own.fast_opens_lost;
        into.segments_in_place = own.segments_in_place;
        into.time_waits = own.time_waits;
        into.time_waits_forgotten = own.time_waits_forgotten;
        into.time_waits_reopened = own.time_waits_reopened;
        into.bytes_left = own.bytes_left;
        into.bytes_gathered = own.bytes_gathered;
        for reason in DropReason::ALL {
            *dropped(into, reason) = own.dropped(reason);
        }
        into.segments_received = tcp.segments_in;
        into.segments_sent = tcp.segments_out;
        into.segments_retransmitted = tcp.retransmitted;
        into.timeouts = tcp.timeouts;
        into.loss_probes = tcp.loss_probes;
        into.loss_probe_recoveries = tcp.loss_probe_recoveries;
        into.fast_retransmits = tcp.fast_retransmits;
        into.recoveries = tcp.recoveries;
        into.lost_retransmits = tcp.lost_retransmits;
        into.undone = tcp.undone;
        into.dsacks_received = tcp.dsacks_in;
        into.acks_sent = tcp.acks_out;
        into.delayed_acks = tcp.delayed_acks;
        into.challenge_acks = tcp.challenge_acks;
        into.challenge_acks_suppressed = tcp.challenge_acks_suppressed;
        into.short_path = tcp.short_path;
        into.out_of_order = tcp.out_of_order;
        into.bytes_delivered = tcp.delivered_bytes;
        into.keepalive_probes = tcp.keepalive_probes;
        into.window_probes = tcp.window_probes;
        into.ecn_reductions = tcp.ecn_reductions;
        into.paths_told = own.paths_told;
        into.paths_doubted = own.paths_doubted;
        into.black_holes = own.black_holes;
        into.paths_forgotten = host.paths().forgotten();
        into.path_probes = tcp.path_probes;
        into.path_probes_arrived = tcp.path_probes_arrived;
        into.path_probes_lost = tcp.path_probes_lost;
        into.small_paths = host.paths().len() as u64;
        into.resets_received = tcp.resets_in;
        into.resets_sent = tcp.resets_out;
        into.connections = usage.connections as u64;
        into.half_open = usage.half_open as u64;
        into.time_wait = usage.time_wait as u64;
        into.flows = usage.flows as u64;
        into.timers = usage.timers as u64;
        into.frames_held = usage.held_frames as u64;
        into.buffers = usage.buffers as u64;
        into.unread_bytes = usage.unread_bytes;
        into.fragment_bytes = usage.fragment_bytes as u64;
        into.waiting = usage.waiting as u64;
        into.table_bytes = host.tables_bytes() as u64;
        into.neighbors = host.neighbors_count() as u64;
    });
    engine.with_link(|link| count_link(link, into));
    has_stack.is_some()
}

/// The counter of drops for a reason.
fn dropped(figures: &mut StackCounters, reason: DropReason) -> &mut u64 {
    match reason {
        DropReason::Malformed => &mut figures.dropped_malformed,
        DropReason::NotForUs => &mut figures.dropped_not_for_us,
        DropReason::UnknownProtocol => &mut figures.dropped_unknown_protocol,
        DropReason::Checksum => &mut figures.dropped_checksum,
        DropReason::BadSource => &mut figures.dropped_bad_source,
        DropReason::Fragment => &mut figures.dropped_fragment,
        DropReason::NoListener => &mut figures.dropped_no_listener,
        DropReason::ListenQueueFull => &mut figures.dropped_listen_queue_full,
        DropReason::NoMemory => &mut figures.dropped_no_memory,
        DropReason::DeviceFull => &mut figures.dropped_device_full,
        DropReason::Unresolved => &mut figures.dropped_unresolved,
        DropReason::NoRoute => &mut figures.dropped_no_route,
        DropReason::RateLimit => &mut figures.dropped_rate_limit,
        DropReason::FragmentTimeout => &mut figures.dropped_fragment_timeout,
        DropReason::Blocked => &mut figures.dropped_blocked,
        DropReason::Segment(reason) => match reason {
            SegmentDrop::OutsideWindow => &mut figures.dropped_outside_window,
            SegmentDrop::Paws => &mut figures.dropped_paws,
            SegmentDrop::BlindReset => &mut figures.dropped_blind_reset,
            SegmentDrop::BlindSyn => &mut figures.dropped_blind_syn,
            SegmentDrop::BadAck => &mut figures.dropped_bad_ack,
            SegmentDrop::NoAck => &mut figures.dropped_no_ack,
            SegmentDrop::Duplicate => &mut figures.dropped_duplicate,
            SegmentDrop::ReassemblyFull => &mut figures.dropped_reassembly_full,
            SegmentDrop::NoBuffer => &mut figures.dropped_no_buffer,
            SegmentDrop::AfterClose => &mut figures.dropped_after_close,
            SegmentDrop::NoConnection => &mut figures.dropped_no_connection,
        },
    }
}

/// The counters of the link itself.
fn count_link(link: &AnyLink, into: &mut StackCounters) {
    if let Some(interface) = link.interface() {
        let counted = interface.queues().counters();
        into.link_received = counted.received;
        into.link_received_bytes = counted.received_bytes;
        into.link_transmitted = counted.transmitted;
        into.link_transmitted_bytes = counted.transmitted_bytes;
        into.link_segments = counted.segments;
        into.link_dropped = counted.dropped;
        into.link_lost = counted.lost;
        into.link_kicks = counted.kicks;
        into.link_refused = counted.refused;
    }
    if let Some(counted) = link.standby().and_then(StandbyLink::relayed) {
        into.link_received = counted.received;
        into.link_received_bytes = counted.received_bytes;
        into.link_transmitted = counted.transmitted;
        into.link_transmitted_bytes = counted.transmitted_bytes;
        into.link_lost = counted.lost;
    }
    if let Some(forwarding) = link.forwarding() {
        let counted = forwarding.counters();
        into.link_handed_on = counted.given;
        into.link_handed_here = counted.received;
        into.link_handed_lost = counted.lost;
    }
    if let Some(port) = link.dpdk() {
        let counted = port.counters();
        into.link_received = counted.received;
        into.link_received_bytes = counted.received_bytes;
        into.link_transmitted = counted.transmitted;
        into.link_transmitted_bytes = counted.transmitted_bytes;
        into.link_lost = counted.refused + counted.no_memory;
    }
    if let Some(memif) = link.memif() {
        let counted = memif.counters();
        into.link_received = counted.received;
        into.link_received_bytes = counted.received_bytes;
        into.link_transmitted = counted.transmitted;
        into.link_transmitted_bytes = counted.transmitted_bytes;
        into.link_dropped = counted.refused;
        into.link_lost = counted.unconnected + counted.untaken + counted.no_room;
        into.link_kicks = counted.wakeups;
    }
}

/// The kernel's counters of a link: a system call, and some hundred loads.
fn ask_kernel(link: &AnyLink, into: &mut StackCounters) {
    let Some(interface) = link.interface() else {
        return;
    };
    if let Ok(counted) = interface.queues().statistics() {
        into.xdp_dropped = counted.dropped;
        into.xdp_ring_full = counted.ring_full;
        into.xdp_no_place = counted.no_place;
        into.xdp_strange = counted.strange_filled + counted.strange_transmitted;
    }
    // The program counts by table: of the workers that share one, the first publishes it.
    if !interface.is_first() {
        return;
    }
    let steered = interface.table().counters();
    into.steering_redirected = steered.redirected;
    into.steering_passed = steered.passed;
    into.steering_kept = steered.kept;
    into.steering_unclaimed = steered.unclaimed;
    into.steering_blocked = steered.blocked;
    into.steering_fragments = steered.fragments;
    into.steering_malformed = steered.malformed;
    into.steering_chains = steered.chains;
}

/// How often all figures are published while frames come without a break: 100 stores or so, a tenth of a microsecond,
/// every 50 of them.
const INTERVAL_NS: u64 = 50_000;

/// How often the kernel's counters are read: about as often as people look.
const ASK_INTERVAL_NS: u64 = 1_000_000_000;
