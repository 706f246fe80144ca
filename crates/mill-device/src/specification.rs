//! The text of `--stack`: a device, addresses, and options of the stack.
//!
//! ```text
//! tap:ms0,address=10.77.0.2/24,host=10.77.0.1/24,mtu=9000,congestion=reno
//! ```

/// The table of all options, from which parser, help and messages are made.
pub mod options;

/// Types of values: their syntax, parser and description.
mod value;

/// Suggestions for misspelt words.
pub(crate) mod nearest;

/// The options in force, with their origin.
pub mod origin;

/// The device, which precedes the first comma.
pub mod device;

/// A port of DPDK, with DPDK's own arguments.
pub mod port;

/// Named groups of options.
pub mod profile;

/// Settings of one kind of device.
pub mod settings;

use crate::impair::Impairment;
use crate::vlan::Vlan;
use device::{Device, Devices};
use mill_stack::config::{HostConfig, Prefix, Route};
use mill_stack::limits::Limits;
use mill_stack::polling::Polling;
use mill_sys::random;
use mill_tcp::config::Config;
use origin::OptionOrigins;
use settings::{AfXdpSettings, DpdkSettings, MemifSettings, StacksPer, Workers};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use value::Value;

/// A stack and its device, as specified.
#[derive(Clone, Debug)]
pub struct Specification {
    pub device: Device,
    /// The stack's addresses; empty for `af_xdp`, which uses the kernel's.
    pub addresses: Vec<Prefix>,
    /// Those of this machine's side of the device.
    pub host: Vec<Prefix>,
    /// Routers for targets that are not on the device's link, at most one of each family.
    pub gateways: Vec<IpAddr>,
    /// Bytes of IP packet in a frame.
    pub mtu: u32,
    /// The number of the virtual network whose tag frames have, 1 to 4094; 0 for frames without a tag.
    pub vlan: u32,
    /// Whether checksums and segmentation are left to the device.
    pub offload: bool,
    /// The capture file.
    pub pcap: Option<PathBuf>,
    pub impairment: Impairment,
    pub polling: Polling,
    /// Local ports of outgoing connections, except over `af_xdp`.
    pub ports: RangeInclusive<u16>,
    /// Bytes that a writer may be ahead of the peer's acknowledgements.
    pub send_buffer_bytes: u32,
    pub af_xdp: AfXdpSettings,
    pub memif: MemifSettings,
    pub dpdk: DpdkSettings,
    /// The threads that run the stack. Not part of the text: the caller sets it.
    pub workers: Workers,
    /// Of programs that are not changed.
    pub stacks: StacksPer,
    pub tcp: Config,
    pub limits: Limits,
    /// The text's origin for messages: `--stack`, or the place of a directive.
    pub origin: String,
    origins: OptionOrigins,
}

/// Why a text is not a specification, with what would be: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecificationError(String);

impl Specification {
    /// Parses the text of `--stack`. Relative file names count from the working directory.
    pub fn parse(text: &str) -> Result<Self, SpecificationError> {
        Self::parse_in(text, Path::new(""))
    }

    /// As [`Self::parse`], with relative file names that count from a directory.
    pub fn parse_in(text: &str, directory: &Path) -> Result<Self, SpecificationError> {
        let mut words = text.split(',');
        let device = words.next().unwrap_or_default();
        let mut specification = Self::new(Device::parse(device)?);
        let words: Vec<_> = words.collect();
        let words = specification.take_arguments(&words);
        specification.set_all(words, directory, 0)?;
        if let Some(pcap) = &specification.pcap {
            specification.pcap = Some(directory.join(pcap));
        }
        specification.check()?;
        Ok(specification)
    }

