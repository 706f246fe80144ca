//! `lab tune`: the topology and the tuning of a recipe, left standing for work by hand until `lab restore`.

use crate::host::Host;
use crate::journal::{self, Journal};
use crate::options::Choice;
use crate::topology::{self, Ground};
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
    let mut journal =
        Journal::begin(&state, &name).map_err(|error| format!("{}: {error}", state.display()))?;
    journal.allow_ssh_interface(yes);
    let ground =
        topology::raise(&setup.topology, &mut journal).map_err(|error| error.to_string())?;
    let tuned = tune::apply(&setup.tune, &ground, &mut journal);
    journal.leave();
    say(&ground, &tuned, out).map_err(|error| error.to_string())?;
    Ok(0)
}

fn say(ground: &Ground, tuned: &[TunedKey], out: &mut dyn Write) -> std::io::Result<()> {
    for key in tuned {
        let before = key.before.as_deref().unwrap_or("nothing");
        match &key.problem {
            None => writeln!(out, "{}: {before} -> {}", key.key, key.wanted)?,
            Some(problem) => writeln!(out, "{}: stays {before}: {problem}", key.key)?,
        }
    }
    let place = |host: &Host| match host {
        Host::Local => String::from("on this machine"),
        Host::Namespace(name) => format!("behind `ip netns exec {name}`"),
        Host::Remote(target) => format!("on {target}"),
    };
    writeln!(
        out,
        "server: {}, address {}",
        place(&ground.server),
        ground.address
    )?;
    for client in ground.clients.iter().take(1) {
        writeln!(out, "client: {}", place(client))?;
    }
    writeln!(out, "`millstream lab restore` undoes all of it")
}
