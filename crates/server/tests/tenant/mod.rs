//! Runs command lines against a keyspace as a session would, without sockets and cores. The one
//! harness of the tests here.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::Arc;

use commands::{Action, Flags, SessionCommand, Spec};
use engine::{
    Access, Allotments, Database, Engine, Keys, Keyspace, KeyspaceOptions, Latch, Outcome, Site,
    Stop, Sync,
};
use resp::{parse_i64, Args, Limits, Output, OwnedArgs, Parsed, Parser, Protocol, Reply};
use server::data::{self, Context, ScanCursors};

fn parse(command: &str) -> OwnedArgs {
    let line = format!("{command}\r\n");
    let mut parser = Parser::new();
    let limits = Limits {
        line_bytes_max: 16 << 20,
        ..Limits::default()
    };
    let parsed = parser
        .parse(line.as_bytes(), &limits)
        .expect("a command line");
    assert_eq!(parsed, Parsed::Command(line.len()), "{command}");
    parser.args(line.as_bytes()).to_owned()
}

/// How commands go through the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    dead_code,
    reason = "each test compiles this module for itself, and most of them go one way"
)]
pub enum Way {
    /// In memory where they can.
    Memory,
    /// Under a latch.
    Latch,
    /// Over a snapshot, with their replies streamed; those that write, twice.
    Stream,
}

/// A tenant of its own, whose commands go one way through the engine.
pub struct Tenant {
    keyspace: Arc<Keyspace>,
    cursors: ScanCursors,
    /// What replies are written in.
    pub protocol: Protocol,
    /// The time of day that commands see.
    pub now_ms: u64,
    /// What `SELECT` chose.
    database: Cell<Database>,
    way: Way,
}

impl Tenant {
    /// Opens the keyspace `name`.
    pub fn new(engine: &Arc<Engine>, name: &str, way: Way) -> Tenant {
        let options = KeyspaceOptions::new(Sync::Never, Allotments::objects(16 << 20));
        Tenant {
            keyspace: engine.keyspace(name, options).unwrap(),
            cursors: ScanCursors::default(),
            protocol: Protocol::Resp2,
            now_ms: 1_800_000_000_000,
            database: Cell::default(),
            way,
        }
    }

    /// Runs a command line, written as for an inline request, and returns the bytes of its reply.
    pub fn answer(&self, command: &str) -> Vec<u8> {
        let owned = parse(command);
        let args = owned.args();
        let mut output = Output::new();
        match commands::check(&args) {
            Err(error) => Reply::new(&mut output, self.protocol).error(&error.text),
            Ok(spec) => self.run(spec, &args, &mut output),
        }
        output.to_vec()
    }

    fn run(&self, spec: &'static Spec, args: &Args, output: &mut Output) {
        let mut names = Vec::new();
        data::each_key(spec, args, self.database.get(), |database, key| {
            names.push((database, key));
        });
        let keys = match spec.action {
            Action::Session(SessionCommand::Select) => {
                let number = parse_i64(args.get(1)).and_then(Database::new);
                self.database.set(number.expect("a database"));
                return Reply::new(output, self.protocol).ok();
            }
            Action::Data(_) => Keys::Across(&names),
            Action::Keyspace(_) => Keys::None,
            Action::KeyspaceWriter(_) => Keys::All,
            Action::Table(run) => {
                return run(spec, args, &mut Reply::new(output, self.protocol));
            }
            Action::Session(_) | Action::Report(_) | Action::Container | Action::Engine => {
                panic!("{spec:?} needs a session")
            }
        };
        match (self.way, spec.flags.has(Flags::WRITE)) {
            (Way::Stream, true) => return self.run_twice(spec, args, &keys, output),
            (Way::Stream, false) => return self.stream(spec, args, output),
            _ => {}
        }
        let mut work = |access: &mut Access| self.perform(spec, access, args, output);
        if self.way == Way::Memory && matches!(spec.action, Action::Data(_)) {
            match self.keyspace.try_run(&keys, self.now_ms, &mut work) {
                Outcome::Done { seq, .. } => return self.commit(seq),
                Outcome::Disk => {}
                other => panic!("{spec:?}: {other:?}"),
            }
        }
        let latch = self.latch(&keys);
        let ran = self
            .keyspace
            .run(&latch, Site::Apart, self.now_ms, &mut work);
        let ((), seq) = ran.unwrap();
        self.commit(seq);
    }

    fn perform(
        &self,
        spec: &'static Spec,
        access: &mut Access,
        args: &Args,
        output: &mut Output,
    ) -> Result<(), Stop> {
        let context = Context {
            cursors: &self.cursors,
            value_bytes_max: 512 << 20,
            range_count_max: 10_000,
            held_bytes_max: usize::MAX,
        };
        let reply = Reply::new(output, self.protocol);
        access.select(self.database.get());
        data::run(spec, access, *args, reply, context)
    }

    fn stream(&self, spec: &'static Spec, args: &Args, output: &mut Output) {
        let (sink, pieces) = channel();
        let mut streamed = Output::streamed(Box::new(move |piece| sink.send(piece).unwrap()));
        self.keyspace
            .scan(
                self.keyspace.last_seq(),
                Site::Apart,
                self.now_ms,
                &mut |access| self.perform(spec, access, args, &mut streamed),
            )
            .unwrap();
        let (rest, whole) = streamed.end_stream();
        assert!(whole, "{spec:?}");
        pieces.try_iter().for_each(|piece| output.append(piece));
        output.append(rest);
    }

    fn run_twice(&self, spec: &'static Spec, args: &Args, keys: &Keys, output: &mut Output) {
        self.keyspace
            .run_twice(
                self.latch(keys),
                self.now_ms,
                &mut |access| {
                    let mut unseen = Output::unseen();
                    self.perform(spec, access, args, &mut unseen)
                },
                &mut |seq| self.keyspace.wait_commit(seq).is_ok(),
                &mut |access, ()| self.perform(spec, access, args, output),
            )
            .unwrap();
    }

    fn latch(&self, keys: &Keys) -> Latch {
        self.keyspace
            .latch(keys, Box::new(|| {}))
            .expect("nobody else is here")
    }

    fn commit(&self, seq: u64) {
        self.keyspace.kick();
        self.keyspace.wait_commit(seq).unwrap();
    }
}
