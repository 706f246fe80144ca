//! Which crates of the workspace may use which. Adding an edge is a commit of its own, with its reason.

use super::manifest::{Dependency, DependencyKind, Manifest, manifests};
use super::{Tree, Violation};

/// Each crate, and those of the workspace that it may use. The absent edges matter most: the server uses no engine
/// and no system call, the engine no HTTP, the configuration no other crate.
const EDGES: &str = "\
mill-wire:
mill-tcp: mill-wire
mill-stack: mill-wire mill-tcp
# POSIX sockets over a host.
mill-sockets: mill-wire mill-tcp mill-stack
mill-http:
mill-runtime:
# It uses TCP's options, counters and facts of connections.
mill-tls: mill-runtime
# It reads dates of HTTP.
mill-acme: mill-http
mill-multiplex: mill-runtime mill-http
mill-bypass: mill-runtime mill-stack mill-tcp mill-wire
mill-config:
mill-metrics:
# It stores bytes and metadata of any kind, and knows no HTTP.
mill-cache:
# Generic over the engine as the server is; what it is asked to do is configured. A server's answers are counted as those of
# a `status_zone` are.
mill-upstream: mill-runtime mill-http mill-config mill-metrics
# Figures that a server's processes exchange, and no code that makes them.
mill-status: mill-metrics
mill-sys:
# Links complete checksums, cut segments and steer by headers; `--stack` names TCP's options.
mill-device: mill-sys mill-stack mill-tcp mill-wire
# Only its tests use the stack: for the configuration of a host.
mill-engine: mill-sys mill-runtime mill-stack mill-bypass mill-device
# The interface of every engine: it has the traits and uses none of the engines.
mill-conformance: mill-runtime
# Its packet traces read headers. Packets of simulated networks run through the same stack and bypass engine as real ones.
mill-sim: mill-wire mill-runtime mill-stack mill-bypass
# Tests only: servers, clients and the load generator over the stack in one simulated network.
mill-simtest: mill-wire mill-tcp mill-sim mill-runtime mill-stack mill-bypass mill-server mill-config mill-metrics mill-load mill-multiplex mill-tls
# It orders the certificates that it shows.
mill-server: mill-runtime mill-tls mill-acme mill-multiplex mill-http mill-config mill-metrics mill-upstream mill-cache
# Its status shows hosts, flows and the states of connections, in the types of stack and TCP, and servers in those of mill-upstream.
mill-server-host: mill-sys mill-tcp mill-stack mill-device mill-engine mill-runtime mill-server mill-upstream mill-tls mill-config mill-metrics mill-status
# `-Z` of ab is in OpenSSL's language of ciphers, as `ssl_ciphers` is.
mill-load: mill-config mill-runtime mill-tls mill-multiplex mill-http mill-metrics
mill-load-host: mill-sys mill-device mill-engine mill-runtime mill-load
# The lab measures programs as processes, Millstream's too: it uses neither server nor load generator.
mill-lab: mill-metrics mill-config
# Command lines of virtual machines, and what they boot: nothing is started.
mill-guest:
# Its topology of virtual machines is made of guests.
mill-lab-host: mill-sys mill-metrics mill-lab mill-guest
# A process with rights makes devices for those without.
mill-keeper: mill-sys mill-device mill-wire
# The C library's functions over sockets of the stack; its links and descriptors are those of mill-device and mill-sys.
mill-preload: mill-sockets mill-keeper mill-device mill-stack mill-tcp mill-sys
# The interface of another program to the stack: packetdrill's plug-in.
mill-packetdrill: mill-tcp mill-stack mill-sockets
millstream: *
# The measurements are recipes of mill-lab that mill-lab-host carries out; their reference, the floor, is made of
# the sockets and epoll of mill-sys. The page of directives is generated from the tables of mill-config, that of
# --stack from mill-device's. The stack is measured in memory and replayed in simulation. The cases of caches are put to other programs.
# `xtask vm` runs tests in a guest. The load generator alone is measured with answers that are made of headers.
xtask: mill-sys mill-config mill-conformance mill-wire mill-tcp mill-stack mill-sim mill-simtest mill-device mill-lab mill-lab-host mill-guest
";

/// The crates that a crate may use, `*` for all of them; none if it has no row.
fn allowed(package: &str) -> Option<Vec<&'static str>> {
    let mut rows = EDGES.lines().filter_map(|line| line.split_once(':'));
    let (_, used) = rows.find(|(name, _)| *name == package)?;
    Some(used.split_whitespace().collect())
}

/// The crates that any crate may use in its tests: a world without sockets and clocks, and the tests of all engines.
const ALLOWED_IN_TESTS: [&str; 2] = ["mill-sim", "mill-conformance"];

/// Packages from outside the workspace that few crates may use: the operating system's functions, and those that stand in
/// their place.
const HOMES: [(&str, &[&str]); 1] = [("libc", &["mill-sys", "mill-preload"])];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, manifest) in manifests(tree) {
        let Some(folder_name) = member_folder(folder) else {
            continue;
        };
        let path = format!("{folder}Cargo.toml");
        let package = manifest.package.as_deref().unwrap_or_default();
        if package != folder_name {
            let message = format!("the package \"{package}\" must be called as its folder is");
            found.push(Violation::of_file(&path, message));
        }
        found.extend(edges_of(&path, package, &manifest));
    }
    found
}

