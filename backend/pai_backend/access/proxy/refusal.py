"""Why a request does not reach its task: one table of notices with status, error code and texts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    LockedOut,
    NoSuchService,
    Unauthorized,
    Unavailable,
)
from pai_backend.model.job import Job


@dataclass(frozen=True)
class Texts:
    """What a notice says, in one language."""

    title: str
    text: str


@dataclass(frozen=True)
class _Kind:
    status: int
    code: str
    reloads: bool
    en: Texts
    zh: Texts


class Refusal(Enum):
    """Everything that can stand in the way."""

    SIGN_IN = _Kind(
        401,
        Unauthorized.code,
        False,
        Texts(
            "Please sign in",
            "Open this service from the jobs panel in JupyterLab, with %pai open JOB in a notebook, "
            "or with pai open JOB in a shell: each signs this browser in. Programs send Authorization: Bearer TOKEN.",
        ),
        Texts(
            "请先登录",
            "请从 JupyterLab 的作业面板打开此服务，或在笔记本中运行 %pai open JOB，或在终端中运行 pai open JOB："
            "都会让此浏览器登录。程序请使用 Authorization: Bearer TOKEN。",
        ),
    )
    FORBIDDEN = _Kind(
        403,
        Forbidden.code,
        False,
        Texts("Not your job", "You are signed in, but this service belongs to a job of another user."),
        Texts("这不是您的作业", "您已登录，但此服务属于其他用户的作业。"),
    )
    LOCKED_OUT = _Kind(
        403,
        LockedOut.code,
        False,
        Texts("You are locked out", "An administrator has locked you out of this cluster. Ask an administrator."),
        Texts("您已被禁止访问", "管理员已禁止您访问此集群。请联系管理员。"),
    )
    OWN_ADDRESS = _Kind(
        403,
        Forbidden.code,
        False,
        Texts(
            "Not at this address",
            "A service of another user opens at its own address only, apart from your pages. "
            "Where that does not lead here, use pai forward JOB LABEL.",
        ),
        Texts(
            "不能通过此地址访问",
            "其他用户的服务只能通过其自身地址打开，与您的页面隔离。若该地址无法访问，请使用 pai forward JOB LABEL。",
        ),
    )
    LINK_OVER = _Kind(
        403,
        Forbidden.code,
        False,
        Texts("This link is no longer valid", "It has expired, was revoked, or its job has ended."),
        Texts("此链接已失效", "链接已过期、已被撤销，或其作业已结束。"),
    )
    READ_ONLY = _Kind(
        403,
        Forbidden.code,
        False,
        Texts("This link is for reading only", "By a link only GET and HEAD pass, without a body, and no WebSocket."),
        Texts("此链接仅供查看", "通过链接只能发送不带正文的 GET 和 HEAD 请求，不能使用 WebSocket。"),
    )
    FOREIGN = _Kind(
        403,
        Forbidden.code,
        False,
        Texts("Request from another site", "Another web site sent this request; it was not forwarded."),
        Texts("来自其他网站的请求", "此请求由其他网站发出，未予转发。"),
    )
    UNKNOWN = _Kind(
        404,
        NoSuchService.code,
        False,
        Texts("No such service", "No job has a service of this name."),
        Texts("没有此服务", "没有作业提供此名称的服务。"),
    )
    WAITING = _Kind(
        503,
        Unavailable.code,
        True,
        Texts("Not running yet", "This page continues automatically when the service answers."),
        Texts("尚未运行", "服务可用后，本页面会自动继续。"),
    )
    STARTING = _Kind(
        503,
        Unavailable.code,
        True,
        Texts(
            "Starting",
            "The task is running, but nothing answers on its port yet. This page continues automatically.",
        ),
        Texts("正在启动", "任务已在运行，但其端口尚无响应。本页面会自动继续。"),
    )
    ENDED = _Kind(
        503,
        Unavailable.code,
        False,
        Texts("This job has ended", "Its services ended with it. Submit the job again to restore them."),
        Texts("此作业已结束", "其服务也随之结束。重新提交作业即可恢复。"),
    )
    NO_ANSWER = _Kind(
        502,
        Unavailable.code,
        True,
        Texts("The service did not answer", "The task took the connection but gave no usable answer."),
        Texts("服务没有应答", "任务接受了连接，但没有给出可用的应答。"),
    )
    TOO_SLOW = _Kind(
        504,
        Unavailable.code,
        False,
        Texts("The service took too long", "The task took the request but did not begin to answer in time."),
        Texts("服务响应超时", "任务收到了请求，但未能及时开始应答。"),
    )
    BAD_REQUEST = _Kind(
        400,
        InvalidParameters.code,
        False,
        Texts("This request cannot be forwarded", "Its address or one of its headers is not valid HTTP/1.1."),
        Texts("无法转发此请求", "其地址或某个标头不符合 HTTP/1.1。"),
    )
    AWAY = _Kind(
        503,
        Unavailable.code,
        True,
        Texts("The backend cannot look this up now", "Its database is unavailable. This page retries automatically."),
        Texts("后端暂时无法查询", "数据库暂不可用。本页面会自动重试。"),
    )
    BROKEN = _Kind(
        500,
        "UnknownError",
        False,
        Texts("Something went wrong here", "The error is in the service proxy and was logged."),
        Texts("此处出现错误", "服务代理发生错误，已记录到日志。"),
    )


class Refused(Exception):
    """A request stops here. ``detail`` is one more sentence in English; ``job`` is given to those who may see it."""

    def __init__(self, notice: Refusal, detail: str = "", job: Job | None = None) -> None:
        super().__init__(detail or notice.value.en.text)
        self.notice = notice
        self.detail = detail
        self.job = job
