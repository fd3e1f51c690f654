"""Labelled ports of tasks, by their stable addresses, as a browser reaches them."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from tests.conformance.engines.documents import submitted, v2, v2_role
from tests.conformance.engines.room import JOB_S, Job, Room
from tests.support.backend_process import until

SERVE = """cat >page.py <<'END'
import http.server, json, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = {"body": body.decode(), "path": self.path, "index": os.environ["FC_TASK_INDEX"],
                "secrets": [self.headers.get("Authorization"), self.headers.get("Cookie")]}
        answer = json.dumps(told).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
http.server.HTTPServer(("", int(os.environ["PAI_CONTAINER_HOST_web_PORT_LIST"])), Page).serve_forever()
END
exec python3 page.py"""


@submitted(v2({"main": v2_role(SERVE, instances=2, ports={"web": 1})}))
def test_a_server_on_a_labelled_port_answers_at_its_address(room: Room, job: Job) -> None:
    (service, second) = job.running()["services"]
    by_name, by_path = urlsplit(service["url"]), urlsplit(second["pathUrl"])
    headers = {"Authorization": f"Bearer {room.backend.token}"}
    with httpx.Client(base_url=room.backend.url, headers=headers, timeout=60) as client:

        def answer(path: str, **more: str) -> httpx.Response:
            return client.post(path, content="grüße", headers=more)

        until(lambda: answer("/a?b=c", Host=by_name.netloc).status_code == 201, JOB_S)
        until(lambda: answer(f"{by_path.path}d").status_code == 201, JOB_S)
        assert answer("/a?b=c", Host=by_name.netloc).json() == {
            "body": "grüße",
            "path": "/a?b=c",
            "index": "0",
            "secrets": [None, None],
        }
        assert answer(f"{by_path.path}d").json()["index"] == "1"
        job.stop()
        job.ended("STOPPED")
        gone = answer("/", Host=by_name.netloc)
        assert gone.status_code == 503
