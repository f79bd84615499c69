//! `entremet top`: tenants and stages in a terminal, as the dashboard shows them in a browser.
//!
//! * the admin address is asked on a thread of its own, so that keys answer while it waits;
//! * [`view`] is what the user chose to see, [`key`] what terminals send;
//! * [`overview`] and [`tenant`] make lines of it, [`screen`] shows them.

mod column;
mod key;
mod line;
mod numbers;
mod overview;
mod screen;
mod tenant;
mod view;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use telemetry::live::view::{LiveView, TenantDetail};

pub use column::Column;

use crate::admin::{Admin, AdminArgs, FetchError};
use line::{Line, Look};
use screen::{Screen, Woken};
use view::{After, Page, View};

/// Between two questions; the server's numbers change as often.
const EVERY: Duration = Duration::from_secs(1);

/// `entremet top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// Show this tenant's page
    #[arg(value_name = "TENANT")]
    pub tenant: Option<String>,

    /// Which server
    #[command(flatten)]
    pub server: AdminArgs,

    /// Print one table and end; also what happens when the output is not a terminal
    #[arg(long)]
    pub once: bool,

    /// Column to sort by, largest first (names from A)
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "rate")]
    pub sort: Column,

    /// Show only tenants whose name holds this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
}

/// What is known of the server, and what is wanted of it.
#[derive(Default)]
struct News {
    live: Option<LiveView>,
    detail: Option<Result<TenantDetail, String>>,
    /// Why the last question was not answered.
    silent: Option<String>,
    heard: Option<Instant>,
    /// The tenant whose page is in view.
    wanted: Option<String>,
    ended: bool,
}

type Shared = Arc<(Mutex<News>, Condvar)>;

/// Runs the command.
///
/// # Errors
/// The admin address does not answer, there is no such tenant, or the terminal cannot be had.
pub fn run(args: &TopArgs) -> Result<(), Box<dyn Error>> {
    let admin = Admin::of(&args.server)?;
    let page = args.tenant.clone().map_or(Page::All, Page::Tenant);
    let mut view = View::new(args.sort, page);
    view.filter.clone_from(&args.filter);
    if args.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return once(&admin, &view);
    }
    // A wrong address or name is told before the screen is taken.
    let news = News {
        live: Some(admin.live()?),
        detail: args
            .tenant
            .as_deref()
            .map(|name| admin.tenant(name))
            .transpose()?
            .map(Ok),
        heard: Some(Instant::now()),
        wanted: args.tenant.clone(),
        ..News::default()
    };
    let shared: Shared = Arc::new((Mutex::new(news), Condvar::new()));
    let (told, tell) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    tell.set_nonblocking(true)?;
    let asker = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || ask(&admin, &shared, tell))
    };
    let done = watch(&mut view, &shared, &told);
    lock(&shared).ended = true;
    shared.1.notify_all();
    // It may be waiting for an answer that takes seconds; the end of the program ends it.
    drop(asker);
    done.map_err(Into::into)
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, News> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints one page.
fn once(admin: &Admin, view: &View) -> Result<(), Box<dyn Error>> {
    let lines = match &view.page {
        Page::Tenant(name) => tenant::page(&admin.tenant(name)?),
        _ => {
            let live = admin.live()?;
            let mut lines = overview::server(&live);
            lines.push(overview::count(view, &live, view.rows(&live).len()));
            let all = usize::MAX;
            // Wide enough for every column.
            lines.extend(overview::table(view, &live, 150, all));
            lines.push(Line::default());
            lines.extend(overview::stages(&live, all));
            lines
        }
    };
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{}", line.text().trim_end())?;
    }
    Ok(())
}

/// Asks once a second, and at once when another tenant is wanted.
fn ask(admin: &Admin, shared: &Shared, mut tell: UnixStream) {
    loop {
        let wanted = lock(shared).wanted.clone();
        let live = admin.live();
        let detail = wanted.as_deref().map(|name| admin.tenant(name));
        let mut news = lock(shared);
        match live {
            Ok(live) => {
                (news.live, news.silent, news.heard) = (Some(live), None, Some(Instant::now()));
            }
            Err(error) => news.silent = Some(error.to_string()),
        }
        match detail {
            None => news.detail = None,
            Some(Ok(detail)) => news.detail = Some(Ok(detail)),
            Some(Err(error @ FetchError::NoSuchTenant(_))) => {
                news.detail = Some(Err(error.to_string()));
            }
            // The last numbers stay; `silent` says that they are old.
            Some(Err(_)) => {}
        }
        // A full pipe has news enough.
        let _ = tell.write(&[1]);
        let waiting = shared
            .1
            .wait_timeout_while(news, EVERY, |news| !news.ended && news.wanted == wanted);
        if waiting.unwrap_or_else(PoisonError::into_inner).0.ended {
            return;
        }
    }
}

