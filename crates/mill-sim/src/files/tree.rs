//! Directories, files, links, and how a path leads to them.

use super::{EACCES, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, error};
use mill_runtime::files::{FileError, FileKind, Metadata, Symlinks};
use mill_runtime::time::UnixTime;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct Tree {
    root: Rc<Node>,
    last_inode: u64,
}

#[derive(Debug)]
pub(super) struct Node {
    inode: u64,
    pub(super) content: Content,
    pub(super) readable: Cell<bool>,
    pub(super) executable: Cell<bool>,
    pub(super) modified: Cell<UnixTime>,
    pub(super) owner: Cell<u32>,
}

#[derive(Debug)]
pub(super) enum Content {
    Regular(RefCell<Vec<u8>>),
    Directory(RefCell<BTreeMap<Vec<u8>, Rc<Node>>>),
    /// The target's path.
    Link(Vec<u8>),
    Other,
}

/// Where a path led, and the path without links; the root's is empty.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) node: Rc<Node>,
    pub(super) path: Vec<u8>,
}

impl Tree {
    pub(super) fn new() -> Self {
        let content = Content::Directory(RefCell::default());
        Self {
            root: Rc::new(Node::new(1, content, UnixTime::default())),
            last_inode: 1,
        }
    }

    /// What is at a path, links not followed at its end.
    pub(super) fn existing(&self, path: &str) -> Option<Rc<Node>> {
        let (directory, name) = split(path);
        if name.is_empty() {
            return Some(Rc::clone(&self.root));
        }
        let directory = self
            .resolve(directory.as_bytes(), Symlinks::Follow, "test")
            .ok()?;
        directory.node.entry(name.as_bytes())
    }

    /// Puts something new at a path, in the place of what may be there.
    pub(super) fn put(&mut self, path: &str, content: Content, now: UnixTime) -> Rc<Node> {
        let (directory, name) = split(path);
        let directory = if directory.is_empty() {
            Rc::clone(&self.root)
        } else {
            match self.resolve(directory.as_bytes(), Symlinks::Follow, "test") {
                Ok(found) => found.node,
                Err(_) => self.put(directory, Content::Directory(RefCell::default()), now),
            }
        };
        let Content::Directory(entries) = &directory.content else {
            panic!("{path} is below a directory");
        };
        self.last_inode += 1;
        let node = Rc::new(Node::new(self.last_inode, content, now));
        entries
            .borrow_mut()
            .insert(name.as_bytes().to_vec(), Rc::clone(&node));
        directory.modified.set(now);
        node
    }

    pub(super) fn remove(&mut self, path: &str) {
        let (directory, name) = split(path);
        let directory = self
            .resolve(directory.as_bytes(), Symlinks::Follow, "test")
            .expect("the directory of what is removed exists");
        let Content::Directory(entries) = &directory.node.content else {
            panic!("{path} is below a directory");
        };
        let removed = entries.borrow_mut().remove(name.as_bytes());
        assert!(removed.is_some(), "{path} exists");
    }

    /// Follows a path as Linux does (path_resolution(7)), with nginx's rules for links.
    pub(super) fn resolve(
        &self,
        path: &[u8],
        symlinks: Symlinks,
        call: &'static str,
    ) -> Result<Found, FileError> {
        assert!(!path.contains(&0), "a path has no NUL");
        assert!(
            path.is_empty() || path.first() == Some(&b'/'),
            "a path is absolute"
        );
        if path.len() >= PATH_LEN_MAX {
            return Err(error(call, ENAMETOOLONG));
        }
        let trusted_len = match symlinks {
            Symlinks::Follow => usize::MAX,
            Symlinks::Refuse { from } | Symlinks::RefuseUnlessSameOwner { from } => from,
        };
        let mut walk = Walk {
            trail: vec![(Rc::clone(&self.root), Vec::new())],
            steps: steps(path, trusted_len),
            links: 0,
        };
        while let Some(step) = walk.steps.pop_front() {
            self.step(&mut walk, step, symlinks)
                .map_err(|code| error(call, code))?;
        }
        let path = walk.path();
        let (node, _) = walk.trail.pop().expect("the root stays on the trail");
        Ok(Found { node, path })
    }

