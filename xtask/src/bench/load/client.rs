//! The load generators, as command lines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::case::{CONCURRENCY, Case, Connections};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    MillstreamWrk,
    Wrk,
    MillstreamLoad,
    MillstreamAb,
    Ab,
    H2load,
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) millstream: PathBuf,
    pub(super) wrk: PathBuf,
    pub(super) ab: PathBuf,
    pub(super) h2load: Option<PathBuf>,
    pub(super) nginx: Option<PathBuf>,
    /// This binary, optimised.
    pub(super) floor: Option<PathBuf>,
}

/// Files that clients read and write.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// wrk's script, which tells figures unrounded.
    pub(super) script: PathBuf,
    /// ab's percentages.
    pub(super) percentages: PathBuf,
    /// The JSON of `millstream load`.
    pub(super) json: PathBuf,
}

/// wrk drops latencies above its time-out. With one past the end none is dropped; a longer one costs
/// memory, for wrk has a counter for each microsecond of it.
const TIMEOUT_PAST_END_SECONDS: u64 = 5;

/// More requests than any block makes, so that ab ends by time; ab reserves memory for as many, and
/// touches what it uses.
const AB_REQUESTS: &str = "20000000";

impl Client {
    /// In the order in which they take turns.
    pub(super) const ALL: [Self; 6] = [
        Self::MillstreamWrk,
        Self::Wrk,
        Self::MillstreamLoad,
        Self::H2load,
        Self::MillstreamAb,
        Self::Ab,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MillstreamWrk => "millstream wrk",
            Self::Wrk => "wrk",
            Self::MillstreamLoad => "millstream load",
            Self::MillstreamAb => "millstream ab",
            Self::Ab => "ab",
            Self::H2load => "h2load",
        }
    }

    /// Those of another hand that this one of ours is held against.
    pub(super) const fn rivals(self) -> &'static [Self] {
        match self {
            Self::MillstreamWrk => &[Self::Wrk],
            Self::MillstreamLoad => &[Self::Wrk, Self::H2load],
            Self::MillstreamAb => &[Self::Ab],
            Self::Wrk | Self::Ab | Self::H2load => &[],
        }
    }

    /// Whether the client has what the case asks for. wrk and ab can not close a connection after a
    /// number of requests; h2load ends a connection for good when the server closes it.
    pub(super) const fn can(self, case: &Case) -> bool {
        match case.connections {
            Connections::KeepAlive => true,
            Connections::PerRequest => !matches!(self, Self::H2load),
            Connections::OfRequests(_) => {
                matches!(self, Self::MillstreamWrk | Self::MillstreamLoad)
            }
        }
    }

    /// Whether its program is here.
    pub(super) const fn is_here(self, programs: &Programs) -> bool {
        match self {
            Self::H2load => programs.h2load.is_some(),
            _ => true,
        }
    }

    fn program(self, programs: &Programs) -> &Path {
        match self {
            Self::Wrk => &programs.wrk,
            Self::Ab => &programs.ab,
            Self::H2load => programs.h2load.as_deref().unwrap_or(Path::new("h2load")),
            Self::MillstreamWrk | Self::MillstreamLoad | Self::MillstreamAb => &programs.millstream,
        }
    }

    /// The command line for so long a run of a case.
    pub(super) fn command_line(
        self,
        programs: &Programs,
        files: &Files,
        case: &Case,
        seconds: u64,
        url: &str,
    ) -> Vec<OsString> {
        let mut line = CommandLine::new(self.program(programs));
        match self {
            Self::MillstreamWrk | Self::Wrk => {
                if self == Self::MillstreamWrk {
                    line.add("wrk");
                }
                line.add(&format!("-t1 -c{CONCURRENCY} -d{seconds}s"));
                line.add(&format!(
                    "--timeout={}s",
                    seconds + TIMEOUT_PAST_END_SECONDS
                ));
                line.add("-s").file(&files.script);
                if let Connections::OfRequests(count) = case.connections {
                    line.add(&format!("-C{count}"));
                }
                line.close_header(case);
            }
            Self::MillstreamAb | Self::Ab => {
                if self == Self::MillstreamAb {
                    line.add("ab");
                }
                line.add(&format!(
                    "-q -d -S -c{CONCURRENCY} -t{seconds} -n{AB_REQUESTS} -e"
                ));
                line.file(&files.percentages);
                if case.connections == Connections::KeepAlive {
                    line.add("-k");
                }
                line.close_header(case);
            }
            Self::MillstreamLoad => {
                line.add(&format!(
                    "load --quiet -t1 -c{CONCURRENCY} -d{seconds}s --json"
                ));
                line.file(&files.json);
                match case.connections {
                    Connections::KeepAlive => {}
                    Connections::PerRequest => {
                        line.add("--no-keepalive");
                    }
                    Connections::OfRequests(count) => {
                        line.add(&format!("--requests-per-connection {count}"));
                    }
                }
            }
            Self::H2load => {
                line.add(&format!("--h1 -t1 -c{CONCURRENCY} -D{seconds}"));
            }
        }
        line.add(url);
        line.0
    }
}

