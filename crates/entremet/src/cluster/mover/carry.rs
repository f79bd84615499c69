//! The keys of a slot on their way, a batch after the other.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use policy::replica::LOOKED_NS_MAX;

use super::super::book::BEAT_EVERY;
use super::super::pace::{takes, KEYS_MAX};
use super::super::plan::Way;
use super::super::reach::{strange, time_of};
use super::super::survey::{counts, keys_of, sizes_of};
use super::super::Failure;
use super::Mover;
use crate::client::{ClientError, Reply};

/// A target that fails so often in a row to take keys in is given up.
const TRIES: u32 = 3;
/// Before it is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How far a move is, is said so often.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// A replica shows no key that has gone, and no client may miss it. Before the first goes, all
/// fronts that read from replicas see that the slot moves, and do so no more.
const SEEN_BY_READERS: Duration = Duration::from_nanos(LOOKED_NS_MAX + 200_000_000);
/// A source waits at least so long for its target, and answers nobody meanwhile.
const TARGET_WAIT_MIN: Duration = Duration::from_millis(200);

impl Mover<'_> {
    /// Keys of slots go over, of one slot after the other; most of several have none.
    pub(super) fn carry_all(
        &mut self,
        slots: &[u16],
        (from, has_replicas): (&str, bool),
        to: &str,
    ) -> Result<(), Failure> {
        let counts = counts(self.nodes, from, slots)?;
        let used = slots.iter().zip(counts).filter(|(_, count)| *count > 0);
        let used: Vec<u16> = used.map(|(slot, _)| *slot).collect();
        if has_replicas && !used.is_empty() {
            thread::sleep(SEEN_BY_READERS);
        }
        for slot in used {
            self.carry(slot, from, to)?;
        }
        Ok(())
    }

    /// All keys of a slot go from one node to the other, a batch after the other.
    pub(super) fn carry(&mut self, slot: u16, from: &str, to: &str) -> Result<(), Failure> {
        let count = counts(self.nodes, from, &[slot])?[0];
        self.expected = self.expected.max(self.moved.keys + count);
        // Of keys that have been asked for, those that have not gone yet, and their sizes. None
        // comes to the source: it sends whoever brings one to the target.
        let (mut keys, mut sizes) = (Vec::new(), Vec::new());
        let mut failed = 0;
        loop {
            self.tell_or_stop()?;
            if keys.is_empty() {
                keys = keys_of(self.nodes, from, slot, KEYS_MAX)?;
                sizes = sizes_of(self.nodes, from, &keys)?;
            }
            if keys.is_empty() {
                return Ok(());
            }
            let count = self.pace.take(&sizes);
            let bytes = sizes[..count].iter().sum();
            let began = Instant::now();
            let result = self.hand_over(from, to, &keys[..count], takes(bytes));
            let passed = began.elapsed();
            let took = result.as_ref().map_or(passed, |took| *took);
            self.moved.longest = self.moved.longest.max(took);
            match result {
                Ok(took) => {
                    failed = 0;
                    self.moved.keys += count as u64;
                    self.moved.bytes += bytes;
                    let waited = passed.saturating_sub(took);
                    self.pace.took(&sizes[..count], took, waited);
                    keys.drain(..count);
                    sizes.drain(..count);
                    self.rest(self.pace.pause(took, waited))?;
                }
                Err(why) => {
                    self.failed(
                        why,
                        (from, to),
                        &keys[..count],
                        &sizes[..count],
                        &mut failed,
                    )?;
                    // What is there now is not known.
                    keys.clear();
                    sizes.clear();
                }
            }
        }
    }

    /// What is done where a batch did not go, if anything can be done.
    fn failed(
        &mut self,
        why: Failure,
        (from, to): (&str, &str),
        keys: &[Vec<u8>],
        sizes: &[u64],
        failed: &mut u32,
    ) -> Result<(), Failure> {
        match why.downcast_ref() {
            Some(ClientError::Refused { reply, .. }) if reply.contains("OOM ") => Err(format!(
                "{to} has no memory left, and refuses new keys of the slot until it has: raise its maxmemory"
            )
            .into()),
            Some(ClientError::Refused { reply, .. })
                if reply.contains("BUSYKEY") && self.plan.way == Way::Back =>
            {
                self.drop_stale(from, to, keys)
            }
            Some(ClientError::Refused { reply, .. })
                if reply.starts_with("IOERR") && *failed < TRIES =>
            {
                *failed += 1;
                self.pace.took(sizes, Duration::MAX, Duration::ZERO);
                thread::sleep(AGAIN_AFTER);
                Ok(())
            }
            _ => Err(why),
        }
    }

    /// Others have the nodes for so long; this process stays at it.
    fn rest(&mut self, pause: Duration) -> Result<(), Failure> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            thread::sleep(left.min(BEAT_EVERY));
            if left <= BEAT_EVERY {
                return Ok(());
            }
            self.tell_or_stop()?;
        }
    }

    /// Says how far it is when it is time to, and that it is at it.
    fn tell_or_stop(&mut self) -> Result<(), Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(format!("stopped after {} keys", self.moved.keys).into());
        }
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            eprintln!(
                "{}: {} keys of about {}, {:.1} MB, the longest batch took {:.1} ms",
                self.plan.slots,
                self.moved.keys,
                self.expected.max(self.moved.keys),
                self.moved.bytes as f64 / 1e6,
                self.moved.longest.as_secs_f64() * 1e3
            );
        }
        self.book.keep(self.nodes, &mut self.lease)
    }

    /// One batch. A key that both nodes have, because an answer of the target's was lost, was
    /// served by the node that has the slot: its value is the one that counts. Returns how long
    /// both nodes answered nobody else, by the clock of the source: a node that has much to do lets
    /// a batch wait first.
    fn hand_over(
        &mut self,
        from: &str,
        to: &str,
        keys: &[Vec<u8>],
        expected: Duration,
    ) -> Result<Duration, Failure> {
        let (host, port) = to.rsplit_once(':').ok_or("a node without a port")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let wait = TARGET_WAIT_MIN.max(expected.saturating_mul(10));
        let wait_ms = wait.as_millis().to_string();
        let login = self.nodes.login();
        let mut words: Vec<&[u8]> = vec![b"MIGRATE", host.as_bytes(), port.as_bytes()];
        words.extend([&b""[..], b"0", wait_ms.as_bytes()]);
        if self.plan.way == Way::On {
            words.push(b"REPLACE");
        }
        words.extend(login.iter().map(Vec::as_slice));
        words.push(b"KEYS");
        words.extend(keys.iter().map(Vec::as_slice));
        // Served one after the other, and nobody's in between.
        let asked = [vec![&b"TIME"[..]], words, vec![b"TIME"]];
        let replies = self.nodes.try_all(from, &asked)?;
        match &replies[..] {
            [_, Reply::Error(reply), _] => Err(ClientError::Refused {
                command: "MIGRATE".into(),
                reply: reply.clone(),
            }
            .into()),
            [before, _, after] => {
                let times = time_of(before).zip(time_of(after));
                let took = times.map(|(before, after)| after.saturating_sub(before));
                took.ok_or_else(|| strange(from, &[b"TIME"]))
            }
            _ => Err(strange(from, &[b"MIGRATE"])),
        }
    }

    /// On the way back: of keys that both nodes have, those at `from` are not served, and are old.
    fn drop_stale(&mut self, from: &str, to: &str, keys: &[Vec<u8>]) -> Result<(), Failure> {
        let asked: Vec<_> = keys
            .iter()
            .map(|key| vec![&b"EXISTS"[..], key.as_slice()])
            .collect();
        // Who does not have a key says who may have it: that is an error.
        let there = self.nodes.try_all(to, &asked)?;
        for (key, _) in keys
            .iter()
            .zip(there)
            .filter(|(_, there)| *there == Reply::Integer(1))
        {
            let commands = [vec![&b"ASKING"[..]], vec![b"UNLINK", key.as_slice()]];
            self.nodes.ask_all(from, &commands)?;
        }
        Ok(())
    }
}
