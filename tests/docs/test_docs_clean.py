"""No file of the project names a package registry's host or a path of somebody's machine."""

from __future__ import annotations

import re
import subprocess

import pytest
from docs_pages import ROOT

# Written in pieces, so that this file passes too.
HOSTS = (
    "pypi" + ".org",
    "python" + "hosted",
    "npmjs" + ".com",
    "npmjs" + ".org",
    "deb.deb" + "ian.org",
    "jsdelivr" + ".net",
)
HOME = re.compile("(?<![\\w.>:\\])}…-])/(?:work|root" + "|home/(?!somebody)\\w+|Users/\\w+|opt/py" + "pi)(?:/|\\b)")


def _tracked() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    found = []
    for name in _tracked():
        content = (ROOT / name).read_bytes()
        if b"\0" in content[:8192]:
            continue
        text = content.decode("utf-8", "replace")
        found += [f"{name}: {host}" for host in HOSTS if host in text]
        found += [f"{name}: {match[0]}" for match in HOME.finditer(text)]
    assert not found
