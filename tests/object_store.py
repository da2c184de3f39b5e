"""An object store on this machine that speaks as much of S3's protocol as Arrow's client does; keys and signatures are not checked."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

DATE = "2026-01-01T00:00:00.000Z"


class ObjectStore:
    """Objects by bucket and key, such as "bucket/folder/file"; `requests` counts those of each method."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self.url = ""


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store that answers at `url` while the body runs."""
    store = ObjectStore()

    class Answers(_Answers):
        kept = store

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    store.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()


class _Answers(BaseHTTPRequestHandler):
    kept: ObjectStore
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # so that an answer is one packet

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def handle_expect_100(self) -> bool:
        """Say at once that a body is welcome, for which the client would wait a second."""
        said = super().handle_expect_100()
        self.wfile.flush()
        return said

    def _asked(self) -> tuple[str, dict[str, str]]:
        place = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(place.query, keep_blank_values=True).items()}
        self.kept.requests.append(f"{self.command} {self.path}")
        return unquote(place.path).removeprefix("/"), query

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        sent = {"Content-Length": str(len(body)), "ETag": '"0"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        for name, value in {**sent, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _xml(self, name: str, inside: str, status: int = 200) -> None:
        text = f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inside}</{name}>'
        self._answer(status, text.encode(), Content_Type="application/xml")

    def _body(self) -> bytes:
        body = (
            self.rfile.read(int(self.headers.get("Content-Length") or 0)) if "Content-Length" in self.headers else b""
        )
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(self._chunks(self.rfile.readline, self.rfile.read))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            at = [0]

            def line() -> bytes:
                end = body.index(b"\n", at[0]) + 1
                start, at[0] = at[0], end
                return body[start:end]

            def read(count: int) -> bytes:
                start, at[0] = at[0], at[0] + count
                return body[start : at[0]]

            return b"".join(self._chunks(line, read, trailer=True))
        return body

    @staticmethod
    def _chunks(line, read, trailer: bool = False) -> Iterator[bytes]:  # type: ignore[no-untyped-def]
        while size := int(line().split(b";")[0], 16):
            yield read(size)
            line()
        if not trailer:
            while line().strip():
                pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        key, query = self._asked()
        if not key.partition("/")[2]:
            self._list(key.rstrip("/"), query) if query else self._answer(404 if key.startswith("$") else 200)
            return
        if key not in self.kept.objects:
            self._xml("Error", "<Code>NoSuchKey</Code><Message>no such key</Message>", 404)
            return
        content = self.kept.objects[key]
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, stop = int(asked[1]), min(int(asked[2] or len(content)) + 1, len(content))
            self._answer(206, content[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(content)}")
        else:
            self._answer(200, content)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, sign = query.get("prefix", ""), query.get("delimiter")
        found, folders = [], set()
        for name, content in sorted(self.kept.objects.items()):
            key = name.partition("/")[2]
            if not name.startswith(f"{bucket}/{prefix}"):
                continue
            below = key.removeprefix(prefix)
            if sign and sign in below:
                folders.add(prefix + below.partition(sign)[0] + sign)
                continue
            found.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{DATE}</LastModified><Size>{len(content)}</Size></Contents>"
            )
        found += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)]
        self._xml(
            "ListBucketResult", f"<KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(found)}"
        )

    def do_PUT(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploadId" in query:
            self.kept.parts[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.kept.objects[key] = body
        self._answer(200)

    def do_POST(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploads" in query:
            number = str(len(self.kept.parts))
            self.kept.parts[number] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{number}</UploadId>")
        elif "delete" in query:
            for name in re.findall("<Key>(.*?)</Key>", body.decode()):
                self.kept.objects.pop(f"{key.rstrip('/')}/{name}", None)
            self._xml("DeleteResult", "")
        else:
            parts = self.kept.parts.pop(query["uploadId"])
            self.kept.objects[key] = b"".join(parts[number] for number in sorted(parts))
            self._xml("CompleteMultipartUploadResult", "<ETag>0</ETag>")

    def do_DELETE(self) -> None:
        key, query = self._asked()
        if "uploadId" not in query:
            self.kept.objects.pop(key, None)
        self._answer(204)
