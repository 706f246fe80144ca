//! The table of all options, from which parser, help and messages are made.

/// The device and its frames.
mod device;

/// The behaviour of connections.
mod tcp;

/// Limits.
mod limits;

/// An impaired wire, for tests.
mod wire;

use crate::specification::device::{Device, Devices};
pub use crate::specification::value::{Keyword, Value};

/// One option of `--stack`.
#[derive(Clone, Debug)]
pub struct StackOption {
    pub name: &'static str,
    /// The kinds of devices that accept it.
    pub devices: Devices,
    pub value: Value,
    /// The value without the option.
    pub default: &'static str,
    /// Its effect: the rest of a sentence.
    pub about: &'static str,
}

/// Options of one topic.
#[derive(Clone, Debug)]
pub struct Group {
    pub title: &'static str,
    pub options: &'static [StackOption],
}

/// In the order in which help lists them.
pub const GROUPS: &[Group] = &[
    Group {
        title: "The device",
        options: device::OPTIONS,
    },
    Group {
        title: "TCP",
        options: tcp::OPTIONS,
    },
    Group {
        title: "Limits",
        options: limits::OPTIONS,
    },
    Group {
        title: "An impaired wire, for tests",
        options: wire::OPTIONS,
    },
];

/// All options. A name may occur twice, for different devices.
pub fn all() -> impl Iterator<Item = &'static StackOption> {
    GROUPS.iter().flat_map(|group| group.options)
}

/// The option of a name, and whether the device accepts it.
pub(super) fn find(name: &str, device: &Device) -> Option<(&'static StackOption, bool)> {
    let named = || all().filter(|option| option.name == name);
    let known = named().find(|option| option.devices.has(device));
    known
        .map(|option| (option, true))
        .or_else(|| named().next().map(|option| (option, false)))
}

/// A table of all options for a terminal.
pub fn help() -> String {
    let mut text = String::new();
    for group in GROUPS {
        text.push_str(&format!(" {}\n", group.title));
        for option in group.options {
            text.push_str(&line(option));
        }
    }
    text
}

fn line(option: &StackOption) -> String {
    let left = format!("{}={}", option.name, option.value.form());
    let (about, default) = (option.about, option.default);
    let only = match option.devices.to_string() {
        names if names.is_empty() => names,
        names => format!("{names}: "),
    };
    format!("  {left:<34} {only}{about} ({default})\n")
}

const fn option(
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
) -> StackOption {
    option_of(Devices::ALL, name, value, default, about)
}

const fn option_of(
    devices: Devices,
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
) -> StackOption {
    StackOption {
        name,
        devices,
        value,
        default,
        about,
    }
}

#[cfg(test)]
mod tests;
