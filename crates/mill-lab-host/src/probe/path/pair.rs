//! Two processes that measure the path between them: one answers, the other sends and prints.
//!
//! The first byte of a connection selects its use: `r`, each byte is echoed; `b`, all input is read, and at its end
//! the count is returned as eight bytes, most significant first.

use mill_sys::clock;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Listens at `address`, prints it, and serves for so many seconds, one connection after the other.
pub(super) fn serve(address: &str, seconds: &str, out: &mut dyn Write) -> Result<(), String> {
    let deadline = clock::monotonic() + span(seconds)?;
    let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
    let port = listener
        .local_addr()
        .map_err(|error| format!("{address}: {error}"))?
        .port();
    writeln!(out, "listening {port}")
        .and_then(|()| out.flush())
        .map_err(|error| error.to_string())?;
    while let Some(left) = deadline.checked_sub(clock::monotonic()) {
        let ready = mill_sys::descriptor::wait_readable(&[listener.as_fd()], Some(left));
        if !ready.is_ok_and(|ready| ready == [true]) {
            break;
        }
        if let Ok((stream, _)) = listener.accept() {
            // A client that disconnects ends its connection, not the server.
            let _ = answer(stream, left.max(TIMEOUT_MIN));
        }
    }
    Ok(())
}

fn answer(mut stream: TcpStream, patience: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    let mut purpose = [0];
    stream.read_exact(&mut purpose)?;
    if purpose == *b"r" {
        let mut byte = [0];
        while stream.read(&mut byte)? == 1 {
            stream.write_all(&byte)?;
        }
        return Ok(());
    }
    let mut buffer = vec![0; CHUNK];
    let mut count: u64 = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => count += u64::try_from(bytes).unwrap_or(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.write_all(&count.to_be_bytes())
}

/// Exchanges one byte `count` times.
pub(super) fn round_trips(address: &str, count: &str, out: &mut dyn Write) -> Result<(), String> {
    let count: u32 = count
        .parse()
        .map_err(|_| format!("{count} is no number of exchanges"))?;
    let mut stream = connect(address, b"r")?;
    let mut seconds = Vec::new();
    let mut byte = [0];
    // The first exchange has cold caches and an unresolved route, as ping's first; ping counts it, and so does this.
    for _ in 0..count.clamp(1, COUNT_MAX) {
        let began = clock::monotonic();
        stream
            .write_all(b"x")
            .and_then(|()| stream.read_exact(&mut byte))
            .map_err(|error| format!("{address}: {error}"))?;
        seconds.push((clock::monotonic() - began).as_secs_f64());
    }
    writeln!(out, "{}", summary(&seconds)).map_err(|error| error.to_string())
}

/// In ping's format, milliseconds; mdev is ping's name of the standard deviation.
fn summary(seconds: &[f64]) -> String {
    let count = f64::from(u32::try_from(seconds.len()).unwrap_or(u32::MAX)).max(1.0);
    let mean = seconds.iter().sum::<f64>() / count;
    let square = seconds
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / count;
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = seconds.iter().copied().fold(0.0, f64::max);
    format!(
        "rtt min/avg/max/mdev = {:.4}/{:.4}/{:.4}/{:.4} ms",
        least * 1e3,
        mean * 1e3,
        most * 1e3,
        square.sqrt() * 1e3
    )
}

/// Sends at full speed, prints a line each second, and at the end what has arrived.
pub(super) fn bulk(address: &str, seconds: &str, out: &mut dyn Write) -> Result<(), String> {
    let span = span(seconds)?;
    let mut stream = connect(address, b"b")?;
    let complain = |error: std::io::Error| format!("{address}: {error}");
    let buffer = vec![0x5a; CHUNK];
    let began = clock::monotonic();
    let (mut second, mut sent) = (1_u32, 0_u64);
    loop {
        let passed = clock::monotonic() - began;
        if passed >= Duration::from_secs(1) * second {
            writeln!(
                out,
                "{second:>4} {:.3} Gb/s",
                gbit(sent, Duration::from_secs(1))
            )
            .map_err(complain)?;
            second += 1;
            sent = 0;
        }
        if passed >= span {
            break;
        }
        match stream.write(&buffer) {
            Ok(bytes) => sent += u64::try_from(bytes).unwrap_or(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(complain(error)),
        }
    }
    stream.shutdown(Shutdown::Write).map_err(complain)?;
    let mut count = [0; 8];
    stream.read_exact(&mut count).map_err(complain)?;
    let took = clock::monotonic() - began;
    let rate = gbit(u64::from_be_bytes(count), took);
    writeln!(out, "total {rate:.3} Gb/s").map_err(complain)
}

/// As iperf3's: fewer calls than the path needs packets.
const CHUNK: usize = 128 << 10;

/// A mistyped number should not take a day.
const COUNT_MAX: u32 = 1_000_000;

/// For a connection that came in the last moment.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Replies later than this are taken for lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

fn connect(address: &str, purpose: &[u8; 1]) -> Result<TcpStream, String> {
    let complain = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect(address).map_err(complain)?;
    stream.set_nodelay(true).map_err(complain)?;
    stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .map_err(complain)?;
    stream.write_all(purpose).map_err(complain)?;
    Ok(stream)
}

fn span(seconds: &str) -> Result<Duration, String> {
    let parsed = seconds.parse().ok().map(Duration::try_from_secs_f64);
    match parsed {
        Some(Ok(span)) if span <= Duration::from_secs(3600) => Ok(span),
        _ => Err(format!("{seconds} is no number of seconds up to 3600")),
    }
}

/// 10⁹ bits a second.
#[expect(
    clippy::cast_precision_loss,
    reason = "an hour at a terabit a second is below 2⁵³ bytes"
)]
fn gbit(bytes: u64, span: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e9 / span.as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_in_pings_words() {
        let text = summary(&[0.000_1, 0.000_3]);
        assert_eq!(
            text,
            "rtt min/avg/max/mdev = 0.1000/0.2000/0.3000/0.1000 ms"
        );
    }

    #[test]
    fn seconds_are_seconds() {
        assert_eq!(span("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["", "x", "-1", "nan", "inf", "1e9"] {
            assert!(span(text).is_err(), "{text:?}");
        }
        assert!((gbit(125_000_000, Duration::from_secs(1)) - 1.0).abs() < 1e-12);
    }
}
