//! Services that may disturb: irqbalance moves interrupts back.

use super::{Fate, Tuner, sides};
use crate::host::Host;
use crate::journal::errand;
use crate::topology::Testbed;

/// Stops those that run, on the server's machine.
pub(super) fn stop(tuner: &mut Tuner<'_>, names: &[String], testbed: &Testbed) {
    let host = sides::machine(&testbed.server);
    for name in names {
        let key = format!("service {name}");
        if !is_name(name) {
            tuner.refuse(key, STOPPED, "refused: no name of a service");
            continue;
        }
        let fate = stopped(tuner, &host, name);
        tuner.say(key, STOPPED, fate);
    }
}

const STOPPED: &str = "stopped";
const RUNNING: &str = "running";

fn stopped(tuner: &mut Tuner<'_>, host: &Host, name: &str) -> Fate {
    let Some(keeper) = Keeper::of(host) else {
        return Fate::refused(
            None,
            "absent: neither systemd nor service(8) keeps services here",
        );
    };
    if !keeper.runs(host, name) {
        return Fate::done(String::from(STOPPED));
    }
    let argv = keeper.words("stop", name);
    let undo = keeper.words("start", name);
    if let Some(problem) = tuner.run(host, &argv, &undo) {
        return Fate::refused(Some(String::from(RUNNING)), problem);
    }
    match keeper.runs(host, name) {
        false => Fate::done(String::from(RUNNING)),
        true => Fate::refused(Some(String::from(RUNNING)), "refused: it runs again"),
    }
}

/// The service manager of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Systemd,
    /// service(8) of sysvinit.
    Scripts,
}

impl Keeper {
    fn of(host: &Host) -> Option<Self> {
        // sd_booted(3) asks for the same folder.
        if errand::run(host, &["test", "-d", "/run/systemd/system"], None).is_ok() {
            return Some(Self::Systemd);
        }
        let has_scripts = errand::run(host, &["sh", "-c", "command -v service"], None).is_ok();
        has_scripts.then_some(Self::Scripts)
    }

    fn words<'a>(self, verb: &'a str, name: &'a str) -> [&'a str; 3] {
        match self {
            Self::Systemd => ["systemctl", verb, name],
            Self::Scripts => ["service", name, verb],
        }
    }

    fn runs(self, host: &Host, name: &str) -> bool {
        let verb = match self {
            Self::Systemd => "is-active",
            Self::Scripts => "status",
        };
        errand::run(host, &self.words(verb, name), None).is_ok()
    }
}

/// Nothing that a command could take for an option or a path.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
    !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_controlled_by_their_managers_commands() {
        assert_eq!(
            Keeper::Systemd.words("stop", "irqbalance"),
            ["systemctl", "stop", "irqbalance"]
        );
        assert_eq!(
            Keeper::Scripts.words("stop", "irqbalance"),
            ["service", "irqbalance", "stop"]
        );
        assert!(is_name("getty@tty1.service"));
        assert!(!is_name("--now") && !is_name("../x") && !is_name(""));
    }
}
