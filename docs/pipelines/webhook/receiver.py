"""Receive the results of checks, and refuse what is not signed or is older than five minutes."""

import hashlib
import hmac
import http.server
import json
import sys
import time
from pathlib import Path

KEY = Path(sys.argv[1]).read_bytes().strip()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp = self.headers["X-Equipoise-Timestamp"]
        wanted = hmac.new(KEY, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        signed = hmac.compare_digest(f"v1={wanted}", self.headers["X-Equipoise-Signature"])
        accepted = signed and abs(time.time() - int(stamp)) < 300
        if accepted:
            print(*json.loads(body)["sentences"], sep="\n", flush=True)
        self.send_response(204 if accepted else 403)
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver).serve_forever()
