//! User accounts: looking up names, and giving up privileges for good.

use crate::process::check;
use std::ffi::{CStr, CString};
use std::io;

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: CString,
    pub uid: u32,
    /// The user's first group.
    pub gid: u32,
}

/// Whether the effective user is the super-user.
pub fn is_super_user() -> bool {
    own_user() == 0
}

/// The effective user id.
pub fn own_user() -> u32 {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The account of that name; `None` if there is none.
pub fn user(name: &CStr) -> io::Result<Option<Account>> {
    look_up(|buffer| {
        // SAFETY: a passwd is numbers and pointers, for which zero is valid.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        let (pointer, size) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: all pointers are to locals with the stated sizes.
        let code = unsafe {
            libc::getpwnam_r(name.as_ptr(), &raw mut entry, pointer, size, &raw mut found)
        };
        let account = (!found.is_null()).then(|| Account {
            name: name.to_owned(),
            uid: entry.pw_uid,
            gid: entry.pw_gid,
        });
        (code, account)
    })
}

/// The group id of that name; `None` if there is none.
pub fn group(name: &CStr) -> io::Result<Option<u32>> {
    look_up(|buffer| {
        // SAFETY: a group is numbers and pointers, for which zero is valid.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        let (pointer, size) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: all pointers are to locals with the stated sizes.
        let code = unsafe {
            libc::getgrnam_r(name.as_ptr(), &raw mut entry, pointer, size, &raw mut found)
        };
        (code, (!found.is_null()).then_some(entry.gr_gid))
    })
}

/// What `call` finds, with a buffer for the entry's strings that grows as long as it is too small.
fn look_up<T>(
    mut call: impl FnMut(&mut [libc::c_char]) -> (i32, Option<T>),
) -> io::Result<Option<T>> {
    let mut buffer = vec![0; ENTRY_SIZE];
    loop {
        match call(&mut buffer) {
            (0, found) => return Ok(found),
            (libc::ERANGE, _) if buffer.len() < ENTRY_SIZE_MAX => {
                buffer.resize(buffer.len() * 2, 0);
            }
            (libc::ENOENT | libc::ESRCH, _) => return Ok(None),
            (code, _) => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Sets the group of the whole process, all threads.
pub fn set_group(gid: u32) -> io::Result<()> {
    // SAFETY: setgid(2) takes no pointer.
    check(unsafe { libc::setgid(gid) })
}

/// Sets the supplementary groups to all of a user's, and `gid`.
pub fn set_supplementary_groups(name: &CStr, gid: u32) -> io::Result<()> {
    // SAFETY: the pointer is to a NUL-terminated string that outlives the call.
    check(unsafe { libc::initgroups(name.as_ptr(), gid) })
}

/// Sets the user of the whole process, all threads; a super-user that becomes another user cannot return.
pub fn set_user(uid: u32) -> io::Result<()> {
    // SAFETY: setuid(2) takes no pointer.
    check(unsafe { libc::setuid(uid) })
}

/// Bytes of the first buffer for an entry's strings; most entries need a tenth.
const ENTRY_SIZE: usize = 1024;

/// Bytes after which an entry is an error: a group of ten thousand members fits.
const ENTRY_SIZE_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_and_group_zero_everywhere() {
        let root = user(c"root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(group(c"root").unwrap(), Some(0));
    }

    #[test]
    fn an_unknown_name_is_no_error() {
        assert_eq!(user(c"no such user").unwrap(), None);
        assert_eq!(group(c"no such group").unwrap(), None);
    }
}
