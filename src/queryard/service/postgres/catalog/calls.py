"""Calls of functions: the meaning in DuckDB of each, and the type of what it gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .answers import UnknownCatalogQuery
from .functions import AGGREGATES, Function, functions
from .typed import VECTORS, Making, Typed, array_type, common_type, literal, text_of
from .types import REGISTERED, TEXTS, element_of, held_as, oid_of

_RECORD_OF_ACL = "record(grantor oid,grantee oid,privilege_type text,is_grantable bool)"


class Calls:
    """Turns calls into expressions of DuckDB."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._special: dict[str, Callable[[list[Typed]], Typed]] = {
            "_pg_expandarray": self._expandarray,
            "aclexplode": self._aclexplode,
            "array_lower": lambda given: self._bound(given, upper=False),
            "array_upper": lambda given: self._bound(given, upper=True),
            "coalesce": lambda given: self._same_type("coalesce", given),
            "concat": self._concat,
            "concat_ws": self._concat_ws,
            "format": self._format,
            "generate_series": self.series,
            "generate_subscripts": self._subscripts,
            "greatest": lambda given: self._same_type("greatest", given),
            "json_build_object": lambda given: self._object(given, "json"),
            "jsonb_build_object": lambda given: self._object(given, "jsonb"),
            "least": lambda given: self._same_type("least", given),
            "nullif": self._nullif,
            "pg_typeof": self._typeof,
            "set_config": self._set_config,
            "unnest": self._unnest,
        }

    def call(
        self,
        name: str,
        given: Sequence[Typed],
        *,
        distinct: bool = False,
        order: str = "",
        after: str = "",
    ) -> Typed:
        """A call. Only aggregates take DISTINCT, an `order`, and FILTER or OVER `after` it."""
        if (distinct or order or after) and name not in AGGREGATES:
            raise UnknownCatalogQuery(f"{name} is no aggregate function", "42809")
        if name in self._special:
            try:
                return self._special[name](list(given))
            except ValueError:
                raise self._unknown(name, given) from None
        found = functions().get(name, {}).get(len(given))
        if found is None:
            raise self._unknown(name, given)
        arguments = [
            self._argument(one, type_) for one, type_ in zip(given, found.arguments, strict=True)
        ]
        texts = [one.sql for one in arguments]
        if distinct:
            texts[0] = f"DISTINCT {texts[0]}"
        if order:
            texts[-1] += f" ORDER BY {order}"
        sql = re.sub(r"\{(\w+)\}", lambda part: self._part(part[1], texts, after), found.meaning)
        return self._result(found, arguments, sql)

    @staticmethod
    def _unknown(name: str, given: Sequence[Typed]) -> UnknownCatalogQuery:
        types = ", ".join(one.type or "unknown" for one in given)
        return UnknownCatalogQuery(
            f"function {name}({types}) is not one that catalog queries can call here", "42883"
        )

    def _part(self, name: str, texts: list[str], after: str) -> str:
        if name.isdigit():
            return texts[int(name)]
        return after if name == "after" else self._making.value(name)

    def _argument(self, given: Typed, type_: str) -> Typed:
        if type_ == "any":
            return self._making.settled(given)
        if type_ == "relation":
            if given.is_open:
                return self._making.as_type(given, "regclass")
            return self._making.cast(given, "regclass") if given.type in TEXTS else given
        if given.is_open:
            return self._making.as_type(given, type_)
        if type_ == "text" and given.type in REGISTERED:
            return Typed(text_of(given), "text")
        if type_ == "oid" and given.type in TEXTS:
            return self._making.cast(given, "oid")
        if given.sql == "NULL":
            return Typed(f"CAST(NULL AS {held_as(type_)})", type_)
        # DuckDB finds lookups by the types of what they are given.
        if type_ in ("int4", "bool", "text", "name") and given.type != type_:
            return Typed(f"CAST({given.sql} AS {held_as(type_)})", type_)
        return given

    @staticmethod
    def _result(found: Function, arguments: list[Typed], sql: str) -> Typed:
        result = found.result
        place = re.search(r"\$(\d)", result)
        if place is None:
            if sql == "NULL":
                sql = f"CAST({sql} AS {held_as(result)})"
            return Typed(f"({sql})", result)
        type_ = arguments[int(place[1])].type
        return Typed(f"({sql})", array_type(type_) if result.startswith("[") else type_)

    # ---- functions whose types or numbers of arguments are not fixed

    def _same_type(self, name: str, given: list[Typed]) -> Typed:
        made, type_ = self.unified(given)
        return Typed(f"{name}({', '.join(one.sql for one in made)})", type_)

    def unified(self, given: Sequence[Typed]) -> tuple[list[Typed], str | None]:
        """Expressions of which one is chosen: those of no type take the type of the others."""
        type_ = common_type(list(given))
        if type_ is None and any(one.is_open for one in given):
            type_ = "text"
        made = [self._making.as_type(one, type_) if type_ else one for one in given]
        if type_ == "text":
            made = [Typed(text_of(one), "text") if one.type in REGISTERED else one for one in made]
        return made, type_

    def _nullif(self, given: list[Typed]) -> Typed:
        left, right = given
        left, right = self._making.beside(left, right)
        return Typed(f"nullif({left.sql}, {right.sql})", left.type)

    def _texts(self, given: list[Typed]) -> str:
        return ", ".join(text_of(self._making.settled(one)) for one in given)

    def _concat(self, given: list[Typed]) -> Typed:
        return Typed(f"concat({self._texts(given)})", "text")

    def _concat_ws(self, given: list[Typed]) -> Typed:
        return Typed(f"concat_ws({self._texts(given)})", "text")

    def _format(self, given: list[Typed]) -> Typed:
        pattern, *rest = given
        values = f"[{self._texts(rest)}]::VARCHAR[]"
        return Typed(f"formatted({self._texts([pattern])}, {values})", "text")

    def _object(self, given: list[Typed], type_: str) -> Typed:
        made = (self._making.settled(one).sql for one in given)
        return Typed(f"json_object({', '.join(made)})", type_)

    def _typeof(self, given: list[Typed]) -> Typed:
        (one,) = given
        if one.text is not None:
            return Typed(str(oid_of("unknown")), "regtype")
        if one.type is None:
            raise UnknownCatalogQuery("the type of the argument of pg_typeof is not known")
        return Typed(f"{oid_of(one.type)}::BIGINT", "regtype")

    def _set_config(self, given: list[Typed]) -> Typed:
        name, value, local = given
        name, value = self._making.as_type(name, "text"), self._making.as_type(value, "text")
        local = self._making.as_type(local, "bool")
        self._making.settings.append((name, value, local))
        return Typed(value.sql, "text")

    # ---- arrays

    def _bound(self, given: list[Typed], *, upper: bool) -> Typed:
        array, dimension = given
        size = f"nullif(len({array.sql}), 0)"
        first = 0 if array.type in VECTORS else 1  # vectors are counted from 0
        bound = f"{size} - 1 + {first}" if upper else f"{size} * 0 + {first}"
        dimension = self._making.as_type(dimension, "int4")
        return Typed(f"(CASE WHEN {dimension.sql} = 1 THEN ({bound})::INTEGER END)", "int4")

    def _unnest(self, given: list[Typed]) -> Typed:
        (array,) = given
        if array.is_open:
            array = self._making.as_type(array, "_text")
        return Typed(f"unnest({array.sql})", element_of(array.type))

    def _subscripts(self, given: list[Typed]) -> Typed:
        array = given[0]
        first = 0 if array.type in VECTORS else 1
        last = f"len({array.sql}) - 1 + {first}"
        return Typed(f"unnest(generate_series({first}, {last})::INTEGER[])", "int4")

    def series(self, given: list[Typed]) -> Typed:
        """generate_series: its type is that of its bounds."""
        made, type_ = self.unified(
            [literal(one.text, "int4") if one.text is not None else one for one in given]
        )
        if len(made) not in (2, 3) or type_ not in ("int2", "int4", "int8", "oid", None):
            raise ValueError
        held = held_as("int8" if type_ in ("int8", "oid") else "int4")
        bounds = ", ".join(one.sql for one in made)
        kind = "int8" if held == "BIGINT" else "int4"
        return Typed(f"unnest(generate_series({bounds})::{held}[])", kind)

    def _expandarray(self, given: list[Typed]) -> Typed:
        (array,) = given
        element = element_of(array.type)
        if element is None:
            raise ValueError
        pairs = f"list_transform({array.sql}, lambda e, i: {{'x': e, 'n': i::INTEGER}})"
        return Typed(f"unnest({pairs})", f"record(x {element},n int4)")

    def _aclexplode(self, given: list[Typed]) -> Typed:
        """All that is granted here is granted by the owner to the owner."""
        (acl,) = given
        granted = (
            f"list_transform(privileges_in(({acl.sql})::VARCHAR[]), lambda p: "
            "{'grantor': 10::BIGINT, 'grantee': 10::BIGINT, 'privilege_type': p, "
            "'is_grantable': false})"
        )
        return Typed(f"unnest({granted})", _RECORD_OF_ACL)
