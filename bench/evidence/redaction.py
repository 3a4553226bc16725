"""`python -m bench.evidence.redaction [FOLDER…]`: what the redactor catches, what it hits by mistake, how fast it is.

Folders hold texts without secrets, such as public logs: each line that changes is a false positive and is printed.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from superbizagent.adapters.redaction import SecretRedactor
from tests.planted_secrets import Planted, planted

SECRETS = 300
_MEGABYTES = 2
_LINES = 8_000


def forms(secret: Planted) -> Iterator[str]:
    """As it stands in a file, a log line, JSON, JSON within JSON, a row, a block of Markdown."""
    encoded = json.dumps({"message": secret.text}, ensure_ascii=False)
    yield secret.text
    yield f"2026-11-30T14:00:00Z INFO [main] c.e.App - {secret.text}"
    yield encoded
    yield json.dumps({"log": json.dumps({"message": secret.text})})
    yield f"```\n{secret.text}\n```"


def caught(redact: SecretRedactor, secrets: Sequence[Planted]) -> tuple[Counter[str], Counter[str]]:
    """By kind: how many were written, and how many left nothing behind."""
    written: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    for secret in secrets:
        for form in forms(secret):
            written[secret.kind] += 1
            redacted = redact(form)
            gone[secret.kind] += not any(part in redacted for part in secret.parts)
    return written, gone


def hits(redact: SecretRedactor, folder: Path) -> tuple[int, list[str]]:
    """Lines looked at, and those that changed."""
    lines, changed = 0, []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        text = path.read_text(errors="replace")
        lines += text.count("\n")
        redacted = redact(text)
        if "[secret:" in redacted:
            changed += [f"{path.name}: {line.strip()[:140]}" for line in redacted.split("\n") if "[secret:" in line]
    return lines, changed


def speed(redact: SecretRedactor, lines: int) -> float:
    """Megabytes of plain log lines, `lines` of them in each text, a second of this process's CPU."""
    line = "2026-11-30 14:02:11,512 INFO dfs.DataNode: Received block blk_-160899 of size 91178 from /10.251.42.84\n"
    text = line.rstrip() if lines == 1 else line * lines
    calls = _MEGABYTES * 1_000_000 // len(text)
    begin = time.process_time()
    for _ in range(calls):
        redact(text)
    return calls * len(text) / 1e6 / (time.process_time() - begin)


def main(arguments: Sequence[str]) -> None:
    redact = SecretRedactor()
    written, gone = caught(redact, planted(SECRETS))
    whole = sum(gone[kind] == written[kind] for kind in written)
    print(f"kinds of secrets caught in every form   {whole}/{len(written)}")
    print(f"secrets caught, all kinds and forms     {gone.total()}/{written.total()}")
    for kind in sorted(kind for kind in written if gone[kind] < written[kind]):
        print(f"  {kind:37} {gone[kind]}/{written[kind]}")
    print(f"speed on log lines                      {speed(redact, _LINES):.1f} MB/s")
    print(f"speed on log lines, one by one          {speed(redact, 1):.1f} MB/s")
    for folder in map(Path, arguments):
        lines, changed = hits(redact, folder)
        print(f"false positives in {folder.name:20} {len(changed)} of {lines} lines")
        for line in changed:
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
