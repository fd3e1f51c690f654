"""What is put in place before a command runs: the document's codeDir."""

from __future__ import annotations

from tests.conformance.engines.documents import submitted, v1, v1_role
from tests.conformance.engines.room import Job, Room


def test_the_code_directory_is_copied_into_the_working_directory(room: Room) -> None:
    code = room.files / "project" / "code"
    (code / "part").mkdir(parents=True)
    (code / "main.py").write_text("import part.one\nprint('grüße from', part.one.NAME)\n")
    (code / "part" / "one.py").write_text("NAME = 'one'\n")
    (code / "run.sh").write_text("echo executable\n")
    (code / "run.sh").chmod(0o755)
    role = v1_role("ls; PYTHONDONTWRITEBYTECODE=1 python3 code/main.py; bash code/run.sh; touch code/mine")
    job = room.submit(v1(role, codeDir="$PAI_DEFAULT_FS_URI/project/code"))
    job.ended("SUCCEEDED")
    assert job.log() == "code\ngrüße from one\nexecutable\n"
    assert not (code / "mine").exists()


@submitted(v1(v1_role("echo never"), codeDir="$PAI_DEFAULT_FS_URI/nothing/here"))
def test_a_code_directory_that_is_not_there_ends_the_job_before_its_command(job: Job) -> None:
    job.ended("FAILED")
    assert (job.exit()["reason"], job.log()) == ("input-failed", "")
