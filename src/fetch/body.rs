//! Reading an answer: what is wanted of it, never more than allowed, never longer than allowed.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::connection::HttpAnswer;
use super::error::{FetchError, FetchErrorKind, Wait};
use super::http2::Listening;
use super::{FetchedPage, Request};
use crate::clock::{self, Timestamp};
use crate::content_coding::{self, CodingError};
use crate::page::{Headers, Page};
use crate::robots;
use crate::site::FetchRules;

/// A coded body of so many bytes, that decodes to so many, takes a moment.
const SHORT: usize = 16 * 1024;
const SHORT_DECODED: u64 = 128 * 1024;

/// Reads the answer to a request that was sent at `sent_at`, which is `sent` on the clock of time-outs.
pub async fn read(
    request: &Request<'_>,
    mut response: HttpAnswer,
    sent_at: Timestamp,
    sent: Instant,
) -> Result<FetchedPage, FetchError> {
    let wanted = Wanted::of(request, &response)?;
    let body = wanted.body(request, &mut response, sent).await?;
    let headers = headers_of(&response);
    let decoded = match wanted {
        Wanted::Words => Bytes::new(),
        Wanted::Page | Wanted::Robots => decode(&headers, &body, wanted.most_decoded(request))
            .await
            .map_err(|error| FetchError::of_coding(request.url, error))?,
    };
    let page = Page {
        url: request.url.clone(),
        sent_at,
        version: response.head.version,
        status: response.head.status.as_u16(),
        headers,
        body,
        response: sent.elapsed(),
        remote: response.remote,
    };
    Ok(FetchedPage { page, decoded })
}

/// Undoes the body's codings; where that may take long, off the threads that keep the pace.
async fn decode(headers: &Headers, body: &Bytes, most: u64) -> Result<Bytes, CodingError> {
    if headers.get("content-encoding").is_none() {
        return content_coding::decode(headers, body, most);
    }
    if body.len() <= SHORT {
        // A few bytes may decode to many.
        let short = SHORT_DECODED.min(most);
        match content_coding::decode(headers, body, short) {
            Err(CodingError::TooLarge { .. }) if short < most => {}
            decoded => return decoded,
        }
    }
    let (headers, body) = (headers.clone(), body.clone());
    let decoding = tokio::task::spawn_blocking(move || content_coding::decode(&headers, &body, most));
    decoding
        .await
        .unwrap_or_else(|broke| Err(CodingError::Broken("in its decoder".to_owned(), broke.to_string())))
}

/// What is wanted of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// All of it, or nothing.
    Page,
    /// As much of it as is read of a `robots.txt`.
    Robots,
    /// The answer brings no page: whatever comes will do.
    Words,
}

impl Wanted {
    /// # Errors
    /// `Type`, where a page is of a media type that the site's file doesn't name. One of no type is read.
    fn of(request: &Request<'_>, response: &HttpAnswer) -> Result<Self, FetchError> {
        if !response.head.status.is_success() {
            return Ok(Self::Words);
        }
        if request.robots {
            return Ok(Self::Robots);
        }
        let media = media_type(response).filter(|media| {
            !request.site.fetch.accept_types.iter().any(|accepted| accepted.eq_ignore_ascii_case(media))
        });
        media.map_or(Ok(Self::Page), |media| Err(FetchError::new(request.url, FetchErrorKind::Type(media))))
    }

    /// A `robots.txt` is read whatever pages may be; what was cut while it was compressed is broken, not empty.
    fn most_decoded(self, request: &Request<'_>) -> u64 {
        if self == Self::Robots { FetchRules::MAX_BODY } else { request.site.fetch.max_body }
    }

