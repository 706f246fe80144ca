//! The link between client and server: rings, interrupt moderation, offloads, files of the interface.

use super::ethtool::Family;
use super::{Fate, Tuner, problem_of, sides, value};
use crate::host::Host;
use crate::journal::errand;
use crate::topology::Testbed;
use mill_lab::recipe::Interface;

pub(super) fn apply(tuner: &mut Tuner<'_>, wanted: &Interface, testbed: &Testbed) {
    let settings = settings(wanted);
    if settings.is_empty() && wanted.files.is_empty() {
        return;
    }
    for (host, interface, side) in sides::ends(testbed) {
        let place = format!("({interface}{side})");
        let guarded = guarded(tuner, &host, &interface);
        for (family, name, text) in &settings {
            let key = format!("{} {name} {place}", family.title());
            let fate = match (&guarded, text) {
                (Some(problem), _) => Fate::refused(None, problem.clone()),
                (None, None) => Fate::refused(None, value::NO_VALUE),
                (None, Some(text)) => set(tuner, &host, &interface, (*family, name, text)),
            };
            tuner.say(key, text.as_deref().unwrap_or_default(), fate);
        }
        for (name, text) in &wanted.files {
            let key = format!("{name} {place}");
            let text = value::text(text);
            let is_name = !name.contains("..") && !name.starts_with('/');
            let problem = match (&guarded, &text) {
                (Some(problem), _) => problem,
                (None, None) => value::NO_VALUE,
                (None, Some(_)) if !is_name => "refused: no file of an interface",
                (None, Some(text)) => {
                    let path = format!("/sys/class/net/{interface}/{name}");
                    tuner.set(key, &host, &path, text);
                    continue;
                }
            };
            tuner.refuse(key, &text.unwrap_or_default(), problem);
        }
    }
}

type Setting = (Family, String, Option<String>);

fn settings(wanted: &Interface) -> Vec<Setting> {
    let rings = wanted.rings.iter().map(|(name, count)| {
        let count = Some(count.to_string());
        (Family::Rings, name.clone(), count)
    });
    let coalesce = wanted
        .coalesce
        .iter()
        .map(|(name, wanted)| (Family::Coalesce, name.clone(), value::switch(wanted)));
    let offloads = wanted.offloads.iter().map(|(name, yes)| {
        let yes = Some(value::on_off(*yes));
        (Family::Offloads, name.clone(), yes)
    });
    rings.chain(coalesce).chain(offloads).collect()
}

/// One setting by ethtool(8): shown, noted, set, shown again.
fn set(
    tuner: &mut Tuner<'_>,
    host: &Host,
    interface: &str,
    (family, name, wanted): (Family, &str, &str),
) -> Fate {
    let (shows, sets) = family.options();
    let show = |host: &Host| errand::run(host, &["ethtool", shows, interface], None);
    let text = match show(host) {
        Ok(text) => text,
        Err(error) => return Fate::refused(None, problem_of_show(&error)),
    };
    let Some(before) = family.find(&text, name) else {
        return Fate::refused(None, NOT_OF_INTERFACE);
    };
    if before == wanted {
        return Fate::done(before);
    }
    if family.is_fixed(&text, name) {
        return Fate::refused(Some(before), "refused: fixed by the driver");
    }
    let argv = ["ethtool", sets, interface, name, wanted];
    let undo = ["ethtool", sets, interface, name, &before];
    if let Some(problem) = tuner.run(host, &argv, &undo) {
        return Fate::refused(Some(before), problem);
    }
    let after = show(host).ok().and_then(|text| family.find(&text, name));
    match after {
        Some(after) if after == wanted => Fate::done(before),
        Some(after) => Fate::refused(Some(before), format!("the kernel made it {after}")),
        None => Fate::refused(Some(before), "can't be read back"),
    }
}

const NOT_OF_INTERFACE: &str = "absent: the interface has no such setting";

fn problem_of_show(error: &std::io::Error) -> String {
    if error.to_string().contains("not supported") {
        return String::from(NOT_OF_INTERFACE);
    }
    problem_of(error)
}

/// Why an interface must not be changed, if so: it carries the user's ssh session.
pub(super) fn guarded(tuner: &Tuner<'_>, host: &Host, interface: &str) -> Option<String> {
    if tuner.journal.ssh_interface_allowed() {
        return None;
    }
    let connection = match host {
        Host::Local => std::env::var("SSH_CONNECTION").unwrap_or_default(),
        // Its interfaces are its own.
        Host::Namespace(_) => return None,
        Host::Remote(_) => {
            errand::run(host, &["printenv", "SSH_CONNECTION"], None).unwrap_or_default()
        }
    };
    let own = own_address(&connection)?;
    let argv = ["ip", "-o", "addr", "show", "dev", interface];
    let said = errand::run(host, &argv, None).unwrap_or_default();
    let carries = said
        .split_whitespace()
        .any(|word| word.split('/').next() == Some(own));
    carries.then(|| {
        format!("refused: {interface} carries the ssh session; allow it if the machine has another way in")
    })
}

/// Of `CLIENT PORT SERVER PORT` (ssh(1), ENVIRONMENT) the third.
fn own_address(connection: &str) -> Option<&str> {
    connection.split_whitespace().nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_session_is_the_third_word() {
        assert_eq!(
            own_address("192.0.2.9 50122 192.0.2.2 22"),
            Some("192.0.2.2")
        );
        assert_eq!(own_address(""), None);
    }
}
