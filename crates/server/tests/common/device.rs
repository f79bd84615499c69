//! Prices and I/Os for tests of the device stage.

use engine::device::{Activity, DeviceIo, Ended, FileKind, Op, Tag};
use policy::cost::device::{Calibration, CostModel, Curve, Point, Rule};

/// 4 KiB: read 1 VOP, write 2; 64 KiB: read 8, write 10.
pub fn costs() -> CostModel {
    let point = |bytes, per_s| Point { bytes, per_s };
    let read = Curve::new(Op::Read, vec![point(4 << 10, 80e3), point(64 << 10, 10e3)]);
    let write = Curve::new(Op::Write, vec![point(4 << 10, 40e3), point(64 << 10, 8e3)]);
    let calibration = Calibration::new(read.expect("rates"), write.expect("rates"), 20e3, 8e3);
    CostModel::new(Rule::Exact, &calibration.expect("rates"))
}

pub fn io(op: Op, bytes: u64, activity: Activity, file: FileKind) -> DeviceIo {
    DeviceIo {
        principal: 0,
        op,
        offset: 0,
        bytes,
        file,
        number: 0,
        activity,
        urgent: false,
        tag: Tag(0),
    }
}

pub const DONE: Ended = Ended {
    bytes: 4 << 10,
    ok: true,
};
