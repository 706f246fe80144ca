//! The clients, as command lines and what they tell.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use super::cell::{Cell, Connections, Pace};
use super::exchange::Exchange;
use super::raw;
use super::raw_figures::Figures;
use super::server::{MEMIF_CLIENT, Server, head_bytes};
use super::setting::Setting;
use crate::bench::child::Child;
use crate::bench::content;
use crate::bench::failure::{Failure, Result};
use crate::bench::told::{Latency, native, wrk};

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Wrk,
    LoadKernel,
    LoadXdp,
    LoadMemif,
    Raw,
}

/// What a client has told of one run, in the same words for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// Answered; where answers are large, unfinished ones count as fractions.
    pub(super) requests: u64,
    pub(super) duration: Duration,
    /// With heads.
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) latency: Latency,
    /// How much later than due requests were begun; at a pace only.
    pub(super) lateness: Latency,
    /// Connections that were open at the end; if it tells.
    pub(super) open: Option<u64>,
    /// Answers a second in each period of the run; if it tells.
    pub(super) series: Vec<f64>,
    /// Answers that are not those that were asked for, in words.
    pub(super) wrong: Option<String>,
}

/// wrk drops latencies above its time-out. With one past the end none is dropped; a longer one costs
/// memory, for wrk has a counter for each microsecond of it.
const TIMEOUT_PAST_END_SECONDS: u32 = 5;

/// Millstream's specification of an interface. Both ends spin, as whoever has a core for them lets them.
pub(super) fn af_xdp(interface: &str, cell: &Cell) -> String {
    format!("af_xdp:{interface},polling=spin{}", ports(cell))
}

/// A client's, as an option; none where the usual ones are enough.
const fn ports(cell: &Cell) -> &'static str {
    if cell.concurrency > PORTS_USUAL {
        ",ports=1024-65535"
    } else {
        ""
    }
}

/// Of the series that a run tells.
pub(super) const PERIOD: Duration = Duration::from_millis(250);

/// Before requests of a pace count: their connections are there then.
const WARM_UP: Duration = Duration::from_millis(200);

/// Before requests over memif count. A question for a neighbour that leaves before the two ends have found each other is
/// lost, and is asked again after a second.
const WARM_UP_MEMIF: Duration = Duration::from_millis(1200);

/// Connections that the usual range of ports is enough for.
const PORTS_USUAL: u32 = 20_000;

/// Millstream's specification of one end of shared memory.
pub(super) fn memif(socket: &Path, role: &str, addresses: &[Ipv4Addr], cell: &Cell) -> String {
    let (socket, mtu) = (socket.display(), cell.mtu);
    let mut text = format!("memif:{socket},role={role},mtu={mtu},polling=spin");
    for address in addresses {
        text += &format!(",address={address}/24");
    }
    text += ports(cell);
    if cell.is_held() {
        let connections = cell.concurrency + CONNECTIONS_MORE;
        text += &format!(",connections={connections}");
    }
    text
}

/// Those of connections that have ended, and of the one request that a server is asked first.
const CONNECTIONS_MORE: u32 = 100_000;

/// A client's: each has 64 thousand ports towards the server.
pub(super) fn memif_clients(cell: &Cell) -> Vec<Ipv4Addr> {
    let count = cell.concurrency.div_ceil(CONNECTIONS_OF_ADDRESS).max(1);
    let first = u32::from(MEMIF_CLIENT);
    let last = first + count.min(ADDRESSES_MAX) - 1;
    (first..=last).map(Ipv4Addr::from).collect()
}

/// Fewer than there are ports, since some are still those of connections that have ended.
const CONNECTIONS_OF_ADDRESS: u32 = 50_000;

/// Of the network, without those of its ends, of itself and of broadcasts.
const ADDRESSES_MAX: u32 = 253;

