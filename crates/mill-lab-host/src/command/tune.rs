//! `lab tune`: applies the topology and the tuning of a recipe, and leaves them in place until `lab restore`.

use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::options::Choice;
use crate::topology::{self, Testbed};
use crate::tune;
use mill_lab::recipe;
use mill_lab::record::TunedKey;
use std::io::Write;

/// Tunes as the recipe's first point does.
pub(super) fn run(choice: &Choice, yes: bool, out: &mut dyn Write) -> Result<u8, String> {
    let resolved = recipe::resolve(&choice.recipe, &choice.size, &choice.sets)
        .map_err(|error| error.to_string())?;
    let point = resolved
        .points()
        .into_iter()
        .next()
        .ok_or("the recipe has no point")?;
    let (setup, _) = resolved.setup(&point).map_err(|error| error.to_string())?;
    let state = journal::state_folder();
    let name = format!("tune-{}-{}", resolved.recipe.id, std::process::id());
    let _hold = journal::hold(&state, &name).map_err(|refused| refused.to_string())?;
    let mut journal =
        Journal::begin(&state, &name).map_err(|error| format!("{}: {error}", state.display()))?;
    journal.allow_ssh_interface(yes);
    let testbed = topology::raise(&setup.topology, &mut journal, &Interrupt::default())
        .map_err(|error| error.to_string())?;
    let tuned = tune::apply(&setup.tune, &testbed, &mut journal);
    journal.leave();
    say(&testbed, &tuned, out).map_err(|error| error.to_string())?;
    Ok(0)
}

/// "1 -> 0", "1, as wanted", or why it stays as it is.
fn became(key: &TunedKey) -> String {
    match (&key.problem, &key.before) {
        (None, Some(before)) if *before == key.wanted => format!("{before}, as wanted"),
        (None, Some(before)) => format!("{before} -> {}", key.wanted),
        (None, None) => format!("-> {}", key.wanted),
        (Some(problem), None) => problem.clone(),
        (Some(problem), Some(before)) => format!("stays {before}: {problem}"),
    }
}

fn say(testbed: &Testbed, tuned: &[TunedKey], out: &mut dyn Write) -> std::io::Result<()> {
    for key in tuned {
        writeln!(out, "{}: {}", key.key, became(key))?;
    }
    let place = |host: &Host| match host {
        Host::Local => String::from("on this machine"),
        Host::Namespace(name) => format!("behind `ip netns exec {name}`"),
        Host::Remote(target) => format!("on {target}"),
    };
    writeln!(
        out,
        "server: {}, address {}",
        place(&testbed.server),
        testbed.address
    )?;
    for client in testbed.clients.iter().take(1) {
        writeln!(out, "client: {}", place(client))?;
    }
    writeln!(out, "`millstream lab restore` undoes all of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, problem: Option<&str>, expected: &str) {
        let key = TunedKey {
            key: String::from("tcp_sack"),
            before: before.map(String::from),
            wanted: String::from("1"),
            problem: problem.map(String::from),
        };
        assert_eq!(became(&key), expected);
    }

    #[test]
    fn the_result_of_a_key_is_shown_in_one_line() {
        check(Some("0"), None, "0 -> 1");
        check(Some("1"), None, "1, as wanted");
        check(None, None, "-> 1");
        check(None, Some("absent on this kernel"), "absent on this kernel");
        check(Some("0"), Some("not permitted"), "stays 0: not permitted");
    }
}
