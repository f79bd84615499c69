//! Partitions that are moved during a run, by `entremet cluster move`.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::nodes::Nodes;
use crate::server::{pinned, Server};

/// Moves that are due at their time, one after the other.
pub struct Moves<'r> {
    binary: &'r Path,
    cores: &'r [usize],
    /// Where engines are, in the order of nodes.
    engines: Vec<String>,
    /// As the command line has them.
    allows: Vec<String>,
    /// When each is due, s, which partition it is of, and to which node it goes, from 0.
    to_come: VecDeque<(f64, &'r str, usize)>,
    under_way: Option<Child>,
    /// How many have come to their end.
    pub done: u32,
    /// What the first that failed has said.
    pub failed: Option<String>,
}

impl<'r> Moves<'r> {
    /// Those that a scenario asks for.
    pub fn new(binary: &'r Path, cores: &'r [usize], server: &Server, nodes: &'r Nodes) -> Self {
        Self {
            binary,
            cores,
            engines: server.engines(),
            allows: nodes.allows(),
            to_come: nodes.moves().collect(),
            under_way: None,
            done: 0,
            failed: None,
        }
    }

    /// Begins what is due at this time, when nothing is under way.
    pub fn look(&mut self, at_s: f64) {
        let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if self.under_way.as_mut().is_some_and(ended) {
            self.wait();
        }
        let due = self.to_come.front().is_some_and(|(due, ..)| *due <= at_s);
        if due && self.under_way.is_none() && self.failed.is_none() {
            if let Some((_, what, to)) = self.to_come.pop_front() {
                match self.begin(what, to) {
                    Ok(child) => self.under_way = Some(child),
                    Err(why) => self.failed = Some(why),
                }
            }
        }
    }

    fn begin(&self, what: &str, to: usize) -> Result<Child, String> {
        let node = self.engines.get(to).ok_or("engines are not known")?;
        let at = format!("redis-cluster://{}", self.engines.join(","));
        let mut command = pinned(self.cores, self.binary);
        command.args(["cluster", "move", "--at", &at, what, "--to", node]);
        command.args(&self.allows);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        quiet
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|why| why.to_string())
    }

    /// Waits until what is under way has come to its end.
    pub fn wait(&mut self) {
        let Some(mut child) = self.under_way.take() else {
            return;
        };
        let mut said = String::new();
        if let Some(mut errors) = child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        match child.wait() {
            Ok(status) if status.success() => self.done += 1,
            _ => self.failed = Some(said),
        }
    }
}