    /// Takes the words that are arguments of DPDK's device; returns the others.
    fn take_arguments<'a, 'b>(&mut self, words: &'a [&'b str]) -> &'a [&'b str] {
        let is_ours = |word: &&str| {
            let (name, _) = split(word);
            let found = options::find(name, &self.device);
            name.is_empty() || name == PROFILE || found.is_some_and(|(_, is_known)| is_known)
        };
        let first = words.iter().position(is_ours).unwrap_or(words.len());
        let count = match &self.device {
            Device::Dpdk { .. } => first,
            _ => 0,
        };
        let (arguments, options) = words.split_at(count);
        if let Device::Dpdk { port } = &mut self.device {
            port.arguments = arguments.join(",");
        }
        options
    }

    /// Sets options: first those of profiles, wherever they are in the text, then the single ones.
    fn set_all(
        &mut self,
        words: &[&str],
        directory: &Path,
        depth: usize,
    ) -> Result<(), SpecificationError> {
        let is_profile = |word: &str| split(word).0 == PROFILE;
        let (profiles, options): (Vec<_>, Vec<_>) =
            words.iter().copied().partition(|word| is_profile(word));
        let mut seen = Vec::new();
        for word in profiles.into_iter().chain(options) {
            self.set_one(word, &mut seen, directory, depth)?;
        }
        Ok(())
    }

    /// Sets an option, unless it is in `seen`.
    fn set_one<'a>(
        &mut self,
        word: &'a str,
        seen: &mut Vec<&'a str>,
        directory: &Path,
        depth: usize,
    ) -> Result<(), SpecificationError> {
        let (name, value) = split(word);
        self.origins.note(name, value.unwrap_or_default());
        if name == PROFILE {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                let what = "\"profile\" needs a value: a name, as \"wan\", or a file, as \"/etc/mill.profile\"";
                return Err(error(String::from(what)));
            };
            return profile::apply(self, value, directory, depth + 1);
        }
        let Some((option, is_known)) = options::find(name, &self.device) else {
            return Err(self.unknown(name));
        };
        if !is_known {
            return Err(self.not_for(name));
        }
        if seen.contains(&name) && !option.value.repeats() {
            return Err(error(format!("\"{name}\" stands twice")));
        }
        seen.push(name);
        let wanted = || option.value.wanted();
        let Some(value) = value else {
            let what = format!("\"{name}\" needs a value: {} is wanted", wanted());
            return Err(error(what));
        };
        option.value.set(self, value).ok_or_else(|| {
            let wanted = wanted();
            error(format!(
                "\"{name}={value}\" means nothing: {wanted} is wanted"
            ))
        })
    }

    /// The configuration of a host, with a fresh secret, and with that of the boot, which all processes share.
    pub(crate) fn drawn_host_config(&self) -> io::Result<HostConfig> {
        let mut secret = [0; 16];
        random::fill(&mut secret)?;
        Ok(HostConfig {
            boot_secret: random::boot_id(),
            ..self.host_config(secret)
        })
    }

    /// The configuration of a host; `secret` has to be random.
    pub fn host_config(&self, secret: [u8; 16]) -> HostConfig {
        let mut config = HostConfig::new(self.addresses.clone(), secret);
        config.routes = self
            .gateways
            .iter()
            .map(|gateway| Route {
                target: everything_like(*gateway),
                gateway: *gateway,
            })
            .collect();
        config.tcp = self.tcp.clone();
        config.limits = self.limits.clone();
        config.ephemeral_ports = self.local_ports().clone();
        config
    }

    /// The ports that connections are opened from.
    pub fn local_ports(&self) -> &RangeInclusive<u16> {
        match &self.device {
            Device::AfXdp { .. } => &self.af_xdp.ports,
            Device::Tap { .. } | Device::Memif { .. } | Device::Dpdk { .. } => &self.ports,
        }
    }

    /// Whether both describe the same device in the same way. What else the texts say is each stack's own.
    pub fn has_same_device(&self, other: &Self) -> bool {
        let kernels = |it: &Self| (it.addresses.clone(), it.host.clone(), it.gateways.clone());
        let frames = |it: &Self| (it.mtu, it.vlan, it.offload, it.pcap.clone(), it.impairment);
        self.device == other.device
            && kernels(self) == kernels(other)
            && frames(self) == frames(other)
            && self.ports == other.ports
            && (&self.af_xdp, &self.memif, &self.dpdk) == (&other.af_xdp, &other.memif, &other.dpdk)
    }

    /// The number of workers that the device can have attachments for.
    pub fn attachments(&self) -> u32 {
        match self.device {
            Device::AfXdp { .. } => self.workers.count.max(1),
            // An impaired wire has one worker, so that a seed has the same effect each time.
            Device::Tap { .. } if self.impairment.is_none() => self.workers.count.max(1),
            // Each has a ring of its own in each direction.
            Device::Memif { .. } => self.workers.count.clamp(1, self.memif.rings.max(1)),
            Device::Dpdk { .. } if !self.dpdk.bridge => {
                self.workers.count.clamp(1, self.dpdk.pairs_max())
            }
            Device::Tap { .. } | Device::Dpdk { .. } => 1,
        }
    }

    /// Bytes of IP packet in a frame.
    pub fn mtu(&self) -> u16 {
        u16::try_from(self.mtu).unwrap_or(u16::MAX)
    }

    /// The virtual network that `vlan=` names.
    pub fn vlan(&self) -> Option<Vlan> {
        Vlan::new(u16::try_from(self.vlan).ok()?)
    }

    fn new(device: Device) -> Self {
        Self {
            device,
            addresses: Vec::new(),
            host: Vec::new(),
            gateways: Vec::new(),
            mtu: 1500,
            vlan: 0,
            offload: true,
            pcap: None,
            impairment: Impairment::default(),
            polling: Polling::default(),
            ports: EPHEMERAL_PORTS,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            af_xdp: AfXdpSettings::default(),
            memif: MemifSettings::default(),
            dpdk: DpdkSettings::default(),
            workers: Workers::default(),
            stacks: StacksPer::default(),
            tcp: Config::default(),
            limits: Limits::default(),
            origin: String::from("--stack"),
            origins: OptionOrigins::default(),
        }
    }

    /// Checks what concerns several options.
    fn check(&mut self) -> Result<(), SpecificationError> {
        if matches!(self.device, Device::Memif { .. }) && self.memif.role.is_none() {
            let what = "a memif has two ends: one says \"role=master\", the other \"role=slave\"";
            return Err(error(String::from(what)));
        }
        if self.addresses.is_empty() && !self.device.shares_addresses() {
            return Err(self.no_address());
        }
        for prefix in self.addresses.iter().chain(&self.host) {
            check_prefix(*prefix)?;
        }
        check_once(&self.addresses)?;
        check_once(&self.host)?;
        for host in &self.host {
            if self.addresses.iter().any(|own| own.address == host.address) {
                let what = "is both the stack's address and the host's: they need one each";
                return Err(error(format!("{} {what}", host.address)));
            }
            if !self.addresses.iter().any(|own| holds(*own, host.address)) {
                let (address, len) = (host.address, host.len);
                return Err(error(format!(
                    "host={address}/{len} is in the network of none of the stack's addresses, which it could not reach"
                )));
            }
        }
        self.check_gateways()?;
        let has_ipv6 = self.addresses.iter().any(|own| own.address.is_ipv6());
        if has_ipv6 && self.mtu < IPV6_MTU_MIN {
            let mtu = self.mtu;
            return Err(error(format!(
                "mtu={mtu} is too small for IPv6, which needs {IPV6_MTU_MIN}"
            )));
        }
        if matches!(self.device, Device::Dpdk { .. }) {
            port::check(self)?;
        }
        if self.tcp.rto_min > self.tcp.rto_max {
            let what = "\"rto-min\" is more than \"rto-max\": there would be no time between them";
            return Err(error(String::from(what)));
        }
        let receive_bytes_max = self.tcp.receive_buffer_bytes_max;
        self.tcp.receive_buffer_bytes = self.tcp.receive_buffer_bytes.min(receive_bytes_max);
        if !self.impairment.is_none() {
            // An impaired wire carries packets, not large segments.
            self.offload = false;
        }
        if Devices::RINGS.has(&self.device) {
            let checked = crate::attach::memif::options(self).check();
            return checked.map_err(|why| error(why.to_string()));
        }
        Ok(())
    }

    fn no_address(&self) -> SpecificationError {
        let what = "the stack needs an address of its own, as in \"address=10.77.0.2/24\"";
        error(match &self.device {
            Device::Dpdk { port } if !port.arguments.is_empty() => {
                let arguments = &port.arguments;
                format!("{what}; \"{arguments}\" is left to DPDK, as no option of Millstream's")
            }
            _ => String::from(what),
        })
    }

    fn unknown(&self, name: &str) -> SpecificationError {
        if name.is_empty() {
            let what = "between two commas, and behind the last, stands an option, as \"mtu=9000\"";
            return error(String::from(what));
        }
        let kind = self.device.kind();
        let known = options::all().filter(|option| option.devices.has(&self.device));
        let names = known.map(|option| option.name).chain([PROFILE]);
        let names: Vec<_> = names.collect();
        match nearest::nearest(name, names.iter().copied()) {
            Some(known) => error(format!(
                "\"{name}\" is no option of a stack, did you mean \"{known}\"?"
            )),
            None => {
                let all = names.join(", ");
                error(format!(
                    "\"{name}\" is no option of a stack over {kind}; there are {all}"
                ))
            }
        }
    }

    fn not_for(&self, name: &str) -> SpecificationError {
        let kind = self.device.kind();
        let is_the_kernels = matches!(name, "address" | "host" | "gateway" | "mtu");
        let why = if self.device.shares_addresses() && is_the_kernels {
            ": addresses, routes and the MTU are those that the interface has"
        } else {
            ""
        };
        error(format!("\"{name}\" is no option of {kind}{why}"))
    }

    fn check_gateways(&self) -> Result<(), SpecificationError> {
        for (index, gateway) in self.gateways.iter().enumerate() {
            if self.addresses.iter().any(|own| own.address == *gateway) {
                return Err(error(format!(
                    "gateway={gateway} is the stack's own address: a router is another machine"
                )));
            }
            if !self.addresses.iter().any(|own| holds(*own, *gateway)) {
                return Err(error(format!(
                    "gateway={gateway} is in the network of none of the stack's addresses"
                )));
            }
            let before = self.gateways.get(..index).unwrap_or_default();
            if before.iter().any(|one| one.is_ipv4() == gateway.is_ipv4()) {
                return Err(error(format!(
                    "gateway={gateway} is the second of its family: everything can go one way only"
                )));
            }
        }
        Ok(())
    }
}

