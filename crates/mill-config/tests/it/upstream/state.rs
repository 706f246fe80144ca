//! `state`: servers from a file.

use mill_config::config::Config;
use mill_config::{Memory, Options, load};

use crate::upstream::{PATH, http, refused};

/// The names of the only group's servers, with this text in its state file if there is one.
fn servers(state: Option<&str>) -> Result<Vec<String>, String> {
    let text = "events {} http { upstream a { state /a.conf; } }";
    let mut source = Memory::new().with(PATH, text);
    if let Some(state) = state {
        source = source.with("/a.conf", state);
    }
    let config: Config = match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => return Err(failure.error.line()),
    };
    let group = &http(&config).upstreams[0];
    assert_eq!(
        group.state.as_ref().map(|path| path.display()),
        Some("/a.conf".into())
    );
    let names = group.servers.iter().map(|server| &server.name);
    Ok(names.map(|name| name.display().into_owned()).collect())
}

#[test]
fn servers_come_from_the_state_file_if_there_is_one() {
    assert_eq!(servers(None), Ok(Vec::new()));
    assert_eq!(servers(Some("")), Ok(Vec::new()));
    let two = "server 127.0.0.1:81 weight=2;\nserver 127.0.0.1:82 backup;\n";
    let names = ["127.0.0.1:81", "127.0.0.1:82"].map(String::from);
    assert_eq!(servers(Some(two)), Ok(names.to_vec()));
}

#[test]
fn faults_in_the_state_file_are_told() {
    let told = servers(Some("\nserver 127.0.0.1 weight=x;"));
    let expected = "[emerg] invalid parameter \"weight=x\" in /a.conf:2";
    assert_eq!(told, Err(String::from(expected)));
    assert_eq!(
        refused("upstream a { server 127.0.0.1; state /a; }"),
        format!(
            "[emerg] \"state\" directive is incompatible with \"server\" directive in {PATH}:1"
        )
    );
    assert_eq!(
        refused("upstream a { state /a; server 127.0.0.1; }"),
        format!(
            "[emerg] \"server\" directive is incompatible with \"state\" directive in {PATH}:1"
        )
    );
}
