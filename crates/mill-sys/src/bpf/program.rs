//! Programs that see received frames (BPF_PROG_TYPE_XDP): loading, and test runs.

use super::{Attributes, BpfError, Command, Instruction, name_of, number_of};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A loaded program, by its descriptor.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// A program's result, the fate of a frame (enum xdp_action).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// The program failed; the frame is dropped.
    Aborted = 0,
    Drop = 1,
    /// The frame passes to the kernel's stack.
    Pass = 2,
    /// The frame is sent out of the same interface.
    Transmit = 3,
    /// The frame goes to a socket or another interface.
    Redirect = 4,
}

/// The input of a test run.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'frame> {
    /// The frame, with an Ethernet header at least.
    pub frame: &'frame [u8],
    /// The interface and the queue that the frame seems to arrive at; both have to exist. `None` is the loopback's
    /// first.
    pub arrival: Option<(u32, u32)>,
    /// The number of runs, at least one.
    pub repeat: u32,
}

/// The result of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// Mean duration of one run.
    pub duration: Duration,
}

impl Program {
    /// Loads an XDP program that also accepts frames in several buffers. If the kernel refuses it, it is loaded once
    /// more with a log: [`BpfError::log`].
    pub fn load(name: &str, instructions: &[Instruction]) -> Result<Self, BpfError> {
        let mut load = Load {
            prog_type: XDP,
            insn_cnt: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
            insns: instructions.as_ptr(),
            // It calls no helper that is reserved for GPL programs.
            license: c"Dual MIT/GPL".as_ptr(),
            log_level: 0,
            log_size: 0,
            log_buf: std::ptr::null_mut(),
            kern_version: 0,
            prog_flags: HAS_FRAGS,
            prog_name: name_of(name),
            prog_ifindex: 0,
            expected_attach_type: ATTACH_XDP,
        };
        let refused = match open(&mut load) {
            Ok(program) => return Ok(Self(program)),
            Err(refused) => refused,
        };
        let mut log = vec![0_u8; LOG_LEN_MAX];
        load.log_level = 1;
        load.log_size = u32::try_from(log.len()).expect("the log is short");
        load.log_buf = log.as_mut_ptr();
        match open(&mut load) {
            Ok(program) => Ok(Self(program)),
            Err(_) => {
                let text = log.split(|byte| *byte == 0).next().unwrap_or_default();
                let log = String::from_utf8_lossy(text).into_owned();
                Err(BpfError { log, ..refused })
            }
        }
    }

    /// Runs the program on a frame that is not received or sent (BPF_PROG_TEST_RUN); counters and maps are the real
    /// ones. `EINVAL` if the frame is shorter than an Ethernet header or the interface has no such queue.
    pub fn try_out(&self, trial: Trial<'_>) -> Result<Outcome, BpfError> {
        let frame_len = u32::try_from(trial.frame.len()).unwrap_or(u32::MAX);
        let (interface, queue) = trial.arrival.unwrap_or_default();
        let context = Context {
            data: 0,
            data_end: frame_len,
            data_meta: 0,
            ingress_ifindex: interface,
            rx_queue_index: queue,
            egress_ifindex: 0,
        };
        let context_len = u32::try_from(size_of::<Context>()).expect("24 fits");
        let is_given = trial.arrival.is_some();
        let mut run = TestRun {
            prog_fd: number_of(&self.0),
            retval: 0,
            data_size_in: frame_len,
            data_size_out: 0,
            data_in: trial.frame.as_ptr(),
            data_out: std::ptr::null_mut(),
            repeat: trial.repeat.max(1),
            duration: 0,
            ctx_size_in: if is_given { context_len } else { 0 },
            ctx_size_out: 0,
            ctx_in: if is_given {
                &raw const context
            } else {
                std::ptr::null()
            },
            ctx_out: std::ptr::null_mut(),
        };
        PROG_TEST_RUN.run(&mut run)?;
        Ok(Outcome {
            verdict: Verdict::of(run.retval),
            duration: Duration::from_nanos(run.duration.into()),
        })
    }
}

