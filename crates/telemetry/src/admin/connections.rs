//! Accepts admin connections: few, and none for long without asking for something.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Tls;

/// Connections served at once; more wait to be accepted. A scraper and a few people need less.
const CONNECTIONS_MAX: usize = 64;

/// How long a handshake or a request's head may take, and an idle connection stay.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// How long one connection may last, so that 64 slow readers cannot hold the address for ever.
const CONNECTION_MAX: Duration = Duration::from_secs(600);

/// A request's head and buffered body; nothing here takes a body.
const BUFFER_MAX: usize = 16 * 1024;

/// Pause after a failed accept: the usual cause, no free descriptors, does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until told to stop, then finishes what is under way within the patience given.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    app: Router,
    mut stop: watch::Receiver<Option<Duration>>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let patience = loop {
        tokio::select! {
            accepted = accept(&listener, &permits) => {
                let Some((stream, permit)) = accepted else { continue };
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(BUFFER_MAX);
                let service = TowerToHyperService::new(app.clone());
                // A peer that breaks off or stays too long concerns nobody else.
                match &tls {
                    None => {
                        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
                        tokio::spawn(async move {
                            let _ = timeout(CONNECTION_MAX, connection).await;
                            drop(permit);
                        });
                    }
                    Some(tls) => {
                        let acceptor = TlsAcceptor::from(Arc::clone(&tls.read()));
                        let watcher = graceful.watcher();
                        tokio::spawn(async move {
                            if let Ok(Ok(stream)) = timeout(HEAD_MAX, acceptor.accept(stream)).await {
                                let connection = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
                                let _ = timeout(CONNECTION_MAX, connection).await;
                            }
                            drop(permit);
                        });
                    }
                }
            }
            patience = told(&mut stop) => break patience,
        }
    };
    drop(listener);
    let _ = timeout(patience, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(_) => {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Waits for the order to stop; a handle that vanished without one counts as an order to stop at
/// once.
async fn told(stop: &mut watch::Receiver<Option<Duration>>) -> Duration {
    match stop.wait_for(Option::is_some).await {
        Ok(patience) => patience.unwrap_or_default(),
        Err(_) => Duration::ZERO,
    }
}
