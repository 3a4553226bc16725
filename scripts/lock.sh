#!/usr/bin/env bash
# Re-pins the requirement files from pyproject.toml. The dev file is resolved first and
# constrains the others, so that what is tested is what is shipped.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet "$@"
}
compile pyproject.toml --group dev --upgrade --output-file requirements-dev.txt
compile pyproject.toml --group local --constraints requirements-dev.txt --output-file requirements-local.txt
compile pyproject.toml --group bench --constraints requirements-dev.txt --output-file requirements-bench.txt
# By itself: its dependencies are pinned, some of them to old releases, and it shares no process with ours.
compile --group checkov --upgrade --output-file requirements-checkov.txt
compile pyproject.toml --constraints requirements-dev.txt --output-file layers/common/requirements.txt
compile --group sign-in --constraints requirements-dev.txt --output-file layers/sign_in/requirements.txt
# Constrained by what is shipped alone: SAM CLI, in the dev file, holds back what the newest mutmut needs.
compile pyproject.toml --group mutation --constraints layers/common/requirements.txt --output-file requirements-mutation.txt
# The installer itself, for scripts/venv.sh.
awk '/^[a-z]/ { keep = /^uv==/ } keep' requirements-dev.txt > scripts/installer.txt
