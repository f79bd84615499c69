//! The one socket option that no library wraps.

#![allow(
    unsafe_code,
    reason = "a system call takes a pointer; the block says why it is sound"
)]

use std::os::fd::{AsRawFd, BorrowedFd};

/// Where the kernel's `struct tcp_info` has `tcpi_min_rtt`, and how long it is, bytes (Linux 4.9
/// and newer).
const MIN_RTT: std::ops::Range<usize> = 148..152;

/// What a segment and its acknowledgement took at least in the last five minutes, ns: the peer's
/// kernel acknowledges, whatever its program does. None: the kernel does not know.
pub(super) fn least_ns(tcp: &impl std::os::fd::AsFd) -> Option<u64> {
    let tcp: BorrowedFd<'_> = tcp.as_fd();
    let mut info = [0u8; MIN_RTT.end];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes to `info`, which outlives the call, and says in
    // `len` how many it has written.
    let done = unsafe {
        libc::getsockopt(
            tcp.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if done != 0 || (len as usize) < MIN_RTT.end {
        return None;
    }
    let us = u32::from_ne_bytes(info[MIN_RTT].try_into().ok()?);
    // Before the first acknowledgement it is all ones.
    (us != u32::MAX).then(|| u64::from(us) * 1_000)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_has_carried_something_has_a_round_trip() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        server.write_all(b"y").unwrap();
        client.read_exact(&mut [0]).unwrap();
        let ns = least_ns(&client).unwrap();
        assert!(ns < 1_000_000_000, "{ns} ns");
    }

    #[test]
    fn what_is_no_connection_has_none() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(least_ns(&file), None);
    }
}
