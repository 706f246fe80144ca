//! The options in force, with their origin.

use super::{PROFILE, Polling, Specification, options};

/// The options that were set, with their origin.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionOrigins {
    /// Name, value, and profile; the last one counts, unless the option may occur several times.
    words: Vec<(String, String, Option<String>)>,
    /// The profile that is being read.
    profile: Option<String>,
}

/// An option in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    pub name: &'static str,
    pub value: String,
    /// `default`, `profile wan`, `--stack`, or the place where the stack is specified.
    pub from: String,
}

impl OptionOrigins {
    /// Records a word before it is parsed.
    pub(super) fn note(&mut self, name: &str, value: &str) {
        if name != PROFILE {
            let word = (name.to_owned(), value.to_owned(), self.profile.clone());
            self.words.push(word);
        }
    }

    /// Sets the profile whose options follow; returns the former one.
    pub(super) fn set_profile(&mut self, profile: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.profile, profile)
    }
}

impl Specification {
    /// Sets `polling=` from outside of the specification.
    pub fn set_polling(&mut self, polling: Polling, from: &str) {
        self.polling = polling;
        let word = (
            String::from("polling"),
            word_of(polling),
            Some(from.to_owned()),
        );
        self.origins.words.push(word);
    }

    /// Has workers spin where nothing wakes them when frames come; says so if another option was given.
    pub(crate) fn spin_if_woken(&mut self) -> Option<String> {
        if !self.polling.is_woken() {
            return None;
        }
        let is_given = self
            .origins
            .words
            .iter()
            .any(|(name, ..)| name == "polling");
        let given = word_of(self.polling);
        self.set_polling(Polling::Spin, "a port of DPDK wakes no worker");
        is_given.then(|| {
            format!(
                "\"polling={given}\" is \"polling=spin\" over a port of DPDK, which wakes no worker; \"sleep-spin\" and \"hz=\" sleep, and \"bridge=on\" wakes"
            )
        })
    }

    /// All options that the device accepts, with their values in force.
    pub fn in_force(&self) -> Vec<InForce> {
        let known = options::all().filter(|option| option.devices.has(&self.device));
        let each = known.map(|option| {
            let values: Vec<_> = self
                .origins
                .words
                .iter()
                .filter(|(name, ..)| name == option.name)
                .collect();
            let from =
                |profile: &Option<String>| profile.clone().unwrap_or_else(|| self.origin.clone());
            let (value, from) = match values.as_slice() {
                [] => (option.default.to_owned(), String::from("default")),
                [.., (_, _, profile)] if option.value.repeats() => {
                    let values: Vec<&str> =
                        values.iter().map(|(_, value, _)| value.as_str()).collect();
                    (values.join(", "), from(profile))
                }
                [.., (_, value, profile)] => (value.clone(), from(profile)),
            };
            InForce {
                name: option.name,
                value,
                from,
            }
        });
        each.collect()
    }
}

/// The value's text for `polling=`.
fn word_of(polling: Polling) -> String {
    match polling {
        Polling::Interrupt => String::from("interrupt"),
        Polling::Adaptive(time) => format!("adaptive={}us", time.as_micros()),
        Polling::SleepSpin(time) => format!("sleep-spin={}us", time.as_micros()),
        Polling::Spin => String::from("spin"),
        Polling::Rate(hz) => format!("hz={hz}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, value: &str, from: &str) {
        let mut specification = Specification::parse(text).unwrap();
        specification.origin = String::from("nginx.conf:3");
        let all = specification.in_force();
        let found = all.iter().find(|option| option.name == name).unwrap();
        assert_eq!(
            (found.value.as_str(), found.from.as_str()),
            (value, from),
            "{text} {name}"
        );
    }

    #[test]
    fn every_option_has_its_origin() {
        let text = "tap:ms0,address=10.0.0.1/24,address=fd00::1/64,profile=balanced,polling=spin";
        check(text, "address", "10.0.0.1/24, fd00::1/64", "nginx.conf:3");
        check(text, "polling", "spin", "nginx.conf:3");
        check(text, "initial-window", "10", "profile wan");
        check(text, "burst", "256", "profile throughput");
        let default = options::all()
            .find(|option| option.name == "msl")
            .unwrap()
            .default;
        check(text, "msl", default, "default");
    }

    #[test]
    fn values_from_outside_of_the_specification_take_precedence() {
        let mut specification = Specification::parse("af_xdp:eth0,polling=spin").unwrap();
        let polling = super::super::polling("interrupt").unwrap();
        specification.set_polling(polling, "--polling");
        let all = specification.in_force();
        let found = all.iter().find(|option| option.name == "polling").unwrap();
        assert_eq!(
            (found.value.as_str(), found.from.as_str()),
            ("interrupt", "--polling")
        );
        // Options that the device does not accept are not listed.
        assert!(all.iter().all(|option| option.name != "gateway"));
    }
}
