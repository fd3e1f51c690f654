"""PyCharm's project files for a task: an SSH configuration, a deployment server, a path mapping. Pure.

The files are those below ``.idea`` that PyCharm itself writes for "visible only for this project". Their
formats are not documented by JetBrains; the shapes here are those of PyCharm 2020.2 to 2025.3 as found in
public projects. Everything that is in them already stays, in its order; only entries with our own ids or
our server's name are replaced. The SSH configuration is of the kind "OpenSSH config and authentication
agent": host, port, user, key and pinned host key then come from the names that ``pai ssh-config`` wrote.
"""

from __future__ import annotations

import uuid
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import PurePosixPath

from jupyter_pai.connect.ssh_config import HostEntry
from pai_backend.model.text import Text

_NAMESPACE = uuid.UUID("9c0a6c5e-6f0b-5f0e-8a54-0c2f3b8d7e11")
"""Makes ids that are the same each time, so that writing again replaces and never adds."""

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True)
class Deployment:
    """A project's way to a task; ``directory`` is what the project's own folder is mapped to."""

    login: HostEntry
    directory: PurePosixPath
    is_default: bool = False
    """Whether it becomes the project's default server, to which files are uploaded as they are saved."""

    @property
    def server(self) -> str:
        """The server's name in PyCharm's lists."""
        return f"pai {self.login.alias}"

    def id(self, kind: str) -> str:
        """The id of one of our entries."""
        return str(uuid.uuid5(_NAMESPACE, f"{kind}/{self.login.host_key_alias}/{self.login.alias}"))


def _project(text: str | None, file: str) -> ET.Element:
    """The root of a project file; a new one when there is none. Raises ValueError for an invalid file."""
    if text is None or not text.strip():
        return ET.Element("project", version="4")
    try:
        root = ET.fromstring(text, parser=ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    except ET.ParseError as error:
        raise ValueError(Text("{file} is not XML: {error}", file=file, error=error)) from error
    if root.tag != "project":
        raise ValueError(Text("{file} is not a project file: its root is <{tag}>", file=file, tag=root.tag))
    return root


def _below(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """The child with these attributes; made when there is none."""
    for child in parent.iterfind(tag):
        if all(child.get(name) == value for name, value in attributes.items()):
            return child
    return ET.SubElement(parent, tag, attributes)


def _replaced(parent: ET.Element, tag: str, key: str, value: str) -> ET.Element:
    """A new child in the place of the one whose ``key`` is ``value``, or behind all others."""
    made = ET.Element(tag, {key: value})
    for place, child in enumerate(parent):
        if child.tag == tag and child.get(key) == value:
            parent[place] = made
            return made
    parent.append(made)
    return made


def _text(root: ET.Element) -> str:
    ET.indent(root)
    return _HEAD + ET.tostring(root, encoding="unicode") + "\n"


def ssh_configs(text: str | None, way: Deployment) -> str:
    """``sshConfigs.xml`` with this task. Raises ValueError for a file that cannot be read."""
    root = _project(text, "sshConfigs.xml")
    configs = _below(_below(root, "component", name="SshConfigs"), "configs")
    entry = _replaced(configs, "sshConfig", "id", way.id("ssh"))
    login = way.login
    entry.attrib.update(
        authType="OPEN_SSH",
        host=login.alias,
        port=str(login.port),
        nameFormat="DESCRIPTIVE",
        username=login.alias,
        useOpenSSHConfig="true",
    )
    return _text(root)


def web_servers(text: str | None, way: Deployment) -> str:
    """``webServers.xml``, PyCharm's deployment servers, with this task. Raises ValueError as above."""
    root = _project(text, "webServers.xml")
    servers = _below(_below(root, "component", name="WebServers"), "option", name="servers")
    entry = _replaced(servers, "webServer", "id", way.id("server"))
    entry.set("name", way.server)
    login = way.login
    transfer = ET.SubElement(
        entry,
        "fileTransfer",
        rootFolder="/",
        accessType="SFTP",
        host=login.alias,
        port=str(login.port),
        sshConfigId=way.id("ssh"),
        sshConfig=f"{login.alias}@{login.alias}:{login.port} agent",
        authAgent="true",
    )
    options = ET.SubElement(ET.SubElement(transfer, "advancedOptions"), "advancedOptions")
    options.attrib.update(dataProtectionLevel="Private", passiveMode="true", shareSSLContext="true")
    return _text(root)


def deployment(text: str | None, way: Deployment) -> str:
    """``deployment.xml``: the project's folder mapped to the task's.

    Mappings to other servers stay. Which server is the project's default, and whether files are uploaded as they are
    saved, stays as it is unless ``is_default``. Raises ValueError as above.
    """
    root = _project(text, "deployment.xml")
    component = _below(root, "component", name="PublishConfigData")
    if way.is_default:
        component.attrib.update(
            autoUpload="Always", serverName=way.server, remoteFilesAllowedToDisappearOnAutoupload="false"
        )
    paths = _replaced(_below(component, "serverData"), "paths", "name", way.server)
    mappings = ET.SubElement(ET.SubElement(paths, "serverdata"), "mappings")
    ET.SubElement(mappings, "mapping", deploy=str(way.directory), local="$PROJECT_DIR$", web="/")
    if way.is_default:
        _below(component, "option", name="myAutoUpload").set("value", "ALWAYS")
    return _text(root)


FILES = {"sshConfigs.xml": ssh_configs, "webServers.xml": web_servers, "deployment.xml": deployment}
"""The files below ``.idea`` with their builders, in the order in which they refer to each other."""
