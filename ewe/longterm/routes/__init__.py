"""The long-term memories over HTTP; the server mounts `ROUTERS`."""

from ewe.longterm.routes import memory_changes_routes, memory_routes

ROUTERS = (memory_changes_routes.router, memory_routes.router)  # the routes with names come before those with ids
