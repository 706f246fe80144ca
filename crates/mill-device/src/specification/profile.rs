//! Profiles: groups of options with a name or in a file.
//!
//! The names are Onload's where it has one, and have the same meaning there.

use super::{PROFILE, Specification, SpecificationError, error, nearest, split};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A group of options.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    /// Its purpose: the rest of a sentence.
    pub about: &'static str,
    /// As on the command line. All kinds of devices accept them.
    pub options: &'static str,
}

/// In the order in which help lists them.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "balanced",
        about: "a web server that leaves the processor to others where it can: a short sleep between two looks",
        options: "profile=throughput,profile=wan,polling=sleep-spin=50us",
    },
    Profile {
        name: "performance",
        about: "the same web server on processors of its own: it never sleeps",
        options: "profile=throughput,profile=wan,polling=spin",
    },
    Profile {
        name: "latency",
        about: "the first byte of an answer as soon as possible: long spinning, small bursts, no delayed acknowledgements",
        options: "polling=adaptive=100ms,burst=16,quick-acks=0",
    },
    Profile {
        name: "throughput",
        about: "very many connections: room for them in every state, large bursts, short spinning",
        options: "polling=adaptive=20us,burst=256,half-open=1000000,time-wait=1048576,receive-memory=4g",
    },
    Profile {
        name: "wan",
        about: "peers that are far away: ten segments at once, and windows for 1 Gbit/s over 120 ms",
        options: "initial-window=10,receive-buffer=16m,reassembly=16m,send-buffer=16m",
    },
    Profile {
        name: "safe",
        about: "as close to Linux as possible: its defaults, and no processor time without work",
        options: "polling=interrupt,burst=64,congestion=cubic,pacing=off,hystart=on,slow-start-after-idle=on,\
                  initial-window=10,\
                  window-scaling=on,timestamps=on,sack=on,ecn=accept,receive-buffer=6m,receive-buffer-first=64k,\
                  send-buffer=4m,mss=off,rto-min=200ms,rto-max=120s,rto-initial=1s,syn-retries=6,syn-ack-retries=5,\
                  retries=15,orphan-retries=8,user-timeout=off,keepalive=off,delayed-ack=40ms,msl=30s,fin-wait=60s,\
                  mtu-probing=off,half-open=4096,time-wait=262144,time-wait-reuse=off,neighbors=1024,answers=1000,\
                  invalid-ack-interval=500ms",
    },
];

/// A table of all profiles for a terminal.
pub fn help() -> String {
    let mut text = String::new();
    for Profile {
        name,
        about,
        options,
    } in PROFILES
    {
        text.push_str(&format!("  {name:<12} {about}\n{:15}{options}\n", ""));
    }
    text
}

/// Sets a profile's options. A file is looked for from `directory`.
pub(super) fn apply(
    specification: &mut Specification,
    name: &str,
    directory: &Path,
    depth: usize,
) -> Result<(), SpecificationError> {
    if depth > DEPTH_MAX {
        return Err(error(format!(
            "\"profile={name}\": profiles name each other, {DEPTH_MAX} deep and more"
        )));
    }
    if name.contains('/') {
        let before = specification
            .origins
            .set_profile(Some(format!("profile {name}")));
        let applied = apply_file(specification, &directory.join(name), depth);
        specification.origins.set_profile(before);
        return applied;
    }
    let names = || PROFILES.iter().map(|profile| profile.name);
    let Some(profile) = PROFILES.iter().find(|profile| profile.name == name) else {
        let what = match nearest::nearest(name, names()) {
            Some(known) => format!("did you mean \"{known}\"?"),
            None => {
                let all: Vec<_> = names().collect();
                let all = all.join(", ");
                format!("there are {all}, and files, whose names have a \"/\" in them")
            }
        };
        return Err(error(format!("\"{name}\" is no profile, {what}")));
    };
    let words: Vec<_> = profile.options.split(',').collect();
    let before = specification
        .origins
        .set_profile(Some(format!("profile {name}")));
    let applied = specification.set_all(&words, directory, depth);
    specification.origins.set_profile(before);
    applied
}

/// Sets the options of a file's lines. Profiles that it names are looked for from its directory.
fn apply_file(
    specification: &mut Specification,
    path: &Path,
    depth: usize,
) -> Result<(), SpecificationError> {
    let shown = path.display();
    let text =
        read(path).map_err(|why| error(format!("the profile \"{shown}\" can't be read: {why}")))?;
    let directory = path.parent().unwrap_or(path);
    let lines = (1_u32..).zip(text.lines());
    let words = lines.flat_map(|(line, text)| {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let words = text.split(',').map(str::trim);
        // A comma at the end of a line is redundant.
        words
            .filter(|word| !word.is_empty())
            .map(move |word| (line, word))
    });
    let words: Vec<_> = words.collect();
    let (profiles, options): (Vec<_>, Vec<_>) = words
        .into_iter()
        .partition(|(_, word)| split(word).0 == PROFILE);
    let mut seen = Vec::new();
    for (line, word) in profiles.into_iter().chain(options) {
        specification
            .set_one(word, &mut seen, directory, depth)
            .map_err(|SpecificationError(what)| error(format!("{shown}:{line}: {what}")))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    let read = |path: &Path| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read(path).map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| String::from("it is no text"))
}

/// Nesting of profiles: deeper than any that is not a circle.
const DEPTH_MAX: usize = 8;

/// Bytes of a file: room for each option with a long comment.
const FILE_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests;
