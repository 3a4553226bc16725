#!/usr/bin/env bash
# Makes or refreshes a virtual environment: venv.sh DIRECTORY REQUIREMENTS
# Nothing happens when the directory already holds exactly these requirements.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1 requirements=$2

python=""
for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "Python 3.11, 3.12 or 3.13 is needed; install one or name it: make PYTHON=/path/to/python3.13" >&2
    exit 1
fi

stamp=$directory/requirements.stamp
wanted=$("$python" -V; cat "$requirements")
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
echo "installing $requirements into $directory with $("$python" -V)"
if ! "$python" -m venv --clear "$directory"; then
    echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi
# pip brings uv, uv the rest: several times faster, and older pips refuse hashed extras of a dependency.
"$directory/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes --requirement scripts/installer.txt
"$directory/bin/uv" pip install --quiet --python "$directory/bin/python" --require-hashes --requirement "$requirements"
# The packages of this checkout, importable from anywhere.
"$directory/bin/python" - <<'EOF'
import pathlib, sysconfig
root = pathlib.Path.cwd()
site = pathlib.Path(sysconfig.get_path("purelib"))
(site / "superbizagent-checkout.pth").write_text(f"{root / 'layers/common'}\n{root}\n")
EOF
printf '%s' "$wanted" > "$stamp"
