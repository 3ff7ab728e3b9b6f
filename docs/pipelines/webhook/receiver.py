"""Receive the results of checks. Refuse unsigned messages and those older than five minutes."""

import hashlib
import hmac
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

KEY = Path("webhook-key").read_bytes().strip()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        stamp = self.headers.get("X-Equipoise-Timestamp", "").encode()
        signature = self.headers.get("X-Equipoise-Signature", "").encode()
        wanted = "v1=" + hmac.new(KEY, stamp + b"." + body, hashlib.sha256).hexdigest()
        signed = hmac.compare_digest(wanted.encode(), signature)
        accepted = signed and abs(time.time() - int(stamp)) < 300
        if accepted:
            print(body.decode(), flush=True)
        self.send_response(204 if accepted else 403)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
