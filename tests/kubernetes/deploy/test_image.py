"""The recipe of the backend's image: what it copies is there, what it runs is what the chart runs, nobody is root."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import yaml

from tests.kubernetes import backend_image
from tests.kubernetes.deploy.helm import CHART

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "deploy" / "image" / "Containerfile").read_text()


def test_the_image_of_the_tests_is_the_recipes() -> None:
    """It is made in seconds and without a builder, so it is told twice; a builder's own is in ``test_built_image``."""
    user = re.findall(r"^USER (\S+)$", RECIPE, re.MULTILINE)
    entry = re.findall(r"^ENTRYPOINT (\[.+\])$", RECIPE, re.MULTILINE)
    variables = re.findall(r"^ENV (.+)$", RECIPE, re.MULTILINE)
    assert user == [backend_image.CONFIG["User"]]
    assert [yaml.safe_load(each) for each in entry] == [backend_image.CONFIG["Entrypoint"]]
    assert variables[0].split() == backend_image.CONFIG["Env"]
    assert backend_image.REQUIREMENTS.name in RECIPE.partition("COPY ")[2].partition("\n")[0]


def test_its_user_is_the_charts_and_its_version_the_projects() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert f"{values['runAs']}:{values['runAs']}" == backend_image.CONFIG["User"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    package = yaml.safe_load((ROOT / "labextension" / "package.json").read_text())
    assert about["appVersion"] == package["version"]


def test_building_gives_the_recipe_and_a_wheel_to_the_builder(tmp_path: Path) -> None:
    builder = tmp_path / "builder"
    builder.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nls "$6"\n')
    builder.chmod(0o755)
    environment = {**os.environ, "IMAGE_BUILDER": str(builder)}
    done = subprocess.run(
        [ROOT / "tools" / "backend-image", "registry.example.com/pai:1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:3] == ["build", "--tag", "registry.example.com/pai:1"]
    assert said[3:6] == ["--file", "build/image/Containerfile", "build/image"]
    assert sorted(said[6:-1])[0] == "Containerfile"
    assert "requirements.txt" in said[6:-1]
    assert [name for name in said[6:-1] if name.startswith("jupyter_pai-") and name.endswith(".whl")]
