//! What the flags and sysctl say.
//!
//! `--so_flags=sysctl=FILE,mtu=1500,local=192.168.0.1/16,gateway=192.168.0.2`: FILE has a line `name=value` for each
//! variable that a script sets, in sysctl's words; it is read when the first socket is made, after the script's own
//! commands have run.

use mill_stack::config::{HostConfig, Prefix, Route};
use mill_tcp::config::{Algorithm, Config, EcnMode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) mtu: u16,
    addresses: Vec<Prefix>,
    gateways: Vec<IpAddr>,
    tcp: Config,
    file: Option<PathBuf>,
    /// Bits of `tcp_fastopen`.
    pub(crate) fast_open: u32,
    fast_open_key: Option<[u8; 16]>,
}

impl Settings {
    /// From packetdrill's `--so_flags`. Without any, the addresses are those that packetdrill uses by itself.
    pub(crate) fn from_flags(flags: &str) -> Result<Self, String> {
        let mut made = Self {
            mtu: 1500,
            addresses: Vec::new(),
            gateways: Vec::new(),
            tcp: linux(),
            file: None,
            fast_open: FAST_OPEN_CLIENT,
            fast_open_key: None,
        };
        for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
            made.set_flag(flag)
                .ok_or_else(|| format!("{flag} is no flag of this plug-in"))?;
        }
        if made.addresses.is_empty() {
            made.addresses = DEFAULT_ADDRESSES.to_vec();
            made.gateways = DEFAULT_GATEWAYS.to_vec();
        }
        Ok(made)
    }

    fn set_flag(&mut self, flag: &str) -> Option<()> {
        let (name, value) = flag.split_once('=')?;
        match name {
            "mtu" => self.mtu = value.parse().ok()?,
            "sysctl" => self.file = Some(PathBuf::from(value)),
            "gateway" => self.gateways.push(value.parse().ok()?),
            "local" => {
                let (address, len) = value.split_once('/')?;
                self.addresses.push(Prefix {
                    address: address.parse().ok()?,
                    len: len.parse().ok()?,
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Takes what the file says, if there is one. What the stack has no word for changes nothing.
    pub(crate) fn read_file(&mut self) {
        let text = self
            .file
            .as_ref()
            .and_then(|file| std::fs::read_to_string(file).ok());
        for line in text.unwrap_or_default().lines() {
            if let Some((name, value)) = line.split_once('=') {
                self.set_variable(name.trim(), value.trim());
            }
        }
    }

    /// `net.ipv4.tcp_sack` or `net/ipv4/tcp_sack`, also with `/proc/sys/` in front.
    fn set_variable(&mut self, name: &str, value: &str) -> Option<()> {
        let name = name.rsplit(['.', '/']).next().unwrap_or(name);
        let mut numbers = value.split_whitespace().map(str::parse::<u32>);
        let first = numbers.next().and_then(Result::ok);
        let is_on = first.map(|number| number != 0);
        let tcp = &mut self.tcp;
        match name {
            "tcp_fastopen" => self.fast_open = number(value)?,
            "tcp_fastopen_key" => self.fast_open_key = Some(fast_open_key(value)?),
            "tcp_timestamps" => tcp.timestamps = is_on?,
            "tcp_sack" => tcp.sack = is_on?,
            "tcp_window_scaling" => tcp.window_scaling = is_on?,
            "tcp_slow_start_after_idle" => tcp.slow_start_after_idle = is_on?,
            "tcp_syn_retries" => tcp.syn_retries_max = u8::try_from(first?).ok()?,
            "tcp_synack_retries" => tcp.syn_ack_retries_max = u8::try_from(first?).ok()?,
            "tcp_retries2" => tcp.retries_max = u8::try_from(first?).ok()?,
            "tcp_mtu_probing" => tcp.mtu_probing = is_on?,
            "tcp_rmem" => {
                // The least, the first and the largest; the stack has no least one.
                tcp.receive_buffer_bytes = numbers.next()?.ok()?;
                tcp.receive_buffer_bytes_max = numbers.next()?.ok()?;
            }
            "tcp_ecn" => {
                tcp.ecn = match first? {
                    0 => EcnMode::Off,
                    1 => EcnMode::Ask,
                    _ => EcnMode::Accept,
                }
            }
            "tcp_congestion_control" => {
                tcp.congestion = if value == "reno" {
                    Algorithm::Reno
                } else {
                    Algorithm::Cubic
                }
            }
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn host_config(&self) -> HostConfig {
        let mut config = HostConfig::new(self.addresses.clone(), *b"packetdrill runs");
        config.routes = self
            .gateways
            .iter()
            .map(|gateway| default_route(*gateway))
            .collect();
        config.tcp = self.tcp.clone();
        config.fast_open_key = self.fast_open_key;
        config
    }
}

/// Bits of `tcp_fastopen`: what clients may, servers do, and both without a cookie; and that every listener does.
pub(crate) const FAST_OPEN_CLIENT: u32 = 1;
pub(crate) const FAST_OPEN_SERVER: u32 = 2;
pub(crate) const FAST_OPEN_CLIENT_WITHOUT_COOKIE: u32 = 4;
pub(crate) const FAST_OPEN_SERVER_WITHOUT_COOKIE: u32 = 0x200;
pub(crate) const FAST_OPEN_EVERY_LISTENER: u32 = 0x400;

/// Decimal, or hexadecimal behind `0x`.
fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// `a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4`: each of the words is little-endian.
fn fast_open_key(value: &str) -> Option<[u8; 16]> {
    let words = value.split('-').map(|word| u32::from_str_radix(word, 16));
    let words: Result<Vec<u32>, _> = words.collect();
    let bytes: Vec<u8> = words.ok()?.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.try_into().ok()
}

/// As Linux is set, as far as packetdrill's scripts count on it.
fn linux() -> Config {
    Config {
        nodelay: false,
        hystart: false,
        mtu_probing: false,
        ..Config::default()
    }
}

fn default_route(gateway: IpAddr) -> Route {
    let address = if gateway.is_ipv4() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    Route {
        target: Prefix { address, len: 0 },
        gateway,
    }
}

/// What packetdrill takes for the stack's addresses if it is not told others …
const DEFAULT_ADDRESSES: [Prefix; 2] = [
    Prefix {
        address: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
        len: 16,
    },
    Prefix {
        address: IpAddr::V6(Ipv6Addr::new(0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 1)),
        len: 48,
    },
];

/// … and for its gateways.
const DEFAULT_GATEWAYS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 168, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 2)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_variables_are_understood_in_every_spelling() {
        let mut settings =
            Settings::from_flags("mtu=9000,local=10.0.0.2/24,gateway=10.0.0.1").expect("good");
        assert_eq!(settings.mtu, 9000);
        for name in [
            "tcp_sack",
            "net.ipv4.tcp_sack",
            "/proc/sys/net/ipv4/tcp_sack",
        ] {
            settings.tcp.sack = true;
            assert_eq!(settings.set_variable(name, "0"), Some(()), "{name}");
            assert!(!settings.tcp.sack, "{name}");
        }
        assert_eq!(
            settings.set_variable("tcp_rmem", "4096 540000 15728640"),
            Some(())
        );
        assert_eq!(settings.tcp.receive_buffer_bytes_max, 15_728_640);
        assert_eq!(settings.set_variable("tcp_fastopen", "0x70403"), Some(()));
        assert_eq!(settings.fast_open, 0x7_0403);
        let key = "a0bf63f7-0-1-cebc4a90";
        assert_eq!(settings.set_variable("tcp_fastopen_key", key), Some(()));
        let bytes = [
            0xf7, 0x63, 0xbf, 0xa0, 0, 0, 0, 0, 1, 0, 0, 0, 0x90, 0x4a, 0xbc, 0xce,
        ];
        assert_eq!(settings.host_config().fast_open_key, Some(bytes));
        assert_eq!(settings.set_variable("tcp_fastopen_key", "1-2-3"), None);
        assert_eq!(settings.set_variable("tcp_sack", "x"), None);
        assert_eq!(settings.set_variable("tcp_fack", "1"), None);
        assert_eq!(settings.host_config().routes.len(), 1);
    }

    #[test]
    fn unknown_flags_are_refused() {
        for flags in ["mtu", "mtu=x", "speed=1", "local=10.0.0.1"] {
            assert!(Settings::from_flags(flags).is_err(), "{flags}");
        }
        assert!(Settings::from_flags("").is_ok());
    }
}
