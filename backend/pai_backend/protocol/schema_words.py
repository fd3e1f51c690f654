"""What fields of job documents are called on a form, in English and Chinese.

A key is a field's name, or ``table/field`` where the field means something else in that table (:mod:`.schema`). A test
asks for each field of each table.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Words(NamedTuple):
    """A label and one or two sentences beside it; the sentences may be empty."""

    title: str
    title_zh: str
    text: str = ""
    text_zh: str = ""


SECTIONS: Final = {
    "basics": Words("Basics", "基本信息"),
    "cluster": Words("Cluster and GPU", "集群与显卡"),
    "environment": Words("Environment", "工作环境"),
    "roles": Words("Task roles", "任务角色"),
    "deployments": Words("Deployments", "部署"),
    "plugins": Words("Plugins", "插件"),
    "more": Words("More", "更多"),
}
"""The pages of a form, in order."""

FIELDS: Final[dict[str, Words]] = {
    # jobs of v1, QIZHI and SCM
    "jobName": Words("Name", "名称", "Letters, digits, '-', '.', '_' and '~'.", "字母、数字、'-'、'.'、'_' 和 '~'。"),
    "image": Words("Image", "镜像", "The container image that all tasks run in.", "所有任务运行所用的容器镜像。"),
    "authFile": Words(
        "Registry credentials file",
        "镜像仓库认证文件",
        "A file with the registry's user and password.",
        "存放镜像仓库用户名和密码的文件。",
    ),
    "dataDir": Words("Data directory", "数据目录", "Where the data is.", "数据所在的目录。"),
    "outputDir": Words(
        "Output directory",
        "输出目录",
        "Where results are left. Empty: a directory of the job's own.",
        "结果存放的目录。留空则使用作业自己的目录。",
    ),
    "codeDir": Words(
        "Code directory",
        "代码目录",
        "Copied into every task before it starts; without data, below 200 MB.",
        "任务启动前复制到每个任务中；不含数据，小于 200 MB。",
    ),
    "virtualCluster": Words(
        "Virtual cluster", "虚拟集群", "Whose share of the machines the job uses.", "作业使用哪个虚拟集群的机器份额。"
    ),
    "gpuType": Words("GPU type", "显卡类型", "Empty: any type.", "留空则任意类型。"),
    "retryCount": Words(
        "Retries",
        "重试次数",
        "After failures that may pass; -1 without limit, -2 always.",
        "遇到可能恢复的失败时重试；-1 不限次数，-2 总是重试。",
    ),
    "killAllOnCompletedTaskNumber": Words(
        "End when so many tasks are done", "完成多少任务后结束", "0 is off.", "0 表示关闭。"
    ),
    "jobEnvs": Words("Environment variables", "环境变量", "Seen by every task.", "每个任务都能看到。"),
    "isDebug": Words(
        "Keep failed tasks", "保留失败的任务", "For looking around inside after a failure.", "失败后可以进入查看。"
    ),
    "extras": Words("Further settings", "额外参数"),
    # roles of v1, QIZHI and SCM
    "name": Words("Name", "名称"),
    "taskNumber": Words("Tasks", "任务数", "Equal tasks of this role.", "此角色中相同的任务个数。"),
    "cpuNumber": Words("CPU cores a task", "每个任务的 CPU 核数"),
    "memoryMB": Words("Memory a task (MiB)", "每个任务的内存（MiB）"),
    "shmMB": Words(
        "Shared memory a task (MiB)", "每个任务的共享内存（MiB）", "A part of the memory.", "属于内存的一部分。"
    ),
    "gpuNumber": Words("GPUs a task", "每个任务的显卡数"),
    "storageGB": Words("Storage a task (GB)", "每个任务的硬盘（GB）", "Recorded, not enforced.", "仅记录，不限制。"),
    "portList": Words("Ports", "端口"),
    "command": Words("Command", "命令", "One shell text; it may have several lines.", "一段 shell 文本，可以有多行。"),
    "minFailedTaskCount": Words(
        "Failed tasks that fail the job", "多少任务失败则作业失败", "Off: however many fail.", "关闭：无论失败多少。"
    ),
    "minSucceededTaskCount": Words(
        "Succeeded tasks that end the job",
        "多少任务成功则作业成功",
        "Off: only when all are done.",
        "关闭：全部完成才成功。",
    ),
    "label": Words("Label", "标签"),
    "beginAt": Words("First port", "起始端口", "0 chooses at random.", "0 表示随机选择。"),
    "portNumber": Words("Ports of this label", "此标签的端口数"),
    # jobs of v2
    "job/name": Words("Name", "名称", "Letters, digits, '-' and '_'.", "字母、数字、'-' 和 '_'。"),
    "protocolVersion": Words("Protocol version", "协议版本"),
    "type": Words("Type", "类型"),
    "version": Words("Version", "版本"),
    "contributor": Words("Contributor", "作者"),
    "description": Words("Description", "描述"),
    "prerequisites": Words(
        "Prerequisites",
        "先决条件",
        "Images, data, scripts and outputs that roles name.",
        "任务角色引用的镜像、数据、脚本和输出。",
    ),
    "parameters": Words(
        "Parameters", "参数", "Commands name them as <% $parameters.x %>.", "命令中写作 <% $parameters.x %>。"
    ),
    "secrets": Words(
        "Secrets",
        "机密",
        "Commands name them as <% $secrets.x %>. They are sealed, and covered in logs.",
        "命令中写作 <% $secrets.x %>。它们加密保存，并在日志中遮盖。",
    ),
    "jobRetryCount": Words(
        "Retries",
        "重试次数",
        "After failures that may pass; -1 without limit.",
        "遇到可能恢复的失败时重试；-1 不限次数。",
    ),
    "taskRoles": Words("Task roles", "任务角色"),
    "deployments": Words(
        "Deployments", "部署", "Commands around those of the roles.", "在任务角色的命令前后执行的命令。"
    ),
    "defaults": Words("Defaults", "默认值"),
    "deployment": Words("Active deployment", "启用的部署"),
    # roles of v2
    "instances": Words("Tasks", "任务数", "Equal tasks of this role.", "此角色中相同的任务个数。"),
    "completion": Words("Completion", "完成条件"),
    "minFailedInstances": Words(
        "Failed tasks that fail the job", "多少任务失败则作业失败", "-1: however many fail.", "-1：无论失败多少。"
    ),
    "minSucceededInstances": Words(
        "Succeeded tasks that end the job",
        "多少任务成功则作业成功",
        "-1: only when all are done.",
        "-1：全部完成才成功。",
    ),
    "taskRetryCount": Words(
        "Retries of one task", "单个任务的重试次数", "Followed without gang allocation.", "仅在不整体分配时有效。"
    ),
    "role/prerequisites": Words("Further prerequisites", "其他先决条件", "Names, one a line.", "名称，每行一个。"),
    "dockerImage": Words(
        "Image", "镜像", "The name of a prerequisite of type dockerimage.", "类型为 dockerimage 的先决条件的名称。"
    ),
    "data": Words("Data", "数据", "The name of a prerequisite.", "先决条件的名称。"),
    "output": Words("Output", "输出", "The name of a prerequisite.", "先决条件的名称。"),
    "script": Words("Script", "脚本", "The name of a prerequisite.", "先决条件的名称。"),
    "extraContainerOptions": Words("Container", "容器"),
    "infiniband": Words("InfiniBand", "InfiniBand"),
    "resourcePerInstance": Words("Resources of a task", "每个任务的资源"),
    "cpu": Words("CPU cores", "CPU 核数"),
    "gpu": Words("GPUs", "显卡数"),
    "resources/memoryMB": Words("Memory (MiB)", "内存（MiB）"),
    "ports": Words("Ports", "端口", "Label, and how many ports each task gets.", "标签，以及每个任务得到的端口数。"),
    "commands": Words(
        "Commands",
        "命令",
        "One a line; they run in one shell that ends at the first failure.",
        "每行一条；在同一个 shell 中执行，遇到失败即结束。",
    ),
    # prerequisites
    "uri": Words("Address", "地址", "Of an image its name, else where it is.", "镜像名称，或其所在位置。"),
    "auth": Words("Registry login", "仓库登录"),
    "username": Words("User", "用户名"),
    "password": Words("Password", "密码", "Name a secret: <% $secrets.x %>.", "请引用机密：<% $secrets.x %>。"),
    "registryuri": Words("Registry", "仓库地址"),
    "require": Words("Requires", "依赖", "Names of other prerequisites, one a line.", "其他先决条件的名称，每行一个。"),
    "plugin": Words("Plugin", "插件"),
    "failurePolicy": Words("When it fails", "失败时", "fail or ignore.", "fail 或 ignore。"),
    "callbacks": Words("Callbacks", "回调"),
    "event": Words("Event", "事件"),
    # deployments and plugins
    "preCommands": Words("Commands before", "前置命令", "One a line.", "每行一条。"),
    "postCommands": Words("Commands after", "后置命令", "One a line.", "每行一条。"),
    "plugins": Words("Plugins", "插件"),
    "plugin/parameters": Words("Settings", "设置"),
    "taskroles": Words(
        "For task roles", "适用的任务角色", "Names, one a line; none: all.", "名称，每行一个；留空则全部。"
    ),
    "jobssh": Words("SSH between tasks", "任务间 SSH"),
    "userssh": Words("Public key of a user", "用户公钥"),
    "userssh/type": Words("Kind", "类别"),
    "value": Words("Public keys", "公钥"),
    "sshbarrier": Words("Wait for all tasks' SSH", "等待所有任务的 SSH"),
    "sshbarriertaskroles": Words("Wait for these roles", "等待这些角色", "One a line.", "每行一个。"),
    "sshbarrierTimeout": Words("Longest wait (minutes)", "最长等待（分钟）"),
    "storageConfigNames": Words("Team storages", "团队存储", "Names, one a line.", "名称，每行一个。"),
    "port": Words("Port", "端口"),
    "logdir": Words("Log directories", "日志目录", "Name and directory.", "名称和目录。"),
    "repo_uri": Words("Repository", "仓库"),
    "options": Words("Options of git clone", "git clone 选项", "One a line.", "每行一个。"),
    "clone_dir": Words("Directory", "目录"),
    # extras
    "hivedScheduler": Words("Scheduling", "调度"),
    "jobPriorityClass": Words("Priority", "优先级", "oppo uses what others leave free.", "oppo 使用空闲资源。"),
    "hived/taskRoles": Words("Hardware of each role", "各角色的硬件"),
    "lazyPreemptionEnable": Words("Preempt lazily", "惰性抢占"),
    "ignoreK8sSuggestedNodes": Words("Ignore suggested nodes", "忽略建议的节点"),
    "withinOneCell": Words("Within one", "位于同一", "A node, switch or rack.", "节点、交换机或机架。"),
    "skuType": Words("Hardware (SKU)", "硬件（SKU）"),
    "pinnedCellId": Words("Pinned cell", "固定单元"),
    "affinityGroupName": Words("Affinity group", "亲和组"),
    "gangAllocation": Words(
        "Start all tasks together", "所有任务一起启动", "Off: each as room comes.", "关闭则逐个启动。"
    ),
    "storages": Words("Team storages", "团队存储"),
    "mountPath": Words("Mounted at", "挂载到"),
    "jobStatusChangeNotification": Words(
        "Notify when", "通知时机", "By all that `pai notify` has.", "通过 `pai notify` 设置的所有方式。"
    ),
    "running": Words("It runs", "运行时"),
    "succeeded": Words("It succeeds", "成功时"),
    "stopped": Words("It is stopped", "停止时"),
    "failed": Words("It fails", "失败时"),
    "retried": Words("It is retried", "重试时"),
    "jupyterPai": Words("Only here", "本系统特有", "Other systems ignore these fields.", "其他系统忽略这些字段。"),
    "expectedRunTime": Words(
        "Expected run time",
        "预计运行时间",
        "Like 2h30m. It ends nothing; jobs that wait get an estimate.",
        "如 2h30m。不会结束作业；排队的作业据此得到估计。",
    ),
    "maxDuration": Words(
        "Stop when it has run for", "运行多久后停止", "Like 12h; empty: never.", "如 12h；留空则从不。"
    ),
    "idleTimeout": Words("Stop when unused for", "空闲多久后停止", "Like 8h; empty: never.", "如 8h；留空则从不。"),
    "address": Words(
        "Workspace name",
        "工作区名称",
        "SSH and services answer at it, whichever of your jobs has it.",
        "SSH 与服务在此名称下应答，不论由你的哪个作业持有。",
    ),
    "debug": Words(
        "Debugger",
        "调试器",
        "Debuggers attach to its Python programs by pai debug.",
        "可用 pai debug 将调试器附加到其 Python 程序。",
    ),
    "startOnLogin": Words(
        "Start on login",
        "登录时启动",
        "An SSH login runs the job again when it has ended.",
        "作业结束后，SSH 登录会再次运行它。",
    ),
    "sweep": Words("Sweep", "参数扫描", "Your jobs of one sweep belong together.", "同一参数扫描的作业属于一组。"),
    "sweepParallel": Words(
        "Jobs of the sweep at once", "参数扫描的并行作业数", "The others wait for their turn.", "其余作业依次等待。"
    ),
    "notebook": Words("Notebook", "笔记本", "The job runs its cells.", "作业运行其单元格。"),
    "nodeSelector": Words("Node labels", "节点标签", "Labels that a node must have.", "节点必须具有的标签。"),
    "secretEnv": Words(
        "Variables from your secrets",
        "取自个人机密的环境变量",
        "Variable, and the name of a secret of yours: pai secret set NAME.",
        "变量名，以及你的机密的名称：用 pai secret set NAME 设置。",
    ),
    "kubernetes": Words(
        "Pods on Kubernetes",
        "Kubernetes Pod 设置",
        "What the administrator lets you choose; elsewhere without effect.",
        "仅限管理员允许的选项；在其他引擎上无效。",
    ),
    "priorityClass": Words("PriorityClass", "PriorityClass（优先级类）"),
    "runtimeClass": Words("RuntimeClass", "RuntimeClass（运行时类）"),
    "serviceAccount": Words(
        "ServiceAccount", "ServiceAccount（服务账户）", "Tasks never get its token.", "任务不会得到其令牌。"
    ),
    "imagePullSecrets": Words(
        "Secrets to fetch images with", "拉取镜像所用的 Secret", "Names, one a line.", "名称，每行一个。"
    ),
    "minInstances": Words(
        "Tasks that start together", "一起启动的任务数", "The others join as room comes.", "其余的随后加入。"
    ),
}
"""Label and explanation of each field."""
