//! Profiles: Onload's names, and `.opf` files.
//!
//! Such a file is a fragment of a shell script that calls `onload_set` and `onload_import`. It is run by a shell, as Onload does, with
//! functions of these names that say what they were called with.

use super::Settings;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// Onload's names, and ours.
const NAMES: &[(&str, &str)] = &[
    ("nginx-balanced", "balanced"),
    ("nginx-webserver-balanced", "balanced"),
    ("nginx_webserver_balanced", "balanced"),
    ("nginx-proxy-balanced", "balanced"),
    ("nginx-performance", "performance"),
    ("nginx-webserver-performance", "performance"),
    ("nginx_webserver_performance", "performance"),
    ("nginx-proxy-performance", "performance"),
    ("latency", "latency"),
    ("latency-best", "latency"),
    ("throughput", "throughput"),
    ("wan-traffic", "wan"),
    ("safe", "safe"),
];

/// Runs a file with functions that write what it sets; fields are separated by tabs. What the user has set stays, as in the end.
const SCRIPT: &str = r#"
of_user=" ${!EF_*} "
onload_set() {
  printf 'set\t%s\t%s\n' "$1" "$2" >&3
  [[ "$of_user" == *" $1 "* ]] || printf -v "$1" '%s' "$2"
}
onload_set_default() { onload_set "$@"; }
onload_stackdump() { "$MILLSTREAM_BINARY" stackdump "$@"; }
onload_import() { printf 'import\t%s\n' "$1" >&3; }
log() { printf '%s\n' "$*" >&2; }
fail() { log "$@"; exit 1; }
file=$1
shift
. "$file"
"#;

/// Sets what a profile does: one of a name, or a file, which gets the program's command line as its arguments.
pub(super) fn apply(
    name: &str,
    program: &OsStr,
    arguments: &[OsString],
    settings: &mut Settings,
) -> Result<(), String> {
    let plain = name.strip_suffix(".opf").unwrap_or(name);
    if name.contains('/') || Path::new(name).is_file() {
        return read(Path::new(name), program, arguments, settings);
    }
    let known = NAMES
        .iter()
        .find(|(onloads, ours)| [*onloads, *ours].contains(&plain));
    let Some((_, ours)) = known else {
        let names: Vec<_> = NAMES.iter().map(|(onloads, _)| *onloads).collect();
        return Err(format!(
            "there is no profile \"{name}\", and no file of that name; there are {}",
            names.join(", ")
        ));
    };
    settings.profiles.push((*ours).to_owned());
    Ok(())
}

fn read(
    file: &Path,
    program: &OsStr,
    arguments: &[OsString],
    settings: &mut Settings,
) -> Result<(), String> {
    let shown = file.display();
    // A path without a slash would be looked for in $PATH.
    let path = file
        .canonicalize()
        .map_err(|error| format!("{shown}: {error}"))?;
    // What the file itself prints is for the terminal; what it sets comes by standard output.
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("exec 3>&1 1>&2\n{SCRIPT}"), "onload"])
        .env(
            "MILLSTREAM_BINARY",
            std::env::current_exe().unwrap_or_default(),
        )
        .arg(path)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| format!("bash can't be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} ended with {}", output.status));
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split('\t');
        match (fields.next(), fields.next(), fields.next()) {
            (Some("set"), Some(name), Some(value)) => {
                settings.variables.insert(name.to_owned(), value.to_owned());
            }
            (Some("import"), Some(name), _) => {
                // Beside the file, as Onload looks for it first.
                let beside = file.with_file_name(format!("{name}.opf"));
                match beside.is_file() && beside != file {
                    true => read(&beside, program, arguments, settings)?,
                    false => apply(name, program, arguments, settings)?,
                }
            }
            _ => {
                return Err(format!(
                    "{shown} sets something that can't be read: \"{line}\""
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn applied(text: &str) -> Result<Settings, String> {
        let folder = std::env::temp_dir().join(format!("millstream-opf-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{}.opf", text.len()));
        fs::write(&file, text).unwrap();
        let mut settings = Settings::default();
        let name = file.to_str().unwrap();
        let arguments = ["-c".into(), "my.conf".into()];
        let result = apply(name, OsStr::new("nginx"), &arguments, &mut settings);
        fs::remove_file(&file).unwrap();
        result.map(|()| settings)
    }

    #[test]
    fn a_file_sets_imports_and_decides_as_a_script() {
        let settings = applied(
            "set -o pipefail\nworkers=${WORKERS:-2}\nlog configuring $workers\n\
             if [ \"$3\" = my.conf ]; then onload_set EF_CLUSTER_SIZE \"$workers\"; fi\n\
             onload_set EF_POLL_USEC 1000000\necho \"$EF_POLL_USEC\"\nonload_import throughput\nonload_import wan-traffic\n",
        )
        .unwrap();
        assert_eq!(settings.profiles, ["throughput", "wan"]);
        let variables: Vec<_> = settings.variables.iter().collect();
        let expected = [("EF_CLUSTER_SIZE", "2"), ("EF_POLL_USEC", "1000000")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            variables,
            expected
                .iter()
                .map(|(name, value)| (name, value))
                .collect::<Vec<_>>()
        );
    }

    /// As nginx' profile in the cookbook waits for an earlier instance.
    #[test]
    fn a_file_can_look_for_stacks() {
        // The binary is that of the tests, which lists those with "stackdump" in their names.
        let settings = applied(
            "onload_stackdump --list | grep -q webs-c && exit 16\n\
             if onload_stackdump --list | grep -q stackdump::; then onload_set EF_CLUSTER_NAME webs; fi\n",
        );
        let variables = settings.unwrap().variables;
        assert_eq!(
            variables.get("EF_CLUSTER_NAME").map(String::as_str),
            Some("webs")
        );
    }

    #[test]
    fn a_file_that_gives_up_or_imports_what_there_is_not_is_an_error() {
        assert!(
            applied("fail no workers")
                .unwrap_err()
                .contains("exit status: 1")
        );
        assert!(
            applied("onload_import nothing")
                .unwrap_err()
                .contains("\"nothing\"")
        );
    }
}
