"""The page as a deployed stack serves it: the files of its layer as `sam build` makes it, and the headers that
CloudFront adds."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.gateway.template.intrinsics import Resolver
from local.gateway.template.reader import read_document
from tests.translated_template import PSEUDO, TEMPLATE

NAMED = {
    "ContentSecurityPolicy": "Content-Security-Policy",
    "ReferrerPolicy": "Referrer-Policy",
}


def build_layer(target: Path) -> Path:
    """Builds the page's layer into `target` and returns what the function finds in /opt/web."""
    source = TEMPLATE.parent / "web"
    subprocess.run(["make", "-s", "build-PageLayer", f"ARTIFACTS_DIR={target}"], cwd=source, check=True)
    return target / "web"


def headers(policy: Mapping[str, Any]) -> dict[str, str]:
    """What CloudFront sends for the properties of a response headers policy."""
    config = policy["ResponseHeadersPolicyConfig"]
    security = config["SecurityHeadersConfig"]
    transport = security["StrictTransportSecurity"]
    assert all(header["Override"] for header in (*security.values(), *config["CustomHeadersConfig"]["Items"]))
    return {
        **{header: security[name][name] for name, header in NAMED.items()},
        **{item["Header"]: item["Value"] for item in config["CustomHeadersConfig"]["Items"]},
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": security["FrameOptions"]["FrameOption"],
        "Strict-Transport-Security": f"max-age={transport['AccessControlMaxAgeSec']}; includeSubDomains",
    }


@dataclass(frozen=True)
class Deployed:
    """What the template says of the page, for one WebSocket."""

    headers: Mapping[str, str]
    config: Mapping[str, Any]


def deployed(websocket_url: str, parameters: Mapping[str, str]) -> Deployed:
    """As of a stack with these parameters whose WebSocket is at `websocket_url`, and not where AWS would have it."""
    document = read_document(TEMPLATE)
    resolver = Resolver(document, {"Page": "true", **parameters}, PSEUDO)
    address = resolver.resolve(document["Outputs"]["WebSocketUrl"]["Value"])
    told = {
        "headers": headers(resolver.resolve(resolver.resources["PageHeaders"]["Properties"])),
        "config": resolver.resolve(resolver.resources["PageFiles"]["Properties"]["Config"]),
    }
    return Deployed(**json.loads(json.dumps(told).replace(address, websocket_url)))
