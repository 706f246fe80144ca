//! Profiles: Onload's names, and `.opf` files.
//!
//! Such a file is a fragment of a shell script that calls `onload_set` and `onload_import`. It is run by a shell, as Onload does, with
//! functions of these names that say what they were called with.
//!
//! Names are looked for where Onload looks: in the user's folder, and in that of its installation. Names that are ours go before the
//! latter, whose files would set much that has no counterpart.

use super::Settings;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Onload's names, and ours.
const NAMES: &[(&str, &str)] = &[
    ("nginx-balanced", "balanced"),
    ("nginx-webserver-balanced", "balanced"),
    ("nginx_webserver_balanced", "balanced"),
    ("nginx-proxy-balanced", "balanced"),
    ("nginx-performance", "performance"),
    ("nginx-webserver-performance", "performance"),
    ("nginx_webserver_performance", "performance"),
    ("nginx-proxy-performance", "performance"),
    ("latency", "latency"),
    ("latency-best", "latency"),
    ("throughput", "throughput"),
    ("wan-traffic", "wan"),
    ("safe", "safe"),
];

/// Where Onload installs its profiles, by its `scripts/onload`.
const INSTALLED: &str = "/usr/libexec/onload/profiles";

/// Where its users have theirs, below their home.
const OF_USER: &str = ".openonload/profiles";

/// What a profile's script may look at, and how.
pub(super) struct Call<'a> {
    pub(super) program: &'a OsStr,
    pub(super) arguments: &'a [OsString],
    /// The user's folder, if there is a home, and the installation's.
    pub(super) folders: [Option<PathBuf>; 2],
    /// What a profile sets goes before what the user has set.
    pub(super) is_forced: bool,
}

/// The folders of profiles of a user with this home.
pub(super) fn folders(home: Option<&OsStr>) -> [Option<PathBuf>; 2] {
    let of_user = home.map(|home| Path::new(home).join(OF_USER));
    [of_user, Some(PathBuf::from(INSTALLED))]
}

impl Call<'_> {
    /// The file of a profile in one of the folders. Fragments are for other profiles alone, and none imports itself: it means the one
    /// of that name that it stands before.
    fn file_in(&self, folder: usize, name: &str, importer: Option<&Path>) -> Option<PathBuf> {
        let folder = self.folders.get(folder)?.as_ref()?;
        let endings = ["opf", "opf-fragment"];
        let files = endings
            .iter()
            .take(1 + usize::from(importer.is_some()))
            .map(|ending| folder.join(format!("{name}.{ending}")));
        files
            .into_iter()
            .find(|file| file.is_file() && Some(&**file) != importer)
    }

    /// The file of that name beside one that is in no such folder, as users' own profiles import each other.
    fn file_beside(&self, name: &str, importer: &Path) -> Option<PathBuf> {
        let folder = importer.parent()?;
        if self.folders.iter().flatten().any(|known| known == folder) {
            return None;
        }
        let file = importer.with_file_name(format!("{name}.opf"));
        (file.is_file() && file != importer).then_some(file)
    }
}

/// Runs a file with functions that write what it sets; fields are separated by tabs. What the user has set stays, as in the end,
/// unless profiles are forced.
const SCRIPT: &str = r#"
of_user=" ${!EF_*} "
[ "$1" = forced ] && of_user=
shift
onload_set() {
  printf 'set\t%s\t%s\n' "$1" "$2" >&3
  [[ "$of_user" == *" $1 "* ]] || printf -v "$1" '%s' "$2"
}
onload_set_default() { onload_set "$@"; }
onload_stackdump() { "$MILLSTREAM_BINARY" stackdump "$@"; }
onload_import() { printf 'import\t%s\n' "$1" >&3; }
log() { printf '%s\n' "$*" >&2; }
fail() { log "$@"; exit 1; }
file=$1
shift
. "$file"
"#;

/// Sets what a profile does: one of a name, or a file, which gets the program's command line as its arguments.
pub(super) fn apply(name: &str, call: &Call<'_>, settings: &mut Settings) -> Result<(), String> {
    if name.contains('/') || Path::new(name).is_file() {
        return read(Path::new(name), call, settings);
    }
    apply_named(name, None, call, settings)
}

fn apply_named(
    name: &str,
    importer: Option<&Path>,
    call: &Call<'_>,
    settings: &mut Settings,
) -> Result<(), String> {
    let [of_user, installed] = [0, 1].map(|folder| call.file_in(folder, name, importer));
    if let Some(file) = of_user.or_else(|| call.file_beside(name, importer?)) {
        return read(&file, call, settings);
    }
    let plain = name.strip_suffix(".opf").unwrap_or(name);
    let known = NAMES
        .iter()
        .find(|(onloads, ours)| [*onloads, *ours].contains(&plain));
    match (known, installed) {
        (Some((_, ours)), _) => settings.profiles.push((*ours).to_owned()),
        (None, Some(file)) => return read(&file, call, settings),
        (None, None) => {
            let names: Vec<_> = NAMES.iter().map(|(onloads, _)| *onloads).collect();
            let folders: Vec<_> = call.folders.iter().flatten().collect();
            let folders: Vec<_> = folders.iter().map(|it| it.display().to_string()).collect();
            return Err(format!(
                "there is no profile \"{name}\", and no file of that name, neither here nor in {}; there are {}",
                folders.join(" or "),
                names.join(", ")
            ));
        }
    }
    Ok(())
}

