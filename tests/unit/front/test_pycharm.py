"""PyCharm's project files: exact texts, and nothing of others lost."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from jupyter_pai.connect import pycharm
from jupyter_pai.connect.pycharm import Deployment
from jupyter_pai.connect.ssh_config import HostEntry

WAY = Deployment(HostEntry("train--w-0", "gateway.example.org", 2222, "pai-local"), PurePosixPath("/home/ada/code"))
SSH_ID, SERVER_ID = WAY.id("ssh"), WAY.id("server")

NEW = {
    "sshConfigs.xml": f"""\
<?xml version="1.0" encoding="UTF-8"?>
<project version="4">
  <component name="SshConfigs">
    <configs>
      <sshConfig id="{SSH_ID}" authType="OPEN_SSH" host="train--w-0" port="2222" nameFormat="DESCRIPTIVE" \
username="train--w-0" useOpenSSHConfig="true" />
    </configs>
  </component>
</project>
""",
    "webServers.xml": f"""\
<?xml version="1.0" encoding="UTF-8"?>
<project version="4">
  <component name="WebServers">
    <option name="servers">
      <webServer id="{SERVER_ID}" name="pai train--w-0">
        <fileTransfer rootFolder="/" accessType="SFTP" host="train--w-0" port="2222" sshConfigId="{SSH_ID}" \
sshConfig="train--w-0@train--w-0:2222 agent" authAgent="true">
          <advancedOptions>
            <advancedOptions dataProtectionLevel="Private" passiveMode="true" shareSSLContext="true" />
          </advancedOptions>
        </fileTransfer>
      </webServer>
    </option>
  </component>
</project>
""",
    "deployment.xml": """\
<?xml version="1.0" encoding="UTF-8"?>
<project version="4">
  <component name="PublishConfigData">
    <serverData>
      <paths name="pai train--w-0">
        <serverdata>
          <mappings>
            <mapping deploy="/home/ada/code" local="$PROJECT_DIR$" web="/" />
          </mappings>
        </serverdata>
      </paths>
    </serverData>
  </component>
</project>
""",
}

THEIRS = {
    "sshConfigs.xml": """<project version="4"><component name="SshConfigs"><configs>
        <!-- the office --><sshConfig host="office" id="1" port="22" username="ada" customName="办公室" />
        </configs></component><component name="Other"><x y="z">text</x></component></project>""",
    "webServers.xml": """<project version="4"><component name="WebServers"><option name="servers">
        <webServer id="1" name="office"><fileTransfer host="office" port="22" /></webServer>
        </option><option name="groups"><list /></option></component></project>""",
    "deployment.xml": """<project version="4"><component name="PublishConfigData" exclude=".git;*.pyc">
        <option name="confirmBeforeUploading" value="false" /><serverData><paths name="office"><serverdata><mappings>
        <mapping deploy="/srv" local="$PROJECT_DIR$" /></mappings></serverdata></paths></serverData>
        </component></project>""",
}


@pytest.mark.parametrize("name", list(NEW))
def test_a_new_file(name: str) -> None:
    made = pycharm.FILES[name](None, WAY)
    assert made == NEW[name]
    assert pycharm.FILES[name](made, WAY) == made
    assert pycharm.FILES[name](" \n", WAY) == made


def canonical(element: ET.Element) -> tuple[object, ...]:
    """An element without its white space and its children's order."""
    children = sorted(map(repr, map(canonical, element)))
    return (element.tag, sorted(element.attrib.items()), (element.text or "").strip(), children)


@pytest.mark.parametrize("name", list(NEW))
def test_entries_of_others_stay(name: str) -> None:
    made = pycharm.FILES[name](THEIRS[name], WAY)
    kept = {repr(canonical(element)) for element in ET.fromstring(made).iter() if len(element) == 0}
    theirs = {repr(canonical(element)) for element in ET.fromstring(THEIRS[name]).iter() if len(element) == 0}
    assert theirs <= kept
    assert kept > theirs
    if name == "sshConfigs.xml":
        assert made.index("<!-- the office -->") < made.index('customName="办公室"') < made.index(SSH_ID)
    if name == "deployment.xml":
        assert 'exclude=".git;*.pyc"' in made
    assert pycharm.FILES[name](made, WAY) == made


CHOSEN = """<project version="4"><component name="PublishConfigData" autoUpload="On explicit save action" \
serverName="office"><option name="myAutoUpload" value="ON_EXPLICIT_SAVE" /></component></project>"""


def test_default_server_and_upload_stay_as_they_were_unless_asked() -> None:
    made = ET.fromstring(pycharm.deployment(CHOSEN, WAY)).find("component")
    assert made is not None
    assert (made.get("autoUpload"), made.get("serverName")) == ("On explicit save action", "office")
    assert [option.attrib for option in made.iterfind("option")] == [
        {"name": "myAutoUpload", "value": "ON_EXPLICIT_SAVE"}
    ]


@pytest.mark.parametrize("before", [None, CHOSEN])
def test_default_server_and_upload_are_set_when_asked(before: str | None) -> None:
    made = ET.fromstring(pycharm.deployment(before, replace(WAY, is_default=True))).find("component")
    assert made is not None
    assert (made.get("autoUpload"), made.get("serverName")) == ("Always", WAY.server)
    assert [option.attrib for option in made.iterfind("option")] == [{"name": "myAutoUpload", "value": "ALWAYS"}]


def test_another_directory_replaces_the_mapping() -> None:
    moved = Deployment(WAY.login, PurePosixPath("/data/代码 <1>"))
    made = pycharm.deployment(NEW["deployment.xml"], moved)
    assert made == NEW["deployment.xml"].replace("/home/ada/code", "/data/代码 &lt;1&gt;")


def test_two_clusters_do_not_share_an_entry() -> None:
    other = Deployment(HostEntry("train--w-0", "gateway.example.org", 2222, "pai-other"), WAY.directory)
    assert pycharm.ssh_configs(NEW["sshConfigs.xml"], other).count("<sshConfig ") == 2


@pytest.mark.parametrize(
    ("text", "complaint"), [("<project", "is not XML"), ("<application />", "its root is <application>")]
)
def test_a_file_that_cannot_be_merged_is_refused(text: str, complaint: str) -> None:
    for name, build in pycharm.FILES.items():
        with pytest.raises(ValueError, match=f"{name} .*{complaint}"):
            build(text, WAY)