impl Client {
    /// Those that can ask from the kernel at the cell's pace.
    pub(super) const fn from_kernel(cell: &Cell) -> &'static [Self] {
        match cell.pace {
            Pace::Closed => &[Self::Wrk, Self::LoadKernel],
            // wrk knows no pace.
            Pace::PerSecond(_) | Pace::HalfOfNginx | Pace::Overload => &[Self::LoadKernel],
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::LoadKernel => "millstream load",
            Self::LoadXdp => "millstream load, AF_XDP",
            Self::LoadMemif => "millstream load, memif",
            Self::Raw => "raw frames",
        }
    }

    /// How long it loads before it measures.
    pub(super) fn warm_up(self, cell: &Cell) -> Duration {
        match (self, cell.pace) {
            (_, Pace::PerSecond(rate)) if cell.is_held() => {
                // Once more than opening takes: the first request of each has made what it needs.
                let turns = cell.concurrency.div_ceil(rate.max(1));
                Duration::from_secs(u64::from(cell.ramp_seconds + turns))
            }
            (Self::LoadMemif, _) => WARM_UP_MEMIF,
            (Self::LoadKernel | Self::LoadXdp, Pace::PerSecond(_)) => WARM_UP,
            _ => Duration::ZERO,
        }
    }

    /// The program and its arguments for a block.
    fn command_line(self, setting: Setting<'_>, cell: &Cell, server: &Server<'_>) -> Vec<String> {
        let (seconds, concurrency) = (cell.seconds(setting.seconds), cell.concurrency);
        match self {
            Self::Wrk => {
                let timeout = seconds + TIMEOUT_PAST_END_SECONDS;
                let program = setting.programs.wrk.display();
                let mut line = words(&format!(
                    "{program} -t1 -c{concurrency} -d{seconds}s --timeout={timeout}s"
                ));
                line.extend(["-s".to_owned(), setting.wrk_script().display().to_string()]);
                if cell.connections == Connections::PerRequest {
                    line.extend(["-H", "Connection: close"].map(str::to_owned));
                }
                line.push(url(server));
                line
            }
            Self::LoadKernel | Self::LoadXdp | Self::LoadMemif => {
                let mut line = self.load(setting, cell);
                line.extend(words(&format!("-c{concurrency} -d{seconds}s")));
                if let Pace::PerSecond(rate) = cell.pace {
                    line.extend(words(&format!("--rate {rate}")));
                }
                if cell.is_held() {
                    let ramp = cell.ramp_seconds;
                    line.extend(words(&format!("--ramp {ramp}s")));
                }
                line.extend(words(&format!("--interval {}ms", PERIOD.as_millis())));
                let warm_up_ms = self.warm_up(cell).as_millis();
                line.extend(words(&format!("--warm-up {warm_up_ms}ms")));
                line.push(url(server));
                line
            }
            Self::Raw => {
                let exchange = Exchange::of(cell, head_bytes(server.answer_bytes, cell)).emit();
                let program = setting.programs.xtask.display();
                let interface = setting.topology.client().interface;
                let argument = raw::ARGUMENT;
                words(&format!(
                    "{program} bench {argument} ask {interface} {exchange} {seconds}"
                ))
            }
        }
    }

    /// `millstream load` without what is said of times and connections.
    fn load(self, setting: Setting<'_>, cell: &Cell) -> Vec<String> {
        let program = setting.programs.millstream.display();
        let json = setting.load_json();
        let mut line = words(&format!(
            "{program} load --quiet -t1 --json {}",
            json.display()
        ));
        if cell.connections == Connections::PerRequest {
            line.push("--no-keepalive".to_owned());
        }
        let stack = match self {
            Self::LoadXdp => Some(af_xdp(setting.topology.client().interface, cell)),
            Self::LoadMemif => {
                let addresses = memif_clients(cell);
                if let [first, .., last] = addresses.as_slice() {
                    line.extend(["--source".to_owned(), format!("{first}-{last}")]);
                }
                Some(memif(&setting.memif_socket(), "slave", &addresses, cell))
            }
            Self::Wrk | Self::LoadKernel | Self::Raw => None,
        };
        if let Some(stack) = stack {
            line.extend(["--stack".to_owned(), stack]);
        }
        line
    }

    /// Starts a block's run, which ends by itself.
    pub(super) fn start<'a>(
        self,
        setting: Setting<'a>,
        cell: &Cell,
        server: &Server<'_>,
    ) -> Result<Child<'a>> {
        start(setting, &self.command_line(setting, cell, server))
    }

    /// What the run that has just ended has told.
    pub(super) fn told(self, setting: Setting<'_>, cell: &Cell) -> Result<Told> {
        let text = fs::read_to_string(output(setting)).unwrap_or_default();
        let told = match self {
            Self::Wrk => wrk::parse(&text).map(|told| Told {
                requests: told.requests,
                duration: told.duration,
                bytes: told.bytes,
                errors: told.errors,
                latency: told.latency,
                ..Told::default()
            }),
            Self::LoadKernel | Self::LoadXdp | Self::LoadMemif => {
                let json = fs::read_to_string(setting.load_json()).unwrap_or_default();
                native::parse(&json).map(|native| of_native(native, cell))
            }
            Self::Raw => Figures::parse(&text).map(|figures| Told {
                requests: figures.exchanges,
                duration: figures.duration,
                errors: figures.lost,
                latency: figures.latency,
                ..Told::default()
            }),
        };
        told.ok_or_else(|| {
            let lines: Vec<&str> = text.trim().lines().collect();
            let last = lines
                .get(lines.len().saturating_sub(3)..)
                .unwrap_or_default();
            let said = last.join("; ");
            Failure(format!("{} told no figures: {said}", self.name()))
        })
    }
}