    fn step(&self, walk: &mut Walk, step: Step, symlinks: Symlinks) -> Result<(), i32> {
        let (here, _) = walk.trail.last().expect("the root stays on the trail");
        let Content::Directory(_) = here.content else {
            return Err(ENOTDIR);
        };
        if !here.readable.get() {
            return Err(EACCES);
        }
        match step.name.as_slice() {
            b"" | b"." => return Ok(()),
            b".." => {
                if walk.trail.len() > 1 {
                    walk.trail.pop();
                }
                return Ok(());
            }
            name if name.len() > NAME_LEN_MAX => return Err(ENAMETOOLONG),
            _ => {}
        }
        let node = here.entry(&step.name).ok_or(ENOENT)?;
        let Content::Link(target) = &node.content else {
            walk.trail.push((node, step.name));
            return Ok(());
        };
        walk.links += 1;
        if walk.links > LINKS_MAX {
            return Err(ELOOP);
        }
        if !step.trusted {
            self.check_link(walk, &node, target, symlinks)?;
        }
        if target.first() == Some(&b'/') {
            walk.trail.truncate(1);
        }
        // What a checked link leads through was examined with it.
        for step in steps(target, usize::MAX).into_iter().rev() {
            walk.steps.push_front(step);
        }
        Ok(())
    }

    /// Whether a link outside the trusted part may be followed.
    fn check_link(
        &self,
        walk: &Walk,
        link: &Node,
        target: &[u8],
        symlinks: Symlinks,
    ) -> Result<(), i32> {
        match symlinks {
            Symlinks::Follow => Ok(()),
            Symlinks::Refuse { .. } => Err(ELOOP),
            Symlinks::RefuseUnlessSameOwner { .. } => {
                let path = if target.first() == Some(&b'/') {
                    target.to_vec()
                } else {
                    [&walk.path(), b"/".as_slice(), target].concat()
                };
                let found = self
                    .resolve(&path, Symlinks::Follow, "stat()")
                    .map_err(|error| error.code)?;
                if found.node.owner.get() == link.owner.get() {
                    Ok(())
                } else {
                    Err(ELOOP)
                }
            }
        }
    }
}

/// A path on the way.
struct Walk {
    /// The directories passed, with their names; the last one is where the walk stands.
    trail: Vec<(Rc<Node>, Vec<u8>)>,
    steps: VecDeque<Step>,
    links: usize,
}

struct Step {
    /// Empty after a trailing slash: what stands before it must be a directory.
    name: Vec<u8>,
    trusted: bool,
}

impl Walk {
    fn path(&self) -> Vec<u8> {
        let names = self.trail.iter().skip(1);
        names
            .flat_map(|(_, name)| [b"/".as_slice(), name].concat())
            .collect()
    }
}

impl Node {
    pub(super) const fn new(inode: u64, content: Content, modified: UnixTime) -> Self {
        Self {
            inode,
            content,
            readable: Cell::new(true),
            executable: Cell::new(false),
            modified: Cell::new(modified),
            owner: Cell::new(0),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match &self.content {
            Content::Regular(bytes) => bytes.borrow().clone(),
            _ => panic!("only a regular file has bytes"),
        }
    }

    pub(super) fn set_bytes(&self, bytes: Vec<u8>, now: UnixTime) {
        match &self.content {
            Content::Regular(content) => content.replace(bytes),
            _ => panic!("only a regular file has bytes"),
        };
        self.modified.set(now);
    }

    pub(super) fn metadata(&self) -> Metadata {
        let (kind, len) = match &self.content {
            Content::Regular(bytes) => (FileKind::Regular, bytes.borrow().len() as u64),
            Content::Directory(_) => (FileKind::Directory, DIRECTORY_LEN),
            Content::Link(_) | Content::Other => (FileKind::Other, 0),
        };
        Metadata {
            kind,
            len,
            modified: self.modified.get(),
            inode: self.inode,
            device: DEVICE,
            executable: self.executable.get() || kind == FileKind::Directory,
        }
    }

    fn entry(&self, name: &[u8]) -> Option<Rc<Self>> {
        match &self.content {
            Content::Directory(entries) => entries.borrow().get(name).map(Rc::clone),
            _ => None,
        }
    }
}

/// The names of a path; trusted is a name that ends within the first `trusted_len` bytes.
fn steps(path: &[u8], trusted_len: usize) -> VecDeque<Step> {
    let mut end = 0;
    path.split(|byte| *byte == b'/')
        .enumerate()
        .map(|(index, name)| {
            end += name.len() + usize::from(index > 0);
            Step {
                name: name.to_vec(),
                trusted: end <= trusted_len,
            }
        })
        .collect()
}

/// The directory and the name of a path of the test.
fn split(path: &str) -> (&str, &str) {
    assert!(path.starts_with('/'), "{path} is absolute");
    path.trim_end_matches('/')
        .rsplit_once('/')
        .unwrap_or(("", ""))
}

/// Bytes of a path with its NUL, and of a name (Linux, include/uapi/linux/limits.h).
const PATH_LEN_MAX: usize = 4096;
const NAME_LEN_MAX: usize = 255;
/// Links on one path (Linux, include/linux/namei.h, MAXSYMLINKS).
const LINKS_MAX: usize = 40;
/// Bytes that ext4 says an ordinary directory has.
const DIRECTORY_LEN: u64 = 4096;
/// All files of a world are on one device.
const DEVICE: u64 = 1;
