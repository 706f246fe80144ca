//! The command line of Onload, as its users type it: `onload -p nginx-balanced nginx …`.
//!
//! Onload has no option for the interface, which is that of its cards; here `MILLSTREAM_STACK` names it. Profiles and
//! variables become options of `--stack`, as docs/onload.md says.

/// Profiles: Onload's names, and files of them.
mod profile;

/// The variables `EF_…`.
mod variables;

use crate::accelerated::search::{self, Found};
use crate::executable;
use crate::launch::Launch;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable of the environment that has the text of `--stack`.
pub const STACK: &str = "MILLSTREAM_STACK";

/// The name by which `onload_stackdump` shows the program's processes.
const CLUSTER_NAME: &str = "EF_CLUSTER_NAME";

/// The variable with which a program without a stack does not run: as 0.
const NO_FAIL: &str = "EF_NO_FAIL";

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    Help,
    /// A program, what is to be said before it starts, and whether it is not to run without a stack.
    Launch(Launch, Vec<String>, bool),
}

/// What profiles and the environment set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Names of our own profiles, in order.
    profiles: Vec<String>,
    /// `EF_…`, and their values.
    variables: BTreeMap<String, String>,
}

impl Settings {
    /// As in Onload what its user sets goes before what a profile sets, unless profiles are forced.
    fn take(&mut self, environment: &[(OsString, OsString)], is_forced: bool) {
        let of_user = environment
            .iter()
            .filter_map(|(name, value)| variable(name, value));
        for (name, value) in of_user {
            if !(is_forced && self.variables.contains_key(&name)) {
                self.variables.insert(name, value);
            }
        }
    }
}

/// Reads a command line behind its first word, with the variables of the environment. The error is a sentence.
pub fn parse(
    words: &[OsString],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Asked, String> {
    let (mut named, mut is_verbose, mut force) = (Vec::new(), false, false);
    let mut is_forced = false;
    let mut notices = Vec::new();
    let mut words = words.iter();
    let program = loop {
        let word = words.next().ok_or("there is no program to run")?;
        let text = word.to_string_lossy();
        let (name, inner) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (&*text, None),
        };
        let mut value = || {
            let value = inner
                .clone()
                .or_else(|| Some(words.next()?.to_string_lossy().into_owned()));
            value.ok_or_else(|| format!("\"{name}\" needs a value"))
        };
        match name {
            "-h" | "--help" => return Ok(Asked::Help),
            "-p" | "--profile" => named.extend(value()?.split(',').map(str::to_owned)),
            "-v" | "--verbose" => is_verbose = true,
            "--force" => force = true,
            "--no-app-handler" => {}
            "--force-profiles" => is_forced = true,
            "--app-handler" => {
                let handler = value()?;
                notices.push(format!(
                    "\"--app-handler {handler}\" has no effect: there is nothing to be done before"
                ));
            }
            "--" => break words.next().ok_or("there is no program behind \"--\"")?,
            name if name.starts_with('-') => {
                return Err(format!("\"{name}\" is no option of \"onload\""));
            }
            _ => break word,
        }
    };
    let arguments: Vec<OsString> = words.cloned().collect();
    let environment: Vec<_> = environment.into_iter().collect();
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let call = profile::Call {
        program,
        arguments: &arguments,
        folders: profile::folders(home.map(|(_, home)| home.as_os_str())),
        is_forced,
    };
    let mut settings = Settings::default();
    for name in &named {
        profile::apply(name, &call, &mut settings)?;
    }
    settings.take(&environment, is_forced);
    let cluster = settings.variables.remove(CLUSTER_NAME);
    let or_fail = settings
        .variables
        .remove(NO_FAIL)
        .is_some_and(|value| value == "0");
    let (options, without) = variables::options(&settings.variables)?;
    if !without.is_empty() {
        let names = without.join(", ");
        notices.push(format!(
            "without an effect here: {names} (docs/onload.md says why)"
        ));
    }
    let stack = environment.iter().find(|(name, _)| name == STACK);
    let stack = stack.map(|(_, value)| value.to_string_lossy().into_owned());
    let stack = stack.filter(|stack| !stack.is_empty()).ok_or_else(|| {
        format!("which interface? {STACK}=af_xdp:eth0 in the environment says so")
    })?;
    let profiles = settings
        .profiles
        .iter()
        .map(|name| format!("profile={name}"));
    let parts: Vec<String> = core::iter::once(stack)
        .chain(profiles)
        .chain(options)
        .collect();
    let stack = parts.join(",");
    if is_verbose {
        notices.push(format!("stack: {stack}"));
    }
    let launch = Launch {
        stack,
        program: program.clone(),
        arguments,
        force,
        library: None,
        cluster,
        verbose: is_verbose,
    };
    Ok(Asked::Launch(launch, notices, or_fail))
}

