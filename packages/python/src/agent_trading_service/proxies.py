"""The proxy that the environment names for a URL. httpx builds them all at once, and one that it cannot use ends it."""

from __future__ import annotations

import ipaddress
import warnings
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

PROXY_REMEDY = "Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY in the environment, or name the host in NO_PROXY."
_SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_of(url: str) -> str | None:
    """Returns the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY for a URL; None if there is none, or by NO_PROXY."""
    target = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or any(_names(entry, target.hostname or "") for entry in proxies.get("no", "").split(",")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    proxy = proxy.replace("socks://", "socks5h://", 1)
    try:
        httpx.Proxy(proxy)
    except (ValueError, httpx.InvalidURL):
        schemes = ", ".join(_SCHEMES)
        warnings.warn(
            f"The proxy {shown(proxy)} of the environment is not used for {target.netloc}: its URL needs one of the "
            f"schemes {schemes}.",
            stacklevel=2,
        )
        return None
    return proxy


def origin_of(url: str) -> str:
    """Returns scheme, host and port of a URL."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode()}"


def shown(proxy: str) -> str:
    """Returns a proxy without its user and password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _names(entry: str, host: str) -> bool:
    """Tells whether an entry of NO_PROXY names a host: itself, a domain around it, a network, or `*` for all."""
    entry = entry.strip().lower()
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    entry = entry.removeprefix("*.").removeprefix(".") if entry != "*" else entry
    if entry in ("*", host):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return entry != "" and host.endswith(f".{entry}")
