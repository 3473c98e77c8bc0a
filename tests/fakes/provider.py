"""A provider of OpenID Connect on 127.0.0.1: it vouches for everybody."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey
from loopback_endpoint import http_server

CLIENT, SECRET = "ambiscope", "the client's secret"


@dataclass
class Provider:
    address: str = ""
    subject: str = "stranger"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"}))
    codes: dict[str, str] = field(default_factory=dict)  # code -> nonce

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "sub": self.subject, "nonce": nonce, "iat": now, "exp": now + 300}
        return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.key)

    def authorize(self, query: dict[str, str]) -> str:
        """Sends the browser back at once, as after a sign-in."""
        code = secrets.token_urlsafe(8)
        self.codes[code] = query.get("nonce", "")
        return query["redirect_uri"] + "?" + urlencode({"code": code, "state": query["state"]})

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        """A code is worth one token."""
        nonce = self.codes.pop(form.get("code", ""), None)
        if nonce is None:
            return None
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": self.token(nonce)}


@contextmanager
def running() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def reply(self, body: Any, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path == "/.well-known/openid-configuration":
                address = provider.address
                places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
                kinds = {"response_types": "code", "subject_types": "public", "id_token_signing_alg_values": "RS256"}
                configuration = {name: f"{address}/{path}" for name, path in places.items()}
                self.reply(
                    {"issuer": address, **configuration, **{f"{name}_supported": [kind] for name, kind in kinds.items()}}
                )
            elif url.path == "/keys":
                self.reply({"keys": [provider.key.as_dict(private=False)]})
            elif url.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize({k: v[0] for k, v in parse_qs(url.query).items()}))
                self.end_headers()
            else:
                self.reply({}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            token = provider.exchange({k: v[0] for k, v in parse_qs(body).items()})
            self.reply(token or {"error": "invalid_grant"}, 200 if token else 400)

        def log_message(self, *_: Any) -> None: ...

    with http_server(Handler) as provider.address:
        yield provider
