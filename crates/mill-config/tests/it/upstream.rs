//! `upstream`: groups of servers, and nginx's errors about them.

mod group;
mod resolver;
mod session;
mod state;

use mill_config::config::{Config, Http};
use mill_config::{Memory, Options, load};

pub(crate) const PATH: &str = "/etc/nginx/nginx.conf";

pub(crate) fn config(http: &str) -> Config {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

pub(crate) fn http(config: &Config) -> &Http {
    config.http.as_ref().expect("there is an http block")
}

pub(crate) fn refused(http: &str) -> String {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(_) => panic!("{http} is accepted"),
        Err(failure) => failure.error.line(),
    }
}

pub(crate) fn warnings(http: &str) -> Vec<String> {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    let loaded = load(&source, &Options::default()).expect("it is valid");
    loaded.remarks.iter().map(|remark| remark.line()).collect()
}
