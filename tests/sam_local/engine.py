"""The container engine: Docker where one answers, else podman, as a service of our own for as long as we need it."""

import contextlib
import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from superbizagent.settings import environment
from tests.sam_local.processes import Failed

START_SECONDS = 60.0
API_SECONDS = 900.0
"""For one answer of the engine; a pull is one."""
PROCESSES = 4096
"""In one container; Lambda's own limit is 1024."""
MISSING = (
    "No container engine answers: start Docker, or install podman "
    "(Debian or Ubuntu: apt-get install --no-install-recommends podman runc)."
)
SAM_IMAGES = "samcli/lambda-python"
SAM_CONTAINERS = "sam.cli.container.type=lambda"
ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class Engine:
    """`host` is this machine's name in a container. `variables` and `options` are for SAM CLI."""

    name: str
    host: str
    client: Any
    variables: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def provide_runtime(self, architecture: str) -> str:
        """The name of the runtime's image, pulled unless it is there. Raises Failed."""
        repository, tag = "public.ecr.aws/lambda/python", f"3.13-{architecture}"
        image = f"{repository}:{tag}"
        try:
            with contextlib.suppress(ImageNotFound):
                self.client.images.get(image)
                return image
            print(f"pulling {image}", flush=True)
            self.client.images.pull(repository, tag=tag)
        except DockerException as error:
            raise Failed(f"{image} is not here and can't be pulled: {error}") from error
        return image

    @contextlib.contextmanager
    def tidied(self, folder: Path) -> Iterator[None]:
        """Removes the containers that have code from that folder, and the images that SAM CLI makes meanwhile."""
        before = self._sam_images()
        try:
            yield
        finally:
            for container in self._containers(folder):
                with contextlib.suppress(APIError):
                    container.remove(force=True)
            for image in self._sam_images() - before:
                with contextlib.suppress(APIError):
                    self.client.images.remove(image, force=True)

    def _containers(self, folder: Path) -> list[Any]:
        found = self.client.containers.list(all=True, filters={"label": SAM_CONTAINERS})
        return [one for one in found if any(folder in Path(m["Source"]).parents for m in one.attrs["Mounts"])]

    def _sam_images(self) -> set[str]:
        tags = {tag for image in self.client.images.list() for tag in image.tags}
        return {tag for tag in tags if tag.removeprefix("localhost/").startswith(SAM_IMAGES)}


def architecture() -> str:
    """What AWS calls the architecture of this machine. Raises Failed."""
    name = ARCHITECTURES.get(platform.machine().lower())
    if name is None:
        raise Failed(f"Lambda has no functions for {platform.machine()}.")
    return name


@contextlib.contextmanager
def engine(folder: Path, images: Path | None) -> Iterator[Engine]:
    """The engine found. `images`: where podman keeps its own; None: in `folder`, for this time only. Raises Failed."""
    given = _docker()
    if given is not None:
        with contextlib.closing(given.client):
            yield given
        return
    program = shutil.which("podman")
    if program is None:
        raise Failed(MISSING)
    with _podman(program, folder, images) as started:
        yield started


def _docker() -> Engine | None:
    """What answers at DOCKER_HOST or Docker's own socket."""
    try:
        client = docker.from_env(timeout=API_SECONDS)
    except DockerException:
        return None
    try:
        parts = {part["Name"] for part in client.version().get("Components", ())}
    except (DockerException, OSError):
        client.close()
        return None
    if "Podman Engine" in parts:
        return Engine(name="podman", host="host.containers.internal", client=client)
    host = "host.docker.internal"
    return Engine(name="Docker", host=host, client=client, options=("--add-host", f"{host}:host-gateway"))


@contextlib.contextmanager
def _podman(program: str, folder: Path, images: Path | None) -> Iterator[Engine]:
    storage = images or folder / "images"
    storage.mkdir(parents=True, exist_ok=True)
    variables = {**environment(), **_settings(folder, storage)}
    address, log = f"unix://{folder / 'engine'}", folder / "podman.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [program, "system", "service", "--time=0", address],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    client = None
    try:
        client = _connected(process, address, log)
        own = {"DOCKER_HOST": address}
        yield Engine(name="podman", host="host.containers.internal", client=client, variables=own)
    finally:
        if client is not None:
            client.close()
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(START_SECONDS)
        process.kill()
        process.wait()
        if images is None:
            _remove(program, storage, variables)


def _settings(folder: Path, storage: Path) -> dict[str, str]:
    """Files of its own: what a person's podman has and how it is set up is nothing here."""
    # podman would ask for more of both than an unprivileged or nested system may give.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = f'["nofile={files}:{files}", "nproc={PROCESSES}:{PROCESSES}"]'
    # No systemd is taken for granted, and crun, the default, needs more of a kernel than runc.
    runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
    engine_file, storage_file = folder / "containers.conf", folder / "storage.conf"
    engine_file.write_text(
        f"[containers]\ndefault_ulimits = {limits}\n"
        f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n{runtime}'
    )
    storage_file.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{storage}"\nrunroot = "{folder / "containers"}"\n'
    )
    return {"CONTAINERS_CONF": str(engine_file), "CONTAINERS_STORAGE_CONF": str(storage_file)}


def _connected(process: "subprocess.Popen[bytes]", address: str, log: Path) -> Any:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(DockerException, OSError):
            return docker.DockerClient(base_url=address, version="auto", timeout=API_SECONDS)
        time.sleep(0.1)
    raise Failed(f"podman did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _remove(program: str, storage: Path, variables: Mapping[str, str]) -> None:
    """Not as root, its files are those of other users of podman's own namespace."""
    command = ["rm", "-rf", str(storage)]
    inside = [] if os.geteuid() == 0 else [program, "unshare"]
    subprocess.run([*inside, *command], env=variables, check=False)
