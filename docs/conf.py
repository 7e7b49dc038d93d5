"""How `make docs` builds the site: what is special about it stands in docs/extensions."""

import logging
import sys
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import roundelay

# A theme's colours would let every library tell what it does, on the page of whoever runs in the same process.
logging.basicConfig(level=logging.WARNING)

project = "Roundelay"
author = project_copyright = "The Roundelay authors"
version = release = roundelay.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery", "pages", "reference", "commands"]
exclude_patterns = ["_build", "extensions", "tutorials/**/*.ipynb", "tutorials/**/*.py", "tutorials/**/*.md5"]
suppress_warnings = ["config.cache"]  # the order of the gallery is a function
smartquotes = False  # -- begins an option
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!roundelay\.).*")
]  # types of other packages, which a site without the network can't link to

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3  # as a code host has them

autodoc_typehints_format = "short"
autodoc_type_aliases = {name: f"roundelay.kernels.{name}" for name in ("Vector", "Matrix", "Cube", "Integers", "Flags")}
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "default_thumb_file": str(Path(__file__).parent / "figures" / "compare.png"),
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,  # times say nothing here, and would make two builds differ
    "write_computation_times": False,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = "Roundelay"
html_favicon = html_logo = "_static/ring.svg"
html_math_renderer = "mathml"
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
