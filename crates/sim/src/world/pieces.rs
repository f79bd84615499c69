//! Pieces of operations at a node's disks, from the turn until a handler has done with them.

use super::disk::{stream, Moving, Work};
use super::{Event, World};
use crate::prices::Prices;
use policy::cost::device::Vop;
use policy::device::Event as Tells;
use policy::dispatch::Next;

impl World<'_> {
    /// Gives disks what they may have; says when a stage wants to be asked again.
    fn begin_pieces(&mut self, node: u32) {
        let now = self.agenda.now();
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        for stage in 0..disk.stages.len() {
            loop {
                match disk.stages[stage].next(now) {
                    Next::Idle => {
                        if let Some(followed) = disk.followed.get_mut(stage) {
                            followed.limited &= disk.stages[stage].queued() > 0;
                        }
                        break;
                    }
                    Next::At(at) => {
                        if disk.asks(now, stage + 1, at) {
                            self.agenda.after(at - now, Event::Device { node });
                        }
                        break;
                    }
                    Next::Grant(grant) => {
                        let handler = grant.item;
                        let piece_bytes = disk.piece_bytes(&disk.handling[handler].work);
                        let work = &mut disk.handling[handler].work;
                        if !std::mem::replace(&mut work.begun, true) {
                            work.granted_at[1] = now;
                        }
                        let io = work.next_io(piece_bytes);
                        let arm = work.stage();
                        let ticket = grant.ticket;
                        let tag = disk.moving.insert(Moving {
                            handler,
                            ticket,
                            io,
                            since: now,
                        });
                        disk.arms[arm].submit(now, tag as u64, io);
                    }
                }
            }
        }
    }

    /// Takes from the disks what is done; whether a handler runs for any of it already.
    fn end_pieces(&mut self, node: u32, done: &mut Vec<Work>) -> bool {
        let now = self.agenda.now();
        let wake_ns = self.spec.cluster.device.as_ref().map_or(0, |d| d.wake_ns);
        let mut any = false;
        let disk = self.nodes[node as usize].disk.as_ref();
        let disks = disk.map_or(0, |disk| disk.arms.len());
        for number in 0..disks {
            while let Some(disk) = &mut self.nodes[node as usize].disk {
                let arm = &mut disk.arms[number];
                let piece = match arm.next(now) {
                    Tells::Done { tag, .. } => tag as u32,
                    Tells::Idle => break,
                    Tells::At(at) => {
                        if at < arm.look_at || arm.look_at <= now {
                            arm.look_at = at;
                            self.agenda.after(at - now, Event::Device { node });
                        }
                        break;
                    }
                };
                if wake_ns > 0 {
                    self.agenda.after(wake_ns, Event::Woken { node, piece });
                    continue;
                }
                any = true;
                self.ended(node, piece as usize, done);
            }
        }
        any
    }

    /// A handler runs again after its I/O, and gives the permit back.
    fn ended(&mut self, node: u32, piece: usize, done: &mut Vec<Work>) {
        let now = self.agenda.now();
        let prices = self.prices.as_ref();
        let piece_ns = self.spec.cluster.device.as_ref().map_or(0, |d| d.piece_ns);
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        let moved = disk.moving.remove(piece);
        let timed = moved.ticket.timed();
        if let Some(keeper) = self.keeper.as_mut().filter(|_| !timed) {
            keeper.others_pieces.0 += now - moved.since;
            keeper.others_pieces.1 += 1;
        }
        let cost = |p: &Prices| p.costs.cost(moved.io.op, moved.io.bytes);
        let price = prices.map_or(Vop::ZERO, cost);
        let (handler, bytes) = (moved.handler, moved.io.bytes);
        let work = &mut disk.handling[handler].work;
        let stage = work.stage();
        if work.elsewhere.is_none() {
            work.done_bytes += bytes;
        }
        disk.settle(now, stage, moved, price);
        match piece_ns {
            0 => self.go_on(node, handler, done),
            _ => {
                let handler = handler as u32;
                self.agenda.after(piece_ns, Event::Worked { node, handler });
            }
        }
    }

    /// A handler asks for the next piece, or is done.
    fn go_on(&mut self, node: u32, handler: usize, done: &mut Vec<Work>) {
        let now = self.agenda.now();
        let Some(disk) = &mut self.nodes[node as usize].disk else {
            return;
        };
        let work = &disk.handling[handler].work;
        let (principal, stage) = (work.principal, work.stage());
        let (goes, more) = (work.elsewhere.is_some(), work.done_bytes < work.io.bytes);
        let goes_on = more && work.copy.is_some();
        if goes || !goes_on {
            disk.stages[stage].end_stream(principal, stream(handler));
        }
        if goes_on {
            disk.move_on(handler, &mut self.noise);
            disk.ask(now, handler);
            return;
        }
        done.push(disk.hand_back(now, handler));
    }

    /// [`Event::Woken`].
    pub(super) fn woken(&mut self, node: u32, piece: usize) {
        let mut done = Vec::new();
        self.ended(node, piece, &mut done);
        self.work_pieces(node, done);
    }

    /// [`Event::Worked`].
    pub(super) fn worked(&mut self, node: u32, handler: usize) {
        let mut done = Vec::new();
        self.go_on(node, handler, &mut done);
        self.work_pieces(node, done);
    }

    /// Gives the disks what they may have, and takes from them what is done.
    pub(super) fn work_device(&mut self, node: u32) {
        self.work_pieces(node, Vec::new());
    }

    fn work_pieces(&mut self, node: u32, mut done: Vec<Work>) {
        let now = self.agenda.now();
        self.hand_out(node);
        self.begin_pieces(node);
        while self.end_pieces(node, &mut done) {
            self.hand_out(node);
            self.begin_pieces(node);
        }
        for work in done {
            if let Some(copy) = work.copy {
                self.note_work(copy, &work);
                self.count(node, copy);
                self.finish(node, copy, now - work.granted_at[1]);
            }
        }
    }
}
