//! Connections to the server under load, and the loop over them.

mod clients;
mod conn;
pub mod control;
pub mod drive;
mod fleet;
mod goal;
mod lane;
mod map;
pub mod plan;
pub mod preload;
pub mod process;
mod quota;
mod reply;
mod schedule;
mod scout;
mod target;
mod timer;

pub(crate) use conn::Completion;
pub(crate) use fleet::Observer;
pub use front::SLOTS;
pub use goal::Goal;
pub(crate) use map::Map;
pub use quota::Quota;
pub use target::Target;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Instant;

use crate::error::WorkloadError;

/// Who a connection says that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// User and password for `AUTH`; `None` stays the untagged default tenant.
    pub credentials: Option<(String, String)>,
    /// Workload tag for `CLIENT SETNAME` (no spaces); empty sends none.
    pub tag: String,
    /// Says no `HELLO`, which proxies may not know.
    pub resp2: bool,
}

impl Identity {
    /// The tenant's name in reports and errors.
    pub fn tenant(&self) -> &str {
        self.credentials
            .as_ref()
            .map_or("default", |(user, _)| user)
    }

    /// The commands that open a connection. RESP3 unless told otherwise: most current clients
    /// speak it.
    pub(crate) fn handshake(&self) -> Vec<Vec<&[u8]>> {
        let mut commands: Vec<Vec<&[u8]>> = Vec::new();
        if let Some((user, password)) = &self.credentials {
            commands.push(vec![b"AUTH", user.as_bytes(), password.as_bytes()]);
        }
        if !self.resp2 {
            commands.push(vec![b"HELLO", b"3"]);
        }
        if !self.tag.is_empty() {
            commands.push(vec![b"CLIENT", b"SETNAME", self.tag.as_bytes()]);
        }
        commands
    }
}

/// Looks an address up (`host:port`).
///
/// # Errors
/// [`WorkloadError::Unreachable`] if the name means nothing.
pub fn resolve(target: &str) -> Result<SocketAddr, WorkloadError> {
    let unreachable = |source| WorkloadError::Unreachable {
        target: target.into(),
        source,
    };
    let mut found = target.to_socket_addrs().map_err(unreachable)?;
    found
        .next()
        .ok_or_else(|| unreachable(std::io::ErrorKind::NotFound.into()))
}

/// Nanoseconds since a run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now_ns(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
