//! `proxy_pass` and its like: targets, settings, inheritance, and nginx's errors about them.

mod cache_path;
mod caching;
mod client_address;
mod gateway;
mod settings;
mod target;

use std::sync::Arc;

use mill_config::config::{
    Config, Http, Location, Pass, PassTarget, Template, Upstream, UpstreamTarget,
};
use mill_config::{Memory, Options, load};

pub(crate) const PATH: &str = "/etc/nginx/nginx.conf";

pub(crate) fn config(http: &str) -> Config {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

pub(crate) fn refused(http: &str) -> String {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(_) => panic!("{http} is accepted"),
        Err(failure) => failure.error.line(),
    }
}

pub(crate) fn http(config: &Config) -> &Http {
    config.http.as_ref().expect("there is an http block")
}

pub(crate) fn location(config: &Config, path: &str) -> Arc<Location> {
    let server = &http(config).servers[0];
    let found = server.locations.find(path.as_bytes(), &mut Vec::new());
    found.unwrap_or(&server.location).clone()
}

/// Warnings and notices about an http block.
pub(crate) fn remarks(http: &str) -> Vec<String> {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.remarks.iter().map(|remark| remark.line()).collect(),
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

/// The advice in them.
pub(crate) fn helps(http: &str) -> Vec<String> {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(loaded) => {
            let helps = loaded.remarks.into_iter().filter_map(|remark| remark.help);
            helps.collect()
        }
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

/// The location `/` with these directives.
pub(crate) fn located(directives: &str) -> Arc<Location> {
    location(
        &config(&format!("server {{ location / {{ {directives} }} }}")),
        "/",
    )
}

pub(crate) fn pass(location: &Location) -> &Arc<Pass> {
    location.pass.as_ref().expect("it passes on")
}

pub(crate) fn group(pass: &Pass) -> &Arc<Upstream> {
    match &pass.target {
        PassTarget::Group(group) => group,
        PassTarget::Evaluated(template) => panic!("{template:?}"),
    }
}

/// Addresses of all servers.
pub(crate) fn addresses(group: &Upstream) -> Vec<String> {
    let targets = group.servers.iter().map(|server| &server.target);
    let addresses = targets.flat_map(|target| match target {
        UpstreamTarget::Addresses(addresses) => addresses.clone(),
        UpstreamTarget::Name { host, .. } => panic!("{host:?} is not resolved"),
    });
    addresses.map(|address| address.to_string()).collect()
}

pub(crate) fn literal(template: &Template) -> String {
    let text = template.as_literal().expect("there are no variables");
    String::from_utf8_lossy(text).into_owned()
}
