//! Under which names this server may be asked, so that no page of another site, and no name that leads here, asks it through a browser.

use std::net::SocketAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};

use crate::refusal::Refusal;

/// The names of this server, each with its port if it is not that of the protocol.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// The names of what listens at an address, and further ones.
    pub fn new(address: SocketAddr, further: &[String]) -> Self {
        let mut names = vec![address.to_string()];
        if address.ip().is_loopback() {
            names.push(format!("localhost:{}", address.port()));
        }
        names.extend(further.iter().map(|name| name.to_ascii_lowercase()));
        Self { names }
    }

    /// Refuses a request that is meant for another server, or comes from a page of one.
    pub fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let host = only(&request.headers, &HOST).filter(|host| self.knows(host));
        let is_here = request
            .uri
            .authority()
            .is_none_or(|authority| self.knows(authority.as_str()));
        if host.is_none() || !is_here {
            return Err(Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this server is not called so",
                format!(
                    "ask {}; further names are given to `gauntlet serve` by --host",
                    self.names.join(" or ")
                ),
            ));
        }
        if !request.headers.contains_key(&ORIGIN) {
            return Ok(());
        }
        let origin = only(&request.headers, &ORIGIN).unwrap_or_default();
        let is_own = ["http://", "https://"]
            .iter()
            .filter_map(|protocol| origin.strip_prefix(protocol))
            .any(|host| self.knows(host));
        if is_own {
            Ok(())
        } else {
            Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "pages of other sites may not ask this server",
                "ask from a program, or from a page of this server",
            ))
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.names.contains(&name.to_ascii_lowercase())
    }
}

/// The value of a header that stands there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn only_its_own_names_and_pages_are_answered() {
        let hosts = Hosts::new(
            "127.0.0.1:8485".parse().unwrap(),
            &["Judge.example.org".to_owned()],
        );
        let status = |uri: &str, headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri(uri);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            hosts
                .check(&parts)
                .map_err(|refusal| refusal.status.as_u16())
                .err()
                .unwrap_or(200)
        };
        let own = ("host", "localhost:8485");
        for (uri, headers, expected) in [
            ("/", vec![own], 200),
            ("/", vec![("host", "127.0.0.1:8485")], 200),
            ("/", vec![("host", "judge.example.org")], 200),
            ("/", vec![("host", "evil.example")], 421),
            ("/", vec![("host", "127.0.0.1")], 421),
            ("/", vec![], 421),
            ("/", vec![own, own], 421),
            ("http://evil.example/", vec![own], 421),
            ("/", vec![own, ("origin", "http://localhost:8485")], 200),
            ("/", vec![own, ("origin", "https://judge.example.org")], 200),
            ("/", vec![own, ("origin", "null")], 403),
            (
                "/",
                vec![own, ("origin", "http://localhost:8485.evil.example")],
                403,
            ),
            (
                "/",
                vec![own, ("origin", "http://localhost:8485"), ("origin", "http://e")],
                403,
            ),
        ] {
            assert_eq!(status(uri, &headers), expected, "{uri} {headers:?}");
        }
    }
}
