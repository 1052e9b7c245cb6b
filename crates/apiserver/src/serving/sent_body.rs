//! Sends a response body to the connection.
//!
//! The body is handed over in pieces of bounded size, each charged to the [`ResponseBudget`], and its progress is
//! reported to the [`Cutoff`] of its stream. A large body ends only after its last piece was sent, so that the cutoff
//! holds until then.

use super::{
    cutoff::{CutOff, Cutoff},
    response_budget::ResponseBudget,
};
use crate::base::{
    body::Body,
    connection::ActiveRequest,
    deadline::SendDeadline,
    response::{Response, SharedFrames, UntilSent},
};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Half the maximum size of a piece, in bytes.
const PIECE_BYTES: usize = 128 << 10;
/// A body of more bytes ends only after its last piece was sent.
const LARGE_BYTES: usize = 64 << 10;
/// Pieces of fewer bytes are not charged.
const CHARGED_BYTES: usize = 4 << 10;
/// The charging threshold, in bytes, for frames that responses share: their memory exists once.
const CHARGED_SHARED_BYTES: usize = 64 << 10;

pub(super) struct SentBody {
    body: Body,
    /// The rest of the last frame, not handed over yet.
    rest: Bytes,
    handed_over: usize,
    /// Whether `body` has ended and must not be polled again.
    has_ended: bool,
    charged_bytes: usize,
    budget: ResponseBudget,
    cutoff: Cutoff,
    request: ActiveRequest,
    _kept: Option<UntilSent>,
}

impl SentBody {
    /// Wraps the body of a response.
    pub(super) fn of(
        response: Response,
        budget: &ResponseBudget,
        cutoff: Cutoff,
        request: ActiveRequest,
    ) -> http::Response<SentBody> {
        let (mut head, body) = response.into_parts();
        cutoff.begin(head.extensions.remove::<SendDeadline>());
        let kept = head.extensions.remove::<UntilSent>();
        let is_shared = head.extensions.remove::<SharedFrames>().is_some();
        let mut body = SentBody {
            body,
            rest: Bytes::new(),
            handed_over: 0,
            has_ended: false,
            charged_bytes: if is_shared { CHARGED_SHARED_BYTES } else { CHARGED_BYTES },
            budget: budget.clone(),
            cutoff,
            request,
            _kept: kept,
        };
        if let Body::Full(Some(_)) = &body.body
            && let Body::Full(Some(bytes)) = std::mem::replace(&mut body.body, Body::empty())
        {
            // The body exists already: the budget had room for it, or it is the response to a write.
            body.rest = match bytes.len() > CHARGED_BYTES {
                true => body.budget.charge_anyway(bytes, &body.cutoff),
                false => bytes,
            };
            body.request.mark_whole();
        }
        http::Response::from_parts(head, body)
    }

    fn next_piece(&mut self) -> Bytes {
        let piece = match self.rest.len() > 2 * PIECE_BYTES {
            true => self.rest.split_to(PIECE_BYTES),
            false => std::mem::take(&mut self.rest),
        };
        self.handed_over += piece.len();
        self.cutoff.handed_over();
        self.request.note_progress();
        piece
    }

    fn is_large(&self) -> bool {
        self.handed_over > LARGE_BYTES
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let this = self.get_mut();
        if let Err(error) = this.cutoff.polled() {
            return Poll::Ready(Some(Err(error)));
        }
        if this.rest.is_empty() {
            let frame = match this.has_ended {
                true => None,
                false => ready!(Pin::new(&mut this.body).poll_frame(context)),
            };
            match frame {
                None => {
                    this.has_ended = true;
                    return match this.is_large() {
                        true => this.cutoff.poll_sent(context).map(|()| None),
                        false => Poll::Ready(None),
                    };
                }
                // Without a proper end, the client knows that the response is incomplete.
                Some(Err(_)) => return Poll::Ready(Some(Err(CutOff))),
                Some(Ok(frame)) => {
                    let bytes = match frame.into_data() {
                        Ok(bytes) => bytes,
                        Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    };
                    this.rest = match bytes.len() > this.charged_bytes {
                        false => bytes,
                        true => match this.budget.charge(bytes, &this.cutoff) {
                            Ok(bytes) => bytes,
                            Err(_) => return Poll::Ready(Some(Err(CutOff))),
                        },
                    };
                }
            }
        }
        Poll::Ready(Some(Ok(Frame::data(this.next_piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream() && !self.is_large()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Body::Full(_) => {
                let rest = self.body.size_hint().exact().unwrap_or_default();
                SizeHint::with_exact(rest + self.rest.len() as u64)
            }
            Body::Stream(_) | Body::Foreign(_) => SizeHint::default(),
        }
    }
}

impl Drop for SentBody {
    fn drop(&mut self) {
        self.cutoff.end();
    }
}