/// Parses the value of `polling=` alone.
pub fn polling(text: &str) -> Result<Polling, SpecificationError> {
    value::parse_polling(text).ok_or_else(|| {
        let wanted = Value::Polling(|to| &mut to.polling).wanted();
        error(format!("\"{text}\" means nothing: {wanted} is wanted"))
    })
}

/// An option's name and its value, if there is one.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    }
}

fn check_prefix(prefix: Prefix) -> Result<(), SpecificationError> {
    let Prefix { address, len } = prefix;
    let ends = |what: &str| Err(error(format!("{address}/{len} {what}")));
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        return ends("is no address that a machine on a link can have");
    }
    if let IpAddr::V6(v6) = address
        && let Some(v4) = v6.to_ipv4_mapped()
    {
        return ends(&format!("is an IPv4-mapped address: write {v4}"));
    }
    if let IpAddr::V4(v4) = address
        && len < 31
    {
        let hosts = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
        match v4.to_bits() & hosts {
            0 => return ends("is the address of its network, not of a machine in it"),
            rest if rest == hosts => return ends("is the broadcast address of its network"),
            _ => {}
        }
    }
    Ok(())
}

/// The same address twice is a typing error, also with a different prefix length.
fn check_once(prefixes: &[Prefix]) -> Result<(), SpecificationError> {
    for (index, Prefix { address, .. }) in prefixes.iter().enumerate() {
        let before = prefixes.get(..index).unwrap_or_default();
        if before.iter().any(|one| one.address == *address) {
            return Err(error(format!("the address {address} stands twice")));
        }
    }
    Ok(())
}

/// Whether an address is in the network of another.
pub(crate) fn holds(prefix: Prefix, address: IpAddr) -> bool {
    let bits = |address| match address {
        IpAddr::V4(address) => (32, u128::from(address.to_bits())),
        IpAddr::V6(address) => (128, address.to_bits()),
    };
    let ((width, network), (width_of_other, other)) = (bits(prefix.address), bits(address));
    let host_bits = width - u32::from(prefix.len).min(width);
    let differing = network ^ other;
    width == width_of_other && differing.checked_shr(host_bits).unwrap_or(0) == 0
}

fn everything_like(address: IpAddr) -> Prefix {
    let address = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Prefix { address, len: 0 }
}

fn error(message: String) -> SpecificationError {
    SpecificationError(message)
}

impl fmt::Display for SpecificationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SpecificationError {}

/// The one option that stands for several.
const PROFILE: &str = "profile";

/// `ip_local_port_range` of Linux.
const EPHEMERAL_PORTS: RangeInclusive<u16> = 32768..=60999;

/// Linux's maximum (`tcp_wmem`).
const SEND_BUFFER_BYTES: u32 = 4 << 20;

/// RFC 8200 5.
const IPV6_MTU_MIN: u32 = 1280;

#[cfg(test)]
mod tests;