fn read(file: &Path, call: &Call<'_>, settings: &mut Settings) -> Result<(), String> {
    let shown = file.display();
    // A path without a slash would be looked for in $PATH.
    let path = file
        .canonicalize()
        .map_err(|error| format!("{shown}: {error}"))?;
    // What the file itself prints is for the terminal; what it sets comes by standard output.
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("exec 3>&1 1>&2\n{SCRIPT}"), "onload"])
        .env(
            "MILLSTREAM_BINARY",
            std::env::current_exe().unwrap_or_default(),
        )
        .arg(if call.is_forced { "forced" } else { "" })
        .arg(path)
        .arg(call.program)
        .args(call.arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| format!("bash can't be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} ended with {}", output.status));
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split('\t');
        match (fields.next(), fields.next(), fields.next()) {
            (Some("set"), Some(name), Some(value)) => {
                settings.variables.insert(name.to_owned(), value.to_owned());
            }
            (Some("import"), Some(name), _) => match name.contains('/') {
                true => apply(name, call, settings)?,
                false => apply_named(name, Some(file), call, settings)?,
            },
            _ => {
                return Err(format!(
                    "{shown} sets something that can't be read: \"{line}\""
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder of its own for each test, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("millstream-opf-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let file = self.0.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            file
        }

        fn apply(&self, name: &str, is_forced: bool) -> Result<Settings, String> {
            let [of_user, _] = folders(Some(self.0.join("home").as_os_str()));
            let call = Call {
                program: OsStr::new("nginx"),
                arguments: &["-c".into(), "my.conf".into()],
                folders: [of_user, Some(self.0.join("installed"))],
                is_forced,
            };
            let mut settings = Settings::default();
            apply(name, &call, &mut settings).map(|()| settings)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // What is left does no harm.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn applied(text: &str) -> Result<Settings, String> {
        let folder = Folder::new(&text.len().to_string());
        let file = folder.write("mine.opf", text);
        folder.apply(file.to_str().unwrap(), false)
    }

    #[test]
    fn profiles_are_found_where_onload_has_them() {
        let folder = Folder::new("folders");
        folder.write("home/.openonload/profiles/mine.opf", "onload_set EF_A user");
        folder.write(
            "home/.openonload/profiles/safe.opf",
            "onload_set EF_A own; onload_import safe",
        );
        folder.write("installed/mine.opf", "onload_set EF_A installed");
        folder.write(
            "installed/redis.opf",
            "onload_import part; onload_import mine",
        );
        folder.write("installed/part.opf-fragment", "onload_set EF_B part");
        folder.write("installed/latency.opf", "onload_set EF_A never");
        let file = folder.write(
            "beside/file.opf",
            "onload_import redis\nonload_import latency\n",
        );
        folder.write("beside/throughput.opf", "onload_set EF_C beside");
        let importing = "onload_import throughput; onload_import latency";
        let other = folder.write("beside/other.opf", importing);
        for (name, profiles, variables) in [
            ("mine", &[][..], &["EF_A=user"][..]),
            ("safe", &["safe"], &["EF_A=own"]),
            ("redis", &[], &["EF_A=user", "EF_B=part"]),
            ("latency", &["latency"], &[]),
            (
                file.to_str().unwrap(),
                &["latency"],
                &["EF_A=user", "EF_B=part"],
            ),
            (other.to_str().unwrap(), &["latency"], &["EF_C=beside"]),
        ] {
            let settings = folder.apply(name, false).unwrap();
            assert_eq!(settings.profiles, profiles, "{name}");
            let set = settings.variables.iter();
            let set: Vec<_> = set.map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(set, variables, "{name}");
        }
        let refused = folder.apply("part", false).unwrap_err();
        assert!(
            refused.contains("installed"),
            "a fragment is no profile: {refused}"
        );
    }

    #[test]
    fn a_file_sets_imports_and_decides_as_a_script() {
        let settings = applied(
            "set -o pipefail\nworkers=${WORKERS:-2}\nlog configuring $workers\n\
             if [ \"$3\" = my.conf ]; then onload_set EF_CLUSTER_SIZE \"$workers\"; fi\n\
             onload_set EF_POLL_USEC 1000000\necho \"$EF_POLL_USEC\"\nonload_import throughput\nonload_import wan-traffic\n",
        )
        .unwrap();
        assert_eq!(settings.profiles, ["throughput", "wan"]);
        let variables: Vec<_> = settings.variables.iter().collect();
        let expected = [("EF_CLUSTER_SIZE", "2"), ("EF_POLL_USEC", "1000000")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            variables,
            expected
                .iter()
                .map(|(name, value)| (name, value))
                .collect::<Vec<_>>()
        );
    }

    /// As nginx' profile in the cookbook waits for an earlier instance.
    #[test]
    fn a_file_can_look_for_stacks() {
        // The binary is that of the tests, which lists those with "stackdump" in their names.
        let settings = applied(
            "onload_stackdump --list | grep -q webs-c && exit 16\n\
             if onload_stackdump --list | grep -q stackdump::; then onload_set EF_CLUSTER_NAME webs; fi\n",
        );
        let variables = settings.unwrap().variables;
        assert_eq!(
            variables.get("EF_CLUSTER_NAME").map(String::as_str),
            Some("webs")
        );
    }

    #[test]
    fn a_file_that_gives_up_or_imports_what_there_is_not_is_an_error() {
        assert!(
            applied("fail no workers")
                .unwrap_err()
                .contains("exit status: 1")
        );
        assert!(
            applied("onload_import nothing")
                .unwrap_err()
                .contains("\"nothing\"")
        );
    }
}
