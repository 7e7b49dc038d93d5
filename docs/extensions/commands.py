"""The command line, as the commands themselves say it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.core import TyperGroup
from typer.main import get_command

from reference import docstring_as_restructured
from roundelay.cli.app import app as roundelay_app


def setup(app: Sphinx) -> dict[str, Any]:
    """Enter the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}


def commands() -> Iterator[tuple[typer.Context, Any]]:
    """Every command with what was typed before it, groups before what they hold."""
    root = typer.Context(get_command(roundelay_app), info_name="roundelay")
    yield from _below(root, root.command)


def _below(context: typer.Context, command: Any) -> Iterator[tuple[typer.Context, Any]]:
    yield context, command
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from _below(typer.Context(inner, parent=context, info_name=name), inner)


class Commands(SphinxDirective):
    """A section for each command: what it does, how it is called, what it takes."""

    def run(self) -> list[nodes.Node]:
        """The commands of a group stand behind it."""
        return [self._section(context, command) for context, command in commands()]

    def _section(self, context: typer.Context, command: Any) -> nodes.section:
        path = context.command_path
        section = nodes.section("", nodes.title("", path), ids=[nodes.make_id(path)])
        self.state.nested_parse(
            StringList(["````{eval-rst}", *_body(context, command), "````"], path), self.content_offset, section
        )
        taken = [record for given in command.get_params(context) if (record := given.get_help_record(context))]
        if isinstance(command, TyperGroup):
            taken += [(name, inner.get_short_help_str(200)) for name, inner in command.commands.items()]
        section += nodes.definition_list("", *(_item(term, text) for term, text in taken if term != "--help"))
        return section


def _body(context: typer.Context, command: Any) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [".. code-block:: text", "", f"   {usage}", ""]
    # "\b" stands before what is to keep its lines: examples, tables.
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            title, *kept = paragraph.lstrip("\b\n").split("\n")
            lines += [
                docstring_as_restructured(title),
                ".. code-block:: text",
                "",
                *(f"   {line}" for line in inspect.cleandoc("\n" + "\n".join(kept)).split("\n")),
                "",
            ]
        else:
            lines += docstring_as_restructured(paragraph).split("\n")
    return "\n".join(lines).split("\n")


def _item(term: str, text: str) -> nodes.definition_list_item:
    return nodes.definition_list_item(
        "", nodes.term("", "", nodes.literal("", term)), nodes.definition("", nodes.paragraph("", text))
    )
