//! Systems and setups: that they can be started, and that clients ask them for something that is there.

use super::{Check, unknown};
use crate::recipe::{Setup, Side, System, SystemKind, Tool, TopologyKind};

/// The kinds of needs, before the colon.
const NEEDS: [&str; 7] = [
    "program",
    "file",
    "module",
    "open-files",
    "memory",
    "not-built",
    "out-of-scope",
];

/// What a stack of our own runs over, as `--stack` names it.
const DEVICES: [&str; 4] = ["af_xdp", "tap", "memif", "dpdk"];

impl Setup {
    /// Whether a machine with so many cores can't run it: the system is absent everywhere, or the
    /// server wants all cores, of which the client needs one.
    pub fn is_surely_absent(&self, cores: u32) -> bool {
        let wanted = self
            .topology
            .cpus
            .server_count
            .map_or(0, |count| count.saturating_add(1));
        let is_remote = matches!(self.topology.kind, TopologyKind::Ssh | TopologyKind::Vm);
        self.system.is_surely_absent() || (wanted > cores && !is_remote)
    }
}

impl System {
    /// Whether no machine has what it needs: it is not built yet, or out of scope.
    pub fn is_surely_absent(&self) -> bool {
        let hopeless =
            |need: &String| need.starts_with("not-built:") || need.starts_with("out-of-scope:");
        self.needs.iter().any(hopeless)
    }
}

impl Check<'_> {
    /// What holds at all points alike.
    pub(super) fn systems(&mut self) {
        let recipe = &self.resolved.recipe;
        let names: Vec<&str> = recipe.system.keys().map(String::as_str).collect();
        for (name, system) in &recipe.system {
            self.needs(&["system", name, "needs"], system.get("needs"));
        }
        self.needs(&["load", "needs"], recipe.load.get("needs"));
        for measured in self
            .resolved
            .axes()
            .into_iter()
            .filter(|axis| axis.name == "system")
        {
            for (index, value) in measured.values.iter().enumerate() {
                if !names.contains(&value.name.as_str()) {
                    let problem = unknown("system", &value.name, &names);
                    self.fail(&["for", "system", &index.to_string()], problem);
                }
            }
        }
        let probes = self
            .resolved
            .table
            .get("probe")
            .and_then(toml::Value::as_array);
        for (index, probe) in probes.into_iter().flatten().enumerate() {
            let systems = probe.get("systems").and_then(toml::Value::as_array);
            for name in systems
                .into_iter()
                .flatten()
                .filter_map(toml::Value::as_str)
            {
                if !names.contains(&name) && !name.contains('$') {
                    let problem = unknown("system", name, &names);
                    self.fail(&["probe", &index.to_string(), "systems"], problem);
                }
            }
        }
    }

    fn needs(&mut self, path: &[&str], needs: Option<&toml::Value>) {
        let needs = needs.and_then(toml::Value::as_array);
        for (index, need) in needs.into_iter().flatten().enumerate() {
            let Some((kind, what)) = need.as_str().and_then(|need| need.split_once(':')) else {
                let problem = "a need has a kind and a colon, as in `program:onload`";
                self.fail(&[path, &[&index.to_string()]].concat(), problem);
                continue;
            };
            if !NEEDS.contains(&kind) {
                let problem = unknown("kind of need", kind, &NEEDS);
                self.fail(&[path, &[&index.to_string()]].concat(), problem);
            } else if what.trim().is_empty() {
                let problem = format!("`{kind}:` of what?");
                self.fail(&[path, &[&index.to_string()]].concat(), problem);
            }
        }
    }

    /// What depends on the point.
    pub(super) fn setup(&mut self, setup: &Setup, upstreams: &[System]) {
        for system in std::iter::once(&setup.system).chain(upstreams) {
            self.system(system);
        }
        if setup.system.side == Side::Client {
            let problem = "only a system behind another runs on the client's side";
            self.fail(&["system", &setup.system.name, "side"], problem);
        }
        let load = &setup.load;
        self.stacks(setup);
        if load.processes == 0 {
            self.fail(
                &["load", "processes"],
                "there has to be at least one client process",
            );
        }
        if load.tool == Tool::None {
            if setup.probe.is_empty() {
                let problem = "without load and without `[[probe]]` nothing is measured";
                self.fail(&["load", "tool"], problem);
            }
            return;
        }
        if !load.args.contains("${url}") && !load.args.contains("${host}") {
            let problem = "the arguments never name the server; add `${url}`";
            self.fail(&["load", "args"], problem);
        }
        self.object(setup);
    }

    fn system(&mut self, system: &System) {
        let name = system.name.as_str();
        if system.kind == SystemKind::Command && system.start.is_none() {
            let problem = format!("a command needs `start`: add [system.{name}.start] with `argv`");
            self.fail(&["system", name], problem);
        }
        let no_argv = system
            .start
            .as_ref()
            .is_some_and(|start| start.argv.is_empty());
        if no_argv {
            self.fail(
                &["system", name, "start", "argv"],
                "an empty command starts nothing",
            );
        }
    }

    /// Only over the devices that there are, and programs of others over an interface.
    fn stacks(&mut self, setup: &Setup) {
        let Setup { system, load, .. } = setup;
        let key = ["system", system.name.as_str(), "stack"];
        self.stack(&key, &system.stack, system.is_run());
        self.stack(&["load", "stack"], &load.stack, load.is_run());
        let has_none = matches!(load.tool, Tool::DpdkHttperf | Tool::None);
        if has_none && !load.stack.is_empty() {
            let problem = "there is nothing to run on a stack of our own";
            self.fail(&["load", "stack"], problem);
        }
        let is_memif = |stack: &str| stack.starts_with("memif:");
        // Whether a command has the other end is not told.
        let is_told = load.tool != Tool::None && system.kind != SystemKind::Command;
        if is_told && is_memif(&system.stack) != is_memif(&load.stack) {
            let problem = "a memif has two ends: either both sides are on it, or none; leave such points out with `[[skip]]`";
            self.fail(&["load", "stack"], problem);
        }
        let over_loopback = setup.topology.kind == TopologyKind::Loopback;
        if over_loopback
            && [&system.stack, &load.stack]
                .iter()
                .any(|stack| stack.starts_with("af_xdp:"))
        {
            let problem = "AF_XDP takes an interface of its own, and loopback is none; `tap:` and `memif:` need none";
            self.fail(&["topology", "kind"], problem);
        }
    }

    fn stack(&mut self, key: &[&str], stack: &str, is_run: bool) {
        if stack.is_empty() {
            return;
        }
        let device = stack.split_once(':').map_or(stack, |(device, _)| device);
        if !DEVICES.contains(&device) {
            self.fail(key, unknown("device", device, &DEVICES));
        } else if is_run && device != "af_xdp" {
            let problem = "`millstream run`, which puts programs of others on our stack, takes `af_xdp:` only";
            self.fail(key, problem);
        }
    }

    /// A path that no file has is answered with 404 very fast.
    fn object(&mut self, setup: &Setup) {
        let path = setup.load.path.split(['?', '#']).next().unwrap_or_default();
        let Some(name) = path.strip_prefix('/').filter(|name| !name.is_empty()) else {
            return;
        };
        let system = &setup.system;
        let served = system.kind != SystemKind::Command
            && !system
                .config
                .as_ref()
                .is_some_and(|config| config.contains(path));
        if served && !setup.content.is_empty() && !setup.content.contains_key(name) {
            let names: Vec<&str> = setup.content.keys().map(String::as_str).collect();
            let problem = unknown("file in [content]", name, &names);
            self.fail(&["load", "path"], problem);
        }
    }
}
