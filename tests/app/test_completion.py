"""Values of options are completed in the shell."""

import pytest
import typer

from mrshc.app.cli import make_app
from mrshc.app.cli.completion import complete_from, complete_list


def test_the_last_entry_of_a_list_is_completed():
    complete = complete_list(lambda: ["hc", "hmv", "shc"])
    assert complete("") == ["hc", "hmv", "shc"]
    assert complete("h") == ["hc", "hmv"]
    assert complete("shc,h") == ["shc,hc", "shc,hmv"]
    assert complete("hc,h") == ["hc,hmv"], "each entry occurs once"
    assert complete("other,") == ["other,hc", "other,hmv", "other,shc"]
    assert complete_from("auto", "none")("a") == ["auto"]


@pytest.mark.parametrize(
    ("command", "parameter", "text", "expected"),
    [
        ("compare", "methods", "mrshc,shc-", ["mrshc,shc-ssl"]),
        ("cluster", "picture_format", "png,p", ["png,pdf"]),
        ("cluster", "rank", "", ["auto"]),
        ("cluster", "device", "cu", ["cuda"]),
    ],
)
def test_options_have_completions(command, parameter, text, expected):
    chosen = typer.main.get_command(make_app([command])).commands[command]
    (option,) = (one for one in chosen.params if one.name == parameter)
    found = option.shell_complete(chosen.make_context(command, [], resilient_parsing=True), text)
    assert [item.value for item in found] == expected
