//! The one scheduling call that no library wraps.

#![allow(
    unsafe_code,
    reason = "a system call takes a pointer; the block says why it is sound"
)]

use std::io;

use rustix::process::Pid;

/// The calling thread, or another of this process, becomes an ordinary one of this nice value,
/// which wants the processor for `slice_ns` at a time (Linux 6.12 and newer; older kernels ignore
/// it).
///
/// # Errors
/// The system forbids it.
pub(crate) fn schedule(thread: Option<Pid>, nice: i32, slice_ns: u64) -> io::Result<()> {
    let wanted = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    let thread = Pid::as_raw(thread);
    // SAFETY: the system reads `wanted`, which outlives the call and tells its own size; 0 is the
    // calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const wanted, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