/// One request, to see whether and what a server answers.
pub(super) fn ask_once(
    setting: Setting<'_>,
    cell: &Cell,
    server: &Server<'_>,
    client: Client,
) -> Result<Told> {
    let mut line = client.load(setting, cell);
    line.extend(words("-c1 -n1 --timeout 3s"));
    line.push(url(server));
    let mut child = start(setting, &line)?;
    if child.wait(ONCE_TIMEOUT).is_none() {
        let name = client.name();
        return Err(Failure(format!("{name} did not end after one request")));
    }
    let told = client.told(setting, cell)?;
    match told.wrong.as_deref() {
        _ if told.requests != 1 => {
            let text = fs::read_to_string(output(setting)).unwrap_or_default();
            let said = text.lines().next().unwrap_or_default();
            Err(Failure(format!("{} got no answer: {said}", client.name())))
        }
        Some(wrong) => Err(Failure(wrong.to_owned())),
        None => Ok(told),
    }
}

const ONCE_TIMEOUT: Duration = Duration::from_secs(10);

fn start<'a>(setting: Setting<'a>, line: &[String]) -> Result<Child<'a>> {
    // What the run before has written is not to be taken for this one's.
    let _absent_already = fs::remove_file(setting.load_json());
    let mut command = setting.topology.client().command();
    command.args(line);
    Child::start(&setting.lab.caretaker, &mut command, &output(setting))
}

fn output(setting: Setting<'_>) -> std::path::PathBuf {
    setting.lab.file("client.txt")
}

fn of_native(native: native::Native, cell: &Cell) -> Told {
    let expected = cell.body_bytes as u64;
    let wrong = native
        .answers
        .iter()
        .find(|answer| (answer.status, answer.content_bytes) != (200, expected));
    let told = native.told;
    Told {
        requests: told.requests,
        duration: told.duration,
        bytes: told.bytes,
        errors: told.errors,
        latency: told.latency,
        lateness: native.lateness,
        open: Some(native.open),
        series: native.series,
        wrong: wrong.map(|answer| {
            let native::Answers {
                count,
                status,
                content_bytes,
            } = answer;
            format!("{count} answers with status {status} and {content_bytes} bytes")
        }),
    }
}

fn url(server: &Server<'_>) -> String {
    format!("http://{}{}", server.address, content::target())
}

/// None of them holds a blank.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
