# make app    opens gptviz in the browser
# make test   everything that is checked before a change goes in
# Both set themselves up: a virtual environment in .venv with the pinned packages, and for the tests a Chromium.
#
# PYTHON=python3.12                                        the interpreter to build .venv with
# TORCH_INDEX=https://download.pytorch.org/whl/cpu         where else torch may come from: here, CPU builds
# ARGS="-k attention"                                      more arguments for pytest, or for the benchmark

PYTHON ?=
TORCH_INDEX ?=
ARGS ?=
export PYTHON TORCH_INDEX

.PHONY: app test lint types unit browser bench clean setup setup-dev
.NOTPARALLEL:

app: setup
	@.venv/bin/python -m streamlit run app.py

test: lint types unit browser

lint: setup-dev
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .

types: setup-dev
	.venv/bin/python -m mypy

unit: setup-dev
	.venv/bin/python -m pytest --ignore=tests/browser -n auto --dist loadfile $(ARGS)

browser: setup-dev
	chromium=$$(sh scripts/chromium.sh) && GPTVIZ_CHROMIUM="$$chromium" .venv/bin/python -m pytest tests/browser $(ARGS)

bench: setup-dev
	chromium=$$(sh scripts/chromium.sh) && GPTVIZ_CHROMIUM="$$chromium" .venv/bin/python benchmarks/ui.py $(ARGS)

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@sh scripts/setup.sh requirements.txt

setup-dev:
	@sh scripts/setup.sh requirements-dev.txt
