"""Requests through the service proxy, and through other proxies in front of the same server."""
