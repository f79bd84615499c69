//! The stages that work passes through, by name.

/// A kind of stage. One more takes a row here, and whoever runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// Before a core: requests.
    Request,
    /// Before the threads that read from the disk.
    Handler,
    /// Before the disk.
    Device,
}

/// How the mean wait before a stage stands in a table of tenants.
#[derive(Clone, Copy, Debug)]
pub struct WaitColumn {
    /// What people write to sort by it.
    pub word: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What stands above it.
    pub heading: &'static str,
    /// Columns of a low rank stay when the table is narrow.
    pub rank: u8,
}

const fn row(
    kind: StageKind,
    name: &'static str,
    (word, heading, rank): (&'static str, &'static str, u8),
    about: &'static str,
) -> (StageKind, &'static str, WaitColumn) {
    let column = WaitColumn {
        word,
        about,
        heading,
        rank,
    };
    (kind, name, column)
}

#[rustfmt::skip]
const ROWS: [(StageKind, &str, WaitColumn); 3] = [
    row(StageKind::Request, "request", ("turn", "turn ms", 7), "Mean wait at the request stage"),
    row(StageKind::Handler, "handler", ("handler", "handl ms", 9), "Mean wait at the handler stage"),
    row(StageKind::Device, "device", ("device", "dev ms", 14), "Mean wait of an I/O at the device stage"),
];

impl StageKind {
    /// Every kind, in the order that work meets them.
    pub const ALL: [Self; ROWS.len()] = {
        let (mut all, mut at) = ([Self::Request; ROWS.len()], 0);
        while at < all.len() {
            all[at] = ROWS[at].0;
            at += 1;
        }
        all
    };

    /// As JSON, metrics and `ENTREMET STAGE` have it.
    pub const fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// How waiting before it is shown.
    pub const fn column(self) -> WaitColumn {
        ROWS[self as usize].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_kinds() {
        for (at, (kind, name, _)) in ROWS.iter().enumerate() {
            assert_eq!((*kind as usize, kind.name()), (at, *name));
        }
    }
}
