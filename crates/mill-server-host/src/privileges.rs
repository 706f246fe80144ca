//! What the worker process runs with: user, groups, limits, priority, directory, environment.

use crate::process_log::{ProcessLog, describe};
use mill_config::config::{EnvironmentVariable, LogLevel, Main};
use mill_config::diagnostic::{Diagnostic, SourcePosition, Spot};
use mill_sys::account::{self, Account};
use mill_sys::process;
use mill_sys::rlimit::{Limit, Resource};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The user and groups of the worker process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub account: Account,
    pub gid: u32,
}

/// Setting up the worker process has failed, so it must not serve; the reason is in the log.
#[derive(Debug)]
pub struct Fatal;

impl Identity {
    /// The user and group of a configuration; `None` when this process does not run as root and cannot change its user.
    /// An error has the place of the name in the configuration.
    pub fn resolve(main: &Main) -> Result<Option<Self>, Box<Diagnostic>> {
        if !account::is_super_user() {
            return Ok(None);
        }
        let Some(user) = &main.user else {
            let account = find_user(DEFAULT_USER.as_bytes()).map_err(|what| {
                let mut error = Diagnostic::new(LogLevel::Emerg, what, SourcePosition::None);
                error.help = Some(format!(
                    "without \"user\" the worker process runs as {DEFAULT_USER}: name an account that exists"
                ));
                error
            })?;
            let gid = account.gid;
            return Ok(Some(Self { account, gid }));
        };
        let fail = |spot: &Spot, what: String, help: &str| {
            let mut error = spot.diagnostic(LogLevel::Emerg, what);
            error.help = Some(String::from(help));
            Box::new(error)
        };
        let account = find_user(&user.name)
            .map_err(|what| fail(&user.name_spot, what, "this machine has no such account"))?;
        // `user NAME;` alone means the group with the same name as the user.
        let (group, help) = match &user.group {
            Some(group) => (group, "this machine has no such group"),
            None => (
                &user.name,
                "this machine has no group of the account's name: add one after it",
            ),
        };
        let gid = find_group(group).map_err(|what| fail(&user.group_spot, what, help))?;
        Ok(Some(Self { account, gid }))
    }
}

/// The error is nginx's line.
fn find_user(name: &[u8]) -> Result<Account, String> {
    let failed = || format!("getpwnam(\"{}\") failed", String::from_utf8_lossy(name));
    let name = CString::new(name).map_err(|_| failed())?;
    let account = account::user(&name);
    let account = account.map_err(|error| format!("{} {}", failed(), describe(&error)))?;
    account.ok_or_else(failed)
}

fn find_group(name: &[u8]) -> Result<u32, String> {
    let failed = || format!("getgrnam(\"{}\") failed", String::from_utf8_lossy(name));
    let name = CString::new(name).map_err(|_| failed())?;
    account::group(&name).ok().flatten().ok_or_else(failed)
}

/// Gives the calling process the worker's user, limits and directory. It must have one thread only. `open` is called last with the rights
/// that the process has had so far; its error is a message.
pub fn become_worker(
    main: &Main,
    identity: Option<&Identity>,
    log: &ProcessLog,
    open: impl FnOnce() -> Result<(), String>,
) -> Result<(), Fatal> {
    let alert = |what: String| log.write(LogLevel::Alert, &what);
    if let Err(error) = process::set_environment(&environment(&main.env)) {
        alert(format!(
            "setting the environment failed {}",
            describe(&error)
        ));
    }
    if main.worker_priority != 0
        && let Err(error) = process::set_priority(main.worker_priority)
    {
        let (nice, why) = (main.worker_priority, describe(&error));
        alert(format!("setpriority({nice}) failed {why}"));
    }
    set_limits(main, log);
    if let Err(what) = open() {
        log.write(LogLevel::Emerg, &what);
        return Err(Fatal);
    }
    match identity {
        Some(identity) => drop_privileges(identity, log)?,
        // A master that is not root may still have capabilities, for its device. Workers need none.
        None => {
            if let Err(error) = process::drop_rights() {
                let why = describe(&error);
                log.write(LogLevel::Emerg, &format!("capset() failed {why}"));
                return Err(Fatal);
            }
        }
    }
    if let Err(error) = process::set_dumpable() {
        alert(format!(
            "prctl(PR_SET_DUMPABLE) failed {}",
            describe(&error)
        ));
    }
    if let Some(directory) = &main.working_directory
        && let Err(error) = std::env::set_current_dir(OsStr::from_bytes(directory))
    {
        let (name, why) = (directory.display(), describe(&error));
        alert(format!("chdir(\"{name}\") failed {why}"));
        return Err(Fatal);
    }
    Ok(())
}

