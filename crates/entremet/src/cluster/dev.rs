//! `entremet cluster dev`: engines and fronts on this machine, all of which end with it.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::book::Book;
use super::engines::{cluster, command};
use super::reach::{Nodes, Reach};
use super::{first, DevArgs, Failure};

/// Engines that are looked for.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
/// Between two looks at processes and signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After a process was told to end.
const PATIENCE: Duration = Duration::from_secs(15);
/// Of fronts, where nobody says anything else.
const CONFIG: &str = "[server]\ncores = 1\n";
/// What a front says when it is ready.
const READY: &str = "entremet is ready: ";

/// Fronts that have said something so often since all were there have heard of each other.
const BEATS: usize = 3;

/// Processes that are ended, and a folder that is removed.
struct Dev {
    folder: PathBuf,
    /// What each is, and its process. What was started last is ended first: fronts end before
    /// their engines.
    processes: Vec<(String, Child)>,
}

impl Drop for Dev {
    fn drop(&mut self) {
        for (_, process) in self.processes.iter_mut().rev() {
            end(process);
        }
        if let Err(why) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays behind: {why}", self.folder.display());
        }
    }
}

/// Runs until it is told to stop.
///
/// # Errors
/// What kept it from starting.
pub fn run(args: &DevArgs) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let slots = first::slots(args.nodes.into(), &args.place)?;
    let program = match &args.engine {
        Some(program) => program.clone(),
        None => found()?,
    };
    let folder = env::temp_dir().join(format!("entremet-cluster-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut dev = Dev {
        folder,
        processes: Vec::new(),
    };
    let (masters, replicas) = (usize::from(args.nodes), usize::from(args.replicas));
    let engines = cluster(&program, &dev.folder, &slots, replicas)?;
    let places: Vec<String> = engines.iter().map(|one| one.at.to_string()).collect();
    let limited = engines.iter().try_for_each(|one| one.limit(args.processor));
    let engines = engines.into_iter().zip(&places);
    let engines = engines.map(|(engine, at)| (format!("the engine at {at}"), engine.process));
    dev.processes.extend(engines);
    limited?;
    let url = format!("redis-cluster://{}", places.join(","));
    let config = match &args.config {
        Some(file) => file.clone(),
        None => {
            let file = dev.folder.join("front.toml");
            fs::write(&file, CONFIG)?;
            file
        }
    };
    let mut said = Vec::new();
    for (number, node) in places[..masters].iter().enumerate() {
        let folder = dev.folder.join(format!("front{number}"));
        let (process, ready) = front(&folder, &url, node, &config)?;
        dev.processes
            .push((format!("front {}", number + 1), process));
        said.push(ready);
    }
    acquainted(&url, masters)?;
    if let Some(every) = &args.control {
        let process = control(&url, &every.to_string(), args.processor)?;
        dev.processes.push(("control".into(), process));
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "entremet cluster is ready: {}; engines at {}",
        said.join("; "),
        places.join(", ")
    )?;
    out.flush()?;
    while !stop.load(Ordering::Relaxed) {
        dev.processes
            .retain_mut(|(what, process)| match process.try_wait() {
                Ok(Some(status)) if !stop.load(Ordering::Relaxed) => {
                    eprintln!("entremet: {what} has ended: {status}");
                    false
                }
                _ => true,
            });
        if dev.processes.is_empty() {
            return Err("nothing is left of the cluster".into());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// An engine's program on the path.
fn found() -> Result<PathBuf, Failure> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let places = PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let mut places = places.filter(|place| place.is_file());
    places.next().ok_or_else(|| {
        "neither valkey-server nor redis-server is found: install one, or name it with --engine"
            .into()
    })
}

/// Waits until so many fronts have heard of each other.
fn acquainted(url: &str, count: usize) -> Result<(), Failure> {
    let mut nodes = Nodes::new(&Reach::plain(url.parse()?));
    let mut book = Book::find(&nodes.agreed(&[])?)?;
    let patience_ends = Instant::now() + PATIENCE;
    let (mut beats, mut before) = (0, Vec::new());
    while beats < BEATS {
        let fronts = book.fronts(&mut nodes)?;
        // Every entry has a number that grows.
        let all_said = fronts.len() == count && fronts.iter().all(|entry| !before.contains(entry));
        if all_said {
            (beats, before) = (beats + 1, fronts);
        }
        if Instant::now() > patience_ends {
            return Err("fronts do not hear of each other".into());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Starts what places partitions.
fn control(url: &str, every: &str, part: f64) -> io::Result<Child> {
    command(&env::current_exe()?)
        .args(["cluster", "control", "--at", url, "--every", every])
        .args(["--processor", &part.to_string()])
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .spawn()
}

/// Starts a front before a node, and waits until it says that it is ready.
fn front(folder: &Path, url: &str, node: &str, config: &Path) -> Result<(Child, String), Failure> {
    let mut process = command(&env::current_exe()?)
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--cluster-listen", "127.0.0.1:0", "--node", node])
        .args(["--engine", url, "--config"])
        .arg(config)
        .arg("--data")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(out) = process.stdout.take() {
        // It says nothing else.
        BufReader::new(out).read_line(&mut line)?;
    }
    match line.trim_end().strip_prefix(READY) {
        Some(ready) => Ok((process, ready.to_owned())),
        None => {
            end(&mut process);
            Err("a front did not start; it has said above why".into())
        }
    }
}

/// Ends a process: it is asked, and if it does not end then, it is killed.
fn end(process: &mut Child) {
    if let Some(id) = Pid::from_raw(process.id() as i32) {
        // It may have ended by itself.
        let _ = kill_process(id, Signal::TERM);
    }
    let patience_ends = Instant::now() + PATIENCE;
    while matches!(process.try_wait(), Ok(None)) {
        if Instant::now() > patience_ends {
            let _ = process.kill();
            let _ = process.wait();
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}
