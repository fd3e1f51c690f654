"""The main job in containers of this machine: the same notebook as ``demo.py``; run from the checkout, as root.

Usage: ``python -m examples.demo_containers [NOTEBOOK]``. Podman has a storage of its own in a temporary directory, with
the runtime bundle and an image with Jupyter, called as the documents call theirs; all of it goes with the demo. Exit
code 0, or 1 with one line that says what failed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import yaml

from backend.runtime.bundle.debian import BuildFailed
from examples.demo import EXAMPLES, LOCAL, DemoFailed, demo
from jupyter_pai.errors import ClientError
from tests.kubernetes import notebook_image
from tests.kubernetes.cluster import images, programs
from tests.support.podman_site import PodmanFailed, PodmanSite, lacking, podman_site


def configuration(site: PodmanSite) -> str:
    """The local demo's, with containers."""
    given = yaml.safe_load(LOCAL.read_text(encoding="utf-8"))
    given["engine"]["kind"] = "containers"
    given["containers"] = {"runtime_image": site.runtime_image}
    return yaml.safe_dump(given)


def run(place: Path, notebook: Path) -> None:
    """Fill Podman's storage, run the notebook, and leave nothing of it. Raises what ``main`` catches."""
    if lacks := lacking():
        raise DemoFailed(f"no containers can run here; missing: {', '.join(lacks)}")
    began = time.monotonic()
    with podman_site(place / "podman") as site:
        site.load_scm_images(notebook_image.built(programs.images()), notebook_image.REFERENCES)
        os.environ.update(site.environment)
        config = place / "backend.yaml"
        config.write_text(configuration(site), encoding="utf-8")
        print(f"  {time.monotonic() - began:5.1f} s  Podman, images in it", flush=True)
        demo(place, notebook, config, "containers of this machine")


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory(prefix="pai-demo-", ignore_cleanup_errors=True) as place:
        try:
            run(Path(place), Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES / "quickstart.ipynb")
        except (DemoFailed, ClientError, PodmanFailed, BuildFailed, images.ImageFailed) as error:
            print(f"The demo failed: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("The demo was interrupted.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
