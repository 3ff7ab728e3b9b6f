"""Stores of objects for tests: one in memory, and a local S3 server."""

from __future__ import annotations

import contextlib
import uuid

import fsspec


class Store:
    """A folder of its own in a store."""

    def __init__(self, scheme: str, root: str) -> None:
        self.root = f"{scheme}://{root}"
        self.files = fsspec.filesystem(scheme)

    def write(self, name: str, content: bytes | str) -> str:
        """Write a file, and return its address."""
        data = content if isinstance(content, bytes) else content.encode()
        with self.files.open(f"{self.root}/{name}", "wb") as file:
            file.write(data)
        return f"{self.root}/{name}"


@contextlib.contextmanager
def memory():
    """Give a folder in memory, and remove it."""
    store = Store("memory", f"test-{uuid.uuid4().hex}")
    try:
        yield store
    finally:
        with contextlib.suppress(FileNotFoundError):
            store.files.rm(store.root, recursive=True)


@contextlib.contextmanager
def s3(monkeypatch):
    """Start a local S3 server with an empty bucket, which the environment names."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-very-secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        bucket = f"test-{uuid.uuid4().hex}"
        fsspec.filesystem("s3").mkdir(bucket)
        yield Store("s3", bucket)
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()
