"""A folder of static files, and /config.json that tells the page where its WebSocket is."""

from pathlib import Path

from aiohttp import web

from local.gateway.config import StaticSite
from local.gateway.errors import ConfigurationError

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self' {websocket}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class StaticFiles:
    def __init__(self, site: StaticSite, websocket_url: str, http_url: str) -> None:
        self._root = site.folder.resolve()
        if not self._root.is_dir():
            raise ConfigurationError(f"There is no folder {site.folder} to serve; correct --static.")
        self._config_json = {**site.config, "websocketUrl": websocket_url}
        origins = " ".join([websocket_url.rpartition("/")[0], *site.connect])
        self._headers = {
            name: value.replace("{websocket}", origins).replace("{http}", http_url)
            for name, value in {**HEADERS, **site.headers}.items()
            if value is not None
        }

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/config.json", self._config)
        app.router.add_get("/{path:.*}", self._file)

    async def _config(self, _: web.Request) -> web.Response:
        return web.json_response(self._config_json, headers=self._headers)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = self._find(request.match_info["path"])
        if path is None:
            return web.Response(status=404, text="Not found\n", headers=self._headers)
        return web.FileResponse(path, headers=self._headers)

    def _find(self, name: str) -> Path | None:
        if "\0" in name:
            return None
        path = (self._root / (name or "index.html")).resolve()
        inside = path.is_relative_to(self._root) and not any(
            part.startswith(".") for part in path.relative_to(self._root).parts
        )
        return path if inside and path.is_file() else None
