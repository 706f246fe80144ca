//! What a script can ask the stack: `info(4, cwnd) = 10`.

use super::Run;
use mill_stack::socket::Ready;
use mill_tcp::info::Info;

impl Run {
    /// One figure of a connection, as `ss -ti` would show it.
    pub(super) fn fact(&mut self, fd: u32, field: &str) -> Result<String, String> {
        let id = self.stream(fd)?;
        let Some(info) = self.host.info(id) else {
            return Ok("-EBADF".into());
        };
        match field {
            "acked" => Ok(self.host.acked(id).to_string()),
            "unread" => Ok(self.host.readable(id).unread.to_string()),
            "in_flight" => Ok(self.host.in_flight(id).to_string()),
            field => of_info(&info, field).ok_or_else(|| format!("{field} is no figure")),
        }
    }

    /// Whether the connection was reported as changed since this was asked last.
    pub(super) fn is_ready(&mut self, fd: u32) -> Result<String, String> {
        let id = self.stream(fd)?;
        let mut ready = Vec::new();
        self.host.take_ready(&mut ready);
        let expected = Ready {
            token: u64::from(fd),
            socket: id,
        };
        Ok(if ready.contains(&expected) {
            "yes"
        } else {
            "no"
        }
        .into())
    }
}

/// Windows are counted in segments where RFCs do so.
fn of_info(info: &Info, field: &str) -> Option<String> {
    let mss = u32::from(info.mss.max(1));
    Some(match field {
        "state" => format!("{:?}", info.state),
        "mss" => info.mss.to_string(),
        "cwnd" => (info.cwnd / mss).to_string(),
        "cwnd_bytes" => info.cwnd.to_string(),
        "ssthresh" => (info.ssthresh / mss).to_string(),
        "ssthresh_bytes" => info.ssthresh.to_string(),
        "snd_wnd" => info.snd_wnd.to_string(),
        "rcv_wnd" => info.rcv_wnd.to_string(),
        "rtt_ms" => info.rtt.as_millis().to_string(),
        "rttvar_ms" => info.rtt_variation.as_millis().to_string(),
        "rtt_min_ms" => info.rtt_min.as_millis().to_string(),
        "rto_ms" => info.rto.as_millis().to_string(),
        "congestion_state" => format!("{:?}", info.congestion_state),
        "sacked" => (info.sacked / mss).to_string(),
        "lost" => (info.lost / mss).to_string(),
        "retransmitted" => (info.retransmitted / mss).to_string(),
        "reordering" => (info.reordering / mss).to_string(),
        "reordering_seen" => info.reordering_seen.to_string(),
        "backoff" => info.backoff.to_string(),
        "snd_wind_shift" => info.snd_wind_shift.to_string(),
        "rcv_wind_shift" => info.rcv_wind_shift.to_string(),
        "timestamps" => info.timestamps.to_string(),
        "sack" => info.sack.to_string(),
        "ecn" => info.ecn.to_string(),
        _ => return None,
    })
}
