//! A real `redis-server` on a free port, ended with the test.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use workload::client::control::Control;
use workload::client::Identity;

pub struct Redis {
    child: Child,
    pub address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Redis {
    /// Starts one, with users `web` and `batch` whose password is `secret`. `None` where the
    /// machine has no redis-server.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("folder");
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|l| l.local_addr())
            .expect("port")
            .port();
        let child = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--dir", folder.path().to_str().expect("path")])
            .args(["--user", "web", "on", ">secret", "~*", "+@all"])
            .args(["--user", "batch", "on", ">secret", "~*", "+@all"])
            .stdout(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("no redis-server on this machine: not tested");
                return None;
            }
            Err(e) => panic!("redis-server: {e}"),
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let redis = Self {
            child,
            address,
            _folder: folder,
        };
        redis.ready();
        Some(redis)
    }

    fn ready(&self) {
        // A refused connect returns at once; yielding lets the server get on. 100,000 refusals are
        // seconds.
        let mut last = String::new();
        for _ in 0..100_000 {
            let identity = Identity::default();
            let answer = Control::connect(self.address, &identity, Duration::from_secs(5))
                .and_then(|mut control| control.command(&[b"PING"]));
            match answer {
                Ok(None) => return,
                Ok(Some(error)) => last = error,
                Err(error) => last = error.to_string(),
            }
            std::thread::yield_now();
        }
        panic!("redis-server did not come up: {last}");
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Redis {
    /// The reply to an inline command, as text.
    #[allow(dead_code, reason = "not every test asks")]
    pub fn ask(&self, command: &str) -> String {
        use std::io::{BufRead, BufReader, Read, Write};
        let mut socket = std::net::TcpStream::connect(self.address).expect("connect");
        socket
            .write_all(format!("{command}\r\n").as_bytes())
            .expect("send");
        let mut reader = BufReader::new(socket);
        let mut header = String::new();
        reader.read_line(&mut header).expect("header");
        let length: usize = header.trim()[1..].parse().expect("a bulk");
        let mut text = vec![0; length];
        reader.read_exact(&mut text).expect("text");
        String::from_utf8(text).expect("UTF-8")
    }
}