fn set_limits(main: &Main, log: &ProcessLog) {
    let limits = [
        (
            Resource::Descriptors,
            "RLIMIT_NOFILE",
            main.worker_rlimit_nofile,
        ),
        (Resource::CoreBytes, "RLIMIT_CORE", main.worker_rlimit_core),
    ];
    for (resource, name, value) in limits {
        let Some(value) = value else { continue };
        let both = Limit {
            soft: value,
            hard: value,
        };
        if let Err(error) = resource.set_limit(both) {
            let what = format!("setrlimit({name}, {value}) failed {}", describe(&error));
            log.write(LogLevel::Alert, &what);
        }
    }
}

fn drop_privileges(identity: &Identity, log: &ProcessLog) -> Result<(), Fatal> {
    let Identity { account, gid } = identity;
    let emerg = |what: String| log.write(LogLevel::Emerg, &what);
    if let Err(error) = account::set_group(*gid) {
        emerg(format!("setgid({gid}) failed {}", describe(&error)));
        return Err(Fatal);
    }
    if let Err(error) = account::set_supplementary_groups(&account.name, *gid) {
        let name = account.name.to_string_lossy();
        emerg(format!(
            "initgroups({name}, {gid}) failed {}",
            describe(&error)
        ));
        // To keep root's groups would be more rights than configured.
        return Err(Fatal);
    }
    if let Err(error) = account::set_user(account.uid) {
        emerg(format!(
            "setuid({}) failed {}",
            account.uid,
            describe(&error)
        ));
        return Err(Fatal);
    }
    Ok(())
}

/// The environment after the `env` lines: the variables they name, and always TZ.
pub fn environment(lines: &[EnvironmentVariable]) -> Vec<(OsString, OsString)> {
    let inherit = |name: &OsStr| std::env::var_os(name);
    select(lines, inherit)
}

fn select(
    lines: &[EnvironmentVariable],
    inherit: impl Fn(&OsStr) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut add = |name: &OsStr, value: Option<OsString>| {
        let Some(value) = value.or_else(|| inherit(name)) else {
            return;
        };
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value));
    };
    add(OsStr::new("TZ"), None);
    for line in lines {
        let value = line
            .value
            .as_ref()
            .map(|value| OsStr::from_bytes(value).to_owned());
        add(OsStr::from_bytes(&line.name), value);
    }
    variables
}

/// The user when no `user` is configured and root started the server: the default of nginx's build.
const DEFAULT_USER: &str = "nobody";

#[cfg(test)]
mod tests {
    use super::*;

    fn check_environment(lines: &[(&str, Option<&str>)], expected: &[(&str, &str)]) {
        let lines: Vec<_> = lines
            .iter()
            .map(|(name, value)| EnvironmentVariable {
                name: (*name).into(),
                value: value.map(Into::into),
            })
            .collect();
        let present = |name: &OsStr| match name.to_str() {
            Some("TZ") => Some(OsString::from("UTC")),
            Some("HOME") => Some(OsString::from("/root")),
            _ => None,
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        assert_eq!(select(&lines, present), expected);
    }

    #[test]
    fn the_environment_is_the_time_zone_and_what_is_listed() {
        check_environment(&[], &[("TZ", "UTC")]);
        check_environment(
            &[("HOME", None), ("NOSUCH", None), ("A", Some("1"))],
            &[("TZ", "UTC"), ("HOME", "/root"), ("A", "1")],
        );
        check_environment(
            &[("TZ", Some("CET")), ("A", Some(""))],
            &[("TZ", "CET"), ("A", "")],
        );
    }
}
