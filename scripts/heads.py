"""Makes docs/heads.png, the heads' scores by step, from the bundled snapshots: PYTHONPATH=. python scripts/heads.py.

Another folder of snapshots and another picture may be given. Needs requirements-dev.txt.
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from gptviz.figures.training import score_curve
from gptviz.training.lapse import read_lapse

ROOT = Path(__file__).parents[1]
CHROMIUM = os.environ.get("GPTVIZ_CHROMIUM") or ("/usr/bin/chromium" if Path("/usr/bin/chromium").exists() else None)
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "checkpoints" / "timelapse"
PICTURE = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "heads.png"

lapse = read_lapse(FOLDER)
if lapse is None:
    sys.exit(f"There are no snapshots in {FOLDER}.")
figure = score_curve(lapse.scores(), theme="light").update_layout(width=800, height=360, paper_bgcolor="white")
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page(viewport={"width": 820, "height": 380}, device_scale_factor=2)
    page.set_content(figure.to_html(include_plotlyjs=True, full_html=True))
    page.locator(".main-svg").first.wait_for(timeout=90_000)
    page.locator(".js-plotly-plot").screenshot(path=PICTURE)
    browser.close()
