//! What goes wrong.

use policy::Nanos;

/// Machines stand still again and again: their hosts, their kernels and other programs take the
/// processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// Whose machines.
    pub of: Machines,
    /// Mean time from one to the next at each of them, which is as likely at any moment.
    pub every_ns: f64,
    /// How long one lasts.
    pub length_ns: Nanos,
}

/// Whose machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// Every node.
    Nodes,
    /// Every sender.
    Senders,
}

/// Something that goes wrong at a node for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Which node.
    pub node: u32,
    /// From when.
    pub from_ns: Nanos,
    /// Until when.
    pub until_ns: Nanos,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Service takes so many times as long.
    Slow(f64),
    /// Its disks take so many times as long.
    SlowDisks(f64),
    /// Nothing is begun; what is sent there waits.
    Pause,
    /// It is gone, with all that waited there: senders ask another replica. It comes back
    /// empty-handed and in order.
    Dead,
}
