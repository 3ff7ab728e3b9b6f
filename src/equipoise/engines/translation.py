"""Conditions in the words of other databases, so that one means the same everywhere.

DuckDB parses a condition, and here it is written in a dialect, with the types that DuckDB would
compare values as. What may mean something else in another database is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.counts.reading import Condition
from equipoise.engines.column_types import Family, family, is_text
from equipoise.engines.conditions import (
    Meaningless,
    evaluate,
    not_a_condition,
    parse,
    parser,
)
from equipoise.engines.dialect import PartsDialect
from equipoise.errors import Unsupported

_SIGNS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_NUMBERS: frozenset[Family] = frozenset({"whole", "decimal", "float"})
_MOMENTS: frozenset[Family] = frozenset({"date", "timestamp"})
_PLAIN = frozenset({"text", "boolean", "instant", *_NUMBERS, *_MOMENTS})
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]*")


@dataclass(frozen=True)
class Written:
    """A part of a condition in a dialect, and the type of its values.

    The type is None for null, and for a text in quotes, which takes the type that it is compared as.
    """

    sql: str
    type: str | None
    said: str | None = None
    """The text in quotes, or the digits of a number."""

    @property
    def kind(self) -> Family | None:
        """What its values are."""
        return None if self.type is None else family(self.type)


@dataclass
class Translation:
    """A condition in a dialect, and the conversions in it that may fail."""

    d: PartsDialect
    types: Mapping[str, str]
    text: str
    strict: list[str] = field(default_factory=list)
    """Conditions that are true for a row with a value that cannot be converted."""

    def write(self) -> str:
        """Write the whole condition."""
        found = self._of(parse(self.text, parser()))
        if found.type is None and found.said is None:
            return "CAST(NULL AS BOOLEAN)"
        if found.kind != "boolean":
            what = found.type or "VARCHAR"
            raise not_a_condition(self.text, f"its type is {what}, not BOOLEAN")
        return found.sql

    # -------------------------------------------------------------------- parts

    def _of(self, node: Mapping[str, Any]) -> Written:
        ways: Mapping[str, Callable[[Mapping[str, Any]], Written]] = {
            "COLUMN_REF": self._column,
            "CONSTANT": self._constant,
            "COMPARISON": self._comparison,
            "BETWEEN": self._between,
            "CONJUNCTION": self._conjunction,
            "OPERATOR": self._operator,
            "CASE": self._case,
            "CAST": self._cast,
            "FUNCTION": self._function,
        }
        if node["class"] not in ways:
            raise self._refused(str(node["class"]).lower())
        return ways[node["class"]](node)

    def _refused(self, what: str) -> Unsupported:
        return Unsupported(
            f"the condition {' '.join(self.text.split())!r} has {what}, by which only files can be filtered; "
            "for a table of a database choose rows with `sql`."
        )

    def _column(self, node: Mapping[str, Any]) -> Written:
        *before, name = node["column_names"]
        if before and [part.casefold() for part in before] != ["input"]:
            raise self._refused(f"the field {name!r}")
        for known, kind in self.types.items():
            if known.casefold() == name.casefold():
                if family(kind) not in _PLAIN:
                    raise self._refused(f"the column {known!r} of the type {kind}")
                return Written(self.d.identifier(known), kind)
        raise self._refused(f"the name {name!r}")

    def _constant(self, node: Mapping[str, Any]) -> Written:
        literal = node["literal"]
        text = str(literal.get("text", ""))
        if literal["kind"] == "NULL_LITERAL":
            return Written("NULL", None)
        if literal["kind"] == "STRING":
            return Written(self.d.literal(text), None, text)
        if literal["kind"] == "BOOLEAN":
            return Written(text, "BOOLEAN")
        if literal["kind"] == "INTEGER" and re.fullmatch(r"-?[0-9]{1,38}", text):
            kind = "BIGINT" if abs(int(text)) < 2**63 else "HUGEINT"
            return Written(f"({text})", kind, text)
        if literal["kind"] == "NUMERIC" and re.fullmatch(r"-?[0-9]*[.]?[0-9]*", text):
            return Written(f"({text})", "DECIMAL", text)
        if literal["kind"] == "NUMERIC" and re.fullmatch(r"-?[0-9.]+[eE][+-]?[0-9]+", text):
            return Written(self.d.double(float(text)), "DOUBLE", text)
        raise self._refused(f"the value {text!r}")

    def _comparison(self, node: Mapping[str, Any]) -> Written:
        a, b = self._alike([self._of(node["left"]), self._of(node["right"])])
        if node["type"] in ("COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"):
            same = f"({a.sql} = {b.sql})"
            nulls = f"({a.sql} IS NULL AND {b.sql} IS NULL)"
            equal = f"(coalesce({same}, false) OR {nulls})"
            return Written(equal if "NOT" in node["type"] else f"(NOT {equal})", "BOOLEAN")
        if node["type"] not in _SIGNS:
            raise self._refused(str(node["type"]).lower())
        return self._compared(a, _SIGNS[node["type"]], b)

    def _compared(self, a: Written, sign: str, b: Written) -> Written:
        is_ordered = is_text(a.type or b.type or "") and sign not in ("=", "<>")
        left, right = (self.d.by_bytes(w.sql) if is_ordered else w.sql for w in (a, b))
        return Written(f"({left} {sign} {right})", "BOOLEAN")

    def _between(self, node: Mapping[str, Any]) -> Written:
        asked = [self._of(node[part]) for part in ("input", "lower", "upper")]
        x, low, high = self._alike(asked)
        both = self._compared(x, ">=", low).sql, self._compared(x, "<=", high).sql
        return Written(f"({both[0]} AND {both[1]})", "BOOLEAN")

    def _conjunction(self, node: Mapping[str, Any]) -> Written:
        word = " AND " if node["type"] == "CONJUNCTION_AND" else " OR "
        parts = [self._boolean(child) for child in node["children"]]
        return Written(f"({word.join(parts)})", "BOOLEAN")

    def _boolean(self, node: Mapping[str, Any]) -> str:
        found = self._of(node)
        if found.type is None:
            found = self._as(found, "BOOLEAN")
        if found.kind != "boolean":
            raise Meaningless(f"{found.type} is no truth value")
        return found.sql

    def _operator(self, node: Mapping[str, Any]) -> Written:
        children = node["children"]
        if node["type"] == "OPERATOR_NOT":
            return Written(f"(NOT {self._boolean(children[0])})", "BOOLEAN")
        found = [self._of(child) for child in children]
        if node["type"] in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            word = "IS NULL" if node["type"] == "OPERATOR_IS_NULL" else "IS NOT NULL"
            return Written(f"({found[0].sql} {word})", "BOOLEAN")
        if node["type"] == "COMPARE_IN":
            x, *others = self._alike(found)
            return Written(f"({x.sql} IN ({', '.join(o.sql for o in others)}))", "BOOLEAN")
        if node["type"] == "OPERATOR_COALESCE":
            alike = self._alike(found)
            return Written(f"coalesce({', '.join(w.sql for w in alike)})", alike[0].type)
        raise self._refused(str(node["type"]).removeprefix("OPERATOR_").lower())

    def _case(self, node: Mapping[str, Any]) -> Written:
        tests = [self._boolean(check["when_expr"]) for check in node["case_checks"]]
        values = [self._of(check["then_expr"]) for check in node["case_checks"]]
        *thens, last = self._alike([*values, self._of(node["else_expr"])])
        whens = " ".join(f"WHEN {t} THEN {v.sql}" for t, v in zip(tests, thens, strict=True))
        kind = next((w.type for w in (*thens, last) if w.type is not None), None)
        return Written(f"(CASE {whens} ELSE {last.sql} END)", kind)

    # -------------------------------------------------------------------- types

    def _alike(self, parts: Sequence[Written]) -> list[Written]:
        """Give values the type that they are compared as."""
        kinds = {w.kind for w in parts if w.kind is not None}
        if not kinds:
            target = "VARCHAR"
        elif len(kinds) == 1 and not kinds & {"float", "decimal"}:
            target = next(w.type for w in parts if w.type is not None)
        elif kinds <= _NUMBERS:
            target = _number_type(parts)
        elif kinds <= _MOMENTS:
            target = "TIMESTAMP"
        else:
            named = sorted({str(w.type) for w in parts if w.type is not None})
            raise Meaningless(f"values of the types {' and '.join(named)} cannot be compared")
        return [self._as(w, target) for w in parts]

    def _as(self, part: Written, target: str) -> Written:
        kind = family(target)
        if part.type is None and part.said is None:
            return Written(f"CAST(NULL AS {self.d.type_name(target)})", target)
        if part.type is None:
            return self._constant_of(str(part.said), target)
        if kind == "float" and part.said is not None:
            return self._constant_of(part.said, target)
        if (kind == "float" and target != part.type) or (kind == "timestamp" != part.kind):
            return Written(f"CAST({part.sql} AS {self.d.type_name(target)})", target)
        return part

    def _constant_of(self, text: str, target: str) -> Written:
        """Convert a constant as DuckDB does."""
        kind = family(target)
        if kind == "text":
            return Written(self.d.literal(text), target, text)
        found = evaluate(f"CAST(CAST(? AS {_named(target)}) AS VARCHAR)", text)
        if kind in ("whole", "decimal"):
            return Written(f"({found})", target, found)
        if kind == "boolean":
            return Written(found, target)
        if kind == "float" and self.d.type_name(target) == self.d.type_name("DOUBLE"):
            return Written(self.d.double(float(found)), target)
        return Written(self.d.tried(self.d.literal(found), target), target)

    def _cast(self, node: Mapping[str, Any]) -> Written:
        part, target = self._of(node["child"]), self._type(node["type_expr"])
        name = self.d.type_name(target)
        kinds = part.kind, family(target)
        if part.type is None or target == part.type:
            return self._as(part, target)
        if part.kind == "text" and kinds[1] in _PLAIN:
            value = self.d.tried(part.sql, target)
            if not node.get("try_cast"):
                self.strict.append(f"({part.sql} IS NOT NULL AND {value} IS NULL)")
            return Written(value, target)
        if kinds[1] == "text" and kinds[0] in ("whole", "date", "timestamp", "boolean"):
            return Written(self.d.text(part.sql, part.type), target)
        if kinds in (("date", "timestamp"), ("timestamp", "date")) or (
            kinds[0] == "whole" and target in ("BIGINT", "HUGEINT", "DOUBLE")
        ):
            return Written(f"CAST({part.sql} AS {name})", target)
        raise self._refused(f"a conversion of {part.type} to {target}")

    def _type(self, node: Mapping[str, Any]) -> str:
        """Return the name of a type as columns have it."""
        name = str(node["type_name"])
        sizes = [str(child["literal"]["text"]) for child in node.get("children") or ()]
        if not _TYPE.fullmatch(name) or not all(size.isdecimal() for size in sizes):
            raise self._refused(f"the type {name}")
        whole = f"{name}({', '.join(sizes)})" if sizes else name
        return evaluate(f"typeof(CAST(NULL AS {whole}))")

    # ---------------------------------------------------------------- functions

    def _function(self, node: Mapping[str, Any]) -> Written:
        name = str(node["function_name"]).lower()
        parts = [self._of(argument["expression"]) for argument in node["arguments"]]
        likes = {"~~": "LIKE", "!~~": "NOT LIKE"}
        if name in likes and len(parts) == 2:
            return self._like(parts[0], likes[name], parts[1])
        if name in ("+", "-", "*", "/", "%"):
            return self._arithmetic(name, parts)
        if name == "||" and len(parts) == 2:
            texts = [self._text(part, name) for part in parts]
            return Written(f"({' || '.join(texts)})", "VARCHAR")
        if name in ("lower", "upper", "trim", "length") and len(parts) == 1:
            text = self._text(parts[0], name)
            if name == "length":
                return Written(f"length({text})", "BIGINT")
            if name == "trim":
                return Written(f"trim({text})", "VARCHAR")
            value = self.d.cased(name, text)
            self.strict.append(f"({text} IS NOT NULL AND ({value}) IS NULL)")
            return Written(f"({value})", "VARCHAR")
        if name == "abs" and len(parts) == 1 and parts[0].kind in _NUMBERS:
            return Written(f"abs({parts[0].sql})", parts[0].type)
        if name == "nullif" and len(parts) == 2:
            a, b = self._alike(parts)
            return Written(f"nullif({a.sql}, {b.sql})", a.type)
        if name in ("year", "month", "day") and len(parts) == 1 and parts[0].kind in _MOMENTS:
            part = f"EXTRACT({name.upper()} FROM {parts[0].sql})"
            return Written(f"CAST({part} AS {self.d.whole_type})", "BIGINT")
        raise self._refused(f"the function {name}" if name.isidentifier() else f"the sign {name}")

    def _text(self, part: Written, name: str) -> str:
        if part.type is None:
            return self._as(part, "VARCHAR").sql
        if part.kind != "text":
            raise Meaningless(f"{name} is of texts, not of {part.type}")
        return part.sql

    def _like(self, part: Written, word: str, pattern: Written) -> Written:
        if pattern.type is not None or pattern.said is None:
            raise self._refused("a pattern that is not a text in quotes")
        like = self.d.like(self._text(part, "LIKE"), pattern.said)
        return Written(like if word == "LIKE" else f"(NOT {like})", "BOOLEAN")

    def _arithmetic(self, sign: str, parts: Sequence[Written]) -> Written:
        if any(part.kind not in _NUMBERS for part in parts):
            raise self._refused(f"the sign {sign} between values that are not all numbers")
        if len(parts) == 1:
            return Written(f"({sign}{parts[0].sql})", parts[0].type)
        if sign == "/":  # of any numbers, as of floating-point numbers
            a, b = (self._as(part, "DOUBLE").sql for part in parts)
            inf, nan = self.d.double(float("inf")), self.d.double(float("nan"))
            none = (
                f"CASE WHEN {a} > 0 THEN {inf} WHEN {a} < 0 THEN -{inf} WHEN {a} = 0 THEN {nan} END"
            )
            return Written(f"(CASE WHEN {b} = 0 THEN {none} ELSE {a} / {b} END)", "DOUBLE")
        target = _number_type(parts)
        if sign == "%" and (parts[1].said in (None, "0") or family(target) != "whole"):
            raise self._refused("the sign % other than of whole numbers and a number that is not 0")
        kind = {"whole": "BIGINT", "decimal": "DECIMAL", "float": "DOUBLE"}[family(target)]
        alike = [self._as(part, kind) for part in parts]
        if kind == "BIGINT":
            alike = [Written(f"CAST({w.sql} AS {self.d.whole_type})", kind) for w in alike]
        return Written(f"({alike[0].sql} {sign} {alike[1].sql})", kind)


def _number_type(parts: Sequence[Written]) -> str:
    """Return the type in which numbers are compared; constants adapt to columns of short floats."""
    kinds = {w.kind for w in parts if w.kind is not None}
    if "float" in kinds:
        own = {w.type for w in parts if w.said is None and w.type is not None}
        return "FLOAT" if own == {"FLOAT"} else "DOUBLE"
    if "decimal" in kinds:
        types = {w.type for w in parts if w.kind == "decimal" and w.said is None}
        return next(iter(types)) or "DECIMAL" if len(types) == 1 else "DECIMAL"
    return next(w.type for w in parts if w.type is not None)


def _named(column_type: str) -> str:
    """Name a type for DuckDB, in which a decimal without a size has three places."""
    return "DECIMAL(38,10)" if column_type == "DECIMAL" else column_type


def translated(d: PartsDialect, condition: Condition, types: Mapping[str, str]) -> Translation:
    """Begin to write a condition over columns of some types."""
    known = {name.casefold(): kind for name, kind in (condition.types or {}).items()}
    own = {name: known.get(name.casefold(), kind) for name, kind in types.items()}
    return Translation(d, own, condition.text)
