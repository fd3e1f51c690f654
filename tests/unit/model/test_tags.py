"""Tags: what is one, what it stands for, and what is left alone."""

from __future__ import annotations

import pytest

from pai_backend.model.tags import SCOPES, UnresolvedTag, fill, find, is_only_tags

VALUES = {
    "word": "resnet20",
    "batch": 32,
    "big": 2**70,
    "shuffle": True,
    "augment": False,
    "ratio": 0.5,
    "nothing": None,
    "sharp": "a&b<c>\"d'",
    "tag": "<% $parameters.word %>",
    "list": ["one", 2, True],
    "nested": {"deep": {"0": "by key", "list": [["x", "y"]]}},
}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("<% $parameters.word %>", "resnet20"),
        ("<%$parameters.word%>", "resnet20"),
        ("--model=<%  $parameters.word\t%>!", "--model=resnet20!"),
        ("<%\n$parameters.word\n%>", "resnet20"),
        ("<% $parameters.word %><% $parameters.batch %>", "resnet2032"),
        ("<% $parameters.big %>", "1180591620717411303424"),
        ("<% $parameters.shuffle %> <% $parameters.augment %>", "true false"),
        ("<% $parameters.ratio %>", "0.5"),
        ("<% $parameters.list[0] %>,<% $parameters.list.1 %>", "one,2"),
        ("<% $parameters.list %>", "one,2,true"),
        ("<% $parameters.nested.deep.list[0][1] %>", "y"),
        ("<% $parameters.nested.deep.list.0.1 %>", "y"),
        ("<% $parameters.nested.deep[0] %>", "by key"),
    ],
)
def test_a_tag_becomes_its_value(text: str, result: str) -> None:
    assert fill(text, "parameters", VALUES) == result


def test_a_value_is_neither_escaped_nor_scanned_again() -> None:
    assert fill("<% $parameters.sharp %>", "parameters", VALUES) == "a&b<c>\"d'"
    assert fill("<% $parameters.tag %>", "parameters", VALUES) == "<% $parameters.word %>"


@pytest.mark.parametrize(
    "text",
    [
        "no tag at all",
        "cat <<EOF >%x",
        "printf '<%s>' \"$x\"",
        'printf "<%${width}s>"',
        "erb <%= name %> <%# note %>",
        "<% %>",
        "<% $secrets.word %>",
        "<% $data.uri[0] %> <% $script.name %> <% $output.name %>",
        "<% $unknown.word %>",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert fill(text, "parameters", VALUES) == text


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("<% $parameters.absent %>", "$parameters has no member of that name"),
        ("<% $parameters.nested.absent.more %>", "$parameters.nested has no member of that name"),
        ("<% $parameters.nothing %>", "$parameters.nothing is null"),
        ("<% $parameters.nothing.more %>", "$parameters.nothing is null"),
        ("<% $parameters.word[0] %>", "$parameters.word is no list"),
        ("<% $parameters.word.more %>", "$parameters.word is no object"),
        ("<% $parameters.list[3] %>", "$parameters.list has 3 items, numbered from [0]"),
        ("<% $parameters.list.first %>", "$parameters.list is a list; its items are numbered from [0]"),
        ("<% $parameters.nested %>", "$parameters.nested is an object, not a text"),
        ("<% $parameters.nested.deep.list %>", "$parameters.nested.deep.list is a list of more than texts and numbers"),
    ],
)
def test_a_tag_that_stands_for_nothing_is_named(tag: str, reason: str) -> None:
    with pytest.raises(KeyError) as caught:
        fill(f"before {tag} after", "parameters", VALUES)
    assert isinstance(caught.value, UnresolvedTag)
    assert (caught.value.tag, caught.value.reason) == (tag, reason)
    assert str(caught.value) == f"{tag}: {reason}"


def test_an_error_holds_no_value() -> None:
    secrets = {"password": "hunter2", "list": ["hunter2"]}
    for tag in ("<% $secrets.password[0] %>", "<% $secrets.list[7] %>", "<% $secrets.pass %>"):
        with pytest.raises(UnresolvedTag) as caught:
            fill(tag, "secrets", secrets)
        assert "hunter2" not in repr(caught.value) + str(caught.value)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("<% $parameter.word %>", "no such scope; known are $parameters, $secrets, $data, $script, $output"),
        ("<% parameters.word %>", "a tag begins with '$' and the name of its scope"),
        ("<% $data %>", "it names the whole of $data; add .name"),
        ("<% $parameters..word %>", "its steps are written .name or [0]"),
        ("<% $parameters.list[x] %>", "its steps are written .name or [0]"),
        ("<% $parameters.word", "it has no end '%>', or a space or '<' inside it"),
        ("<% $parameters.two words %>", "it has no end '%>', or a space or '<' inside it"),
    ],
)
def test_what_is_meant_as_a_tag_and_is_none_is_found_with_its_flaw(text: str, flaw: str) -> None:
    (tag,) = find(text)
    assert tag.flaw == flaw


def test_found_tags_know_their_place_scope_and_steps() -> None:
    text = "a <% $data.uri[0] %> b <%$secrets.x.y%>"
    first, second = find(text)
    assert (first.scope, first.steps) == ("data", ("uri", "0"))
    assert (second.scope, second.steps) == ("secrets", ("x", "y"))
    assert [text[tag.start : tag.end] for tag in (first, second)] == [first.text, second.text]


def test_every_scope_is_filled_alone() -> None:
    text = " ".join(f"<% ${scope}.x %>" for scope in SCOPES)
    for scope in SCOPES:
        assert fill(text, scope, {"x": "value"}) == text.replace(f"<% ${scope}.x %>", "value")


@pytest.mark.parametrize("text", ["", "<% $secrets.a %>", "<%$secrets.a%><% $parameters.b[0] %>"])
def test_tags_alone_are_only_tags(text: str) -> None:
    assert is_only_tags(text)


@pytest.mark.parametrize(
    "text", [" ", "a", "<% $secrets.a %> ", "x<% $secrets.a %>", "<% $secrets %>", "<% secrets.a %>"]
)
def test_text_beside_tags_and_tags_that_cannot_be_filled_are_text(text: str) -> None:
    assert not is_only_tags(text)
