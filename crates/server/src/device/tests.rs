//! Devices and I/Os for tests of what is before the databases.

use super::*;
use engine::device::{Activity, FileKind, Tag};
use policy::cost::device::{Calibration, Curve, Point, Rule};

/// A device that does 10,000 I/Os a second.
pub(crate) fn options() -> DeviceOptions {
    let point = |bytes, per_s| Point { bytes, per_s };
    let curve = |op| {
        let points = vec![point(4 << 10, 1e4), point(64 << 10, 1e3)];
        Curve::new(op, points).expect("rates")
    };
    let calibration = Calibration::new(curve(Op::Read), curve(Op::Write), 1e4, 1e4);
    DeviceOptions {
        costs: CostModel::new(Rule::Exact, &calibration.expect("rates")),
        floor_per_s: 5e3,
        depth: 4,
        chunk_bytes: 64 << 10,
        discipline: Discipline::Fair,
        pricing: Pricing::Profiles,
        overbook: false,
        seeks: false,
        stream_bytes_per_s: 1e9,
        read_alone_ns: [100_000, 200_000],
        doubt: None,
        brief: true,
    }
}

/// A read of a page for a tenant.
pub(crate) fn read(principal: u32) -> DeviceIo {
    DeviceIo {
        principal,
        op: Op::Read,
        offset: 0,
        bytes: 4 << 10,
        file: FileKind::Data,
        number: 0,
        activity: Activity::Get,
        urgent: false,
        tag: Tag(0),
    }
}
