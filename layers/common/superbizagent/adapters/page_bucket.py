"""The page's files in the S3 bucket that CloudFront serves them from."""

import contextlib
import json
from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from superbizagent.errors import PageNotPublished

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 10.0
ATTEMPTS: Final = 4
# Without a type a browser runs no script and applies no style, since the page is served with nosniff.
CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
# Names carry no version, so that every use asks whether there is a newer one, which mostly costs an empty answer.
CACHE_CONTROL: Final = "no-cache"
INDEX: Final = "index.html"
CONFIG: Final = "config.json"


class PageBucket:
    """Holds what `folder` does, and `config.json`; whatever else is there is removed. Raises PageNotPublished."""

    def __init__(self, bucket: str, folder: Path) -> None:
        self._bucket = bucket
        self._folder = folder

    def publish(self, config: Mapping[str, Any]) -> None:
        """`config` is what the page reads of its service: docs/sign-in.md."""
        files = self._files() | {CONFIG: json.dumps(config).encode()}
        with _translated():
            # The page itself last: what it refers to is there before.
            for name in sorted(files, key=lambda name: (name == INDEX, name)):
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=name,
                    Body=files[name],
                    ContentType=CONTENT_TYPES[Path(name).suffix],
                    CacheControl=CACHE_CONTROL,
                )
            self._remove_all_but(files)

    def empty(self) -> None:
        """CloudFormation deletes no bucket that holds anything. One that is gone is empty."""
        with _translated():
            try:
                self._remove_all_but(())
            except self._client.exceptions.NoSuchBucket:
                return

    def _files(self) -> dict[str, bytes]:
        paths = [path for path in self._folder.rglob("*") if path.is_file()]
        files = {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in paths}
        if INDEX not in files:
            raise PageNotPublished(f"there is no {INDEX} in {self._folder}")
        unknown = {path.suffix for path in paths} - CONTENT_TYPES.keys()
        if unknown:
            raise PageNotPublished(f"files that end in {', '.join(sorted(unknown))} have no content type")
        return files

    def _remove_all_but(self, kept: Container[str]) -> None:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            names = [found["Key"] for found in page.get("Contents", []) if found["Key"] not in kept]
            if names:
                self._remove(names)

    def _remove(self, names: list[str]) -> None:
        """At most a thousand, which is also the most that a listing's page has."""
        answer = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": name} for name in names], "Quiet": True}
        )
        # The call succeeds also where some of its deletions don't.
        codes = {refused.get("Code", "") for refused in answer.get("Errors", [])}
        if codes:
            raise PageNotPublished(f"files can't be deleted: {', '.join(sorted(codes))}")

    @cached_property
    def _client(self) -> "S3Client":
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            "s3",
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            ),
        )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        raise PageNotPublished(f"S3 refused {error.operation_name}: {code}") from error
    except BotoCoreError as error:
        raise PageNotPublished(f"S3 can't be reached: {type(error).__name__}") from error
