"""
Generates what the package knows of the API from `openapi.json`: the types (datamodel-code-generator) and a method for
each read. The npm script `client` writes that file; a source distribution has it and what is generated.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from keyword import iskeyword
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

Json = dict[str, Any]

FOLDER = "src/agent_trading_service/generated"
BANNER = '"""Generated from the OpenAPI document: do not edit."""\n'
HEADER = f"""{BANNER}
from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote

from . import models


def _part(value: object) -> str:
    return quote(str(value), safe="")
"""


class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: Json) -> None:
        root = Path(self.root)
        document = root / "openapi.json"
        if not document.exists():
            raise SystemExit("openapi.json is missing; run `npm run client -- --force` in the repository.")
        generate(document, root / FOLDER)


def generate(document: Path, folder: Path) -> None:
    """Writes the modules `models` and `reads`, unless they are newer than the document and this file."""
    outputs = [folder / name for name in ("models.py", "reads.py", "__init__.py")]
    newest = max(document.stat().st_mtime, Path(__file__).stat().st_mtime)
    if all(output.exists() and output.stat().st_mtime >= newest for output in outputs):
        return
    folder.mkdir(parents=True, exist_ok=True)
    generator = [sys.executable, "-m", "datamodel_code_generator"]
    files = ["--input", str(document), "--output", str(outputs[0]), "--custom-file-header", BANNER]
    options = "--input-file-type openapi --output-model-type typing.TypedDict --target-python-version 3.10"
    style = "--use-standard-collections --use-union-operator --use-schema-description --disable-timestamp"
    subprocess.run([*generator, *files, *options.split(), *style.split()], check=True)
    outputs[1].write_text(reads_module(json.loads(document.read_text())))
    outputs[2].write_text(BANNER)


def reads_module(document: Json) -> str:
    operations = [(path, methods["get"]) for path, methods in document["paths"].items() if "get" in methods]
    reads = [(path, get) for path, get in operations if answer_of(get)]
    plain = "\n".join(method_of(path, get, is_async=False) for path, get in reads)
    awaited = "\n".join(method_of(path, get, is_async=True) for path, get in reads)
    read = "def _read(self, path: str, query: dict[str, Any]) -> Any:\n        raise NotImplementedError\n\n"
    return f"""{HEADER}

class Reads:
    \"\"\"Every operation that reads, by its id in the OpenAPI document. Amounts stay strings.\"\"\"

    {read}{plain}

class AsyncReads:
    \"\"\"Every operation that reads, by its id in the OpenAPI document. Amounts stay strings.\"\"\"

    async {read}{awaited}"""


def answer_of(operation: Json) -> str | None:
    """Returns the name of the type that a read returns; None if it returns no JSON."""
    content = operation["responses"].get("200", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref")
    return None if reference is None else str(reference).rsplit("/", 1)[-1]


def method_of(path: str, operation: Json, *, is_async: bool) -> str:
    """Returns the source of a method: parameters of the path by position, the others by name."""
    given = operation.get("parameters", [])
    parts = [each for each in given if each["in"] == "path"]
    # The client reads JSON, so it has no use for `format`.
    query = [each for each in given if each["in"] == "query" and each["name"] != "format"]
    arguments = ["self", *(f"{snake(each['name'])}: {type_of(each)}" for each in parts)]
    if query:
        arguments.append("*")
    for each in sorted(query, key=lambda each: not each.get("required")):
        optional = "" if each.get("required") else " | None = None"
        arguments.append(f"{snake(each['name'])}: {type_of(each)}{optional}")
    filled = re.sub(r"\{(\w+)\}", lambda match: f"{{_part({snake(match[1])})}}", path)
    values = "{" + ", ".join(f'"{each["name"]}": {value_of(each)}' for each in query) + "}"
    text = operation["description"].replace("\\", "\\\\").replace('"""', "'''")
    described = textwrap.fill(text, 110, initial_indent=" " * 8, subsequent_indent=" " * 8).strip()
    lines = [
        f"    {'async ' if is_async else ''}def {snake(operation['operationId'])}(",
        *(f"        {argument}," for argument in arguments),
        f"    ) -> models.{answer_of(operation)}:",
        f'        """{described}"""',
        f"        answer: models.{answer_of(operation)} = {'await ' if is_async else ''}self._read(",
        f'            {"f" if parts else ""}"{filled}",',
        f"            {values},",
        "        )",
        "        return answer",
        "",
    ]
    return "\n".join(lines)


def type_of(parameter: Json) -> str:
    schema = parameter.get("schema", {})
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    if "x-list" in schema:
        return "str | Sequence[str | int]"
    plain = {"integer": "int", "boolean": "bool"}.get(schema.get("type", ""))
    if plain is not None:
        return plain
    pattern = schema.get("pattern", "")
    if not pattern or re.search(pattern, "x1"):
        return "str"
    if re.search(pattern, "12.5"):
        return "str | Decimal | int"
    return "str | int" if re.search(pattern, "12") else "str"


def value_of(parameter: Json) -> str:
    name = snake(parameter["name"])
    if "x-list" not in parameter.get("schema", {}):
        return name
    return f'{name} if {name} is None or isinstance({name}, str) else ",".join(str(each) for each in {name})'


def snake(name: str) -> str:
    """Returns the name as Python writes it: `metadataURI` becomes `metadata_uri`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{words}_" if iskeyword(words) else words


if __name__ == "__main__":
    generate(Path(__file__).parent / "openapi.json", Path(__file__).parent / FOLDER)
