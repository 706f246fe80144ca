//! A system behind the one under test.

use crate::bench::Bench;

/// nginx passes requests to another one on the client's side.
const RECIPE: &str = r#"
parent = "smallest"
title = "A proxy"
repeat.blocks = 1

[system.nginx]
config = """
events { }
http {
    access_log off;
    server { listen ${port}; location / { proxy_pass http://${upstream}; } }
}
"""
upstream = "behind"

[system.behind]
title = "behind"
kind = "nginx"
config = "@conf/first-look.conf"
port = 8081
side = "client"
factors = { server = "nginx", stack = "kernel" }

[for]
system = ["nginx"]
"#;

#[test]
fn a_server_behind_runs_on_the_side_of_the_client_and_counts_with_it() {
    let Some(bench) = Bench::new() else { return };
    std::fs::write(bench.path("proxy.toml"), RECIPE).unwrap();
    let output = bench.output(&["run", "proxy.toml", "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1/1 nginx: "), "{said}");
    let json = bench.output(&["export", "latest", "--json"]);
    let json = String::from_utf8(json.stdout).unwrap();
    // The namespace of a system by its folder: `ip netns exec NAME … -p FOLDER`.
    let namespace_of = |folder: &str| {
        let mut commands = json
            .lines()
            .filter_map(|line| line.split_once("ip netns exec "));
        let (_, command) = commands.find(|(_, command)| command.contains(folder))?;
        command.split(' ').next()
    };
    let behind = namespace_of("/behind/").unwrap();
    assert!(behind.ends_with("-c"), "the client's, not {behind}");
    let front = namespace_of("/nginx/").unwrap();
    assert!(front.ends_with("-s"), "the server's, not {front}");
    assert_eq!(bench.journals(), 0);
    assert!(bench.processes().is_empty());
}
