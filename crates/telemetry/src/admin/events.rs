//! Frames for those who watch: by asking, or as a stream of server-sent events.
//!
//! A watcher only ever holds the latest frame: one who reads slowly skips frames, and nothing waits
//! or piles up for him. Seats are few, so that watchers cannot keep a health check from the
//! address.

use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State as Extract};
use axum::http::{header, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::Json;
use futures_util::stream::unfold;
use tokio::sync::{watch, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{interval, MissedTickBehavior};

use super::routes::{error, no_such_tenant};
use super::Shared;
use crate::live::view::TenantDetail;
use crate::live::{Frame, History, STEP};
use crate::model::AdminSource;

/// Streams at once; half of the connections that the admin address serves.
const SEATS: usize = 32;

/// How long after the last question frames are still made.
const UNWATCHED_MAX_NS: u64 = 10_000_000_000;

/// How soon a browser comes back when its stream ends.
const RETRY: Duration = Duration::from_secs(1);

type Latest = Option<Arc<Frame>>;

/// The latest frame, and who wants one.
pub(super) struct Feed {
    frames: watch::Sender<Latest>,
    seats: Arc<Semaphore>,
    asked: Notify,
    asked_at_ns: AtomicU64,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            frames: watch::channel(None).0,
            seats: Arc::new(Semaphore::new(SEATS)),
            asked: Notify::new(),
            asked_at_ns: AtomicU64::new(0),
        }
    }
}

impl Feed {
    /// A receiver of frames; from now on there are some.
    fn watch(&self, now_ns: u64) -> watch::Receiver<Latest> {
        let frames = self.frames.subscribe();
        self.asked_at_ns.store(now_ns, Relaxed);
        self.asked.notify_one();
        frames
    }

    fn is_watched(&self, now_ns: u64) -> bool {
        let since_ns = now_ns.saturating_sub(self.asked_at_ns.load(Relaxed));
        self.frames.receiver_count() > 0 || since_ns < UNWATCHED_MAX_NS
    }
}

/// Makes frames while somebody wants them; runs as long as the admin server.
pub(super) async fn feed(shared: Arc<Shared>) {
    loop {
        shared.feed.asked.notified().await;
        let mut history = History::default();
        let mut steps = interval(STEP);
        // After a pause of the machine the next frames must still be a second apart.
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shared.feed.is_watched(shared.now_ns()) {
            steps.tick().await;
            let frame = history.step(shared.source.as_ref(), &shared.registry, shared.now_ns());
            if let Some(frame) = frame {
                shared.feed.frames.send_replace(Some(Arc::new(frame)));
            }
        }
        // What comes next must not be measured against what was long ago.
        shared.feed.frames.send_replace(None);
    }
}

/// The frame of this second. The first one who asks waits for it, two seconds at most.
async fn latest(shared: &Shared) -> Latest {
    let mut frames = shared.feed.watch(shared.now_ns());
    let wait = frames.wait_for(Option::is_some);
    let frame = tokio::time::timeout(2 * STEP, wait).await.ok()?.ok()?;
    frame.clone()
}

/// `GET /api/live`.
pub(super) async fn live(Extract(shared): Extract<Arc<Shared>>) -> Response {
    match latest(&shared).await {
        Some(frame) => json(frame.json.clone()),
        None => too_early("/api/live"),
    }
}

/// One tenant, if there is one of that name.
fn detail(frame: &Frame, source: &dyn AdminSource, name: &str) -> Option<TenantDetail> {
    let detail = frame.detail(name)?;
    let settings = source.settings(name);
    Some(TenantDetail { settings, ..detail })
}

/// `GET /api/live/{name}`.
pub(super) async fn live_tenant(
    Extract(shared): Extract<Arc<Shared>>,
    Path(name): Path<String>,
) -> Response {
    match latest(&shared).await {
        Some(frame) => match detail(&frame, shared.source.as_ref(), &name) {
            Some(detail) => Json(detail).into_response(),
            None => no_such_tenant(&name, format!("/api/live/{name}")),
        },
        None => too_early(&format!("/api/live/{name}")),
    }
}

/// `GET /api/events`.
pub(super) async fn events(Extract(shared): Extract<Arc<Shared>>) -> Response {
    stream(&shared, None)
}

/// `GET /api/events/{name}`.
pub(super) async fn events_tenant(
    Extract(shared): Extract<Arc<Shared>>,
    Path(name): Path<String>,
) -> Response {
    stream(&shared, Some(name))
}

/// One watcher's stream.
struct Watcher {
    frames: watch::Receiver<Latest>,
    stop: watch::Receiver<Option<Duration>>,
    source: Arc<dyn AdminSource>,
    tenant: Option<String>,
    /// The tenant's event of a frame whose first event has been sent.
    then: Option<Event>,
    _seat: OwnedSemaphorePermit,
}

fn stream(shared: &Shared, tenant: Option<String>) -> Response {
    let Ok(seat) = Arc::clone(&shared.feed.seats).try_acquire_owned() else {
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{SEATS} streams are open, no more are served"),
            "/api/events".into(),
            "close a dashboard, or GET /api/live".into(),
        );
    };
    let mut frames = shared.feed.watch(shared.now_ns());
    frames.mark_changed();
    let watcher = Watcher {
        frames,
        stop: shared.stop.clone(),
        source: Arc::clone(&shared.source),
        tenant,
        then: None,
        _seat: seat,
    };
    let events = unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Sse::new(events).into_response()
}

impl Watcher {
    /// The next event; none when the server stops.
    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.then.take() {
            return Some(event);
        }
        loop {
            // Whoever stops the server does not wait for its watchers.
            until(self.frames.changed(), &mut self.stop).await?;
            let Some(frame) = self.frames.borrow_and_update().clone() else {
                continue;
            };
            if let Some(name) = &self.tenant {
                let event = Event::default().event("tenant");
                let detail = detail(&frame, self.source.as_ref(), name);
                self.then = event.json_data(detail).ok();
            }
            let event = Event::default().event("live").retry(RETRY);
            return Some(event.data(&frame.json));
        }
    }
}

/// What the future comes to, or none when it fails or the order to stop comes first.
async fn until<T, E>(
    future: impl Future<Output = Result<T, E>>,
    stop: &mut watch::Receiver<Option<Duration>>,
) -> Option<T> {
    tokio::select! {
        done = future => done.ok(),
        _ = stop.wait_for(Option::is_some) => None,
    }
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn too_early(place: &str) -> Response {
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "there is no reading yet".into(),
        place.into(),
        "GET it again".into(),
    )
}
