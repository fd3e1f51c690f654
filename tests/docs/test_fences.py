"""No command in the documentation is left to trust: it is run by a test, or a row here says why not."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import READMES, ROOT, Fence, fences, pages, read

NOT_RUN = {
    ("README.md", "make demo"): "tests/integration/front/test_real_backend.py runs what it runs, examples/demo.py",
    ("README.md", "make test"): "it runs this test",
    ("docs/job-info.md", "import json, os"): "tests/unit/launch/test_job_info.py runs it in a task's environment",
    ("docs/job-info.md", 'me="${PAI_CURRENT_TASK_ROLE_NAME}-${PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX}"'): "as above",
    ("docs/ssh-keys.md", "pai keys add ~/.ssh/id_ed25519.pub --name laptop --for 90d"): (
        "tests/integration/front/test_ssh_logins.py runs the page's commands"
    ),
    ("docs/ssh-keys.md", "pai share JOB --with bob --for 2h --only sftp --only port:jupyter"): "as above",
    ("docs/ssh-keys.md", "pai share JOB --link LABEL --for 2d"): "as above",
    ("docs/audit.md", "pai audit list                                   # the last 100 events, newest first"): (
        "tests/integration/api/test_audit.py runs such commands"
    ),
    ("docs/audit.md", "$ pai audit verify"): "as above",
    ("docs/secrets.md", "pai secret set hf-token                  # asks for the value and does not show it"): (
        "tests/integration/api/test_user_secrets.py runs all of them"
    ),
    ("docs/operations.md", "pai user add eve --email eve@example.org    # shows a password once"): (
        "tests/integration/api/test_users.py and test_groups.py run all of them"
    ),
    (
        "docs/operations.md",
        "pai group set default --vc default                            # from now on everyone may use this one only",
    ): "tests/integration/api/test_groups.py sends what they send",
    (
        "docs/operations.md",
        "pai usage                                        # the last 30 days, by user, virtual cluster and GPU type",
    ): "tests/integration/front/test_run.py and api/test_usage.py ask for such hours",
    ("docs/operations.md", "pai token add ci --scope read --scope jobs --for 30d   # shows the token once"): (
        "tests/integration/api/test_scopes.py runs all of them"
    ),
    (
        "docs/operations.md",
        'pai announce "The machines of rack 2 are off on Friday from 9 to 18." --for 2d',
    ): "tests/integration/api/test_announcements.py runs all of them",
    ("docs/operations.md", "pai price set V100 2.50 --currency EUR              # an hour of a V100, from now on"): (
        "tests/integration/api/test_prices.py runs these verbs"
    ),
    (
        "docs/operations.md",
        "pai budget set 500 --vc research                     # GPU hours a month of all jobs in research",
    ): "tests/integration/api/test_budgets.py runs these verbs",
    (
        "docs/operations.md",
        "pai reserve add course --vc vision --gpus 8 --one-node --from 2026-12-04T09:00 --for 9h --group students",
    ): "tests/integration/api/test_bookings.py runs these verbs",
    (
        "docs/operations.md",
        "pai vc set vision --most-gpus-per-user 8 --most-jobs-per-user 4 --longest-run 2d",
    ): "tests/integration/api/test_vc_rules.py runs such ones",
    (
        "docs/notifications.md",
        "pai notify add mail                                      # to the address of your account",
    ): ("tests/integration/api/test_notifications.py and app/test_notifications.py run all of them"),
    (
        "docs/assistants.md",
        "pai token add assistant --scope read --for 30d           # prints a token that only looks",
    ): ("tests/integration/api/test_scopes.py runs such a one"),
    ("docs/assistants.md", "pai mcp --http 8090"): "tests/integration/api/test_assistants.py serves at another port",
    ("docs/operations.md", 'pai announce "The storage moves." --no-starts 2026-12-01T09:00 --for 4h'): (
        "tests/integration/api/test_announcements.py runs such a one"
    ),
    ("docs/operations.md", "python -m pai_backend backup /backups/2026-11-24 --config backend.yaml"): (
        "tests/integration/app/test_restore_drill.py runs the page's commands"
    ),
    ("docs/operations.md", "# stop the backend first"): "as above",
    (
        "docs/operations.md",
        "pai cluster orphans                  # what runs, since when, and why it was not taken back",
    ): "as above",
    ("docs/connect/kernels.md", "pai kernel install train       # writes the kernel spec pai:train"): (
        "tests/integration/kernels/test_kernels.py runs it, and nbclient, which is papermill's engine"
    ),
    ("docs/connect/tensorboard.md", "pai tensorboard JOB --logdir runs"): (
        "tests/integration/kernels/test_tensorboard.py runs it, with a program that is played"
    ),
    ("docs/connect/vscode.md", "pai code JOB"): "as above",
    ("docs/connect/vscode.md", "pai code JOB --web"): "as above",
    ("docs/connect/debug.md", "python -m debugpy --listen 127.0.0.1:5678 --wait-for-client train.py"): (
        "tests/integration/kernels/test_debug.py runs both, with other ports"
    ),
    ("docs/connect/debug.md", "import debugpy"): "it would wait for a debugger",
    ("docs/connect/debug.md", "pai debug JOB --remote-root /work/project --write"): "as above",
    ("docs/connect/jupyter.md", "export PAI_URL=https://hub.example/user/ann/pai PAI_TOKEN=the-token-of-jupyter"): (
        "tests/ui/test_addresses.py runs it on a Jupyter server"
    ),
    (
        "docs/connect/jupyterhub.md",
        'c.JupyterHub.services.append({"name": "pai"})',
    ): "tests/ui/test_hub.py runs a Hub with it",
    ("docs/oidc.md", "pai login https://pai.example.org            # opens a browser of this computer"): (
        "tests/ui/test_provider_login.py runs them"
    ),
    ("docs/connect/jupyterhub.md", 'c.JupyterHub.subdomain_host = "https://hub.example"'): "as above",
    ("docs/form.md", "import jupyter_pai as pai"): "tests/ui/test_notebook_form.py runs the like",
    ("docs/run.md", "pai run --gpu 1 --memory 16G -- python train.py --lr 0.1"): (
        "tests/integration/front/test_run.py runs the like"
    ),
    ("docs/run.md", "pai run --code . -- python -m mypackage.train"): "as above",
    ("docs/run.md", "pai run-notebook train.ipynb -p lr=0.1 -p epochs=3 --gpu 1"): "as above",
    ("docs/run.md", "%%pai run --gpu 1 --send data,scaled --fetch model --image pytorch/pytorch"): "as above",
    ("docs/run.md", "pai submit train.yaml --sweep lr=0.1,0.01 --sweep seed=1..5 --parallel 4"): "as above",
    ("docs/run.md", "pai sweep train-3f2a            # values, state and exit of each job"): "as above",
    ("docs/connect/sync.md", "pai sync JOB project            # changes here go to the task"): (
        "tests/integration/front/test_run.py runs both with --once"
    ),
    ("docs/storage.md", "pai upload code pai://alice/code"): "tests/integration/storage/test_commands.py runs the like",
    ("docs/scheduling.md", "from pai_backend.scheduling import Group, Ledger, Member, Wait, read_config"): (
        "tests/unit/scheduling/test_example.py runs it on the page's configuration"
    ),
    (
        "docs/scheduling.md",
        "pai simulate examples/simulate/cluster.yaml examples/simulate/trace.jsonl --picture course.svg",
    ): ("tests/integration/front/test_simulate.py runs it"),
    ("docs/scheduling.md", "pai cluster show > cluster.yaml     # what is in force; edit it"): (
        "tests/integration/front/test_cluster.py runs them"
    ),
    ("docs/quick-start-kubernetes.md", "pip install '.[kubernetes]'"): "tests make a namespace of their own",
    ("docs/quick-start-kubernetes.md", "export PAI_BACKEND_CONFIG=$PWD/backend.yaml"): (
        "tests/kubernetes/test_quick_start.py runs it on a real cluster"
    ),
    ("docs/quick-start-kubernetes.md", "cat >hello.yaml <<'END'"): "as above",
    ("docs/quick-start-kubernetes.md", "kubectl -n jupyter-pai apply -f - <<'END'"): (
        "tests/unit/launch/test_unreached.py reads the configuration beside it"
    ),
    (
        "docs/quick-start-kubernetes.md",
        "python -m pai_backend cluster init --config backend.yaml --vc vision=50 --output cells.yaml",
    ): "as above",
    (
        "docs/quick-start-kubernetes.md",
        "python -m pai_backend cluster init --layout layout.yaml --output cells.yaml",
    ): "as above",
    ("docs/quick-start-server.md", "apt-get install -y podman runc netavark iptables openssh-client python3-venv"): (
        "`tools/system-packages containers` installs these; the wheel is tests/integration/packaging's"
    ),
    ("docs/quick-start-server.md", "podman load --input runtime.tar"): (
        "tests/integration/containers/test_quick_start.py runs all others of the page, and loads it before"
    ),
    (
        "docs/quick-start-server.md",
        "python -m pai_backend setup",
    ): "as above; tests/integration/app/test_setup.py answers it",
    ("docs/quick-start-server.md", "systemctl daemon-reload"): "needs systemd, which containers have not",
    ("docs/quick-start-server.md", "export PAI_URL=http://127.0.0.1:8750"): "as above",
    ("docs/quick-start-server.md", "cat >hello.yaml <<'END'"): "as above",
    (
        "docs/install-kubernetes.md",
        "make image IMAGE=registry.example.com/jupyter-pai:0.1.0    # the backend, by docker, podman or buildah",
    ): "pushes to a registry; tests/kubernetes/deploy/test_built_image.py runs what builds the backend's",
    (
        "docs/install-kubernetes.md",
        "kubectl create namespace pai",
    ): "tests/kubernetes/deploy/release.py makes the like, in a namespace of its own",
    (
        "docs/install-kubernetes.md",
        "helm install pai deploy/helm/jupyter-pai --namespace pai --values values.yaml --wait",
    ): "tests/kubernetes/deploy/test_install.py runs it with values for the test cluster",
    (
        "docs/install-kubernetes.md",
        "kubectl -n pai create secret tls pai-tls --cert=tls.crt --key=tls.key",
    ): "tests/kubernetes/routes runs it, and installs the values beside it",
    (
        "docs/install-kubernetes.md",
        "python -m pai_backend cluster remove --cluster-name lab --kubernetes-namespace pai-tasks",
    ): "tests/integration/engine/test_kubernetes_removal.py runs it on a server that is played",
    ("docs/engine-kubernetes.md", "kubectl create namespace try-policies"): (
        "tests/kubernetes/policies/test_page.py runs it on a cluster that enforces policies, and on one that does not"
    ),
    ("README.md", 'pip install ".[backend]"'): "tests/integration/binder/test_post_build.py installs the checkout",
    ("docs/first-job.md", 'pip install ".[backend]"'): "as above",
}
"""(page, first line) -> why this fence is not run where it stands."""

RUNNABLE = {"sh", "bash", "console", "python", "ipython"}
KNOWN = RUNNABLE | {
    "",
    "yaml",
    "toml",
    "json",
    "ini",
    "mermaid",
    "nginx",
    "apache",
    "{toctree}",
    "{include}",
    "{eval-rst}",
}
RUN_IN = {
    "README.md": "test_readme.py",
    "README.zh-CN.md": "test_readme.py",
    "docs/first-job.md": "test_readme.py",
    "docs/rest.md": "test_rest.py",
}
"""Pages whose commands are run, and by which module here. Chinese pages have commands of the English ones alone."""

ALL = [fence for page in pages() for fence in fences(page)]
COMMANDS = [fence for fence in ALL if fence.language in RUNNABLE]


@pytest.mark.parametrize("fence", COMMANDS, ids=str)
def test_a_fence_with_commands_is_run_or_has_a_reason(fence: Fence) -> None:
    english = fence.page.replace("docs/zh-CN/", "docs/")
    assert english in RUN_IN or (english, fence.first) in NOT_RUN


@pytest.mark.parametrize("fence", ALL, ids=str)
def test_a_fence_names_a_language_that_is_known_here(fence: Fence) -> None:
    assert fence.language.partition(" ")[0] in KNOWN


def test_fences_without_a_language_hold_pictures() -> None:
    """A fence without a language would be a way past the tests."""
    plain = [fence for fence in ALL if fence.language == ""]
    assert all(re.search(r"[─↓┐│]", fence.text) for fence in plain), [str(fence) for fence in plain]


def test_the_table_names_fences_that_exist() -> None:
    assert NOT_RUN.keys() <= {(fence.page, fence.first) for fence in COMMANDS}
    assert all(NOT_RUN.values())


def test_every_make_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    mentioned = {word for page in pages() for word in re.findall(r"`make ([a-z-]+)[ `]", read(page))}
    mentioned |= {fence.first.split()[1] for fence in COMMANDS if fence.first.startswith("make ")}
    assert {"demo", "test", "lab", "crash"} <= mentioned
    assert mentioned <= targets


def test_every_file_that_is_mentioned_with_a_path_exists() -> None:
    folders = r"(?:tests|tools|examples|bench|backend|jupyter_pai|labextension|binder)"
    for page in (*READMES, "CONTRIBUTING.md", "tests/README.md", "CHANGELOG.md"):
        for path in re.findall(rf"`({folders}/[\w./-]+)`", read(page)):
            assert (ROOT / path).exists(), f"{page} names {path}"
