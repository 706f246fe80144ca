//! The command line of `millstream lab`: from arguments to a `Command`, nothing else.

#[cfg(test)]
mod tests;
/// Helps and their examples.
mod texts;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command, and the store it works on.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    name = "millstream lab",
    bin_name = "millstream lab",
    about = texts::ABOUT,
    after_help = texts::EXAMPLES,
    disable_help_subcommand = true,
    subcommand_value_name = "COMMAND",
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
    /// Folder of runs and their index
    #[arg(long, global = true, value_name = "DIR", default_value = DEFAULT_STORE)]
    pub store: PathBuf,
}

/// One of the lab's commands.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// List the recipes that come with Millstream
    List(List),
    /// Say what a recipe runs, how long that takes, and draw its topology
    #[command(after_help = texts::SHOW)]
    Show(Show),
    /// Check recipes of one's own; errors come with line and column
    Check(Files),
    /// Run a recipe and write its report
    #[command(after_help = texts::RUN)]
    Run(Run),
    /// Go on with a run that was interrupted
    Resume(Resume),
    /// Put back what a lab that crashed, or `lab tune`, changed on this system
    Restore,
    /// Tune the system as a recipe does, and leave it so until `lab restore`
    Tune(Tune),
    /// Write the report of a run
    #[command(after_help = texts::REPORT)]
    Report(Report),
    /// Compare two runs: commits, machines, days
    Compare(Compare),
    /// Write everything of a run as CSV or JSON
    #[command(after_help = texts::EXPORT)]
    Export(Export),
    /// Look for mistakes in printed benchmarks: output of wrk and ab, tables, command lines
    #[command(after_help = texts::LINT)]
    Lint(Files),
    /// List the runs of the store
    Runs(Runs),
    /// Say what this machine can measure, and what a person should mend first
    Env,
    /// Parts of probes that the lab starts in namespaces
    #[command(hide = true, disable_help_flag = true)]
    Probe(Probe),
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct List {
    /// Also say how often each was run in this store
    #[arg(long)]
    pub runs: bool,
}

/// A recipe, how large, and what is changed in it.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Choice {
    /// A name of `lab list`, or a file
    #[arg(value_name = "RECIPE")]
    pub recipe: String,
    /// smoke (minutes), standard, seed (as the document)
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_SIZE)]
    pub size: String,
    /// Change a variable, axis or key (repeatable): duration=5s, workers=1,2
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    pub sets: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Show {
    #[command(flatten)]
    pub choice: Choice,
    /// Print the recipe itself, with everything it inherits, as TOML
    #[arg(long)]
    pub toml: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Files {
    /// Files; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Run {
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub manner: Manner,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Resume {
    /// Its id, a unique beginning or end of it, latest, or latest:RECIPE
    #[arg(value_name = "RUN", default_value = LATEST)]
    pub run: String,
    #[command(flatten)]
    pub manner: Manner,
}

/// How a run is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Manner {
    /// Write HTML, Markdown and CSV here [default: HTML in the store's reports/]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// No progress, only the result
    #[arg(short, long)]
    pub quiet: bool,
    /// Do not ask, also before touching an interface that ssh comes through
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Tune {
    #[command(flatten)]
    pub choice: Choice,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Report {
    /// Its id, a unique beginning or end of it, latest, or latest:RECIPE
    #[arg(value_name = "RUN", default_value = LATEST)]
    pub run: String,
    /// One page that needs nothing else; - is standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// README.md with SVG files beside it
    #[arg(long, value_name = "DIR")]
    pub markdown: Option<PathBuf>,
    /// Each table as a file
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Compare {
    /// The run to compare with
    #[arg(value_name = "A")]
    pub from: String,
    /// The run that may be better
    #[arg(value_name = "B")]
    pub to: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Export {
    /// Its id, a unique beginning or end of it, latest, or latest:RECIPE
    #[arg(value_name = "RUN", default_value = LATEST)]
    pub run: String,
    #[command(flatten)]
    pub form: Form,
    /// Where to [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(required = true, multiple = false)]
pub struct Form {
    /// One line a figure
    #[arg(long)]
    pub csv: bool,
    /// One document with everything
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Runs {
    /// Only those of one recipe
    #[arg(value_name = "RECIPE")]
    pub recipe: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Probe {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Text to print instead of running a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Without colours.
    pub text: String,
    /// For a terminal.
    pub coloured: String,
    /// 0 for help, which belongs on standard output; 2 for a wrong command line, which belongs on standard error.
    pub status: u8,
}

/// Parses the arguments after `millstream lab`.
pub fn parse(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Options, Stopped> {
    let name = std::iter::once(OsString::from("millstream lab"));
    let words = name.chain(arguments.into_iter().map(Into::into));
    Options::try_parse_from(words).map_err(|error| {
        let shown = error.render();
        // The bare `millstream lab` prints the help and fails, as in clap: a script without a command notices.
        Stopped {
            text: shown.to_string(),
            coloured: shown.ansi().to_string(),
            status: u8::from(error.use_stderr()) * MISTAKE,
        }
    })
}

fn assignment(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(String::from(text)),
        _ => Err(String::from("it has the form KEY=VALUE")),
    }
}

/// The status of a wrong command line, as in clap and most others.
const MISTAKE: u8 = 2;

/// Below the working directory, so that a project has its own runs.
const DEFAULT_STORE: &str = "millstream-lab";

/// The size that shows within minutes whether a recipe runs here at all.
const DEFAULT_SIZE: &str = "smoke";

const LATEST: &str = "latest";
