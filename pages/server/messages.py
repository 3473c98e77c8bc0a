"""Filters a tab's messages: only those that pages use, and only small ones until the sign-in has admitted the tab."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from uvicorn.config import WS_PROTOCOLS
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from pages.server.admitted import ADMITTED

KINDS = ("rerun_script", "stop_script", "app_heartbeat", "file_urls_request")  # of Streamlit's protocol, that are accepted
OPERATIONS = ("deferred_file", "dataframe_chunk")  # downloads made on request, and rows of long tables
SMALL_MESSAGE = 64 * 1024  # bytes of a websocket message, until the sign-in has admitted the tab
FRAGMENT_BYTES = 64  # what a fragment of a message takes besides its bytes
TOO_LARGE = 1009  # RFC 6455: closes the connection
LARGE_ALLOWED = "ambiscope.large_messages"  # of a websocket scope's state: whether its tab may send them


class SmallMessages(WebSocketsSansIOProtocol):
    """uvicorn's websocket, which ends where more than SMALL_MESSAGE bytes of one message wait for their rest, unless the guard has admitted the
    tab: uvicorn itself would hold up to Streamlit's server.maxMessageSize of each."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        size = len(self.conn.reader.buffer) + sum(len(part) + FRAGMENT_BYTES for part in self.frames)
        if (
            size > SMALL_MESSAGE
            and self.handshake_initiated
            and not self.close_sent
            and not self.scope["state"].get(LARGE_ALLOWED)
        ):
            self.conn.fail(TOO_LARGE, "sign in first")
            self.handle_parser_exception()


class AppConnection:
    """A websocket with the session that Streamlit has given it.  It may send only small messages until it is admitted."""

    def __init__(self, scope: Scope, has_sign_in: bool) -> None:
        # a tab that comes back names its session; until Streamlit's first reply that is all that is known of it
        self.session, self._is_known = "".join(scope.get("subprotocols", [])[2:3]), False
        self._has_sign_in = has_sign_in  # by a cookie: its first message has the values of all fields
        self._state = scope.setdefault("state", {})

    def _is_admitted(self) -> bool:
        is_admitted = self._has_sign_in or self.session in ADMITTED
        self._state[LARGE_ALLOWED] = is_admitted
        return is_admitted

    def receiving(self, receive: Receive, send: Send) -> Receive:
        """Passes on only messages that pages use.  An invalid message, or one that is too large, ends the connection."""

        async def receive_useful() -> Message:
            while True:
                self._is_admitted()
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    if len(message.get("bytes") or b"") > SMALL_MESSAGE and not self._is_admitted():
                        code = TOO_LARGE
                    elif _is_useful(message.get("bytes")):
                        return message
                    else:
                        continue
                except ValueError:
                    code = 1002
                finally:
                    self._has_sign_in = False
                await send({"type": "websocket.close", "code": code})
                return {"type": "websocket.disconnect", "code": code}

        return receive_useful

    def sending(self, send: Send) -> Send:
        async def send_and_note(message: Message) -> None:
            if not self._is_known and message.get("bytes"):
                reply = ForwardMsg.FromString(message["bytes"])
                if reply.HasField("new_session"):
                    self.session, self._is_known = reply.new_session.initialize.session_id, True
            self._is_admitted()  # a run may have signed the person in or out
            await send(message)

        return send_and_note


def bound_messages() -> None:
    """Before Streamlit starts uvicorn: enters `SmallMessages` in uvicorn's table of protocols, under the name that Streamlit asks for."""
    WS_PROTOCOLS["websockets-sansio"] = f"{__name__}:{SmallMessages.__name__}"


def _is_useful(data: bytes | None) -> bool:
    """Whether pages use a message.  Others clear everybody's caches, watch files, read the repository or write Streamlit's own
    files beside the app.  Raises ValueError for anything that isn't a message of Streamlit's protocol."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except Exception as error:  # also for a text message, which has no bytes
        raise ValueError("not a message of Streamlit's protocol") from error
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    return kind in KINDS
