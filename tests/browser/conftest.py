"""A real server and a real browser: `serve(script)` gives a URL, `visit(url)` a page whose errors fail the test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
SYSTEM_CHROMIUM = Path("/usr/bin/chromium")  # where the environment names no other
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]

Serve = Callable[..., str]
Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = os.environ.get("GPTVIZ_CHROMIUM") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """visit(url, width=1280, height=900, **context options) -> Page, closed and checked for errors at the end."""
    contexts, errors = [], []

    def open_page(url: str, width: int = 1280, height: int = 900, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: (errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


Running = dict[tuple[Any, ...], tuple[str, "subprocess.Popen[bytes]", Path]]


@pytest.fixture(scope="session")
def servers() -> Iterator[Running]:
    """(script, *options) -> its URL, process and log."""
    running: Running = {}
    yield running
    for _, process, _ in running.values():
        _stop(process)


@pytest.fixture(scope="session")
def serve(servers: Running, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """serve(script, *streamlit options) -> URL; the same call again gives the same server."""

    def start(script: Path, *options: str) -> str:
        if (script, *options) not in servers:
            log = tmp_path_factory.mktemp("server") / "log.txt"
            servers[(script, *options)] = (*_start(script, options, log), log)
        return servers[(script, *options)][0]

    return start


@pytest.fixture
def server_log(servers: Running) -> Callable[..., str]:
    """server_log(script, *options) -> what that server has printed so far."""
    return lambda *server: servers[server][2].read_text()


@pytest.fixture
def paused(servers: Running) -> Callable[..., AbstractContextManager[None]]:
    """with paused(script, *options): that server answers nothing."""

    @contextmanager
    def pause(*server: Any) -> Iterator[None]:
        process = servers[server][1]
        os.killpg(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGCONT)

    return pause


def _start(script: Path, options: tuple[str, ...], log: Path) -> tuple[str, subprocess.Popen[bytes]]:
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true", "--browser.gatherUsageStats=false"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _wait(f"http://127.0.0.1:{port}/_stcore/health", process, log)
    return f"http://127.0.0.1:{port}", process


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    _stop(process)
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