/// Shows and obeys until told to end.
fn watch(view: &mut View, shared: &Shared, told: &UnixStream) -> io::Result<()> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let screen = Screen::take(colours)?;
    let mut live = lock(shared).live.clone();
    let mut detail = None;
    loop {
        let silent = {
            let news = lock(shared);
            if !view.paused {
                live.clone_from(&news.live);
                detail.clone_from(&news.detail);
            }
            let ago = news.heard.map_or(0, |heard| heard.elapsed().as_secs());
            news.silent
                .clone()
                .map(|why| format!("no answer for {ago} s: {why}"))
        };
        let (width, height) = screen.size();
        let rows = height.saturating_sub(8);
        screen.show(&frame(
            view,
            live.as_ref(),
            detail.as_ref(),
            silent,
            (width, height),
        ))?;
        match screen.wait(told)? {
            Woken::Ended => return Ok(()),
            Woken::Look => {}
            Woken::Keys(keys) => {
                for key in keys {
                    let names: Vec<&str> = live
                        .iter()
                        .flat_map(|live| view.rows(live))
                        .map(|row| row.name.as_str())
                        .collect();
                    if view.key(key, &names, rows) == After::Quit {
                        return Ok(());
                    }
                }
                want(view, shared, &mut detail);
            }
        }
    }
}

/// Tells the asker whose page is in view.
fn want(view: &View, shared: &Shared, detail: &mut Option<Result<TenantDetail, String>>) {
    let wanted = match &view.page {
        Page::Tenant(name) => Some(name.clone()),
        _ => None,
    };
    let mut news = lock(shared);
    if news.wanted != wanted {
        // What is there is of another tenant.
        (news.wanted, news.detail, *detail) = (wanted, None, None);
        shared.1.notify_all();
    }
}

/// All lines of the screen.
fn frame(
    view: &View,
    live: Option<&LiveView>,
    detail: Option<&Result<TenantDetail, String>>,
    silent: Option<String>,
    (width, height): (usize, usize),
) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(live) = live {
        lines.extend(overview::server(live));
    }
    lines.extend(silent.map(|why| Line::new(why, Look::Bad)));
    if view.paused {
        lines.push(Line::new("paused; p goes on", Look::Warn));
    }
    let left = height.saturating_sub(lines.len() + 1);
    match (&view.page, live) {
        (Page::Help, _) => lines.extend(help()),
        (Page::Tenant(_), _) => lines.extend(match detail {
            Some(Ok(detail)) => tenant::page(detail),
            Some(Err(why)) => vec![Line::new(why, Look::Warn)],
            None => vec![Line::new("asking …", Look::Faint)],
        }),
        (Page::All, Some(live)) => {
            let stages = overview::stages(live, left);
            lines.push(overview::count(view, live, view.rows(live).len()));
            let rows = left.saturating_sub(stages.len() + 2);
            lines.extend(overview::table(view, live, width, rows));
            let blank = height.saturating_sub(lines.len() + stages.len() + 1);
            lines.extend(std::iter::repeat_n(Line::default(), blank));
            lines.extend(stages);
        }
        (Page::All, None) => {}
    }
    lines.truncate(height.saturating_sub(1));
    lines.push(Line::new(hint(view), Look::Faint));
    lines
}

fn hint(view: &View) -> &'static str {
    match (&view.page, view.editing) {
        (_, true) => "type a part of a name   Enter keep   Esc clear",
        (Page::All, _) => {
            "q end  p pause  / filter  s sort  r reverse  j k Enter tenant  i idle  ? keys"
        }
        (Page::Tenant(_), _) => "Esc all tenants  p pause  q end",
        (Page::Help, _) => "any key: back",
    }
}

fn help() -> Vec<Line> {
    let keys = [
        ("q, Ctrl-C", "end"),
        ("p, blank", "pause and go on"),
        ("/", "filter tenants by name"),
        ("j k, ↓ ↑", "next, previous tenant; also page and Home, End"),
        ("Enter", "open the tenant"),
        ("Esc", "clear the filter; back to all tenants"),
        ("s, S", "sort by the next, previous column"),
        ("r", "reverse the order"),
        ("i", "hide and show idle tenants"),
    ];
    let line = |(key, does): &(&str, &str)| {
        Line::new(format!("  {key:12}"), Look::Strong).and(*does, Look::Plain)
    };
    keys.iter().map(line).collect()
}
