//! No path into a home folder: it works on one machine, and contains a user's name.

use super::{Tree, Violation};

/// Where home folders are, and how many more names make it a path into one. Written in two halves, so that this file
/// passes its own rule.
const HOMES: [(&str, usize); 3] = [
    (concat!("/ho", "me/"), 2),
    (concat!("/Us", "ers/"), 2),
    (concat!("/ro", "ot/"), 1),
];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if HOMES
                .iter()
                .any(|(home, depth)| names_home(line, home, *depth))
            {
                let message = "a path into a home directory; make it relative, or use $HOME";
                found.push(Violation::of_line(path, index + 1, message));
            }
        }
    }
    found
}

/// Whether a path in `line` begins with `home` and goes on for at least `depth` names.
fn names_home(line: &str, home: &str, depth: usize) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let (Some(before), Some(rest)) = (line.get(..at), line.get(at + home.len()..)) else {
            return false;
        };
        // Otherwise it is the middle of a longer path, or of a URL.
        let begins = !before.ends_with(|c: char| is_name(c) || c == '/' || c == '}');
        let end = rest
            .find(|c: char| !is_name(c) && c != '/')
            .unwrap_or(rest.len());
        let names = rest
            .get(..end)
            .unwrap_or(rest)
            .split('/')
            .take_while(|name| !name.is_empty());
        begins && names.count() >= depth
    })
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    #[test]
    fn a_path_into_a_home_is_found_and_other_paths_are_not() {
        for (line, fails) in [
            ("cd @ho/alice/mill", true),
            ("root \"@ho/alice/www\";", true),
            ("--prefix=@ro/.cargo", true),
            ("@us/alice/mill", true),
            ("GET @ho/page HTTP/1.1", false),
            ("cd @ho/", false),
            ("cd @ro/", false),
            ("/srv@ho/alice/mill", false),
            ("http://mill.example@ho/alice/mill", false),
            ("$document_root/index.html", false),
            ("${HOME}/.cargo/bin", false),
        ] {
            let text = line.replace("@ho", concat!("/ho", "me"));
            let text = text.replace("@us", concat!("/Us", "ers"));
            let text = text.replace("@ro", concat!("/ro", "ot"));
            assert_eq!(
                !found(check, &[("a.conf", &text)]).is_empty(),
                fails,
                "{line}"
            );
        }
    }
}
