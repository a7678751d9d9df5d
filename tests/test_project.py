"""The project tells the truth about itself: README against the tree, pins, what an import costs, no stray paths."""

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def ignored(path: Path) -> bool:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [line.removeprefix("**/").strip("/") for line in lines if line and not line.startswith("#")]
    inside = "/" + path.relative_to(ROOT).as_posix()
    return any(fnmatch(inside, f"*/{pattern}") for pattern in [".git", *patterns])


def children(folder: Path) -> list[Path]:
    """What a folder holds that belongs to the project; also right in a copy that is no git checkout."""
    inside = [path for path in sorted(folder.iterdir()) if not ignored(path)]
    return [path for path in inside if path.is_file() or children(path)]


def files(folder: Path = ROOT) -> Iterator[Path]:
    for path in children(folder):
        yield from files(path) if path.is_dir() else [path]


def section(heading: str) -> str:
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"README has no section '{heading}'"
    return found[1]


def tree() -> dict[str, str]:
    """The README's tree: path (a folder's ends with a slash) -> its comment."""
    block = re.search(r"```\w*\n(.*?)```", section("What is where"), re.DOTALL)
    assert block, "README's section 'What is where' has no tree"
    entries: dict[str, str] = {}
    above: list[str] = []
    for line in block[1].splitlines():
        indent, name, comment = re.fullmatch(r"( *)(\S+) *(.*)", line).groups()
        above = [*above[: len(indent) // 2], name]
        entries["".join(above)] = comment
    return entries


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else "")


def test_the_readme_tree_names_only_what_exists():
    gone = [entry for entry in tree() if not (ROOT / entry).exists() or (ROOT / entry).is_dir() != entry.endswith("/")]
    assert not gone


def test_the_readme_tree_says_what_each_entry_is():
    assert not [entry for entry, comment in tree().items() if len(comment.split()) < 2]


def test_the_readme_tree_is_complete_wherever_it_looks_inside():
    entries = tree()
    shown = [ROOT, *(ROOT / entry for entry in entries if any(e.startswith(entry) and e != entry for e in entries))]
    there = {named(path) for folder in shown for path in children(folder)}
    missing = {entry for entry in there - set(entries) if Path(entry).name not in (".gitignore", "__init__.py")}
    assert not missing


def test_the_readme_tree_has_every_module_of_the_package():
    modules = {named(path) for path in files(ROOT / "gptviz") if path.suffix == ".py" and path.name != "__init__.py"}
    missing = modules - set(tree())
    assert not missing


def test_the_readme_lists_the_pages_that_there_are():
    listed = re.findall(r"^- .*?`(pages/\w+\.py)`", section("Pages"), re.MULTILINE)
    assert sorted(listed) == [named(path) for path in sorted((ROOT / "pages").glob("*.py"))]


def test_the_readme_example_runs():
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert example, "README has no example"
    subprocess.run([sys.executable, "-W", "error", "-c", example[1]], cwd=ROOT, check=True)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_a_document_links_only_to_what_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]


@pytest.mark.parametrize("module", ["gptviz", "gptviz.sizing", "gptviz.config"])
def test_importing_does_not_wait_for_torch(module):
    ask = f"import sys, {module}; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_pins_are_exact(name):
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    loose = [line for line in lines if line and not re.fullmatch(r"-r \S+|[\w.-]+(\[[\w,-]+\])?==[\w.+!]+", line)]
    assert not loose


def text_files() -> Iterator[tuple[Path, str]]:
    for path in files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_text_holds_a_path_of_somebodys_machine():
    private = re.compile(r"(?<![\w.}*])/(?:work|home|root|Users)/")
    assert not [f"{named(path)}: {found[0]}" for path, text in text_files() if (found := private.search(text))]