/// The kernel aborts verification when any signal arrives (EAGAIN); then it is tried again.
fn open(load: &mut Load) -> Result<OwnedFd, BpfError> {
    for _ in 1..LOADS_MAX {
        match PROG_LOAD.open(load) {
            Err(refused) if refused.error.kind() == io::ErrorKind::WouldBlock => {}
            decided => return decided,
        }
    }
    PROG_LOAD.open(load)
}

/// How often loading is tried: verification takes milliseconds, in which this many signals do not arrive.
const LOADS_MAX: u32 = 20;

/// The name of the loaded program with this id. `ENOENT` if it was unloaded.
pub fn name(id: u32) -> Result<String, BpfError> {
    let program = PROG_GET_FD_BY_ID.open(&mut ById {
        prog_id: id,
        next_id: 0,
        open_flags: 0,
    })?;
    let mut info = Info { bytes: [0; 128] };
    let info_len = u32::try_from(size_of::<Info>()).expect("128 fits");
    OBJ_GET_INFO_BY_FD.run(&mut AskInfo {
        bpf_fd: number_of(&program),
        info_len,
        info: &raw mut info,
    })?;
    let name = info.bytes.iter().skip(INFO_NAME).take(16);
    let name: Vec<u8> = name.copied().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

impl Verdict {
    /// The kernel treats unknown results as a failure.
    fn of(number: u32) -> Self {
        match number {
            1 => Self::Drop,
            2 => Self::Pass,
            3 => Self::Transmit,
            4 => Self::Redirect,
            _ => Self::Aborted,
        }
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The beginning of BPF_PROG_LOAD's attributes.
#[repr(C)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: *const Instruction,
    license: *const libc::c_char,
    log_level: u32,
    log_size: u32,
    log_buf: *mut u8,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

/// The beginning of BPF_PROG_TEST_RUN's attributes.
#[repr(C)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: *const u8,
    data_out: *mut u8,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: *const Context,
    ctx_out: *mut Context,
}

/// The program's context: `struct xdp_md`. In a test run `data_end` is the frame's length.
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

/// The attributes of BPF_PROG_GET_FD_BY_ID.
#[repr(C)]
struct ById {
    prog_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// The attributes of BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct AskInfo {
    bpf_fd: u32,
    info_len: u32,
    info: *mut Info,
}

/// The beginning of `struct bpf_prog_info`, up to the name.
#[repr(C, align(8))]
struct Info {
    bytes: [u8; 128],
}

/// Offset of the name, after type, id, a tag of 8 bytes, two lengths, two addresses, the load time, two numbers and an
/// address.
const INFO_NAME: usize = 4 + 4 + 8 + 2 * 4 + 2 * 8 + 8 + 2 * 4 + 8;

// SAFETY: it points to nothing.
unsafe impl Attributes for ById {}

// SAFETY: `name` fills in a structure that outlives the call, and its length.
unsafe impl Attributes for AskInfo {}

// SAFETY: `load` fills in slices that outlive the call, and their lengths.
unsafe impl Attributes for Load {}

// SAFETY: `try_out` fills in a slice and a structure that outlive the call, and their lengths; nothing is written to what
// is null.
unsafe impl Attributes for TestRun {}

const PROG_LOAD: Command = Command::new(5, "BPF_PROG_LOAD");
const PROG_TEST_RUN: Command = Command::new(10, "BPF_PROG_TEST_RUN");

const PROG_GET_FD_BY_ID: Command = Command::new(13, "BPF_PROG_GET_FD_BY_ID");
const OBJ_GET_INFO_BY_FD: Command = Command::new(15, "BPF_OBJ_GET_INFO_BY_FD");

/// BPF_PROG_TYPE_XDP, and its attach type BPF_XDP.
const XDP: u32 = 6;
pub(super) const ATTACH_XDP: u32 = 37;

/// BPF_F_XDP_HAS_FRAGS: the program accepts frames whose later bytes are in further buffers.
const HAS_FRAGS: u32 = 1 << 5;

/// Bytes for the verifier's log. Of a longer one the kernel keeps the end, which matters.
const LOG_LEN_MAX: usize = 1 << 18;
