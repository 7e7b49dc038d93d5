"""What the pages need beyond Markdown: mathematics without a script, a glossary that can be linked to, examples with their source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import desc_signature
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from notation import as_mathml

ROOT = Path(__file__).parents[2]
# A symbol in a sentence, as in x_i or ∇f_i(z), with what stands below it: one letter, perhaps behind others that are no words.
SYMBOL = re.compile(r"(?<![A-Za-z0-9_])([^\W\d_][\u0300-\u036f]?)_([a-zα-ω]{1,3}|\d)(?![A-Za-z0-9_])")
# What stands beside docs/ on a code host and has a page in the site: the file, and its page.
OUTSIDE = (
    (r"\.\./(CONTRIBUTING|SECURITY|CHANGELOG)\.md", lambda found: f"{found[1].lower()}.md"),
    (r"\.\./examples/tutorials/(\w+)\.py", lambda found: f"tutorials/{found[1]}.rst"),
    (r"\.\./examples/tutorials/?", lambda found: "tutorials/index.rst"),
    (r"\.\./examples/(\w+)\.py", lambda found: f"examples.md#{found[1].replace('_', '-')}"),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Enter all of it."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.add_directive("examples", Examples)
    app.add_post_transform(Lowered)
    app.connect("source-read", _link_inside)
    app.connect("doctree-read", _make_terms)
    app.connect("doctree-read", _set_formulas)
    return {"parallel_read_safe": True}


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _link_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """A link to what stands beside docs/ leads to its page here."""
    for place, to in OUTSIDE:
        source[0] = re.sub(rf"(?<=\]\(){place}(?=[)#])", to, source[0])


def _set_formulas(app: Sphinx, tree: nodes.document) -> None:
    """An indented block of a page is a formula; what is code has a fence, and a language."""
    if Path(app.env.doc2path(app.env.docname)).suffix != ".md":
        return
    for block in list(tree.findall(nodes.literal_block)):
        if block.get("language") == "none":
            block.replace_self(nodes.raw("", display(block.astext().splitlines()), format="html"))


def display(lines: list[str]) -> str:
    """A formula that scrolls inside itself where it is wider than the page."""
    return f'<div class="math">{as_mathml(lines)}</div>'


def _make_terms(app: Sphinx, tree: nodes.document) -> None:
    """Each row of the glossary becomes a target, and each of its words a term."""
    if app.env.docname != "glossary":
        return
    terms = app.env.get_domain("std")
    for row in tree.findall(nodes.row):
        if isinstance(row.parent, nodes.thead):
            continue
        words = list(_words(row.next_node(nodes.entry).astext()))
        identifier = nodes.make_id(f"term-{words[0]}")
        row.next_node(nodes.entry)["ids"].append(identifier)
        for word in words:
            if ("term", word) not in terms.objects:  # a word with two meanings leads to the first
                terms.note_object("term", word, identifier, location=row)
                terms._terms.setdefault(word.lower(), (app.env.docname, identifier))


def _words(cell: str) -> Iterator[str]:
    """The words of a row; one with its symbol behind it is known without that, too."""
    for word in cell.split(", "):
        yield word
        if " " in word:
            yield word.rsplit(" ", 1)[0]


class Lowered(SphinxPostTransform):
    """What Markdown and docstrings write as x_i is shown as such."""

    default_priority = 400

    def run(self, **options: Any) -> None:
        """In all sentences; code stays as it stands."""
        for text in list(self.document.findall(nodes.Text)):
            pieces = SYMBOL.split(text.astext())
            if len(pieces) == 1 or _is_code(text.parent):
                continue
            parts: list[nodes.Node] = [nodes.Text(pieces[0])]
            for symbol, below, rest in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
                parts += [nodes.Text(symbol), nodes.subscript("", below), nodes.Text(rest)]
            text.parent.replace(text, parts)


def _is_code(node: Any) -> bool:
    fixed = (nodes.literal, nodes.FixedTextElement, nodes.title, nodes.raw, nodes.math, nodes.image, desc_signature)
    while node is not None:
        if isinstance(node, fixed):
            return True
        node = node.parent
    return False


class Examples(SphinxDirective):
    """Every example with its source, under what the first line of its docstring says."""

    def run(self) -> list[nodes.Node]:
        """A section for each."""
        sections = []
        for path in sorted((ROOT / "examples").glob("*.py")):
            self.env.note_dependency(str(path))
            text = path.read_text(encoding="utf-8")
            title = (ast.get_docstring(ast.parse(text)) or path.stem).splitlines()[0].rstrip(".")
            source = nodes.literal_block(text, text, language="python")
            name = nodes.paragraph("", "", nodes.literal("", f"python examples/{path.name}"))
            sections.append(nodes.section("", nodes.title("", title), name, source, ids=[nodes.make_id(path.stem)]))
        return list(sections)
