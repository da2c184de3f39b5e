"""Tables with a `kind`, which is a plug-in of a group or a built-in kind, each with its own parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Any: tables are read by models that the group decides.
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import core_schema

from sim import plugins
from sim.base.naming import Raw
from sim.base.validation import Mistake, hint, nested, problems, show, validate
from sim.metrics import METRICS, OURS, own_names
from sim.plugins import Parameters


@dataclass(frozen=True)
class Table:
    """A table's kind, and the kind's parameters with every default filled in."""

    kind: str
    parameters: Parameters

    def __hash__(self) -> int:
        return hash((self.kind, self.parameters.model_dump_json()))  # a plug-in's parameters may be lists

    def dump(self) -> Raw:
        """The complete table as in a scenario file."""
        return {"kind": self.kind, **self.parameters.model_dump(mode="json")}


@dataclass(frozen=True)
class Kinds:
    """How a table is read: its kinds are the plug-ins of `group` and those of `own`; `default` may be omitted.

    As an annotation of a model's field it validates that field, and describes it in the JSON Schema.
    """

    default: str
    group: str | None = None
    own: Mapping[str, type[Parameters]] = field(default_factory=dict)
    table: type[Table] = Table

    def names(self) -> list[str]:
        """All kinds, sorted."""
        return sorted({*self.own, *(plugins.names(self.group) if self.group else ())})

    def model(self, kind: str) -> type[Parameters]:
        """The parameters of a kind."""
        if kind in self.own or self.group is None:
            return self.own[kind]
        model: type[Parameters] = plugins.load(self.group, kind).Parameters
        return model

    def read(self, value: object) -> Table:
        """Read the table from a dict. Raises its mistakes for pydantic to report."""
        if isinstance(value, Table):
            return value
        if not isinstance(value, dict):
            raise ValueError(f'expected a table such as {{ kind = "{self.default}" }}, found {show(value)}')
        rest = dict(value)
        kind = rest.pop("kind", self.default)
        if kind not in self.names():
            raise nested([(("kind",), f"unknown kind{hint(kind, self.names())} (found {show(kind)})")])
        model = self.model(kind)
        try:
            return self.table(kind, validate(model, rest))
        except ValidationError as error:
            raise nested(problems(error, model, more=["kind"])) from None

    def default_table(self) -> Any:
        """The default kind with its default parameters."""
        return self.read({})

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(Table.dump)
        return core_schema.no_info_plain_validator_function(self.read, serialization=dump)

    def __get_pydantic_json_schema__(self, _schema: object, handler: GetJsonSchemaHandler) -> Raw:
        return {"oneOf": [self._json_schema_of(kind, handler) for kind in self.names()]}

    def _json_schema_of(self, kind: str, handler: GetJsonSchemaHandler) -> Raw:
        schema = dict(handler.resolve_ref_schema(handler(self.model(kind).__pydantic_core_schema__)))
        schema["title"] = kind
        schema["properties"] = {"kind": {"const": kind}, **schema.get("properties", {})}
        schema["required"] = [*([] if kind == self.default else ["kind"]), *schema.get("required", [])]
        return schema


@dataclass(frozen=True)
class OwnMetrics:
    """The [metrics] table: the user's own metrics by name, with their parameters."""

    tables: tuple[Table, ...] = ()

    @property
    def names(self) -> list[str]:
        """Their names, sorted."""
        return [table.kind for table in self.tables]

    def dump(self) -> Raw:
        """The complete table as in a scenario file."""
        return {table.kind: table.parameters.model_dump(mode="json") for table in self.tables}

    def __bool__(self) -> bool:
        return bool(self.tables)

    @classmethod
    def read(cls, value: object) -> OwnMetrics:
        """Read the metrics from a dict. Raises their mistakes for pydantic to report."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"expected a table of metrics of your own, such as {{ mine = {{}} }}, found {show(value)}")
        known, found, wrong = own_names(), [], list[Mistake]()
        for name, table in sorted(value.items()):
            if name in OURS:
                wrong.append(((name,), "a built-in metric, which every run has; leave it out"))
            elif name not in known:
                wrong.append(((name,), f"unknown metric of your own{hint(name, known)} (found {show(table)})"))
            else:
                _ = METRICS[name]  # raises if its declaration is not valid
                model = plugins.load("metric", name).Parameters
                try:
                    found.append(Table(name, validate(model, table)))
                except ValidationError as error:
                    wrong += [((name, *keys), text) for keys, text in problems(error, model)]
        if wrong:
            raise nested(wrong)
        return cls(tuple(found))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(cls.dump)
        return core_schema.no_info_plain_validator_function(cls.read, serialization=dump)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, handler: GetJsonSchemaHandler) -> Raw:
        models = {name: plugins.load("metric", name).Parameters for name in own_names()}
        properties = {name: handler(model.__pydantic_core_schema__) for name, model in models.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}
