//! What is said of configurations, most of which are refused.

/// `limit_req` and `limit_conn`.
mod limits;

use crate::content::Directory;
use crate::server::{Program, command_of};
use std::fs;

/// A configuration, and the warnings and the error that are told of it.
pub(crate) type Said = (&'static str, Vec<String>);

/// What a program says of each, without process numbers; `before` stands before it in the main context.
pub(crate) fn say(program: Program, before: &str, texts: &[&'static str]) -> Vec<Said> {
    let directory = Directory::new();
    let out = directory.path();
    let all = texts.iter().map(|text| {
        let conf = out.join("nginx.conf");
        let whole = format!("{before} pid pid; error_log error.log; events {{ }}\n{text}\n");
        fs::write(&conf, whole).unwrap();
        let mut command = command_of(program, out);
        command.arg("-t").arg("-p").arg(out).arg("-c").arg(&conf);
        let output = command.args(["-e", "error.log"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = said.lines().filter_map(|line| {
            let (_, told) = line
                .split_once("[emerg] ")
                .or_else(|| line.split_once("[warn] "))?;
            // nginx tells its process number where a log is open already.
            let told = match told.split_once(": ") {
                Some((number, rest)) if number.contains('#') => rest,
                _ => told,
            };
            Some(told.replace(&conf.display().to_string(), "CONF"))
        });
        (*text, lines.collect())
    });
    all.collect()
}
