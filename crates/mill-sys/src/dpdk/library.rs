//! DPDK's shared libraries, opened at run time, and the functions of them that are called.

use super::layout::ABI;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Why DPDK can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// A library was not found, with the loader's words.
    Missing(String),
    /// It has no such symbol, so it is another DPDK than its name says.
    Lacking(&'static str),
    /// The machine has other sizes or another byte order than the layouts.
    Machine,
}

/// Declares the functions, each with its symbol, below the library that has it.
macro_rules! library {
    ($($file:ident { $($field:ident = $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)* })*) => {
        /// The functions and tables, as the headers declare them.
        #[derive(Debug)]
        pub(super) struct Library {
            $($(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*)*
            /// `rte_eth_fp_ops`: how each port's driver is called.
            pub(super) fast_path: Table,
            /// `rte_mempool_ops_table`.
            pub(super) pool_operations: Table,
        }

        impl Library {
            fn open() -> Result<Self, LibraryError> {
                if cfg!(not(all(target_pointer_width = "64", target_endian = "little"))) {
                    return Err(LibraryError::Machine);
                }
                $(let $file = Shared::open(stringify!($file))?;)*
                Ok(Self {
                    $($($field: {
                        // SAFETY: the symbol is a function of this signature in the headers of this ABI.
                        unsafe { $file.function($symbol) }?
                    },)*)*
                    fast_path: Table(Shared::open("ethdev")?.symbol(c"rte_eth_fp_ops")?),
                    pool_operations: Table(Shared::open("mempool")?.symbol(c"rte_mempool_ops_table")?),
                })
            }
        }
    };
}

library! {
    eal {
        eal_init = c"rte_eal_init" (c_int, *mut *mut c_char) -> c_int;
        openlog_stream = c"rte_openlog_stream" (*mut libc::FILE) -> c_int;
        hotplug_add = c"rte_eal_hotplug_add" (*const c_char, *const c_char, *const c_char) -> c_int;
        hotplug_remove = c"rte_eal_hotplug_remove" (*const c_char, *const c_char) -> c_int;
        thread_register = c"rte_thread_register" () -> c_int;
        thread_unregister = c"rte_thread_unregister" ();
        strerror = c"rte_strerror" (c_int) -> *const c_char;
        version = c"rte_version" () -> *const c_char;
    }
    mempool {
        pool_free = c"rte_mempool_free" (*mut c_void);
        pool_in_use = c"rte_mempool_in_use_count" (*const c_void) -> c_uint;
    }
    mbuf {
        pool_create = c"rte_pktmbuf_pool_create" (*const c_char, c_uint, c_uint, u16, u16, c_int) -> *mut c_void;
        free_packets = c"rte_pktmbuf_free_bulk" (*mut *mut c_void, c_uint);
    }
    ethdev {
        find_port = c"rte_eth_dev_get_port_by_name" (*const c_char, *mut u16) -> c_int;
        next_port = c"rte_eth_find_next" (u16) -> u16;
        socket_of = c"rte_eth_dev_socket_id" (u16) -> c_int;
        info = c"rte_eth_dev_info_get" (u16, *mut c_void) -> c_int;
        configure = c"rte_eth_dev_configure" (u16, u16, u16, *const c_void) -> c_int;
        adjust_descriptors = c"rte_eth_dev_adjust_nb_rx_tx_desc" (u16, *mut u16, *mut u16) -> c_int;
        set_up_receive = c"rte_eth_rx_queue_setup" (u16, u16, u16, c_uint, *const c_void, *mut c_void) -> c_int;
        set_up_transmit = c"rte_eth_tx_queue_setup" (u16, u16, u16, c_uint, *const c_void) -> c_int;
        set_mtu = c"rte_eth_dev_set_mtu" (u16, u16) -> c_int;
        start = c"rte_eth_dev_start" (u16) -> c_int;
        stop = c"rte_eth_dev_stop" (u16) -> c_int;
        promiscuous = c"rte_eth_promiscuous_enable" (u16) -> c_int;
        all_multicast = c"rte_eth_allmulticast_enable" (u16) -> c_int;
        address = c"rte_eth_macaddr_get" (u16, *mut c_void) -> c_int;
        link = c"rte_eth_link_get_nowait" (u16, *mut c_void) -> c_int;
        stats = c"rte_eth_stats_get" (u16, *mut c_void) -> c_int;
    }
}

/// A table of the libraries', by its address, which stays the same until the process ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table(NonNull<c_void>);

impl Table {
    /// The address of what lies at the offset.
    #[inline]
    pub(super) fn at(self, offset: usize) -> *mut c_void {
        self.0.as_ptr().wrapping_byte_add(offset)
    }
}

// SAFETY: the tables are written when drivers are loaded and when ports are started and stopped, and read by all threads, as DPDK's own
// inline functions do.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Library {
    /// The libraries, opened by the first call.
    pub(super) fn get() -> Result<&'static Self, LibraryError> {
        static LIBRARY: OnceLock<Result<Library, LibraryError>> = OnceLock::new();
        LIBRARY
            .get_or_init(Self::open)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// What a negative result means.
    pub(super) fn describe(&self, result: c_int) -> String {
        // SAFETY: the function takes any number, and returns a text of the thread's or of the library's.
        let text = unsafe { (self.strerror)(result.wrapping_neg()) };
        text_at(text)
    }
}

/// A copy of a text of C; empty for none.
pub(super) fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the libraries end their texts with a zero, and it lives at least until the thread's next call.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// An open library, never closed.
struct Shared(NonNull<c_void>);

impl Shared {
    fn open(name: &str) -> Result<Self, LibraryError> {
        let file = format!("librte_{name}.so.{ABI}");
        let name = CString::new(file).map_err(|_| LibraryError::Machine)?;
        // SAFETY: the name ends with a zero. The library's constructors run, which DPDK's are made for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        NonNull::new(handle).map(Self).ok_or_else(|| {
            // SAFETY: there was an error, whose text is the thread's.
            LibraryError::Missing(text_at(unsafe { libc::dlerror() }))
        })
    }

    fn symbol(&self, name: &'static CStr) -> Result<NonNull<c_void>, LibraryError> {
        // SAFETY: the handle is of an open library, and the name ends with a zero.
        let found = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(found).ok_or(LibraryError::Lacking(name.to_str().unwrap_or_default()))
    }

    /// # Safety
    ///
    /// `F` has to be a pointer to functions of the symbol's signature.
    unsafe fn function<F: Copy>(&self, name: &'static CStr) -> Result<F, LibraryError> {
        const {
            assert!(size_of::<F>() == size_of::<NonNull<c_void>>());
        }
        let found = self.symbol(name)?;
        // SAFETY: a pointer to a function has the size of any other, and the caller knows its type.
        Ok(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&found) })
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => write!(
                formatter,
                "DPDK's libraries of ABI {ABI} can't be loaded: {why}"
            ),
            Self::Lacking(symbol) => write!(
                formatter,
                "DPDK's libraries of ABI {ABI} have no \"{symbol}\", as those of 22.11 do"
            ),
            Self::Machine => {
                formatter.write_str("DPDK is used on 64-bit machines of low byte order only")
            }
        }
    }
}

impl std::error::Error for LibraryError {}
