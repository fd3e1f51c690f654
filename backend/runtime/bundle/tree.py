"""What is in the bundle, file by file.

Programs of Debian are altered in two ways, both without compiling them: their loader and libraries are the bundle's
(patchelf), and two paths are replaced by others of the same length, because an image's do not fit or are not there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from backend.runtime.bundle import debian
from backend.runtime.bundle.debian import BuildFailed, run

HERE: Final = Path(__file__).resolve().parents[1]
PLACE: Final = "/pai/runtime"  # where a task has the bundle; layout.RUNTIME of the Kubernetes engine
SUMS: Final = "SHA256SUMS"
VERSION: Final = "VERSION"
NAMES: Final = (b"/etc/nsswitch.conf\0", f"{PLACE}/names\0".encode())
"""libc would look for an image's modules, which are for another libc."""
SOCKETS: Final = (b"\0/tmp/ssh-XXXXXXXXXX\0", b"\0/pai/state/a-XXXXXX\0")
"""sshd would put the sockets of forwarded agents into /tmp, which an image may not have, or not let it write."""
SOURCES: Final = ("accounts.c", "names", "sshd_config", "launcher/*", "bundle/*.py")


def inputs() -> str:
    """A digest of everything that the bundle is made of: the same inputs make the same bundle."""
    digest = hashlib.sha256(run("go", "version").encode() + run("gcc", "--version").encode())
    digest.update(_project_version().encode())
    ours = sorted(path for pattern in SOURCES for path in HERE.glob(pattern))
    for path in (*ours, *_debian_files()):
        digest.update(f"\0{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build(root: Path) -> str:
    """Write the bundle into an empty directory and return its version. Raises BuildFailed."""
    debian.check()
    _launcher(root / "bin")
    for target, source in debian.PROGRAMS.items():
        _copy(Path(source), root / target, 0o755)
    dynamic = [target for target in debian.PROGRAMS if target != debian.BASH]
    _libraries(root, dynamic)
    _accounts(root, dynamic)
    _replace(root / "lib/libc.so.6", *NAMES)
    _replace(root / debian.BASH, *NAMES)
    _replace(root / debian.SERVER, *SOCKETS)
    for name in ("names", "sshd_config"):
        _copy(HERE / name, root / name, 0o644)
    _licences(root)
    return _seal(root)


def _launcher(place: Path) -> None:
    place.mkdir(parents=True)
    run(
        *("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", place / "launch", "."),
        cwd=HERE / "launcher",
        env={"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"},
    )
    for name in ("install", "session"):
        (place / name).symlink_to("launch")


def _libraries(root: Path, programs: Iterable[str]) -> None:
    """Libraries and loader; programs look for them there alone, before LD_LIBRARY_PATH (hence DT_RPATH)."""
    sources = [debian.PROGRAMS[target] for target in programs]
    library = root / "lib"
    for name, path in debian.libraries(sources).items():
        _copy(path, library / name, 0o644)
        run("patchelf", "--force-rpath", "--set-rpath", f"{PLACE}/lib", library / name)
    _copy(debian.loader(sources[0]), library / "ld.so", 0o755)
    for target in programs:
        run("patchelf", "--set-interpreter", f"{PLACE}/lib/ld.so", root / target)
        run("patchelf", "--force-rpath", "--set-rpath", f"{PLACE}/lib", root / target)


def _accounts(root: Path, programs: Iterable[str]) -> None:
    """Compile accounts.c for server and clients, and have it looked into before libc."""
    for name, options in (("libaccounts-server.so", ["-DSERVER"]), ("libaccounts.so", [])):
        library = root / "lib" / name
        # A path of this machine must not be in it, nor a number made from one.
        fixed = ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-s", "-Wl,--build-id=none"]
        run("gcc", *fixed, *options, f"-Wl,-soname,{name}", "-o", library, "accounts.c", cwd=HERE)
        library.chmod(0o644)
    for target in programs:
        name = "libaccounts-server.so" if target == debian.SERVER else "libaccounts.so"
        run("patchelf", "--add-needed", name, root / target)


def _replace(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    if content.count(old) != 1 or len(old) != len(new):
        raise BuildFailed(f"{file.name} does not have {old!r} once, which is to be {new!r}; build on Debian 12")
    file.write_bytes(content.replace(old, new))


def _licences(root: Path) -> None:
    """The licence of everything that is inside, and the exact versions to ask their source of."""
    place = root / "licences"
    place.mkdir()
    found = debian.packages(_debian_files())
    for package in found:
        _copy(package.licence, place / package.name.partition(":")[0], 0o644)
    go = Path(run("go", "env", "GOROOT").strip())
    _copy(_first(go / "LICENSE", Path("/usr/share/doc/golang-go/copyright")), place / "go", 0o644)
    _copy(HERE.parents[1] / "LICENSE", place / "jupyter-pai", 0o644)
    rows = [f"{package.name} {package.version}\n" for package in found]
    (root / "PACKAGES").write_text("".join([*rows, f"go {run('go', 'env', 'GOVERSION')}"]))


def _seal(root: Path) -> str:
    """Write version and checksums. The version changes with any byte, so that an image's name always means the same."""
    content = _sums(root)
    version = f"{_project_version()}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    (root / VERSION).write_text(f"{version}\n")
    (root / SUMS).write_text(_sums(root))
    return version


def _sums(root: Path) -> str:
    """As sha256sum writes them; names of links are not files."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files)


def _project_version() -> str:
    told = json.loads((HERE.parents[1] / "labextension/package.json").read_text())
    return str(told["version"])


def _debian_files() -> list[Path]:
    debian.check()
    programs = list(debian.PROGRAMS.values())
    linked = [program for target, program in debian.PROGRAMS.items() if target != debian.BASH]
    return [Path(program) for program in programs] + sorted(debian.libraries(linked).values())


def _first(*paths: Path) -> Path:
    for path in paths:
        if path.is_file():
            return path
    raise BuildFailed(f"none of {', '.join(map(str, paths))} is there: the licence of Go must be in the bundle")


def _copy(source: Path, target: Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)