    async fn body(
        self,
        request: &Request<'_>,
        response: &mut HttpAnswer,
        sent: Instant,
    ) -> Result<Bytes, FetchError> {
        let most = match self {
            Self::Robots => robots::MAX_BYTES as u64 + 1,
            Self::Page | Self::Words => request.site.fetch.max_body,
        };
        let mut body = BytesMut::new();
        loop {
            let (patience, wait) = patience(request, sent.elapsed());
            let listening = response.body.listen().filter(|_| wait == Wait::Read);
            let chunk = match clock::within(patience, response.body.chunk()).await {
                Some(Err(e)) => Err(FetchError::of_answer(request.url, e, FetchErrorKind::Truncated)),
                Some(Ok(chunk)) => Ok(chunk),
                None => {
                    listening.into_iter().for_each(Listening::in_vain);
                    Err(timed_out(request, wait))
                }
            };
            match chunk {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(body.freeze()),
                Err(_) if self == Self::Words => return Ok(body.freeze()),
                Err(error) => return Err(error),
            }
            if body.len() as u64 > most {
                return self.too_much(request, body, most);
            }
        }
    }

    fn too_much(self, request: &Request<'_>, mut body: BytesMut, most: u64) -> Result<Bytes, FetchError> {
        if self == Self::Page {
            return Err(FetchError::new(request.url, FetchErrorKind::TooLarge(most)));
        }
        body.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(body.freeze())
    }
}

/// How long to wait for the next piece when `spent` of the whole time is over, and which limit that is.
pub fn patience(request: &Request<'_>, spent: Duration) -> (Duration, Wait) {
    let left = request.site.fetch.timeout.saturating_sub(spent);
    if request.site.fetch.read_timeout < left {
        (request.site.fetch.read_timeout, Wait::Read)
    } else {
        (left, Wait::Total)
    }
}

/// The error of a limit that was reached.
pub fn timed_out(request: &Request<'_>, wait: Wait) -> FetchError {
    let most = match wait {
        Wait::Connect => request.site.fetch.connect_timeout,
        Wait::Read => request.site.fetch.read_timeout,
        Wait::Total => request.site.fetch.timeout,
    };
    FetchError::new(request.url, FetchErrorKind::Timeout(wait, most))
}

fn media_type(response: &HttpAnswer) -> Option<String> {
    let value = response.head.headers.get("content-type")?;
    let text = String::from_utf8_lossy(value.as_bytes());
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!media.is_empty()).then_some(media)
}

fn headers_of(response: &HttpAnswer) -> Headers {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    Headers(response.head.headers.iter().map(field).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::task::{Context, Waker};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes it").into()
    }

    /// A runtime whose only other thread is held up until it is let go.
    fn held_up() -> (tokio::runtime::Runtime, std::sync::mpsc::Sender<()>) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
        let (runtime, (let_go, held)) = (runtime.expect("threads"), std::sync::mpsc::channel());
        runtime.spawn_blocking(move || held.recv());
        (runtime, let_go)
    }

    #[test]
    fn a_short_body_is_decoded_at_once_and_one_that_is_long_or_grows_long_on_another_thread() {
        let headers = Headers(vec![("content-encoding".to_owned(), b"gzip".to_vec())]);
        let noise: Vec<u8> = (0..40_000).map(|_| fastrand::u8(..)).collect();
        for (body, at_once) in [(vec![b'a'; 100_000], true), (noise, false), (vec![b'a'; 1 << 20], false)] {
            let packed = gzip(&body);
            let (runtime, let_go) = held_up();
            let _on_it = runtime.enter();
            let mut decoding = std::pin::pin!(decode(&headers, &packed, 8 << 20));
            let looked = decoding.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(looked.is_ready(), at_once, "{} bytes, {} as sent", body.len(), packed.len());
            drop(let_go);
            if looked.is_pending() {
                assert_eq!(runtime.block_on(decoding).as_deref(), Ok(&body[..]));
            }
        }
    }

    #[tokio::test]
    async fn what_grows_beyond_what_is_wanted_is_too_large() {
        let headers = Headers(vec![("content-encoding".to_owned(), b"gzip".to_vec())]);
        let bomb = gzip(&vec![0; 1 << 20]);
        assert_eq!(decode(&headers, &bomb, 100_000).await, Err(CodingError::TooLarge { limit: 100_000 }));
    }
}
