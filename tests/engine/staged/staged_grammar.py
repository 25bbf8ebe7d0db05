"""Random queries over small tables: what people write, and what is easy to get wrong.

Every query is valid SQL over `TABLES`. Columns have few values, NULLs among them, so that joins,
groups and subqueries meet duplicates and gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

# Columns by table; the type class decides what may be done with a column.
TABLES: dict[str, dict[str, str]] = {
    "fact": {
        "id": "int",
        "k": "int",
        "g": "big",
        "x": "float",
        "m": "dec",
        "s": "text",
        "d": "date",
        "b": "bool",
    },
    "dim": {"k": "int", "name": "text", "w": "big", "since": "date", "flag": "bool"},
    "other": {"k": "big", "g": "int", "y": "float", "s": "text", "price": "dec"},
    "void": {"k": "int", "s": "text", "v": "dec"},
}
_NUMBERS = ("int", "big", "float", "dec")
_ONE_SIDED = ("SEMI JOIN", "ANTI JOIN")
_JOINS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", *_ONE_SIDED)


@dataclass
class Column:
    """A column that can be named in a query."""

    text: str
    kind: str


class Grammar:
    """Draws queries; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.count = 0
        self.ctes: dict[str, dict[str, str]] = {}

    def query(self) -> str:
        """One statement."""
        self.count = 0
        draw = self.rng.random()
        if draw < 0.12:
            return self.with_cte()
        if draw < 0.24:
            return self.set_operation()
        return self.select(depth=2)[0]

    # ------------------------------------------------------------------ whole queries

    def with_cte(self) -> str:
        body, names, kinds = self.relation_query()
        self.ctes = {"cte": dict(zip(names, kinds, strict=True))}
        main = self.select(depth=1)[0]
        self.ctes = {}
        if "cte" not in main:
            main = "SELECT c.*, (SELECT count(*) FROM cte) AS n FROM cte c"
        return f"WITH cte AS ({body}) {main}"

    def set_operation(self) -> str:
        width = self.rng.randint(1, 3)
        kinds = [self.rng.choice(["int", "text", "dec", "date"]) for _ in range(width)]
        sides = []
        for _ in range(self.rng.choice([2, 2, 3])):
            source, columns = self.source(1)
            items = [self.value(kind, columns) for kind in kinds]
            named = ", ".join(f"{e} AS c{i}" for i, e in enumerate(items))
            sides.append(f"SELECT {named} FROM {source}{self.where(columns, 0)}")
        operator = self.rng.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        if operator in ("EXCEPT", "INTERSECT"):
            sides = sides[:2]
        text = f" {operator} ".join(sides)
        if self.rng.random() < 0.4:
            order = ", ".join(str(i + 1) for i in range(len(kinds)))
            text += f" ORDER BY {order}"
            if self.rng.random() < 0.5:
                text += f" LIMIT {self.rng.randint(0, 12)}"
        return text

    def relation_query(self) -> tuple[str, list[str], list[str]]:
        """A query with named columns of known kinds, for FROM and WITH."""
        source, columns = self.source(1)
        where = self.where(columns, 0)
        if self.rng.random() < 0.4:
            key = self.rng.choice(columns)
            number = self.some(columns, _NUMBERS)
            call = f"sum({number.text})" if number else "count(*)"
            kind = number.kind if number else "big"
            text = f"SELECT {key.text} AS a0, {call} AS a1 FROM {source}{where} GROUP BY {key.text}"
            return text, ["a0", "a1"], [key.kind, "float" if kind == "float" else "dec"]
        chosen = [self.rng.choice(columns) for _ in range(self.rng.randint(1, 3))]
        items = ", ".join(f"{c.text} AS a{i}" for i, c in enumerate(chosen))
        names = [f"a{i}" for i in range(len(chosen))]
        limit = ""
        if self.rng.random() < 0.15:
            limit = f" ORDER BY {', '.join(names)} LIMIT {self.rng.randint(0, 20)}"
        distinct = "DISTINCT " if self.rng.random() < 0.2 else ""
        text = f"SELECT {distinct}{items} FROM {source}{where}{limit}"
        return text, names, [c.kind for c in chosen]

    def select(self, depth: int) -> tuple[str, int]:
        """A SELECT and the number of its columns."""
        source, columns = self.source(3)
        where = self.where(columns, depth)
        if self.rng.random() < 0.5:
            return self.grouped(source, where, columns)
        if self.rng.random() < 0.08:
            return f"SELECT * FROM {source}{where}", 0
        items = [self.item(columns, depth) for _ in range(self.rng.randint(1, 4))]
        distinct = "DISTINCT " if self.rng.random() < 0.25 else ""
        named = [f"{e} AS r{i}" if self.rng.random() < 0.7 else e for i, e in enumerate(items)]
        text = f"SELECT {distinct}{', '.join(named)} FROM {source}{where}"
        return text + self.order(len(items)), len(items)

    def grouped(self, source: str, where: str, columns: list[Column]) -> tuple[str, int]:
        keys = [self.key(columns) for _ in range(self.rng.choice([0, 1, 1, 1, 2, 2, 3]))]
        calls = [self.aggregate(columns) for _ in range(self.rng.randint(0 if keys else 1, 4))]
        items = [*keys, *calls]
        named = ", ".join(f"{e} AS r{i}" for i, e in enumerate(items))
        text = f"SELECT {named} FROM {source}{where}"
        if keys:
            style = self.rng.random()
            if style < 0.25:
                text += " GROUP BY ALL"
            elif style < 0.5:
                text += " GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys)))
            elif style < 0.6:
                text += " GROUP BY " + ", ".join(f"r{i}" for i in range(len(keys)))
            else:
                text += " GROUP BY " + ", ".join(keys)
        if self.rng.random() < 0.3:
            bound = self.rng.randint(0, 4)
            having = self.rng.choice(
                [
                    f"count(*) > {bound}",
                    f"{self.aggregate(columns)} IS NOT NULL",
                    f"count(*) >= (SELECT count(*) FROM {self.rng.choice(['void', 'dim'])}) - 5",
                ]
            )
            text += f" HAVING {having}"
        order = self.order(len(items))
        if is_rounded(named):
            order = order.split(" LIMIT")[0]
        return text + order, len(items)

    def order(self, width: int) -> str:
        """ORDER BY all columns, so that rows and order are determined; then maybe LIMIT."""
        if self.rng.random() < 0.5 or not width:
            return ""
        keys = []
        for i in self.rng.sample(range(width), width):
            way = self.rng.choice(["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"])
            keys.append(f"{i + 1}{way}")
        text = " ORDER BY " + ", ".join(keys)
        if self.rng.random() < 0.5:
            text += f" LIMIT {self.rng.randint(0, 15)}"
            if self.rng.random() < 0.4:
                text += f" OFFSET {self.rng.randint(0, 6)}"
        return text

    # ------------------------------------------------------------------ FROM

    def source(self, most: int) -> tuple[str, list[Column]]:
        text, columns = self.relation()
        for _ in range(self.rng.randint(0, most - 1)):
            other, more = self.relation()
            pairs = [(a, b) for a in columns for b in more if _comparable(a.kind, b.kind)]
            draw = self.rng.random()
            if draw < 0.06 or not pairs:
                text = f"{text} CROSS JOIN {other}"
                columns = columns + more
                continue
            kind = self.rng.choice(_JOINS)
            shared = _names(columns) & _names(more)
            if self.rng.random() < 0.12 and shared and len(_names(columns)) == len(columns):
                name = self.rng.choice(sorted(shared))
                text = f"{text} {kind} {other} USING ({name})"
                columns = columns if kind in _ONE_SIDED else columns + more
                continue
            chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice([1, 1, 1, 2])))
            on = [f"{a.text} = {b.text}" for a, b in chosen]
            if self.rng.random() < 0.25:
                on.append(self.condition([*columns, *more], 0))
            text = f"{text} {kind} {other} ON {' AND '.join(on)}"
            columns = columns if kind in _ONE_SIDED else columns + more
        return text, columns

    def relation(self) -> tuple[str, list[Column]]:
        alias = f"t{self.count}"
        self.count += 1
        tables = {**TABLES, **self.ctes}
        if self.rng.random() < 0.12 and self.count < 6:
            body, names, kinds = self.relation_query()
            return (
                f"({body}) AS {alias}",
                [Column(f"{alias}.{n}", k) for n, k in zip(names, kinds, strict=True)],
            )
        weights = [6, 4, 4, 1] + [6] * len(self.ctes)
        name = self.rng.choices(list(tables), weights)[0]
        columns = [Column(f"{alias}.{c}", kind) for c, kind in tables[name].items()]
        return f"{name} AS {alias}", columns

    # ------------------------------------------------------------------ WHERE

    def where(self, columns: list[Column], depth: int) -> str:
        found = []
        while self.rng.random() < 0.45 and len(found) < 3:
            found.append(self.condition(columns, depth))
        return f" WHERE {' AND '.join(found)}" if found else ""

    def condition(self, columns: list[Column], depth: int) -> str:
        draw = self.rng.random()
        if depth and draw < 0.35:
            return self.subquery_condition(columns)
        if 0.35 <= draw < 0.45:
            one, two = self.condition(columns, 0), self.condition(columns, 0)
            return f"({one} {self.rng.choice(['OR', 'AND'])} {two})"
        if 0.45 <= draw < 0.52:
            return f"NOT ({self.condition(columns, 0)})"
        column = self.rng.choice(columns)
        if self.rng.random() < 0.15:
            return f"{column.text} IS {self.rng.choice(['', 'NOT '])}NULL"
        if column.kind == "bool":
            return column.text
        if column.kind == "text" and self.rng.random() < 0.4:
            return f"{column.text} {self.rng.choice(['', 'NOT '])}LIKE '{self.rng.choice('abc')}%'"
        if self.rng.random() < 0.2:
            values = ", ".join(self.literal(column.kind) for _ in range(3))
            return f"{column.text} {self.rng.choice(['', 'NOT '])}IN ({values})"
        if self.rng.random() < 0.2:
            return (
                f"{column.text} BETWEEN {self.literal(column.kind)} AND {self.literal(column.kind)}"
            )
        operator = self.rng.choice(["=", "<", "<=", ">", ">=", "<>"])
        return f"{column.text} {operator} {self.value(column.kind, columns)}"

    def subquery_condition(self, columns: list[Column]) -> str:
        inner, mine = self.relation()
        pairs = [(a, b) for a in columns for b in mine if _comparable(a.kind, b.kind)]
        if not pairs:
            return "1 = 1"
        outer, own = self.rng.choice(pairs)
        more = self.where(mine, 0).removeprefix(" WHERE ")
        correlated = f"{own.text} = {outer.text}"
        both = f"{correlated} AND {more}" if more else correlated
        extra = f" WHERE {more}" if more else ""
        negation = self.rng.choice(["", "NOT "])
        draw = self.rng.random()
        if draw < 0.3:
            other = self.rng.choice(pairs)
            if self.rng.random() < 0.3:
                both += f" AND {other[1].text} <> {other[0].text}"
            return f"{negation}EXISTS (SELECT 1 FROM {inner} WHERE {both})"
        if draw < 0.55:
            return f"{outer.text} {negation}IN (SELECT {own.text} FROM {inner}{extra})"
        if draw < 0.65:
            a, b = self.rng.choice(pairs)
            return f"{a.text} {negation}IN (SELECT {b.text} FROM {inner} WHERE {both})"
        if draw < 0.72:
            test = f"{outer.text} {negation}IN (SELECT {own.text} FROM {inner}{extra})"
            return f"({test} OR {self.condition(columns, 0)})"
        if draw < 0.78:
            test = f"EXISTS (SELECT 1 FROM {inner} WHERE {both})"
            return f"({test} OR {self.condition(columns, 0)})"
        number = self.some(mine, _NUMBERS)
        mine_number = self.some(columns, _NUMBERS)
        call = self.rng.choice(["count(*)", "count(DISTINCT {})", "sum({})", "max({})", "avg({})"])
        call = call.format(number.text if number else "1")
        left = mine_number.text if mine_number else "2"
        operator = self.rng.choice(["<", ">", "=", ">="])
        where = f" WHERE {both}" if self.rng.random() < 0.6 else extra
        return f"{left} {operator} (SELECT {call} FROM {inner}{where})"

    # ------------------------------------------------------------------ expressions

    def item(self, columns: list[Column], depth: int) -> str:
        if depth and self.rng.random() < 0.12:
            inner, mine = self.relation()
            pairs = [(a, b) for a in columns for b in mine if _comparable(a.kind, b.kind)]
            if pairs:
                outer, own = self.rng.choice(pairs)
                call = self.rng.choice(["count(*)", f"max({own.text})", f"count({own.text}) + 1"])
                if self.rng.random() < 0.3:
                    return f"(SELECT {call} FROM {inner}{self.where(mine, 0)})"
                return f"(SELECT {call} FROM {inner} WHERE {own.text} = {outer.text})"
        column = self.rng.choice(columns)
        return self.expression(column, columns) if self.rng.random() < 0.4 else column.text

    def key(self, columns: list[Column]) -> str:
        column = self.rng.choice(columns)
        return self.expression(column, columns) if self.rng.random() < 0.25 else column.text

    def expression(self, column: Column, columns: list[Column]) -> str:
        text = column.text
        if column.kind in ("int", "big"):
            shapes = ["{} + 1", "{} % 3", "{} // 2", "{} / 4", "-{}", "coalesce({}, 7)"]
            shapes += ["abs({}) * 2", "CAST({} AS VARCHAR)", "nullif({}, 3)"]
            shapes += ["CASE WHEN {0} > 2 THEN {0} ELSE 0 END"]
            return self.rng.choice(shapes).format(text)
        if column.kind == "dec":
            return self.rng.choice([f"{text} * 2", f"{text} + 1.5", f"round({text}, 1)"])
        if column.kind == "float":
            return self.rng.choice([f"{text} * 2", f"{text} / 2", f"coalesce({text}, 0.5)"])
        if column.kind == "text":
            return self.rng.choice(
                [f"upper({text})", f"{text} || 'z'", f"length({text})", f"substring({text}, 1, 1)"]
            )
        if column.kind == "date":
            return self.rng.choice(
                [f"extract(year FROM {text})", f"{text} + INTERVAL 1 MONTH", f"month({text})"]
            )
        return f"NOT {text}"

    def aggregate(self, columns: list[Column]) -> str:
        column = self.rng.choice(columns)
        number = self.some(columns, _NUMBERS)
        choices = ["count(*)", f"count({column.text})", f"count(DISTINCT {column.text})"]
        choices += [f"min({column.text})", f"max({column.text})"]
        if number:
            n = number.text
            choices += [f"sum({n})", f"avg({n})", f"sum({n} * 2)", f"stddev({n})"]
            choices += [f"var_pop({n})", f"sum(DISTINCT {n})", f"var_samp({n})"]
            choices += [f"sum({n}) / count(*)", f"coalesce(sum({n}), 0)", f"stddev_pop({n})"]
        flag = self.some(columns, ("bool",))
        if flag:
            choices += [f"bool_and({flag.text})", f"bool_or({flag.text})", f"count_if({flag.text})"]
        whole = self.some(columns, ("int", "big"))
        if whole:
            choices += [f"bit_or({whole.text})", f"bit_xor({whole.text})"]
        call = self.rng.choice(choices)
        if self.rng.random() < 0.2 and call.endswith(")") and call.count("(") == 1:
            call += f" FILTER (WHERE {self.condition(columns, 0)})"
        return call

    def value(self, kind: str, columns: list[Column]) -> str:
        same = [c for c in columns if c.kind == kind]
        if same and self.rng.random() < 0.5:
            return self.rng.choice(same).text
        return self.literal(kind)

    def literal(self, kind: str) -> str:
        if kind in ("int", "big"):
            return str(self.rng.randint(-1, 7))
        if kind == "float":
            return f"{self.rng.randint(-4, 12) / 4}::DOUBLE"
        if kind == "dec":
            return f"{self.rng.randint(-100, 700) / 100:.2f}"
        if kind == "text":
            return f"'{self.rng.choice(['a', 'b', 'c', 'ab', 'bc', ''])}'"
        if kind == "date":
            return f"DATE '2020-0{self.rng.randint(1, 6)}-0{self.rng.randint(1, 9)}'"
        return self.rng.choice(["true", "false"])

    def some(self, columns: list[Column], kinds: tuple[str, ...]) -> Column | None:
        found = [c for c in columns if c.kind in kinds]
        return self.rng.choice(found) if found else None


def is_rounded(query: str) -> bool:
    """Whether the last bit of a result, and so its place in an order, is a matter of rounding."""
    return any(name in query for name in ("avg(", "stddev", "var_"))


def _names(columns: list[Column]) -> set[str]:
    return {column.text.split(".")[1] for column in columns}


def _comparable(one: str, other: str) -> bool:
    whole = ("int", "big")
    return one == other or (one in whole and other in whole)
