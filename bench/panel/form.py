"""The form of a job document: from a key in one of its fields until form and text both show it, painted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from playwright.sync_api import CDPSession, Locator, Page

from bench.figures import Figure, percentile
from bench.panel.scene import REST_MS, Scene

NAMES, COMMANDS = ("Xylophone", "Quartzite"), ("Juniper", "Hazelnut", "Gladiolus")
"""What is typed into the two fields. The documents have none of the capitals, so a word is seen from its first key."""
KEY_MS = 100
"""From one key to the next, as quick typists do. The page asks the backend about the text between the words."""
ROLES = 20

Keys: TypeAlias = list[tuple[str, float]]

WATCH = """() => {
  const shown = document.querySelector('.jp-pai-Document:not(.lm-mod-hidden)');
  const text = shown.querySelector('.cm-content');
  const check = () => shown.querySelector('.jp-pai-Document-line').dataset.check;
  window.benchKeys = [];
  window.benchChecks = [];
  let word = '';
  let last = 0;
  new MutationObserver(() => {
    if (last && check() === 'valid') {
      window.benchChecks.push(performance.now() - last);
      last = 0;
    }
  }).observe(shown, { subtree: true, attributes: true, attributeFilter: ['data-check'] });
  document.addEventListener('keydown', event => {
    const field = event.target;
    if (event.key.length !== 1 || !field.closest('.jp-pai-Form')) {
      word = '';
      return;
    }
    word += event.key;
    last = event.timeStamp;
    const wanted = word;
    const after = new MessageChannel();
    after.port1.onmessage = () => window.benchKeys.push([wanted, performance.now() - event.timeStamp]);
    const look = () => {
      if (field.value.includes(wanted) && text.textContent.includes(wanted)) {
        after.port2.postMessage(null);
      } else {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  }, true);
}"""
"""For each key of a word, the word so far and the milliseconds until a frame was painted in which both sides have it.
For each word, the milliseconds from its last key until the page says that the backend finds the text valid."""


def measure(scene: Scene) -> list[Figure]:
    """The 95th percentile over the keys typed into two fields, in each notation of a document with many task roles."""
    figures = []
    for name, path, text in (
        ("form_key_p95", "form.yaml", yaml_document(ROLES)),
        ("form_scm_key_p95", "form.json", json_document(ROLES)),
    ):
        (scene.site.root / "files" / path).write_text(text, encoding="utf-8")
        with scene.user() as context:
            keys, checks, used_ms = _typed(scene, context.new_page(), path)
        times = [took for _, took in keys]
        told = (
            f"{len(times)} keys in {len(text) / 1000:.0f} kB; median {percentile(times, 0.5):.0f}, slowest "
            f"{max(times):.0f} ms; CPU of the page {used_ms / len(times):.0f} ms a key, with checks and drafts; "
            f"checked {percentile(checks, 0.5):.0f} ms after the last key of a word"
        )
        figures.append(Figure(name, percentile(times, 0.95), told))
    return figures


def yaml_document(roles: int) -> str:
    """A document of version 2 with comments as people write them by hand: each role has some 15 lines."""
    head = [
        "protocolVersion: 2",
        "name: typed # what is typed goes here",
        "type: job",
        "prerequisites:",
        "  - {name: python, type: dockerimage, uri: 'python:3.11'}",
        "parameters: {epochs: 3}",
        "secrets: {tracker: not-a-real-token}",
        "taskRoles:",
    ]
    return "\n".join([*head, *(line for number in range(1, roles + 1) for line in _yaml_role(number))]) + "\n"


def _yaml_role(number: int) -> list[str]:
    return [
        f"  # What role {number} is for.",
        f"  worker_{number}:",
        "    instances: 2",
        "    completion: {minFailedInstances: 1, minSucceededInstances: -1}",
        "    dockerImage: python",
        "    resourcePerInstance:",
        "      cpu: 4 # all of them",
        "      memoryMB: 8192",
        "      gpu: 1",
        "      ports: {http: 1, ssh: 1}",
        "    commands:",
        "      - export TOKEN='<% $secrets.tracker %>'",
        "      - pip install --quiet --requirement requirements.txt",
        "      - for epoch in $(seq <% $parameters.epochs %>); do python train.py --epoch $epoch; done",
        f"      - echo role {number} has ended",
    ]


def json_document(roles: int) -> str:
    """The same as a document of version 1."""
    made = [
        {
            "name": f"worker_{number}",
            "taskNumber": 2,
            "cpuNumber": 4,
            "memoryMB": 8192,
            "gpuNumber": 1,
            "portList": [{"label": "http", "beginAt": 0, "portNumber": 1}],
            "minFailedTaskCount": 1,
            "command": f"pip install --quiet --requirement requirements.txt && python train.py --role {number}",
        }
        for number in range(1, roles + 1)
    ]
    return json.dumps({"jobName": "typed", "image": "python:3.11", "retryCount": 0, "taskRoles": made}, indent=2) + "\n"


def _typed(scene: Scene, page: Page, path: str) -> tuple[Keys, list[float], float]:
    """Type into the name of the document, and into the commands of its first role.

    Gives the times of keys and of checks, and milliseconds of CPU that the page's thread has used.
    """
    scene.load(page)
    page.evaluate("path => window.jupyterapp.commands.execute('pai:import-document', { path })", path)
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_role("tab", name="Basics").wait_for()
    page.wait_for_timeout(REST_MS)
    page.evaluate(WATCH)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _used_ms(devtools)
    _type(page, shown.get_by_label("Name *", exact=True), NAMES)
    shown.get_by_role("tab", name="Task roles").click()
    _type(page, shown.get_by_label("Command"), COMMANDS)
    used_ms = _used_ms(devtools) - before
    keys: Keys = page.evaluate("() => window.benchKeys")
    wanted = [word[:length] for word in (*NAMES, *COMMANDS) for length in range(1, len(word) + 1)]
    assert [word for word, _ in keys] == wanted, f"each key was to be seen: {json.dumps(keys)}"
    checks: list[float] = page.evaluate("() => window.benchChecks")
    assert len(checks) == len(NAMES) + len(COMMANDS), "each word was to be checked"
    return keys, checks, used_ms


def _used_ms(devtools: CDPSession) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(1000 * float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def _type(page: Page, field: Locator, words: Sequence[str]) -> None:
    """Type words, each when the one before it has been checked."""
    field.click()
    for word in words:
        told = page.evaluate("() => window.benchChecks.length")
        page.keyboard.press("Control+End")
        page.keyboard.type(word, delay=KEY_MS)
        page.wait_for_function("told => window.benchChecks.length > told", arg=told)
        page.wait_for_timeout(REST_MS)
