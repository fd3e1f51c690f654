"""What the doctor says, in words: each finding with what is the matter and what to change. Pure.

A finding is a stable code with values; the texts in every language are made here, from one table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import TypedDict  # pydantic reads no other on Python 3.11


class FindingText(TypedDict):
    """A finding in one language."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """Something that keeps a program from working, or (not ``blocking``) makes it work less well."""

    code: str
    values: dict[str, str] = field(default_factory=dict)
    blocking: bool = True

    @property
    def texts(self) -> dict[str, FindingText]:
        """The words by language: ``en`` and ``zh_CN``."""
        told = {}
        for language, (what, remedy) in WORDS[self.code].items():
            told[language] = FindingText(what=what.format(**self.values).strip(), remedy=remedy.format(**self.values))
        return told


_ADMIN = "Tell an administrator: this is not the job's fault."
_ADMIN_ZH = "请告诉管理员：这不是作业的问题。"

WORDS: dict[str, dict[str, tuple[str, str]]] = {
    "no-login": {
        "en": ("Login is not possible. {detail}", "Check the job with `pai status`, then with `pai why`."),
        "zh_CN": ("无法登录。{detail}", "先用 `pai status` 查看作业状态，再用 `pai why` 查看原因。"),
    },
    "no-include": {
        "en": (
            "OpenSSH does not know the name {alias}: {config} does not include {ours}.",
            "Run `pai ssh-config`, which puts the Include line at the top of that file.",
        ),
        "zh_CN": (
            "OpenSSH 找不到名称 {alias}：{config} 没有包含 {ours}。",
            "请运行 `pai ssh-config`，它会把 Include 行放到该文件的开头。",
        ),
    },
    "foreign-option": {
        "en": (
            "Another block of {config} sets {option} to {value}, which overrides {ours}.",
            "Move the line `Include {ours}` above it, or leave the task's names out of that block (`Host * !NAME`).",
        ),
        "zh_CN": (
            "{config} 的另一个配置块把 {option} 设为 {value}，取代了 {ours} 的内容。",
            "请把 `Include {ours}` 行移到它前面，或让该配置块排除任务的名称（`Host * !NAME`）。",
        ),
    },
    "no-key-file": {
        "en": ("The key {path} cannot be read.", "Run `pai ssh-config`, which makes one and registers it."),
        "zh_CN": ("无法读取密钥 {path}。", "请运行 `pai ssh-config`，它会创建并注册一个密钥。"),
    },
    "key-mode": {
        "en": (
            "Others may read the key {path} (mode {mode}), so OpenSSH does not use it.",
            "Run `chmod 600 {path}`. If others may have read it, replace it: `pai keys rotate`.",
        ),
        "zh_CN": (
            "其他用户可以读取密钥 {path}（权限 {mode}），OpenSSH 因此不使用它。",
            "请运行 `chmod 600 {path}`。如果可能已被他人读取，请用 `pai keys rotate` 更换。",
        ),
    },
    "port-refused": {
        "en": (
            "Nothing listens on port {port} of {host}: the connection is refused.",
            "Check with `pai backend status` that the backend runs, and that this is the gateway's address.",
        ),
        "zh_CN": (
            "{host} 的端口 {port} 没有程序监听：连接被拒绝。",
            "请用 `pai backend status` 检查后端是否运行，以及这是否是网关的地址。",
        ),
    },
    "port-dropped": {
        "en": (
            "Port {port} of {host} does not answer: something on the way drops the connection.",
            "Let a firewall or VPN pass connections to that port, or ask the network's administrator.",
        ),
        "zh_CN": (
            "{host} 的端口 {port} 没有应答：途中有设备丢弃了连接。",
            "请让防火墙或 VPN 放行到该端口的连接，或询问网络管理员。",
        ),
    },
    "other-host": {
        "en": (
            "Another host than the gateway answers on port {port} of {host}: it does not have the gateway's host key.",
            "Do not log in there. Check the address; if the gateway has a new key, run `pai ssh-config`.",
        ),
        "zh_CN": (
            "在 {host} 的端口 {port} 上应答的不是网关：主机密钥不符。",
            "请不要在那里登录。请检查地址；如果网关换了密钥，请运行 `pai ssh-config`。",
        ),
    },
    "no-name": {
        "en": ("The name {host} cannot be resolved.", "Check the network's DNS, or the gateway's `public_host`."),
        "zh_CN": ("无法解析名称 {host}。", "请检查网络的 DNS，或网关的 `public_host`。"),
    },
    "gateway-draining": {
        "en": (
            "The gateway is stopping or starting: it takes no new logins now.",
            "Try again in a moment. Logins that are open go on until it has stopped.",
        ),
        "zh_CN": ("网关正在停止或启动：暂不接受新登录。", "请稍后再试。已打开的登录会持续到它停止。"),
    },
    "key-unregistered": {
        "en": ("The backend does not know your key {path}.", "Run `pai keys add {path}`, or `pai ssh-config`."),
        "zh_CN": ("后端没有登记您的密钥 {path}。", "请运行 `pai keys add {path}` 或 `pai ssh-config`。"),
    },
    "key-limited": {
        "en": (
            "Your key {path} is registered for another job only.",
            "Take it out with `pai keys remove`, then run `pai keys add {path}`.",
        ),
        "zh_CN": (
            "您的密钥 {path} 只为另一个作业注册。",
            "请先用 `pai keys remove` 移除它，再运行 `pai keys add {path}`。",
        ),
    },
    "key-over": {
        "en": (
            "The registration of your key {path} has expired.",
            "Run `pai keys add {path} --for 90d`, or another time.",
        ),
        "zh_CN": ("您的密钥 {path} 的注册已过期。", "请运行 `pai keys add {path} --for 90d`，或指定其他期限。"),
    },
    "certificate-over": {
        "en": (
            "The certificate beside {path} has expired, and the key is not registered.",
            "Run `pai keys certify {path}` for a new one, or `pai keys add {path}`.",
        ),
        "zh_CN": (
            "{path} 旁边的证书已过期，而该密钥没有注册。",
            "请运行 `pai keys certify {path}` 获取新证书，或 `pai keys add {path}`。",
        ),
    },
    "locked-out": {
        "en": (
            "An administrator has locked you out of tasks.",
            "Ask the administrator why; another key does not help.",
        ),
        "zh_CN": ("管理员已禁止您登录任务。", "请询问管理员原因；更换密钥没有用。"),
    },
    "no-shell": {
        "en": ("An interactive shell does not work. {detail}", "The image needs a shell, /bin/sh at least."),
        "zh_CN": ("交互式 shell 不可用。{detail}", "镜像里至少要有 /bin/sh。"),
    },
    "not-exact": {
        "en": (
            "Commands do not return their exact output or exit status. {detail}",
            "Let start-up files such as ~/.bashrc print nothing when there is no terminal.",
        ),
        "zh_CN": ("命令的输出或退出码不准确。{detail}", "请不要让 ~/.bashrc 等启动文件在没有终端时输出内容。"),
    },
    "no-terminal": {
        "en": ("A command gets no terminal. {detail}", _ADMIN),
        "zh_CN": ("无法为命令分配终端。{detail}", _ADMIN_ZH),
    },
    "no-half-close": {
        "en": ("Data piped through a command arrives incomplete. {detail}", _ADMIN),
        "zh_CN": ("通过命令传输的数据不完整。{detail}", _ADMIN_ZH),
    },
    "many": {
        "en": ("Several commands one after the other do not all work. {detail}", _ADMIN),
        "zh_CN": ("连续执行多条命令时有失败。{detail}", _ADMIN_ZH),
    },
    "no-place": {
        "en": (
            "No file can be written in the task: its disks are full or read-only.",
            "Free some space, or point TMPDIR in jobEnvs to a directory that can be written to.",
        ),
        "zh_CN": ("任务里无法写入文件：磁盘已满或只读。", "请清理磁盘，或在 jobEnvs 里把 TMPDIR 指向可写的目录。"),
    },
    "no-sftp": {
        "en": (
            "Files cannot be copied by SFTP. {detail}",
            "Check that the task's disk is not full; otherwise tell an administrator.",
        ),
        "zh_CN": ("无法通过 SFTP 复制文件。{detail}", "请检查任务的磁盘是否已满；否则请告诉管理员。"),
    },
    "no-scp": {
        "en": (
            "scp does not work. {detail}",
            "Check that the task's disk is not full; otherwise tell an administrator.",
        ),
        "zh_CN": ("scp 不可用。{detail}", "请检查任务的磁盘是否已满；否则请告诉管理员。"),
    },
    "no-scp-legacy": {
        "en": (
            "The old protocol of scp does not work, which clients before OpenSSH 9 speak. {detail}",
            "Install openssh-client in the image, or use scp of OpenSSH 9 or sftp.",
        ),
        "zh_CN": (
            "旧版 scp 协议（OpenSSH 9 之前的客户端使用）不可用。{detail}",
            "请在镜像里安装 openssh-client，或改用 OpenSSH 9 的 scp 或 sftp。",
        ),
    },
    "no-rsync": {
        "en": ("There is no rsync in the task.", "Install rsync in the image, or copy with sftp or `tar` through ssh."),
        "zh_CN": ("任务里没有 rsync。", "请在镜像里安装 rsync，或用 sftp，或通过 ssh 用 tar 复制。"),
    },
    "rsync-failed": {
        "en": ("rsync does not work. {detail}", "Run it with -vv for details."),
        "zh_CN": ("rsync 不可用。{detail}", "请用 -vv 运行以查看详细输出。"),
    },
    "rsync-untried": {
        "en": (
            "rsync was not checked: it is not installed on this machine. The task has it.",
            "Install rsync here and check again.",
        ),
        "zh_CN": ("未检查 rsync：本机没有安装，任务里有。", "在本机安装 rsync 后再检查。"),
    },
    "two-connections": {
        "en": ("A second connection does not reach the first one's task. {detail}", _ADMIN),
        "zh_CN": ("第二个连接没有到达同一个任务。{detail}", _ADMIN_ZH),
    },
    "no-into-task": {
        "en": ("Ports of the task cannot be reached through SSH. {detail}", _ADMIN),
        "zh_CN": ("无法通过 SSH 访问任务里的端口。{detail}", _ADMIN_ZH),
    },
    "no-out-of-task": {
        "en": (
            "The task cannot connect back through SSH, as debuggers do. {detail}",
            "Ask for a key or share that lets ports be forwarded; programs run without the debugger.",
        ),
        "zh_CN": (
            "任务无法通过 SSH 反向连接（调试器需要）。{detail}",
            "请使用允许端口转发的密钥或共享；不用调试器时程序仍可运行。",
        ),
    },
    "wrong-system": {
        "en": (
            "The task runs on {system} {machine}, for which there is no such program.",
            "Use an image for Linux on x86_64 or aarch64.",
        ),
        "zh_CN": ("任务运行在 {system} {machine} 上，没有对应的程序。", "请使用 x86_64 或 aarch64 的 Linux 镜像。"),
    },
    "old-kernel": {
        "en": ("The node's kernel is {found}; {needed} or later is needed.", "Let the job run on newer nodes."),
        "zh_CN": ("节点的内核是 {found}，需要 {needed} 或更新。", "请让作业在更新的节点上运行。"),
    },
    "old-glibc": {
        "en": (
            "The image's glibc is {found}; {needed} or later is needed.",
            "Use a newer base image, such as Debian 11 or Ubuntu 20.04.",
        ),
        "zh_CN": (
            "镜像的 glibc 是 {found}，需要 {needed} 或更新。",
            "请使用更新的基础镜像，例如 Debian 11 或 Ubuntu 20.04。",
        ),
    },
    "musl": {
        "en": (
            "The image has musl instead of glibc (Alpine).",
            "Use an image based on Debian, Ubuntu or another system with glibc.",
        ),
        "zh_CN": ("镜像使用 musl 而不是 glibc（Alpine）。", "请使用基于 Debian、Ubuntu 等带 glibc 系统的镜像。"),
    },
    "no-glibc": {
        "en": (
            "The image has no glibc that could be found.",
            "Use an image based on Debian, Ubuntu or another system with glibc.",
        ),
        "zh_CN": ("镜像里找不到 glibc。", "请使用基于 Debian、Ubuntu 等带 glibc 系统的镜像。"),
    },
    "old-libstdcxx": {
        "en": (
            "The image's libstdc++ is 3.4.{found}; 3.4.{needed} or later is needed.",
            "Install a newer libstdc++6 in the image.",
        ),
        "zh_CN": ("镜像的 libstdc++ 是 3.4.{found}，需要 3.4.{needed} 或更新。", "请在镜像里安装更新的 libstdc++6。"),
    },
    "no-libstdcxx": {
        "en": ("No libstdc++ was found in the image.", "Install libstdc++6 in the image."),
        "zh_CN": ("镜像里找不到 libstdc++。", "请在镜像里安装 libstdc++6。"),
    },
    "no-tool": {
        "en": ("There is no {tool} in the image.", "Install {tool} in the image."),
        "zh_CN": ("镜像里没有 {tool}。", "请在镜像里安装 {tool}。"),
    },
    "no-downloader": {
        "en": (
            "There is neither curl nor wget in the image.",
            "Install curl in the image, or let the editor copy its server (VS Code: `remote.SSH.localServerDownload`).",
        ),
        "zh_CN": (
            "镜像里既没有 curl 也没有 wget。",
            "请在镜像里安装 curl，或让编辑器自己复制服务端（VS Code：`remote.SSH.localServerDownload`）。",
        ),
    },
    "no-exec": {
        "en": (
            "Programs in {place} may not be run (noexec).",
            "Point TMPDIR in jobEnvs to a directory without noexec.",
        ),
        "zh_CN": ("{place} 里的程序不能运行（noexec）。", "请在 jobEnvs 里把 TMPDIR 指向没有 noexec 的目录。"),
    },
    "no-home": {
        "en": (
            "The home directory {home} cannot be written to.",
            "Set HOME in jobEnvs to a directory that can be written to.",
        ),
        "zh_CN": ("主目录 {home} 不可写。", "请在 jobEnvs 里把 HOME 设为可写的目录。"),
    },
    "little-disk": {
        "en": (
            "{found} are free where the home directory is; {needed} are needed.",
            "Ask for more storage, or set HOME in jobEnvs to a larger disk.",
        ),
        "zh_CN": (
            "主目录所在磁盘剩余 {found}，需要 {needed}。",
            "请申请更多存储，或在 jobEnvs 里把 HOME 指向更大的磁盘。",
        ),
    },
    "little-memory": {
        "en": ("The task has {found} of memory; {needed} are needed.", "Ask for more memoryMB."),
        "zh_CN": ("任务有 {found} 内存，需要 {needed}。", "请增大 memoryMB。"),
    },
    "few-cores": {
        "en": ("The task has {found} CPU core; {needed} are recommended.", "Ask for more cpuNumber."),
        "zh_CN": ("任务有 {found} 个 CPU 核，建议 {needed} 个。", "请增大 cpuNumber。"),
    },
    "no-python": {
        "en": (
            "There is no python3 on the task's PATH.",
            "Use an image with Python 3, or choose an interpreter by its path.",
        ),
        "zh_CN": ("任务的 PATH 上没有 python3。", "请使用带 Python 3 的镜像，或按路径选择解释器。"),
    },
    "old-python": {
        "en": ("The task's python3 is {found}; {needed} or later is needed.", "Use an image with a newer Python."),
        "zh_CN": ("任务的 python3 是 {found}，需要 {needed} 或更新。", "请使用带更新 Python 的镜像。"),
    },
    "no-helpers": {
        "en": (
            "Helper files cannot be brought into the task and run. {detail}",
            "Check that the task's disk is not full.",
        ),
        "zh_CN": ("无法把辅助文件放进任务并运行。{detail}", "请检查任务的磁盘是否已满。"),
    },
    "untried": {
        "en": ("A step could not be checked. {detail}", "Fix the other problems first, then check again."),
        "zh_CN": ("有一步无法检查。{detail}", "请先解决这里的其他问题，然后再检查。"),
    },
}
