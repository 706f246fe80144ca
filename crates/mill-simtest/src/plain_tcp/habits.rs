//! How one end behaves, where RFC 9293 leaves it free.

use mill_runtime::time::Duration;
use mill_sim::random::Random;

/// The habits of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// What its SYN announces; `None` sends no option at all.
    pub mss: Option<u16>,
    /// Bytes of payload of the largest segment that it sends, if the peer and its own MTU take it.
    pub segment_bytes_max: u16,
    /// Each segment is of another size, so that what is sent again is cut otherwise.
    pub cuts_at_random: bool,
    /// Segments in flight; 1 is stop and wait.
    pub flight_max: u32,
    /// The first initial sequence number; those of later connections follow.
    pub iss: u32,
    /// The retransmission timer, before it doubles.
    pub rto: Duration,
    /// Bytes that wait for the reader; never more than 65 535, for no window of it is scaled.
    pub buffer_bytes: u16,
    /// Bytes taken at a time, and the time between two; none reads at once.
    pub reads: Option<(usize, Duration)>,
    /// Reads nothing for so long, after half of the first buffer is full.
    pub sleeps: Duration,
    /// Says at once when a single byte of window has become free (RFC 9293 3.8.6.2.2 advises against it).
    pub is_silly: bool,
    /// Full segments that one acknowledgement is for, and how long the last may wait for it.
    pub ack_every: u32,
    pub ack_delay: Duration,
    /// Keeps what comes out of order.
    pub keeps_disorder: bool,
    /// The last data carry the FIN, else it comes alone.
    pub fin_with_data: bool,
    /// The SYN carries the first data (RFC 9293 3.10.7.2 has the receiver keep or forget them).
    pub data_with_syn: bool,
    /// Half of its TIME-WAIT.
    pub msl: Duration,
}

impl Habits {
    pub(crate) fn draw(mtu: u16, is_ipv6: bool, random: &mut Random) -> Self {
        let any = number(1 + random.up_to(1459));
        let mss = random.one_of(&[
            None,
            Some(1460),
            Some(1460),
            Some(536),
            Some(any),
            Some(any),
        ]);
        let headers = if is_ipv6 { 60 } else { 40 };
        let largest = mtu.saturating_sub(headers);
        let odd = number(1 + random.up_to(u64::from(largest) - 1));
        let any_buffer = number(1 + random.up_to(8_000));
        let near = near(random);
        let reads = random.happens(300_000).then(|| {
            let bytes = 1 + random.up_to(3_000);
            let pause = Duration::from_micros(random.up_to(200_000));
            (usize::try_from(bytes).unwrap_or(1), pause)
        });
        Self {
            mss,
            segment_bytes_max: random.one_of(&[largest, largest, 536, 100, odd]),
            cuts_at_random: random.happens(300_000),
            flight_max: random.one_of(&[1, 1, 2, 4, 8]),
            iss: random.one_of(&[0, u32::MAX, u32::MAX - 1000, 1 << 31, near]),
            rto: Duration::from_millis(random.one_of(&[300, 1_000, 3_000])),
            buffer_bytes: random.one_of(&[u16::MAX, 16_384, 4_000, 1_461, any_buffer]),
            reads,
            sleeps: Duration::from_millis(random.one_of(&[0, 0, 0, 500, 5_000, 20_000])),
            is_silly: random.happens(150_000),
            ack_every: random.one_of(&[1, 1, 2, 2, 4]),
            ack_delay: Duration::from_millis(random.one_of(&[0, 40, 200, 500])),
            keeps_disorder: random.happens(500_000),
            fin_with_data: random.happens(500_000),
            data_with_syn: random.happens(150_000),
            msl: Duration::from_millis(random.one_of(&[500, 5_000, 30_000])),
        }
    }

    /// Whether no window of it stays closed for longer than a user timeout (RFC 5482 counts that time, too).
    pub(crate) fn is_patient(&self) -> bool {
        self.sleeps < Duration::from_secs(5)
    }

    /// About how many bytes it can carry, or be sent, in an acceptable number of round trips.
    pub(crate) fn bytes_max(&self) -> usize {
        let segment = usize::from(self.mss.unwrap_or(536)).max(48);
        let received = segment.min(usize::from(self.buffer_bytes).div_ceil(2));
        let received = self
            .reads
            .map_or(received, |(bytes, _)| received.min(bytes));
        let sent = usize::from(self.segment_bytes_max);
        received.min(sent) * SEGMENTS_MAX
    }
}

/// Near the place where the numbers begin again.
fn near(random: &mut Random) -> u32 {
    u32::MAX - u32::try_from(random.up_to(20_000)).unwrap_or(0)
}

fn number(drawn: u64) -> u16 {
    u16::try_from(drawn).unwrap_or(u16::MAX)
}

/// Segments of a transfer, about: each may take a round trip and a delayed acknowledgement, on a bad wire a timeout.
const SEGMENTS_MAX: usize = 150;
