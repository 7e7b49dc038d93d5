"""The reference of the public list, made of docstrings as help() shows them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import TypeAliasForwardRef, stringify_signature
from sphinx.util.typing import stringify_annotation

from pages import display

# Where public names are listed besides roundelay itself: for whoever adds something, and for rows as scikit-learn has them.
LISTS = ("roundelay.algorithms", "roundelay.kernels", "roundelay.privacy", "roundelay.estimators")


def setup(app: Sphinx) -> dict[str, Any]:
    """Enter all of it."""
    app.add_directive("public", PublicNames)
    app.add_directive("update", Update)
    app.connect("autodoc-process-docstring", _restructure)
    app.connect("autodoc-process-signature", _as_written)
    # A type that stands among others is shown by its name, as Sphinx shows those that stand alone.
    TypeAliasForwardRef.__repr__ = lambda self: self.name.rsplit(".", 1)[-1]  # type: ignore[method-assign]
    app.connect("missing-reference", _find_public)
    return {"parallel_read_safe": True}


@cache
def public_names() -> dict[str, Any]:
    """What is public, by its full name, in the order of the modules in which it is defined."""
    named: dict[str, Any] = {}
    for place in ("roundelay", *LISTS):
        module, known = import_module(place), list(named.values())
        things = {name: getattr(module, name) for name in getattr(module, "__all__", dir(module))}
        named |= {
            f"{place}.{name}": thing
            for name, thing in things.items()
            if not name.startswith("_") and callable(thing) and _module(thing).startswith("roundelay.")
            if not any(thing is other for other in known)
        }
    return dict(sorted(named.items(), key=lambda entry: (_module(entry[1]), inspect.getsourcelines(entry[1])[1])))


def _module(thing: Any) -> str:
    return "" if inspect.ismodule(thing) else getattr(thing, "__module__", "")


def docstring_as_restructured(docstring: str) -> str:
    """A docstring in plain text as the language of Sphinx: code in backquotes, bold words, updates, examples; all else as it stands."""
    return "\n\n".join(_paragraph(paragraph) for paragraph in re.split(r"\n\s*\n", docstring.strip("\n"))) + "\n"


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if not all(line.startswith("    ") for line in lines):
        # A bold beginning of a line is that of a paragraph, too.
        return re.sub(r"\n(?=\*\*)", "\n\n", "\n".join(_prose(line) for line in lines))
    if lines[0].strip().startswith(">>>"):
        return _indented(".. code-block:: pycon\n", lines)
    if "@" in text:
        return _indented(".. code-block:: python\n", lines)
    return _indented(".. update::\n", lines)


def _indented(directive: str, lines: list[str]) -> str:
    return "\n".join([directive, *lines])


def _prose(line: str) -> str:
    def piece(text: str) -> str:
        if text.startswith("`"):
            return rf"\ {_code(text.strip('`'))}\ "
        if text.startswith("**"):
            return text
        return re.sub(r"([\\*_|`])", r"\\\1", text)

    return "".join(piece(text) for text in re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", line))


def _code(text: str) -> str:
    """A public name as a link to it, other code as it stands."""
    name = re.sub(r"\(\)$", "", text).removeprefix("roundelay.").removeprefix("rl.")
    place = next((place for place in ("roundelay", *LISTS) if f"{place}.{name}" in public_names()), None)
    return f"``{text}``" if place is None else f":py:obj:`{text} <{place}.{name}>`"


def _restructure(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = docstring_as_restructured("\n".join(lines)).split("\n")


def _find_public(app: Sphinx, env: Any, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """A type in a signature stands under the module that defines it: it leads to the public name, where it has one."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].rsplit(".", 1)[-1]
    for place in ("roundelay", *LISTS):
        found = env.domains["py"].objects.get(f"{place}.{target}")
        if found is not None:
            assert app.builder is not None
            uri = app.builder.get_relative_uri(node["refdoc"], found.docname)
            return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{found.node_id}")
    return content if node["reftarget"].startswith("roundelay.") else None


class Update(SphinxDirective):
    """An update in the notation of the docstrings."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Its display."""
        return [nodes.raw("", display(list(self.content)), format="html")]


class PublicNames(SphinxDirective):
    """All that is public and defined in the modules that are named, or in those of packages."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A section for each module."""
        modules: dict[str, list[str]] = {}
        for name, thing in public_names().items():
            modules.setdefault(_module(thing), []).append(name)
        # What is named first stands first, and a package behind it has the rest.
        places = [f"roundelay.{place}." for place in self.arguments[0].split()]
        chosen = dict.fromkeys(module for place in places for module in modules if f"{module}.".startswith(place))
        return [self._section(module, modules[module]) for module in chosen]

    def _section(self, module: str, names: list[str]) -> nodes.section:
        about = inspect.getdoc(import_module(module)) or ""
        title = module.rsplit(".", 1)[-1].replace("_", " ").capitalize()
        section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(module.removeprefix("roundelay."))])
        text = [docstring_as_restructured(about.split("\n\n")[0]), *(self._directive(name) for name in names)]
        lines = ["````{eval-rst}", *"\n".join(text).split("\n"), "````"]
        self.state.nested_parse(StringList(lines, module), self.content_offset, section)
        self.env.note_dependency(str(inspect.getsourcefile(import_module(module))))
        return section

    def _directive(self, name: str) -> str:
        thing = public_names()[name]
        if not inspect.isclass(thing):
            return f".. autofunction:: {name}\n"
        hidden = ", ".join(sorted(set(_members_of_protocols(thing))))
        return f".. autoclass:: {name}\n   :members:\n" + (f"   :exclude-members: {hidden}\n" if hidden else "")


def _members_of_protocols(thing: type) -> Iterator[str]:
    """What every algorithm, every start and so on has is told once, where the protocol is."""
    for protocol in public_names().values():
        members = {name for name in vars(protocol) if not name.startswith("_")} if _is_protocol(protocol) else set()
        if members <= set(dir(thing)) and not _is_protocol(thing):
            yield from members


def _is_protocol(thing: Any) -> bool:
    return bool(vars(thing).get("_is_protocol")) if inspect.isclass(thing) else False


def _as_written(app: Sphinx, what: str, name: str, thing: Any, *_: Any) -> tuple[str, str] | None:
    """A signature with its types as they stand in the code, where they have names; a protocol is not called."""
    if _is_protocol(thing):
        return "", ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    given = [_shown(each) for each in signature.parameters.values() if each.name != "self"]
    returned = signature.return_annotation if what != "class" else inspect.Signature.empty
    words = stringify_signature(inspect.Signature(given))
    return words, "" if returned is inspect.Signature.empty else stringify_annotation(returned)


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """A default that has no words of its own is three dots."""
    return (
        parameter.replace(default=...)
        if repr(parameter.default).startswith("<") and parameter.default is not parameter.empty
        else parameter
    )
