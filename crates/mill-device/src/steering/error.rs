//! Why a program could not be attached, as a sentence for the administrator.

use super::attached;
use crate::rights::{Right, Rights};
use mill_sys::bpf::BpfError;
use std::fmt;
use std::io;

/// What went wrong.
#[derive(Debug)]
pub enum SteeringError {
    /// Capabilities that the process lacks; empty if it has them and the kernel refuses nevertheless.
    Rights(Vec<&'static str>),
    /// The interface has another program, which is described if it is known.
    Busy(Option<String>),
    /// The kernel refuses.
    Refused(BpfError),
    /// The driver refuses, and generic XDP was not allowed.
    NotInDriver(BpfError),
    /// A socket cannot be entered into the map.
    Socket(BpfError),
    /// The maps cannot be mapped into memory.
    Memory(io::Error),
}

impl SteeringError {
    pub(super) fn loading(refused: BpfError) -> Self {
        if refused.error.kind() != io::ErrorKind::PermissionDenied {
            return Self::Refused(refused);
        }
        // With only some of the capabilities the verifier refuses programs that it accepts with all of them.
        let missing = missing();
        if missing.is_empty() && !refused.log.is_empty() {
            return Self::Refused(refused);
        }
        Self::Rights(missing)
    }

    pub(super) fn attaching(refused: BpfError, interface: u32) -> Self {
        match refused.error.kind() {
            io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => {
                Self::Busy(attached::describe(interface))
            }
            io::ErrorKind::Unsupported => Self::NotInDriver(refused),
            _ => Self::loading(refused),
        }
    }
}

/// The capabilities for loading and attaching that this thread lacks.
fn missing() -> Vec<&'static str> {
    Rights::own().map_or_else(Vec::new, missing_of)
}

fn missing_of(own: Rights) -> Vec<&'static str> {
    // CAP_SYS_ADMIN includes the others here (capabilities(7), bpf_net_capable). CAP_PERFMON is for reading behind a header of any length.
    let is_admin = own.has(Right::SYS_ADMIN);
    [
        ("CAP_BPF", own.has(Right::BPF) || is_admin),
        ("CAP_PERFMON", own.has(Right::PERFMON) || is_admin),
        ("CAP_NET_ADMIN", own.has(Right::NET_ADMIN) || is_admin),
    ]
    .into_iter()
    .filter_map(|(name, is_there)| (!is_there).then_some(name))
    .collect()
}

impl fmt::Display for SteeringError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rights(missing) if missing.is_empty() => formatter.write_str(
                "the kernel allows no programs for interfaces here: not in a user namespace of one's own, \
                 nor where locked memory is short (ulimit -l)",
            ),
            Self::Rights(missing) => {
                let (noun, verb) = if missing.len() == 1 { ("right", "is") } else { ("rights", "are") };
                let names = missing.join(" and ");
                write!(formatter, "the {noun} {names} {verb} missing, which root has")
            }
                        Self::Busy(Some(program)) => {
                            write!(formatter, "the interface has a program already: {program}")
            }
            Self::Busy(None) => formatter.write_str("the interface has a program already"),
            Self::Refused(refused) => refused.fmt(formatter),
            Self::NotInDriver(refused) => write!(
                formatter,
                "the driver takes no program ({refused}); without mode=native frames are taken behind it"
            ),
            Self::Socket(refused) => write!(formatter, "a socket can't be steered to: {refused}"),
            Self::Memory(error) => write!(formatter, "the steering table can't be mapped: {error}"),
        }
    }
}

impl std::error::Error for SteeringError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named() {
        let check = |effective: u64, expected: &[&str], text: &str| {
            let status = format!("Name:\tx\nCapPrm:\t0\nCapEff:\t{effective:016x}\nCapBnd:\t0\n");
            let missing = missing_of(Rights::of(&status).unwrap());
            assert_eq!(missing, expected);
            assert_eq!(SteeringError::Rights(missing).to_string(), text);
        };
        let (perfmon, bpf, admin, net) = (1 << 38, 1 << 39, 1 << 21, 1 << 12);
        let all = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];
        let text =
            "the rights CAP_BPF and CAP_PERFMON and CAP_NET_ADMIN are missing, which root has";
        check(0, &all, text);
        check(!(perfmon | bpf | admin | net), &all, text);
        let one = "the right CAP_BPF is missing, which root has";
        check(net | perfmon, &["CAP_BPF"], one);
        let another = "the right CAP_PERFMON is missing, which root has";
        check(net | bpf, &["CAP_PERFMON"], another);
        let other = "the right CAP_NET_ADMIN is missing, which root has";
        check(bpf | perfmon, &["CAP_NET_ADMIN"], other);
        let none = "the kernel allows no programs for interfaces here: not in a user namespace of one's own, \
                    nor where locked memory is short (ulimit -l)";
        check(bpf | perfmon | net, &[], none);
        check(admin, &[], none);
    }
}
