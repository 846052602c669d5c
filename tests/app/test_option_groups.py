"""Options take their values from the lists of the library."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from mrshc.app.cli.options_from_dataclasses import ChoiceFrom, expand_options
from mrshc.core.linkages import LINKAGES, METRICS
from mrshc.methods import METHODS
from mrshc.preprocessing.chains import PRESETS
from mrshc.shell.text_cleaning import clean_text


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--linkage", LINKAGES),
        ("--metric", METRICS),
        ("--preset", PRESETS),
        ("--method", METHODS),
    ],
)
def test_unknown_values_are_refused_with_a_list_of_known_ones(main, option, names):
    code, _, printed = main("cluster", "x.csv", option, "far")
    assert code == 2
    printed = clean_text(printed).replace("│", "")
    for name in names:
        assert f"'{name}'" in printed


def test_a_command_gets_its_groups_and_plain_texts():
    @dataclass(frozen=True, kw_only=True)
    class Group:
        linkage: Annotated[
            str | None, typer.Option("--linkage"), ChoiceFrom("mrshc.core.linkages", "LINKAGES")
        ] = "ward"
        other: Annotated[int, typer.Option("--other")] = 2

    calls = []

    def command(name, group, flag=False):
        calls.append((name, group, flag))

    command.__annotations__ = {
        "name": Annotated[str, typer.Argument()],
        "group": Group,
        "flag": Annotated[bool, typer.Option("--flag")],
    }
    app = typer.Typer()
    app.command()(expand_options(command, checked={"--linkage"}))
    app(["x", "--linkage", "single", "--flag"], standalone_mode=False)
    app(["y", "--other", "5"], standalone_mode=False)
    assert calls == [
        ("x", Group(linkage="single", other=2), True),
        ("y", Group(linkage="ward", other=5), False),
    ]
    assert type(calls[0][1].linkage) is str, "as the estimators want it"
