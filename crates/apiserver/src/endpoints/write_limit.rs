//! Answers a write in its time, though the write itself goes on.

use crate::base::{
    body::RequestBody, deadline::RequestDeadline, request::Request, request_info::RequestInfo,
    response::Response,
};
use futures_util::future::{Either, select};
use pintle_machinery::Status;
use std::{convert::Infallible, pin::pin};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

/// The time of a write, and the way to answer it when that is over.
pub(crate) struct WriteLimit {
    deadline: Instant,
    /// Closes when the body is read, which has the time of the request.
    body: Option<oneshot::Receiver<Infallible>>,
    answer: oneshot::Sender<Response>,
}

impl WriteLimit {
    /// The limit of a request, and the response at its end; `None` for a request that is no write, or ends before.
    pub(crate) fn of(
        request: &mut Request,
        info: &RequestInfo,
    ) -> Option<(WriteLimit, oneshot::Receiver<Response>)> {
        // The deletion of a collection has the time of its request, as a list.
        if !matches!(info.verb.as_str(), "create" | "update" | "patch" | "delete") {
            return None;
        }
        let deadline = request.extensions().get::<RequestDeadline>()?.of_long_write()?;
        let body = match request.body_mut() {
            RequestBody::Incoming(body) if !body.is_over() => Some(body.end()),
            _ => None,
        };
        let (answer, answered) = oneshot::channel();
        Some((WriteLimit { deadline, body, answer }, answered))
    }

    /// Awaits the result of a write. When its time is over, `respond` makes the response meanwhile.
    pub(super) async fn result<T>(
        self,
        write: impl Future<Output = T> + Unpin,
        respond: impl FnOnce(Status) -> Response,
    ) -> T {
        let WriteLimit { deadline, body, answer } = self;
        let over = pin!(async {
            if let Some(body) = body {
                let Err(_closed) = body.await;
            }
            sleep_until(deadline).await;
        });
        match select(write, over).await {
            Either::Left((result, _)) => result,
            Either::Right(((), write)) => {
                // The receiver is gone if the client is.
                drop(answer.send(respond(Status::deadline_exceeded())));
                write.await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::response::text;
    use futures_util::future::join;
    use http_body_util::BodyExt as _;
    use std::time::Duration;
    use tokio::time::sleep;

    const SECOND: Duration = Duration::from_secs(1);

    fn respond(status: Status) -> Response {
        text(status.code, status.message)
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_answered_in_its_time_and_goes_on() {
        // (the time of the body, that of the write, that of the answer), in seconds
        for (read, written, answered_after) in
            [(0, 33, None), (0, 35, Some(34)), (33, 35, Some(34)), (40, 45, Some(40)), (40, 40, None)]
        {
            let begun = Instant::now();
            let (body_end, body) = oneshot::channel();
            let (answer, answered) = oneshot::channel();
            let limit = WriteLimit { deadline: begun + 34 * SECOND, body: Some(body), answer };
            let write = Box::pin(async move {
                sleep(read * SECOND).await;
                drop(body_end);
                sleep((written - read) * SECOND).await;
                "written"
            });
            let answered = async { (answered.await.ok(), begun.elapsed().as_secs()) };
            let ((response, after), result) = join(answered, limit.result(write, respond)).await;
            assert_eq!((result, begun.elapsed()), ("written", written * SECOND));
            assert_eq!(response.is_some().then_some(after), answered_after, "{read} {written}");
            if let Some(response) = response {
                assert_eq!(response.status(), 504);
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(
                    body,
                    "Timeout: request did not complete within requested timeout - context deadline exceeded"
                );
            }
        }
    }
}
