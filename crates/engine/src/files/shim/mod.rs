//! The Rust side of the shim, and the one call made of the allocator: the only place where this
//! crate is `unsafe`. In C++ are a file system (`hook.h`, `files.h`, `file_system.cc`) and
//! memtables (`objects.h`, `memtable.cc`).
//!
//! The C ABI is two structures and one function. C++ calls `begin` before and `end` after each
//! system call, with nothing of RocksDB held that the call itself does not hold, and `drop` when
//! its last file is gone.

#![allow(
    unsafe_code,
    reason = "RocksDB's file system is a C++ class; each block says why it is sound"
)]

use crate::device::{tag, Activity, DeviceHook, DeviceIo, Ended, FileKind, Op};
use crate::record::OBJECT;
use librocksdb_sys::{rocksdb_env_t, rocksdb_options_t};
use rocksdb::{AsRawPtr, Env, Options};
use std::ffi::{c_char, c_void};

/// `entremet_io` of the shim.
#[repr(C)]
struct RawIo {
    offset: u64,
    bytes: u64,
    number: u64,
    op: u8,
    file: u8,
    activity: u8,
    urgent: u8,
}

/// `entremet_hook` of the shim.
#[repr(C)]
struct RawHook {
    context: *mut c_void,
    begin: extern "C" fn(*mut c_void, *const RawIo, *mut u8) -> u64,
    end: extern "C" fn(*mut c_void, *const RawIo, u64, u64, u8),
    chunk: extern "C" fn(*mut c_void) -> u64,
    drop: extern "C" fn(*mut c_void),
}

extern "C" {
    fn entremet_env_new(hook: *const RawHook) -> *mut rocksdb_env_t;
    fn entremet_object_memtables(options: *mut rocksdb_options_t, object: c_char);
}

const PAGE_BYTES: u64 = 4 << 10;

/// An environment with the default one's threads and clock, whose files go through `hook`.
pub(crate) fn hooked_env(hook: DeviceHook) -> Env {
    let raw = RawHook {
        context: Box::into_raw(Box::new(hook)).cast(),
        begin,
        end,
        chunk,
        drop: drop_hook,
    };
    // SAFETY: the shim copies `raw` before it returns; its functions live as long as the program,
    // and its context until the shim calls `drop`, which it does once, after the last call of the
    // others.
    let env = unsafe { entremet_env_new(&raw) };
    // SAFETY: the shim made the environment for us with `new`, as rocksdb_env_destroy expects to
    // find it, and keeps no reference of its own; it terminates the program rather than return null
    // (allocation failed).
    unsafe { Env::from_raw(env) }
}

/// Has databases of these options find objects in their memtables by hash (`memtable.cc`).
/// REQUIRES: their keys are ordered by bytes, and memtables are written by one thread at a time.
pub(crate) fn set_object_memtables(options: &mut Options) {
    // SAFETY: the options live as long as the call, which puts a factory into them that they share
    // with the databases opened with them.
    unsafe { entremet_object_memtables(options.as_raw_ptr(), OBJECT as c_char) };
}

/// The hook behind a context.
///
/// # Safety
/// `context` must come from [`hooked_env`] and must not have been dropped; the reference ends with
/// the call it is for.
unsafe fn hook<'a>(context: *mut c_void) -> &'a DeviceHook {
    // SAFETY: by the caller's word it points to the boxed hook, which nobody changes and
    // `DeviceHook: Sync` lets many threads share.
    unsafe { &*context.cast::<DeviceHook>() }
}

/// What the shim says of an I/O.
///
/// # Safety
/// `io` must point to a whole `RawIo` for the duration of the call.
unsafe fn seen(principal: u32, io: *const RawIo) -> DeviceIo {
    // SAFETY: by the caller's word.
    let raw = unsafe { &*io };
    let op = [Op::Read, Op::Write, Op::Sync, Op::Delete][usize::from(raw.op & 3)];
    let file = [
        FileKind::Data,
        FileKind::Log,
        FileKind::Metadata,
        FileKind::Directory,
    ][usize::from(raw.file & 3)];
    DeviceIo {
        principal,
        op,
        offset: raw.offset,
        bytes: raw.bytes,
        file,
        number: raw.number,
        activity: activity(raw.activity, op, file),
        urgent: raw.urgent != 0,
        tag: tag(),
    }
}

/// `Env::IOActivity` of RocksDB 11.8. What it calls unknown is told by the file: writes of the log,
/// reads of it at opening, metadata.
fn activity(number: u8, op: Op, file: FileKind) -> Activity {
    match number {
        0 => Activity::Flush,
        1 => Activity::Compaction,
        2 => Activity::Open,
        3 | 8 => Activity::Get,
        4 | 9 => Activity::MultiGet,
        5 => Activity::Range,
        6 | 7 | 10 => Activity::Verify,
        _ => match (file, op) {
            (FileKind::Log, Op::Read) => Activity::Open,
            (FileKind::Log, Op::Write | Op::Sync) => Activity::Log,
            _ => Activity::Other,
        },
    }
}

// A panic in these ends the process: it must not unwind into C++, and `extern "C"` does not let it.

extern "C" fn begin(context: *mut c_void, io: *const RawIo, fault: *mut u8) -> u64 {
    // SAFETY: the shim passes the context it was given, before it drops it, and an I/O on its
    // stack.
    let (hook, io) = unsafe {
        let hook = hook(context);
        (hook, seen(hook.principal, io))
    };
    if let Some(broken) = hook.stage.fault(&io) {
        // SAFETY: it points to a byte on the shim's stack, which nobody else looks at during this
        // call.
        unsafe { *fault = broken as u8 };
    }
    hook.stage.begin(&io)
}

extern "C" fn end(context: *mut c_void, io: *const RawIo, token: u64, bytes: u64, ok: u8) {
    // SAFETY: as in `begin`.
    let (hook, io) = unsafe {
        let hook = hook(context);
        (hook, seen(hook.principal, io))
    };
    let ok = ok != 0;
    hook.stage.end(&io, token, Ended { bytes, ok });
}

extern "C" fn chunk(context: *mut c_void) -> u64 {
    // SAFETY: as in `begin`.
    let bytes = unsafe { hook(context) }.stage.chunk_bytes();
    (bytes / PAGE_BYTES * PAGE_BYTES).max(PAGE_BYTES)
}

extern "C" fn drop_hook(context: *mut c_void) {
    // SAFETY: the shim calls this once, last, with the pointer that `hooked_env` got from the box.
    drop(unsafe { Box::from_raw(context.cast::<DeviceHook>()) });
}

#[cfg(test)]
mod tests;
