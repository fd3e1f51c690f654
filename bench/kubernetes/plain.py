"""The peer: a plain asynchronous client of the API server, with kept connections and bodies that stay dicts."""

from __future__ import annotations

import asyncio
import copy
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import aiohttp

from tests.kubernetes.cluster.cluster import Cluster

Object: TypeAlias = dict[str, Any]
CONNECTIONS = 32  # as many requests at once as the engine makes
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MADE = "app.kubernetes.io/managed-by=jupyter-pai"  # also on what is copied from ours
EMPTY_S, PAUSE_S = 600.0, 0.2
LIST = METADATA.replace("Metadata;", "MetadataList;")
_PATHS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Node": "/api/v1/nodes",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}


class Plain:
    """A client for one namespace."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str) -> None:
        self._session, self._namespace = session, namespace

    async def create(self, body: Object) -> Object:
        """Create an object and read the answer. Raises aiohttp.ClientResponseError."""
        async with self._session.post(self._path(body["kind"]), json=body) as answer:
            answer.raise_for_status()
            made: Object = json.loads(await answer.read())
            return made

    async def get(self, kind: str, name: str) -> Object:
        """An object as it is. Raises aiohttp.ClientResponseError."""
        async with self._session.get(f"{self._path(kind)}/{name}") as answer:
            answer.raise_for_status()
            found: Object = json.loads(await answer.read())
            return found

    async def has(self, kind: str) -> bool:
        """Whether there are objects of a kind that we or the peer have made."""
        query = {"limit": "1", "labelSelector": MADE}
        async with self._session.get(self._path(kind), params=query, headers={"Accept": LIST}) as answer:
            answer.raise_for_status()
            return bool(json.loads(await answer.read())["items"])

    async def patch(self, kind: str, name: str, change: Object) -> None:
        """Merge a change into an object. Raises aiohttp.ClientResponseError."""
        merge = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(f"{self._path(kind)}/{name}", data=json.dumps(change), headers=merge) as answer:
            answer.raise_for_status()
            await answer.read()

    async def delete(self, kind: str, name: str, grace_s: int) -> None:
        """Ask for the end of an object. Raises aiohttp.ClientResponseError."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace_s}
        async with self._session.delete(f"{self._path(kind)}/{name}", json=body) as answer:
            answer.raise_for_status()
            await answer.read()

    async def delete_all(self, *kinds: str) -> None:
        """Delete everything of these kinds that we or the peer have made, and wait until it is gone."""
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        async with asyncio.timeout(EMPTY_S):
            for kind in kinds:
                while await self.has(kind):  # a collection that is large goes in several requests
                    query = {"labelSelector": MADE}
                    async with self._session.delete(self._path(kind), json=now, params=query) as answer:
                        await answer.read()
                    await asyncio.sleep(PAUSE_S)

    @asynccontextmanager
    async def watching(
        self, kind: str, selector: str = "", *, fields: str = "", whole: bool = False
    ) -> AsyncIterator[Watch]:
        """Follow a kind from now on, for the length of a block; objects as a ``whole``, or their metadata.

        What no longer goes with ``selector`` of labels and ``fields`` is gone for the watch.
        """
        accept = "application/json" if whole else METADATA
        async with self._session.get(self._path(kind), params={"limit": "1"}, headers={"Accept": LIST}) as answer:
            answer.raise_for_status()
            version = json.loads(await answer.read())["metadata"]["resourceVersion"]
        chosen = {"labelSelector": selector, "fieldSelector": fields}
        query = {"watch": "1", **{name: value for name, value in chosen.items() if value}}
        watch = Watch(version)
        reading = asyncio.create_task(self._read(watch, self._path(kind), query, accept))
        try:
            yield watch
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, watch: Watch, path: str, query: dict[str, str], accept: str) -> None:
        """Follow for ever. In a burst the server ends the watches of slow readers: they go on where they were."""
        try:
            while True:
                asked = {**query, "resourceVersion": watch.version}
                async with self._session.get(path, params=asked, headers={"Accept": accept}) as answer:
                    answer.raise_for_status()
                    await watch.read(answer)
        except (aiohttp.ClientError, ValueError, LookupError) as error:
            await watch.fail(error)

    def _path(self, kind: str) -> str:
        return _PATHS[kind].format(self._namespace)


class Watch:
    """What a watch has seen: each event with the time at which it came."""

    def __init__(self, version: str) -> None:
        self._news = asyncio.Condition()
        self._failure: Exception | None = None
        self.version = version
        self.added: dict[str, float] = {}
        self.gone: set[str] = set()
        self.latest: dict[str, Object] = {}

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        """Follow until the stream ends. Raises ValueError when it says that it cannot go on."""
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            now = time.perf_counter()
            async with self._news:
                for line in lines:
                    self._note(json.loads(line), now)
                self._news.notify_all()

    async def fail(self, error: Exception) -> None:
        """Nothing more will come: let whoever waits know why."""
        async with self._news:
            self._failure = error
            self._news.notify_all()

    async def until(self, holds: Callable[[], bool], limit_s: float) -> float:
        """Wait until something holds of what was seen; the time at which it did.

        Raises TimeoutError, and RuntimeError when the watch has failed.
        """
        async with asyncio.timeout(limit_s), self._news:
            await self._news.wait_for(lambda: self._failure is not None or holds())
        if self._failure is not None and not holds():
            raise RuntimeError("a watch of the API server cannot go on") from self._failure
        return time.perf_counter()

    def _note(self, event: Object, now: float) -> None:
        if event["type"] == "ERROR":
            raise ValueError(f"the API server says {event['object']}")
        about = event["object"]["metadata"]
        name, self.version = about.get("name"), about["resourceVersion"]
        if name is None:
            return
        self.latest[name] = event["object"]
        if event["type"] == "ADDED":
            self.added[name] = now
        elif event["type"] == "DELETED":
            self.gone.add(name)


@asynccontextmanager
async def connected(cluster: Cluster, namespace: str) -> AsyncIterator[Plain]:
    """A client as administrator of a cluster of ours."""
    authority = cluster.plane.authority
    identity = authority.issue("admin")
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    trust.load_cert_chain(identity.certificate, identity.key)
    connector = aiohttp.TCPConnector(ssl=trust, limit=CONNECTIONS + 3)  # watches beside the requests
    limit = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with aiohttp.ClientSession(
        cluster.plane.server, connector=connector, timeout=limit, read_bufsize=2**21
    ) as session:
        yield Plain(session, namespace)


async def at_once(work: Callable[[int], Awaitable[object]], count: int, workers: int = CONNECTIONS) -> float:
    """Do something so many times, that many at once; seconds that it took."""
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            await work(number)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(one())
    return time.perf_counter() - began


def copy_of(found: Object, name: str, owner: Object | None = None) -> Object:
    """An object like one that is there, to be created under another name; it is nobody's but ``owner``'s."""
    made = copy.deepcopy(found)
    about = made["metadata"]
    kept = {key: about[key] for key in ("namespace", "labels", "annotations") if key in about}
    kept["labels"] = {**kept.get("labels", {}), "app.kubernetes.io/instance": "plain"}
    if owner is not None:
        (reference,) = about["ownerReferences"]
        kept["ownerReferences"] = [{**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
    made["metadata"] = {**kept, "name": name}
    made.pop("status", None)
    return made