/// Becomes the program on the kernel's stack, if another program that we run has the interface; returns only what went wrong.
/// So `onload nginx -s reload`, which needs no stack, reaches an nginx that has it.
pub fn run_beside(launch: &Launch, why: String, say: impl Fn(&str)) -> String {
    let device = launch.stack.split(',').next().unwrap_or_default();
    let interface = device.strip_prefix("af_xdp:").unwrap_or_default();
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let own = network("self");
    let has_it = |found: &Found| {
        found.shown.interface == interface && network(&found.process.to_string()) == own
    };
    let others = search::all();
    let Some(other) = others.iter().find(|found| has_it(found)) else {
        return why;
    };
    let (name, program) = (launch.program.display(), &other.shown.program);
    let Some(path) = executable::find(&launch.program) else {
        return why;
    };
    say(&format!(
        "\"{name}\" runs on the kernel's network stack: {program} (process {}) has {interface}",
        other.process
    ));
    let mut command = Command::new(path);
    let error = command.arg0(&launch.program).args(&launch.arguments).exec();
    format!("\"{name}\" can't be started: {error}")
}

/// What options in force mean as variables of Onload.
pub(crate) fn in_force(options: &[(String, String)]) -> Vec<(String, String)> {
    variables::in_force(options)
}

fn variable(name: &OsStr, value: &OsStr) -> Option<(String, String)> {
    let name = name.to_str().filter(|name| name.starts_with("EF_"))?;
    Some((name.to_owned(), value.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str, environment: &[(&str, &str)]) -> Result<(Launch, Vec<String>), String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let environment = environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        match parse(&words, environment)? {
            Asked::Launch(launch, notices, _) => Ok((launch, notices)),
            Asked::Help => Err(String::from("help")),
        }
    }

    const ETH0: (&str, &str) = (STACK, "af_xdp:eth0");

    #[test]
    fn the_command_line_of_the_cookbook_becomes_a_stack_and_a_program() {
        let (launch, notices) =
            parsed("-p nginx-balanced nginx -p /srv -s reload", &[ETH0]).unwrap();
        assert_eq!(launch.stack, "af_xdp:eth0,profile=balanced");
        assert_eq!(launch.program, "nginx");
        assert_eq!(launch.arguments, ["-p", "/srv", "-s", "reload"]);
        assert!(notices.is_empty());
    }

    #[test]
    fn variables_of_the_user_go_before_those_of_a_profile() {
        let environment = [
            ETH0,
            ("EF_TCP_FIN_TIMEOUT", "15"),
            ("EF_PIO", "0"),
            (CLUSTER_NAME, "webs"),
            ("HOME", "/"),
        ];
        let (launch, notices) = parsed("--profile=safe -- wrk", &environment).unwrap();
        assert_eq!(launch.stack, "af_xdp:eth0,profile=safe,fin-wait=15s");
        assert!(notices[0].contains("here: EF_PIO ("), "{notices:?}");
        assert_eq!(launch.cluster.as_deref(), Some("webs"));
    }

    #[test]
    fn handlers_of_applications_have_no_effect_and_this_is_said() {
        for (line, said) in [
            ("--app-handler=mine wrk", Some("--app-handler mine")),
            ("--app-handler mine wrk", Some("--app-handler mine")),
            ("--no-app-handler wrk", None),
        ] {
            let (launch, notices) = parsed(line, &[ETH0]).unwrap();
            assert_eq!(launch.program, "wrk", "{line}");
            let handlers = notices.iter().find(|notice| notice.contains("handler"));
            assert_eq!(handlers.is_some(), said.is_some(), "{line}: {notices:?}");
            assert!(handlers.is_none_or(|notice| notice.contains(said.unwrap())));
        }
        assert!(parsed("--app-handler", &[ETH0]).is_err());
    }

    #[test]
    fn a_verbose_start_tells_the_stack() {
        for line in ["-v -p safe wrk -v", "--verbose --profile safe wrk -v"] {
            let (launch, notices) = parsed(line, &[ETH0]).unwrap();
            assert_eq!(notices, ["stack: af_xdp:eth0,profile=safe"], "{line}");
            assert_eq!(launch.arguments, ["-v"]);
        }
        assert!(parsed("-p safe wrk -v", &[ETH0]).unwrap().1.is_empty());
    }

    #[test]
    fn several_profiles_are_applied_in_their_order() {
        for line in ["-p safe,latency wrk", "-p safe --profile=latency wrk"] {
            let (launch, _) = parsed(line, &[ETH0]).unwrap();
            let expected = "af_xdp:eth0,profile=safe,profile=latency";
            assert_eq!(launch.stack, expected, "{line}");
        }
    }

    #[test]
    fn forced_profiles_go_before_the_environment() {
        let file = std::env::temp_dir().join(format!("millstream-{}.opf", std::process::id()));
        std::fs::write(&file, "onload_set EF_TCP_FIN_TIMEOUT 7\n").unwrap();
        let environment = [
            ETH0,
            ("EF_TCP_FIN_TIMEOUT", "15"),
            ("EF_TCP_TCONST_MSL", "1"),
        ];
        let stack = |words: &str| {
            let line = format!("{words}-p {} wrk", file.display());
            parsed(&line, &environment).unwrap().0.stack
        };
        let (plain, forced) = (stack(""), stack("--force-profiles "));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(plain, "af_xdp:eth0,fin-wait=15s,msl=1s");
        assert_eq!(forced, "af_xdp:eth0,fin-wait=7s,msl=1s");
    }

    #[test]
    fn a_program_runs_without_a_stack_unless_it_must_not() {
        for (value, or_fail) in [(Some("0"), true), (Some("1"), false), (None, false)] {
            let environment = value.map(|value| (NO_FAIL.into(), value.into()));
            let environment = environment
                .into_iter()
                .chain([(STACK.into(), ETH0.1.into())]);
            match parse(&["wrk".into()], environment).unwrap() {
                Asked::Launch(launch, notices, found) => {
                    assert_eq!(found, or_fail, "{value:?}");
                    assert!(notices.is_empty(), "{notices:?}");
                    assert!(!launch.force);
                }
                Asked::Help => panic!("help was not asked for"),
            }
        }
        assert!(parsed("--force wrk", &[ETH0]).unwrap().0.force);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, environment, said) in [
            ("-p latency", &[ETH0][..], "no program"),
            ("-p latency wrk", &[], STACK),
            ("-p latncy wrk", &[ETH0], "latncy"),
            ("--profle=latency wrk", &[ETH0], "--profle"),
            (
                "wrk",
                &[ETH0, ("EF_TCP_FIN_TIMEOUT", "soon")],
                "EF_TCP_FIN_TIMEOUT",
            ),
        ] {
            let found = parsed(line, environment).err();
            assert!(
                found.as_ref().is_some_and(|what| what.contains(said)),
                "{line}: {found:?}"
            );
        }
    }
}
