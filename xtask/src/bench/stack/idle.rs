//! The memory of an idle connection.

use std::fs;

use super::pair::{Pair, TARGET};

/// Bytes of resident memory per connection and side, both sides being in this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) bytes: f64,
    pub(super) count: u64,
}

/// Ports of one client address that are used, of 64 512.
const PER_ADDRESS: u64 = 60_000;

/// Opens `count` connections and leaves them idle.
pub(super) fn run(count: u64) -> Result<Idle, String> {
    let addresses =
        u8::try_from(count.div_ceil(PER_ADDRESS)).map_err(|_| "too many connections")?;
    let mut pair = Pair::new(addresses, true);
    let before = resident_bytes()?;
    let mut open = 0;
    while open < count {
        for _ in 0..32 {
            let last = 1 + u8::try_from(open / PER_ADDRESS).unwrap_or(u8::MAX);
            let source = format!("10.0.1.{last}:0").parse().ok();
            pair.client
                .host
                .connect(TARGET, source, true, open)
                .map_err(|error| format!("connection {open} can't be opened: {error:?}"))?;
            open += 1;
        }
        pair.settle();
        while pair.server.host.accept(pair.listener, open).is_some() {}
        pair.server.host.settle(&mut pair.server.port);
        pair.client.host.settle(&mut pair.client.port);
        pair.advance(std::time::Duration::from_micros(100));
    }
    let grown = resident_bytes()?.saturating_sub(before);
    Ok(Idle {
        bytes: grown as f64 / open as f64 / 2.0,
        count: open,
    })
}

/// VmRSS of this process.
fn resident_bytes() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| "/proc/self/status has no VmRSS".to_owned())
}
