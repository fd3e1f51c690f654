"""Whatever a caller writes as a path: it is refused, or it stays below the root and in the caller's own area."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from pai_backend.storage.areas import Area, claim, is_partial, parts_of
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.uris import parse

NASTY = st.sampled_from(
    ["..", ".", "/", "//", "\\", "\0", "~", "alice", "bob", "Output", "team", "%2e", "a" * 300, ".x.part", "\ud800"]
)
PATHS = st.lists(NASTY | st.text(max_size=5), max_size=8).map("/".join) | st.text(max_size=40)
URIS = st.builds(
    "{}://{}{}".format, st.text(max_size=5) | st.sampled_from(["hdfs", "file"]), st.text(max_size=9), PATHS
)


@given(PATHS)
@example("/alice/../bob")
def test_a_path_is_plain_names_or_refused(text: str) -> None:
    try:
        parts = parts_of(text)
    except StorageFault:
        return
    assert not {"", ".", ".."} & set(parts)
    assert all("/" not in part and part.isprintable() and not is_partial(part) for part in parts)
    assert parts_of("/".join(parts)) == parts


@given(PATHS)
def test_a_user_reaches_their_own_and_shared_directories_alone(text: str) -> None:
    try:
        parts = parts_of(text)
        where = claim("alice", False, parts, {"team"})
    except StorageFault:
        return
    tops = {Area.HOME: "alice", Area.SHARED: "team", Area.OUTPUT: "Output"}
    assert where.area is Area.TOP if not parts else parts[0] == tops[where.area]
    assert where.area is not Area.OUTPUT or where.job == parts[1]


@given(PATHS, st.booleans())
def test_nothing_outside_of_the_root_is_seen_or_changed(text: str, through_a_link: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        (top / "secret").mkdir()
        (top / "secret" / "token").write_text("hunter22")
        (top / "fs" / "alice").mkdir(parents=True)
        (top / "fs" / "bob").symlink_to(top / "secret")
        files = LocalFiles(top / "fs")
        try:
            parts = parts_of(text)
            path = (*parts, "token") if not through_a_link else ("bob", *parts, "token")
            upload = files.upload(path, 0)
            try:
                upload.write(b"x")
                upload.finish("")
            finally:
                upload.close()
        except StorageFault:
            path = ()
        assert (top / "secret" / "token").read_text() == "hunter22"
        assert sorted(entry.name for entry in (top / "secret").iterdir()) == ["token"]
        assert sorted(entry.name for entry in top.iterdir()) == ["fs", "secret"]
        assert not path or (top / "fs").joinpath(*path).read_text() == "x"


@example("//?/a-long-name")
@given(PATHS | URIS)
def test_a_place_is_read_or_refused_with_a_remedy_and_a_password_is_never_shown(text: str) -> None:
    try:
        place = parse(text)
    except StorageFault as fault:
        refusal = fault
    else:
        assert not any(secret in place.shown for secret in place.secrets if len(secret) > 8 and "*" not in secret)
        assert parse(place.uri).uri == place.uri
        return
    assert refusal.remedy