/// How long a run may last beyond its seconds: ab sorts what it has kept.
pub(super) const PATIENCE_PAST_END: Duration = Duration::from_secs(20);

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct CommandLine(pub(super) Vec<OsString>);

impl CommandLine {
    pub(super) fn new(program: &Path) -> Self {
        Self(vec![program.into()])
    }

    /// Adds words that hold no blank.
    pub(super) fn add(&mut self, words: &str) -> &mut Self {
        self.0.extend(words.split_whitespace().map(OsString::from));
        self
    }

    pub(super) fn file(&mut self, file: &Path) -> &mut Self {
        self.0.push(file.into());
        self
    }

    fn close_header(&mut self, case: &Case) {
        if case.connections == Connections::PerRequest {
            self.0
                .extend(["-H", "Connection: close"].map(OsString::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::{Client, Files, Programs};

    fn check(client: Client, case: &str, expected: &str) {
        let programs = Programs {
            millstream: "/m".into(),
            wrk: "/wrk".into(),
            ab: "/ab".into(),
            h2load: Some("/h2load".into()),
            nginx: None,
            floor: None,
        };
        let files = Files {
            script: "/s".into(),
            percentages: "/p".into(),
            json: "/j".into(),
        };
        let case = CASES.iter().find(|known| known.name == case).unwrap();
        assert!(client.can(case));
        let line = client.command_line(&programs, &files, case, 2, "URL");
        let words: Vec<_> = line.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_case_becomes_each_clients_own_words() {
        use Client::{Ab, H2load, MillstreamAb, MillstreamLoad, MillstreamWrk, Wrk};
        let wrk = "-t1 -c64 -d2s --timeout=7s -s /s";
        check(Wrk, "keep-alive-0", &format!("/wrk {wrk} URL"));
        let line = format!("/m wrk {wrk} -C14 URL");
        check(MillstreamWrk, "close-after-14-0", &line);
        check(
            Wrk,
            "close-0",
            &format!("/wrk {wrk} -H Connection: close URL"),
        );
        let ab = "-q -d -S -c64 -t2 -n20000000 -e /p";
        check(Ab, "keep-alive-1k", &format!("/ab {ab} -k URL"));
        check(
            MillstreamAb,
            "close-0",
            &format!("/m ab {ab} -H Connection: close URL"),
        );
        let load = "/m load --quiet -t1 -c64 -d2s --json /j";
        check(
            MillstreamLoad,
            "close-0",
            &format!("{load} --no-keepalive URL"),
        );
        let line = format!("{load} --requests-per-connection 14 URL");
        check(MillstreamLoad, "close-after-14-0", &line);
        check(H2load, "keep-alive-0", "/h2load --h1 -t1 -c64 -D2 URL");
    }

    #[test]
    fn who_can_not_do_a_case_is_left_out() {
        let can = |name: &str| {
            let case = CASES.iter().find(|case| case.name == name).unwrap();
            let clients = Client::ALL.into_iter().filter(|client| client.can(case));
            clients.map(Client::name).collect::<Vec<_>>()
        };
        assert_eq!(can("keep-alive-0").len(), 6);
        assert!(!can("close-0").contains(&"h2load"));
        assert_eq!(
            can("close-after-14-0"),
            ["millstream wrk", "millstream load"]
        );
    }
}
