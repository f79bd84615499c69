//! Runs command lines against a keyspace as a session would, without sockets and cores. The one
//! harness of the tests here.

use std::sync::Arc;

use engine::{Engine, Keys, Keyspace, KeyspaceOptions, Outcome, Stop, Sync};
use server::commands::{self, Context, Handler, ScanCursors, Spec};
use server::resp::{Args, Limits, Output, OwnedArgs, Parsed, Parser, Protocol, Reply};

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

/// A tenant of its own, whose commands go one way through the engine.
pub struct Tenant {
    keyspace: Arc<Keyspace>,
    cursors: ScanCursors,
    /// What replies are written in.
    pub protocol: Protocol,
    /// The time of day that commands see.
    pub now_ms: u64,
    phase_2_only: bool,
}

impl Tenant {
    /// Opens the keyspace `name`. With `phase_2_only`, commands do not try to run in memory first.
    pub fn new(engine: &Arc<Engine>, name: &str, phase_2_only: bool) -> Tenant {
        let options = KeyspaceOptions::new(Sync::Never, 16 << 20);
        Tenant {
            keyspace: engine.keyspace(name, options).unwrap(),
            cursors: ScanCursors::default(),
            protocol: Protocol::Resp2,
            now_ms: 1_800_000_000_000,
            phase_2_only,
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
        spec.each_key(args, |key| names.push(key));
        let keys = match spec.handler {
            Handler::Data(_) => Keys::Some(&names),
            Handler::Keyspace(_) => Keys::None,
            Handler::KeyspaceWriter(_) => Keys::All,
            Handler::Table(run) => {
                return run(spec, args, &mut Reply::new(output, self.protocol));
            }
            Handler::Session(_) | Handler::Container => panic!("{spec:?} needs a session"),
        };
        let context = Context {
            cursors: &self.cursors,
            value_bytes_max: 512 << 20,
            range_count_max: 10_000,
            held_bytes_max: usize::MAX,
        };
        let mut work = |access: &mut engine::Access| -> Result<(), Stop> {
            commands::run(
                spec,
                access,
                *args,
                Reply::new(output, self.protocol),
                context,
            )
        };
        if !self.phase_2_only && matches!(spec.handler, Handler::Data(_)) {
            match self.keyspace.try_run(&keys, self.now_ms, &mut work) {
                Outcome::Done { seq, .. } => return self.commit(seq),
                Outcome::Disk => {}
                other => panic!("{spec:?}: {other:?}"),
            }
        }
        let latch = self
            .keyspace
            .latch(&keys, Box::new(|| {}))
            .expect("nobody else is here");
        let ((), seq) = self.keyspace.run(&latch, self.now_ms, &mut work).unwrap();
        self.commit(seq);
    }

    fn commit(&self, seq: u64) {
        self.keyspace.kick();
        self.keyspace.wait_commit(seq).unwrap();
    }
}
