"""How much may run at once, and in which order a cap is served."""

from __future__ import annotations

from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from pai_backend.scheduling.queue.policy import most_gpus
from tests.unit.scheduling.queue.line import Line


def test_a_user_at_a_cap_waits_and_others_go_on() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    assert line.submit("ann0", (1, 3), user="ann") == ["ann0"]
    assert line.submit("ann1", (1, 2), user="ann") == []
    assert line.submit("bob0", (1, 2), user="bob") == ["bob0"]
    assert line.end("ann0") == ["ann1"]


def test_tasks_are_counted_as_gpus_are() -> None:
    line = Line(Policy(vc=VcCaps(total=Cap(tasks=3))))
    assert line.submit("pair", (2, 1)) == ["pair"]
    assert line.submit("other", (2, 1), user="bob") == []
    assert line.end("pair") == ["other"]


def test_a_cap_over_all_virtual_clusters_counts_all_of_them() -> None:
    line = Line(Policy(user=Cap(gpus=5)))
    assert line.submit("here", (1, 4)) == ["here"]
    assert line.submit("there", (1, 2), vc="b") == []
    assert line.submit("small", (1, 1), vc="b") == [], "an earlier group waits for the same cap"
    assert line.end("here") == ["there", "small"]


def test_users_may_have_caps_of_their_own() -> None:
    line = Line(Policy(vcs={"a": VcCaps(user=Cap(gpus=1), users={"ann": Cap(gpus=8)})}))
    assert line.submit("ann", (1, 4), user="ann") == ["ann"]
    assert line.submit("bob", (1, 2), user="bob") == []


def test_a_cap_is_served_in_order() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("running", (1, 2))
    assert line.submit("large", (1, 4)) == []
    assert line.submit("small", (1, 1)) == [], "it would take from what the large one waits for"
    assert line.end("running") == ["large"]
    assert line.end("large") == ["small"]


def test_a_group_beyond_the_cap_all_by_itself_holds_nobody_up() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    assert line.submit("huge", (1, 4)) == []
    assert line.submit("small", (1, 1)) == ["small"]


def test_a_group_beyond_the_cap_holds_nobody_up_when_the_one_before_it_is_given_up() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    line.submit("runs", (1, 2))
    line.submit("huge0", (1, 4))
    line.submit("huge1", (1, 4))
    assert line.submit("waits", (1, 2)) == []
    assert line.end("huge0") == []
    assert line.submit("one", (1, 1), vc="b") == ["one"]
    assert line.end("runs") == ["waits"]


def test_beyond_one_cap_by_itself_it_holds_nobody_up_at_another() -> None:
    line = Line(Policy(vc=VcCaps(total=Cap(gpus=8), user=Cap(gpus=4))))
    line.submit("runs", (1, 4))
    assert line.submit("huge", (2, 3), user="ann") == []
    assert line.submit("small", (1, 3), user="bob") == ["small"]


def test_giving_up_what_waits_first_lets_the_next_go_on() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("running", (1, 2))
    line.submit("large", (1, 4))
    line.submit("small", (1, 1))
    assert line.end("large") == ["small"]


def test_opportunistic_groups_are_exempt() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=1))))
    assert line.submit("free", (2, 4), priority=-1) == ["free"]
    assert line.submit("paid", (1, 1)) == ["paid"]


def test_a_preemptor_counts_while_it_waits_for_its_victims() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    for number in range(3):
        line.submit(f"full{number}", (1, 4), user=f"other{number}")
    line.submit("urgent", (1, 4), priority=100, user="ann")
    assert "urgent" in line.queue.claims
    line.submit("more", (1, 4), priority=100, user="ann")
    assert "more" in line.queue.waiting


def test_groups_that_ran_before_a_restart_count() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("before", (1, 3))
    entry = line.queue.running["before"]
    fresh = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    fresh.queue.ledger.restore(line.queue.ledger.placements().values())
    fresh.queue.adopt(entry)
    assert fresh.submit("after", (1, 2)) == []
    assert fresh.end("before") == ["after"]


def test_what_is_put_aside_lets_those_behind_its_like_go_on() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    assert line.submit("runs", (1, 2)) == ["runs"]
    assert line.submit("like", (1, 2)) == []
    assert line.submit("small", (1, 1)) == []
    line.queue.defer("runs")
    assert line.started() == ["small"], "its node has nothing for the two before it"


def test_what_another_user_is_refused_lets_those_behind_go_on() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    for user in ("ann", "bob"):
        assert line.submit(f"{user}0", (1, 1), user=user) == [f"{user}0"]
        assert line.submit(f"{user}1", (1, 4), user=user) == []
    assert line.submit("small", (1, 1), user="bob") == []
    for number, leaves in enumerate((3, 3, 2)):
        assert line.submit(f"full{number}", (1, leaves), user=f"u{number}") == [f"full{number}"]
    assert line.end("ann0", "bob0") == ["small"], "bob1 is like ann1, for which there is no node"


def test_who_goes_on_to_another_cap_lets_those_behind_go_on() -> None:
    line = Line(Policy(vc=VcCaps(total=Cap(gpus=8), user=Cap(gpus=4))))
    line.submit("ann0", (1, 4), user="ann")
    line.submit("bob0", (1, 4), user="bob")
    assert line.submit("ann1", (1, 1), user="ann") == []
    assert line.submit("carol", (1, 1), user="carol") == []
    assert line.end("bob0") == ["carol"]
    assert line.end("ann0") == ["ann1"]


def test_who_is_not_asked_lets_those_behind_go_on() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    line.submit("runs", (1, 1))
    line.submit("large", (1, 3))
    assert line.submit("much", (1, 2), needs="much") == []
    assert line.submit("small", (1, 1)) == []
    line.busy = {"n0", "n1", "n2", "n3"}
    assert line.submit("other", (1, 2), needs="much", user="ann") == []
    assert line.end("large") == ["small"], "no node has anything for the like of the one before it"


def test_put_back_it_is_first_again_among_those_that_wait_for_a_cap() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    line.submit("first", (1, 2))
    assert line.submit("large", (1, 3)) == []
    assert line.submit("like", (1, 2)) == []
    line.queue.put_back("first")
    assert line.started() == ["first"]
    assert line.end("first") == ["large"]
    assert line.end("large") == ["like"]


def test_a_user_is_told_the_least_of_all_caps() -> None:
    policy = Policy(
        user=Cap(gpus=9), users={"bob": Cap(tasks=1)}, vc=VcCaps(total=Cap(gpus=8), users={"ann": Cap(gpus=2)})
    )
    assert [most_gpus(policy, "a", user) for user in ("ann", "eve", "bob")] == [2, 8, 8]
    assert most_gpus(Policy(), "a", "ann") is None
