//! What a server tells of its device stage and of its processors while it is loaded: its metrics, half a second by half a second.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::told::{cpu_per_s, figures, Sample, Told};

/// Often enough for the last second of a load to have two.
const EVERY: Duration = Duration::from_millis(500);
/// A server that does not answer for so long is left out of that sample.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen over the time of a load.
pub struct Seen {
    /// Figures of the device stage by name; none where the server has none.
    pub figures: BTreeMap<String, f64>,
    /// Processor time that tenants were charged, seconds per second.
    pub cpu_per_s: BTreeMap<String, f64>,
}

/// A thread that looks, until it is told to stop.
pub struct Watch {
    stop: Sender<()>,
    looks: JoinHandle<Vec<Sample>>,
}

impl Watch {
    /// Begins to look at an admin address.
    pub fn begin(admin: SocketAddr) -> Self {
        let (stop, stopped) = channel();
        let look = move || {
            let mut samples = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                if let Ok(page) = metrics(admin) {
                    let (at, told) = (Instant::now(), Told::read(&page));
                    samples.push(Sample { at, told });
                }
            }
            samples
        };
        Self {
            stop,
            looks: std::thread::spawn(look),
        }
    }

    /// What was seen in the last `measured`.
    pub fn end(self, measured: Duration) -> Seen {
        // It may have ended already, with nothing to tell.
        let _ = self.stop.send(());
        let samples = self.looks.join().unwrap_or_default();
        let last = samples.last().map(|sample| sample.at);
        let from = last.and_then(|last| last.checked_sub(measured));
        let within = |sample: &&Sample| from.is_none_or(|from| sample.at >= from);
        let samples = samples.iter().filter(within).collect::<Vec<_>>();
        Seen {
            figures: figures(&samples),
            cpu_per_s: cpu_per_s(&samples),
        }
    }
}

fn metrics(admin: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}
