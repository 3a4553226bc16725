"""Sizes of what `sam build` made, as a table, in megabytes; fails where a package is over its limit.

The limits are of what we ship, without its bytecode: that is as large again, and saves most of a cold start.
"""

import io
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / ".aws-sam" / "build"
MEGABYTE = 1_000_000
LIMITS = {"CommonLayer": (50.0, 13.0), "PageLayer": (0.15, 0.06), "SignInLayer": (16.0, 6.0)}
FUNCTION_LIMITS = (0.05, 0.05)
"""Unzipped and zipped. Lambda's own limit is 250 MB for a function with its layers."""


@dataclass(frozen=True)
class Size:
    """In bytes, without bytecode; `uploaded` is the archive with it."""

    unzipped: int
    zipped: int
    bytecode: int
    uploaded: int


def measure(folder: Path) -> Size:
    files = [path for path in folder.rglob("*") if path.is_file()]
    compiled = [path for path in files if path.suffix == ".pyc"]
    rest = [path for path in files if path.suffix != ".pyc"]
    return Size(
        unzipped=sum(path.stat().st_size for path in rest),
        zipped=_zipped(folder, rest),
        bytecode=sum(path.stat().st_size for path in compiled),
        uploaded=_zipped(folder, files),
    )


def _zipped(folder: Path, files: list[Path]) -> int:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in files:
            target.write(path, path.relative_to(folder))
    return len(archive.getvalue())


def main() -> int:
    print(f"{'':22}{'unzipped':>10}{'zipped':>10}{'bytecode':>10}{'uploaded':>10}")
    over = []
    for folder in sorted(path for path in BUILT.iterdir() if path.is_dir()):
        size = measure(folder)
        figures = [size.unzipped, size.zipped, size.bytecode, size.uploaded]
        print(f"{folder.name:22}" + "".join(f"{figure / MEGABYTE:>10.3f}" for figure in figures))
        unzipped, zipped = LIMITS.get(folder.name, FUNCTION_LIMITS)
        if size.unzipped > unzipped * MEGABYTE or size.zipped > zipped * MEGABYTE:
            over.append(f"{folder.name} is over {unzipped:g} MB unzipped or {zipped:g} MB zipped")
    for sentence in over:
        print(sentence, file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
