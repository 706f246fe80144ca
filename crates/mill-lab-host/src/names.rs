//! The variables that are known on the machine only, and their substitution in a recipe's texts.

use mill_lab::recipe::System;
use std::collections::BTreeMap;

/// `${url}` and the like, for one system of one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    values: BTreeMap<&'static str, String>,
    /// Systems with another port than the recipe's, because that one was taken.
    ports: BTreeMap<String, u16>,
}

impl Names {
    pub fn set(&mut self, name: &'static str, value: impl ToString) -> &mut Self {
        self.values.insert(name, value.to_string());
        self
    }

    /// Gives a system another port than the recipe's.
    pub fn move_port(&mut self, system: &System, port: u16) {
        self.ports.insert(system.name.clone(), port);
    }

    /// Where a system listens.
    pub fn port_of(&self, system: &System) -> u16 {
        self.ports.get(&system.name).copied().unwrap_or(system.port)
    }

    /// Replaces each `${name}` that is known; unknown names stay.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let known = after
                .split_once('}')
                .and_then(|(name, rest)| Some((self.values.get(name)?, rest)));
            match known {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}

/// nginx's worker_cpu_affinity for one worker on each of `cpus`: a mask per worker, CPU 0 at the right.
pub fn affinity_masks(cpus: &[u32]) -> String {
    let mask = |cpu: &u32| format!("1{}", "0".repeat(usize::try_from(*cpu).unwrap_or(0)));
    cpus.iter().map(mask).collect::<Vec<_>>().join(" ")
}

/// CPUs as taskset(1) takes them.
pub fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_in_and_others_left_alone() {
        let mut names = Names::default();
        names.set("host", "10.0.0.1").set("port", 80);
        assert_eq!(
            names.fill("http://${host}:${port}/$uri ${arg_x} ${port"),
            "http://10.0.0.1:80/$uri ${arg_x} ${port"
        );
    }

    #[test]
    fn affinity_masks_have_one_bit_each() {
        assert_eq!(affinity_masks(&[0, 3]), "1 1000");
        assert_eq!(cpu_list(&[0, 3]), "0,3");
    }
}
