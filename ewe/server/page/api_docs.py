"""The page about the API: every route of the OpenAPI description with its fields, readable without any script."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from jinja2 import Environment, FileSystemLoader

from ewe.server.page.routes import page_answer

router = APIRouter(include_in_schema=False)

_TEMPLATES = Environment(loader=FileSystemLoader(Path(__file__).parent / "assets"), autoescape=True, trim_blocks=True)
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a shape, or a parameter; kind: its type in words, with the names of shapes."""

    name: str
    kind: str
    about: str


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page; all that is on it comes from /openapi.json."""
    return page_answer(request, docs_page(request.app.openapi()), "text/html")


def docs_page(described: Mapping[str, Any]) -> str:
    """The description as HTML."""
    routes = [
        {"method": method.upper(), "path": path, **_route(operation)}
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    shapes = {name: _shape(schema) for name, schema in sorted(described["components"]["schemas"].items())}
    return _TEMPLATES.get_template("docs.html").render(info=described["info"], routes=routes, shapes=shapes)


def _route(operation: Mapping[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("schema", {})
    answered = operation["responses"].get("200", {}).get("content", {})
    return {
        "about": operation.get("description", ""),
        "parameters": [
            _Field(item["name"], _kind(item["schema"]), f"in the {item['in']}")
            for item in operation.get("parameters", ())
        ],
        "asked": _kind(body) if body else "",
        "answered": " or ".join(_kind(item["schema"]) if kind == _JSON else kind for kind, item in answered.items()),
    }


def _shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    fields = [
        _Field(name, _kind(value), "required" if name in required else _default(value))
        for name, value in schema.get("properties", {}).items()
    ]
    return {"about": schema.get("description", ""), "fields": fields}


def _default(schema: Mapping[str, Any]) -> str:
    return f"default {schema['default']!r}" if schema.get("default") not in (None, "", [], {}) else ""


def _kind(schema: Mapping[str, Any]) -> str:
    """The type in words: `Document or string, or null`."""
    return " or ".join(dict.fromkeys(_kinds(schema))) or "anything"


def _kinds(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    elif "anyOf" in schema or "oneOf" in schema:
        for one in schema.get("anyOf") or schema["oneOf"]:
            yield from _kinds(one)
    elif "const" in schema or "enum" in schema:
        yield from map(repr, schema.get("enum") or [schema["const"]])
    elif schema.get("type") == "array":
        yield f"list of {_kind(schema.get('items', {}))}"
    elif "type" in schema:
        yield schema["type"]
