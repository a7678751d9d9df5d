"""Makes docs/overview.png from the running app: python scripts/picture.py URL. Needs requirements-dev.txt."""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("GPTVIZ_CHROMIUM") or ("/usr/bin/chromium" if Path("/usr/bin/chromium").exists() else None)
OUT = Path(__file__).parents[1] / "docs" / "overview.png"

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page(viewport={"width": 1400, "height": 1240})
    page.goto(sys.argv[1])
    page.locator(".st-key-norms .main-svg").first.wait_for(timeout=90_000)
    page.wait_for_timeout(2000)
    page.screenshot(path=OUT)
    browser.close()
