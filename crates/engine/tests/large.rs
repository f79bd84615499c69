//! Long names and large fields: what is refused, and who reads them.

mod common;

use bytes::Bytes;
use common::{close, commit, engine, engine_options, get, run, small};
use engine::device::{DeviceHook, DeviceIo, DeviceStage, Ended, FileKind, Op};
use engine::{
    Access, Allotments, Database, Engine, EngineError, Entry, Keys, KeyspaceOptions, Kind, Object,
    Stop, Sync, Table, NAME_BYTES_MAX,
};
use policy::generator::Generator;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

const MIB: usize = 1 << 20;
const K: &[u8] = b"k";

/// Makes `K` a hash of one field, and says under which id.
fn hash(access: &mut Access, field: &[u8], value: Bytes) -> Result<u64, Stop> {
    let mut header = access.new_collection(Kind::Hash)?;
    access.put_record(Table::Field, header.id, field, value)?;
    header.len = 1;
    let (object, expire_at_ms) = (Object::Collection(header), None);
    access.put(
        K,
        Entry {
            object,
            expire_at_ms,
        },
    )?;
    Ok(header.id)
}

/// Who looks for one of its neighbours would read it, for it is in the index of the file.
#[test]
fn a_long_name_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    let keyspace = engine.keyspace("t", small(Sync::EverySecond)).unwrap();
    let long = vec![b'k'; NAME_BYTES_MAX + 1];
    let value = || Entry::string(Bytes::from_static(b"v"));
    let refused = |ended: Result<(), EngineError>| {
        let said = ended.expect_err("it is too long").reply(false);
        assert!(
            said.starts_with(
                "ERR a key, field or member of 65537 bytes is too long: at most 65536"
            ),
            "{said}"
        );
    };
    refused(commit(&keyspace, &[K, &long], |access| {
        access.put(K, value())?;
        access.put(&long, value())
    }));
    refused(commit(&keyspace, &[K], |access| {
        hash(access, &long, Bytes::new()).map(|_| ())
    }));
    assert_eq!(get(&keyspace, K).unwrap(), None);
    let fits = &long[..NAME_BYTES_MAX];
    commit(&keyspace, &[fits], |access| access.put(fits, value())).unwrap();
    assert_eq!(
        get(&keyspace, fits).unwrap(),
        Some(Bytes::from_static(b"v"))
    );
    // Who asks is told that there is none.
    assert_eq!(get(&keyspace, &long).unwrap(), None);
    engine.shutdown();
}

/// Each would have all of it in memory before it is counted.
#[test]
fn a_large_field_is_read_by_one_at_a_time() {
    const AT_ONCE: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let reads = Arc::new(LargeReads::default());
    let mut options = KeyspaceOptions::new(Sync::EverySecond, Allotments::objects(1 << 20));
    options.device = Some(DeviceHook {
        stage: Arc::clone(&reads) as Arc<dyn DeviceStage>,
        principal: 0,
    });
    let engine = Engine::open(engine_options(folder.path())).expect("an engine");
    let keyspace = engine.keyspace("t", options).expect("a keyspace");
    let id = commit(&keyspace, &[K], |access| {
        // It cannot be compressed.
        let mut generator = Generator::new(1);
        let large: Bytes = (0..4 * MIB).map(|_| generator.bits() as u8).collect();
        hash(access, b"f", large)
    })
    .unwrap();
    // The log becomes a file when the database opens again.
    close(&keyspace);
    assert!(get(&keyspace, b"other").unwrap().is_none());
    let len = |access: &mut Access| {
        let field = access.record(Table::Field, id, b"f")?;
        Ok(field.map_or(0, |field| field.len()))
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let keys = Keys::In(Database::FIRST, &[]);
                assert_eq!(run(&keyspace, &keys, 1, len).unwrap().0, 4 * MIB);
            });
        }
    });
    assert_eq!(reads.most.load(Ordering::SeqCst), 1);
    engine.shutdown();
}

/// How many read much of a data file at the same time.
#[derive(Default)]
struct LargeReads {
    now: AtomicUsize,
    most: AtomicUsize,
}

fn large(io: &DeviceIo) -> bool {
    io.op == Op::Read && io.file == FileKind::Data && io.bytes >= MIB as u64
}

impl DeviceStage for LargeReads {
    fn begin(&self, io: &DeviceIo) -> u64 {
        if large(io) {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            std::thread::yield_now();
        }
        0
    }

    fn end(&self, io: &DeviceIo, _: u64, _: Ended) {
        if large(io) {
            self.now.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