/// The name of the folder of a crate that is part of the product: `crates/mill-x/` and `xtask/`.
/// Fuzz targets are a package outside the workspace and may use what they test.
fn member_folder(folder: &str) -> Option<&str> {
    let name = folder.strip_suffix('/')?;
    let name = name
        .strip_prefix("crates/")
        .or((name == "xtask").then_some(name))?;
    (!name.contains('/')).then_some(name)
}

fn edges_of(path: &str, package: &str, manifest: &Manifest) -> Vec<Violation> {
    let Some(allowed) = allowed(package) else {
        let message = format!("\"{package}\" has no row in xtask/src/tidy/edges.rs; add one");
        return vec![Violation::of_file(path, message)];
    };
    let bad = manifest
        .dependencies
        .iter()
        .filter(|d| !is_allowed(package, &allowed, d));
    bad.map(|dependency| {
        let message = format!("{package} must not use {}", dependency.package);
        Violation::of_line(path, dependency.line, message)
    })
    .collect()
}

fn is_allowed(package: &str, allowed: &[&str], dependency: &Dependency) -> bool {
    let used = dependency.package.as_str();
    if let Some((_, homes)) = HOMES.iter().find(|(foreign, _)| *foreign == used) {
        return homes.contains(&package);
    }
    let ours = used.starts_with("mill-") || self::allowed(used).is_some();
    if !ours {
        return true;
    }
    let in_tests = dependency.kind == DependencyKind::Dev && ALLOWED_IN_TESTS.contains(&used);
    in_tests || allowed.iter().any(|name| *name == used || *name == "*")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    /// The violations when `package` has `section` with one dependency on `used`.
    fn edge(package: &str, section: &str, used: &str) -> Vec<String> {
        let folder = if package == "xtask" {
            String::new()
        } else {
            "crates/".to_owned()
        };
        let path = format!("{folder}{package}/Cargo.toml");
        let text =
            format!("[package]\nname = \"{package}\"\n[{section}]\n{used}.workspace = true\n");
        found(check, &[(&path, &text)])
    }

    #[test]
    fn the_edges_of_the_design_are_allowed() {
        for (package, used) in [
            ("mill-engine", "mill-sys"),
            ("mill-engine", "mill-runtime"),
            ("mill-sim", "mill-runtime"),
            ("mill-server", "mill-runtime"),
            ("mill-server", "mill-http"),
            ("mill-server", "mill-config"),
            ("mill-server", "mill-metrics"),
            ("millstream", "mill-engine"),
            ("millstream", "mill-sys"),
            ("xtask", "mill-sys"),
            ("xtask", "mill-config"),
        ] {
            assert!(
                edge(package, "dependencies", used).is_empty(),
                "{package} → {used}"
            );
        }
    }

    #[test]
    fn any_other_edge_is_found_in_every_kind_of_section() {
        for (package, used) in [
            ("mill-server", "mill-engine"),
            ("mill-server", "mill-sys"),
            ("mill-config", "mill-http"),
            ("mill-http", "mill-runtime"),
            ("mill-engine", "mill-http"),
            ("mill-runtime", "millstream"),
            ("mill-sys", "mill-no-such-crate"),
            ("xtask", "mill-http"),
        ] {
            for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let folder = if package == "xtask" { "" } else { "crates/" };
                let expected =
                    format!("{folder}{package}/Cargo.toml:4: {package} must not use {used}");
                assert_eq!(edge(package, section, used), [expected], "{section}");
            }
        }
    }

    #[test]
    fn the_simulated_world_is_for_tests_only() {
        assert!(edge("mill-server", "dev-dependencies", "mill-sim").is_empty());
        assert!(edge("mill-runtime", "dev-dependencies", "mill-sim").is_empty());
        assert!(edge("mill-engine", "dev-dependencies", "mill-conformance").is_empty());
        assert_eq!(
            edge("mill-engine", "dependencies", "mill-conformance").len(),
            1
        );
        assert_eq!(
            edge("mill-server", "dependencies", "mill-sim"),
            ["crates/mill-server/Cargo.toml:4: mill-server must not use mill-sim"]
        );
    }

    #[test]
    fn libc_has_one_home() {
        assert!(edge("mill-sys", "dependencies", "libc").is_empty());
        for package in ["mill-engine", "millstream", "xtask"] {
            assert_eq!(
                edge(package, "dev-dependencies", "libc").len(),
                1,
                "{package}"
            );
        }
    }

    #[test]
    fn other_packages_and_packages_outside_the_workspace_are_free() {
        assert!(edge("mill-http", "dependencies", "hashbrown").is_empty());
        let fuzz = "[package]\nname = \"fuzz\"\n[dependencies]\nmill-http.workspace = true\n";
        assert!(found(check, &[("fuzz/Cargo.toml", fuzz)]).is_empty());
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(
            found(
                check,
                &[(
                    "crates/mill-race/Cargo.toml",
                    "[package]\nname = \"mill-race\"\n"
                )]
            ),
            [concat!(
                "crates/mill-race/Cargo.toml: ",
                "\"mill-race\" has no row in xtask/src/tidy/edges.rs; add one"
            )]
        );
    }

    #[test]
    fn a_crate_is_called_as_its_folder_is() {
        assert_eq!(
            found(
                check,
                &[(
                    "crates/http/Cargo.toml",
                    "[package]\nname = \"mill-http\"\n"
                )]
            ),
            ["crates/http/Cargo.toml: the package \"mill-http\" must be called as its folder is"]
        );
    }
}
