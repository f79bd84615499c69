//! Replica selection by windows: how much a tenant may have outstanding at each server, from
//! latency alone (Pisces 4.3.3, algorithm 3).
//!
//! The update is FAST TCP's own (Wei, Jin, Low, Hegde, IEEE/ACM Transactions on Networking 14(6),
//! 2006, eq. 1):
//!
//! ```text
//!     w <- (1 - gamma) w + gamma (l_base / l_est * w + alpha)
//! ```
//!
//! Pisces prints it without the window in the second term; then every window would tend to a number
//! below 1 whatever the server. As it stands here a window settles where `alpha` operations of it
//! wait, `w = rate * l_base + alpha`: so windows, and with them what is sent, follow the rates at
//! which the servers serve *this tenant*, its local shares, and nobody has to be told them.

use crate::cost::Nanos;

/// How windows move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowOptions {
    /// Step, above 0, at most 1.
    pub gamma: f64,
    /// Operations that should wait at each server.
    pub alpha: f64,
    /// Latency wanted, in nanoseconds: of an operation that does not wait.
    pub base_ns: Nanos,
    /// Smallest and largest window, in operations; the smallest at least 1.
    pub within: (f64, f64),
}

impl Default for WindowOptions {
    /// Half a step, four waiting, 1 ms, windows from 1 to 1,024.
    fn default() -> Self {
        WindowOptions {
            gamma: 0.5,
            alpha: 4.0,
            base_ns: 1_000_000,
            within: (1.0, 1_024.0),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    size: f64,
    outstanding: u32,
    /// Moving average, weight 1/8 for the newest; 0: nothing is known yet.
    latency_ns: f64,
    /// Replies until the next update: one for each operation of the window, about a round trip.
    replies_left: u32,
}

impl Window {
    fn new(size: f64) -> Self {
        Window {
            size,
            outstanding: 0,
            latency_ns: 0.0,
            replies_left: 1,
        }
    }
}

/// One sender's windows for one tenant, a window for each server.
#[derive(Clone, Debug)]
pub struct Windows {
    options: WindowOptions,
    windows: Vec<Window>,
    turn: usize,
}

impl Windows {
    /// Windows of the smallest size for `servers` servers.
    #[must_use]
    pub fn new(options: WindowOptions, servers: u32) -> Self {
        let (least, most) = options.within;
        let least = least.max(1.0);
        let options = WindowOptions {
            gamma: options.gamma.clamp(0.001, 1.0),
            within: (least, most.max(least)),
            ..options
        };
        Windows {
            windows: vec![Window::new(options.within.0); servers as usize],
            options,
            turn: 0,
        }
    }

    /// There are `servers` servers; new ones begin with the smallest window.
    pub fn grow(&mut self, servers: u32) {
        let new = Window::new(self.options.within.0);
        let count = self.windows.len().max(servers as usize);
        self.windows.resize(count, new);
    }

    /// The place among `candidates` of the server to ask: the emptiest window, in turn where
    /// several are. `None`: all are full, and the operation waits with its sender until a reply
    /// comes.
    ///
    /// Pisces takes them in turn, whatever their room. Then half of the requests go where less is
    /// served as long as windows are not full, which with few requests outstanding is always.
    pub fn choose(&mut self, candidates: &[u32]) -> Option<usize> {
        let count = candidates.len();
        let first = self.turn;
        let places = (0..count).map(|step| (first + step) % count);
        let open = places.filter(|place| self.has_room(candidates[*place]));
        let place = open.min_by(|a, b| {
            let [a, b] = [a, b].map(|place| self.use_with_one_more(candidates[*place]));
            a.total_cmp(&b)
        })?;
        self.turn = place + 1;
        Some(place)
    }

    /// Whether nothing of this sender's is outstanding at any of these servers. Windows then say
    /// nothing of where to go: the largest would be asked again and again, and the others not
    /// heard of any more. Where each node has a sender of its own that is nearly always so; whoever
    /// sends then does better to go by what servers told it ([`super::Selector`]).
    #[must_use]
    pub fn is_idle(&self, candidates: &[u32]) -> bool {
        candidates
            .iter()
            .all(|server| self.outstanding(*server) == 0)
    }

    /// The part of a window that would be in use.
    fn use_with_one_more(&self, server: u32) -> f64 {
        let window = &self.windows[server as usize];
        (f64::from(window.outstanding) + 1.0) / window.size
    }

    /// Whether a server's window is open.
    #[must_use]
    pub fn has_room(&self, server: u32) -> bool {
        let window = &self.windows[server as usize];
        f64::from(window.outstanding) + 1.0 <= window.size
    }

    /// An operation was sent.
    pub fn sent(&mut self, server: u32) {
        self.windows[server as usize].outstanding += 1;
    }

    /// It will have no reply: its server is gone.
    pub fn lost(&mut self, server: u32) {
        let outstanding = &mut self.windows[server as usize].outstanding;
        *outstanding = outstanding.saturating_sub(1);
    }

    /// Its reply came after `latency_ns`.
    pub fn replied(&mut self, server: u32, latency_ns: Nanos) {
        let WindowOptions {
            gamma,
            alpha,
            base_ns,
            within: (least, most),
        } = self.options;
        let window = &mut self.windows[server as usize];
        window.outstanding = window.outstanding.saturating_sub(1);
        let latency = latency_ns.max(1) as f64;
        window.latency_ns = match window.latency_ns {
            known if known > 0.0 => known + (latency - known) / 8.0,
            _ => latency,
        };
        window.replies_left = window.replies_left.saturating_sub(1);
        if window.replies_left == 0 {
            // Faster than wanted counts as wanted: the window grows by alpha a step, not without
            // end.
            let ratio = (base_ns as f64 / window.latency_ns).min(1.0);
            let wanted = ratio * window.size + alpha;
            window.size = ((1.0 - gamma) * window.size + gamma * wanted).clamp(least, most);
            window.replies_left = window.size as u32;
        }
    }

    /// A server's window, in operations.
    #[must_use]
    pub fn window(&self, server: u32) -> f64 {
        self.windows[server as usize].size
    }

    /// Operations outstanding at a server.
    #[must_use]
    pub fn outstanding(&self, server: u32) -> u32 {
        self.windows[server as usize].outstanding
    }
}
