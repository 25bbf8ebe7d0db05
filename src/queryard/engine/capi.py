"""DuckDB's C API, as exported by the shared library inside DuckDB's own Python wheel.

Only what Queryard needs, bound with ctypes: nothing to compile, no second copy of DuckDB. The
Python client cannot do what is needed here, lending threads to one query and taking them back.

Functions that may take long release Python's global lock. The instant ones (`_INSTANT`) keep
it: giving it up costs a switch interval of up to 5 ms whenever another Python thread is busy.
"""

from __future__ import annotations

import ctypes as c
from functools import cache
from typing import Any

from queryard.core.errors import QueryardError

Handle = c.c_void_p
_out = c.POINTER(c.c_void_p)
_text = c.c_char_p
_count = c.c_uint64

# duckdb_state and duckdb_pending_state
OK = 0
READY, NOT_READY, ERROR, NO_TASKS = 0, 1, 2, 3


class Result(c.Structure):
    """`duckdb_result`; its fields are DuckDB's own."""

    _fields_ = (
        ("_columns", _count),
        ("_rows", _count),
        ("_changed", _count),
        ("_data", Handle),
        ("_message", Handle),
        ("_internal", Handle),
    )


class Progress(c.Structure):
    """`duckdb_query_progress_type`: percentage is -1 where DuckDB cannot tell."""

    _fields_ = (("percentage", c.c_double), ("rows_done", _count), ("rows_total", _count))


class HugeInt(c.Structure):
    """`duckdb_hugeint`: 128 bits."""

    _fields_ = (("lower", c.c_uint64), ("upper", c.c_int64))


class Decimal(c.Structure):
    """`duckdb_decimal`."""

    _fields_ = (("width", c.c_uint8), ("scale", c.c_uint8), ("value", HugeInt))


class Interval(c.Structure):
    """`duckdb_interval`."""

    _fields_ = (("months", c.c_int32), ("days", c.c_int32), ("micros", c.c_int64))


class ArrowSchema(c.Structure):
    """Arrow's C data interface: a schema."""

    _fields_ = (
        ("format", _text),
        ("name", _text),
        ("metadata", _text),
        ("flags", c.c_int64),
        ("n_children", c.c_int64),
        ("children", Handle),
        ("dictionary", Handle),
        ("release", Handle),
        ("private_data", Handle),
    )


class ArrowArray(c.Structure):
    """Arrow's C data interface: an array."""

    _fields_ = (
        ("length", c.c_int64),
        ("null_count", c.c_int64),
        ("offset", c.c_int64),
        ("n_buffers", c.c_int64),
        ("n_children", c.c_int64),
        ("buffers", Handle),
        ("children", Handle),
        ("dictionary", Handle),
        ("release", Handle),
        ("private_data", Handle),
    )


class ArrowArrayStream(c.Structure):
    """Arrow's C stream interface."""

    _fields_ = (
        ("get_schema", Handle),
        ("get_next", Handle),
        ("get_last_error", Handle),
        ("release", Handle),
        ("private_data", Handle),
    )


# A scalar function's callback: info, input chunk, output vector.
ScalarCallback = c.CFUNCTYPE(None, Handle, Handle, Handle)

_result = c.POINTER(Result)

# name -> (what it returns, what it takes); these release the global lock
_LONG: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "duckdb_open_ext": (c.c_int, (_text, _out, Handle, c.POINTER(Handle))),
    "duckdb_close": (None, (_out,)),
    "duckdb_connect": (c.c_int, (Handle, _out)),
    "duckdb_disconnect": (None, (_out,)),
    "duckdb_query": (c.c_int, (Handle, _text, _result)),
    "duckdb_destroy_result": (None, (_result,)),
    "duckdb_prepare": (c.c_int, (Handle, _text, _out)),
    "duckdb_destroy_prepare": (None, (_out,)),
    "duckdb_pending_prepared_streaming": (c.c_int, (Handle, _out)),
    "duckdb_destroy_pending": (None, (_out,)),
    "duckdb_execute_pending": (c.c_int, (Handle, _result)),
    "duckdb_execute_tasks_state": (None, (Handle,)),
    # For a failed query it waits for the query's tasks, which may be calling Python functions.
    "duckdb_pending_execute_check_state": (c.c_int, (Handle,)),
    "duckdb_fetch_chunk": (Handle, (Result,)),
    "duckdb_data_chunk_to_arrow": (Handle, (Handle, Handle, c.POINTER(ArrowArray))),
    "duckdb_arrow_scan": (c.c_int, (Handle, _text, c.POINTER(ArrowArrayStream))),
    "duckdb_appender_create_ext": (c.c_int, (Handle, _text, _text, _text, _out)),
    "duckdb_append_data_chunk": (c.c_int, (Handle, Handle)),
    "duckdb_appender_close": (c.c_int, (Handle,)),
    "duckdb_appender_destroy": (c.c_int, (_out,)),
    # A scalar function's callback runs while this is called at planning, and needs the lock.
    "duckdb_register_scalar_function": (c.c_int, (Handle, Handle)),
}

_INSTANT: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "duckdb_free": (None, (Handle,)),
    "duckdb_create_config": (c.c_int, (_out,)),
    "duckdb_set_config": (c.c_int, (Handle, _text, _text)),
    "duckdb_destroy_config": (None, (_out,)),
    "duckdb_interrupt": (None, (Handle,)),
    "duckdb_query_progress": (Progress, (Handle,)),
    "duckdb_prepared_statement_type": (c.c_int, (Handle,)),
    "duckdb_prepare_error": (_text, (Handle,)),
    "duckdb_nparams": (_count, (Handle,)),
    "duckdb_parameter_name": (Handle, (Handle, _count)),
    "duckdb_param_logical_type": (Handle, (Handle, _count)),
    "duckdb_prepared_statement_column_count": (_count, (Handle,)),
    "duckdb_prepared_statement_column_name": (Handle, (Handle, _count)),
    "duckdb_prepared_statement_column_logical_type": (Handle, (Handle, _count)),
    "duckdb_bind_value": (c.c_int, (Handle, _count, Handle)),
    "duckdb_pending_error": (_text, (Handle,)),
    "duckdb_create_task_state": (Handle, (Handle,)),
    "duckdb_finish_execution": (None, (Handle,)),
    "duckdb_destroy_task_state": (None, (Handle,)),
    "duckdb_result_error": (_text, (_result,)),
    "duckdb_rows_changed": (_count, (_result,)),
    "duckdb_result_return_type": (c.c_int, (Result,)),
    "duckdb_column_count": (_count, (_result,)),
    "duckdb_column_name": (_text, (_result, _count)),
    "duckdb_column_logical_type": (Handle, (_result, _count)),
    "duckdb_result_get_arrow_options": (Handle, (_result,)),
    "duckdb_destroy_arrow_options": (None, (_out,)),
    "duckdb_to_arrow_schema": (
        Handle,
        (Handle, _out, c.POINTER(_text), _count, c.POINTER(ArrowSchema)),
    ),
    "duckdb_schema_from_arrow": (Handle, (Handle, c.POINTER(ArrowSchema), _out)),
    "duckdb_destroy_arrow_converted_schema": (None, (_out,)),
    "duckdb_data_chunk_from_arrow": (
        Handle,
        (Handle, c.POINTER(ArrowArray), Handle, _out),
    ),
    "duckdb_destroy_data_chunk": (None, (_out,)),
    "duckdb_data_chunk_get_size": (_count, (Handle,)),
    "duckdb_data_chunk_get_vector": (Handle, (Handle, _count)),
    "duckdb_vector_reference_vector": (None, (Handle, Handle)),
    "duckdb_vector_get_column_type": (Handle, (Handle,)),
    "duckdb_appender_error": (_text, (Handle,)),
    "duckdb_error_data_message": (_text, (Handle,)),
    "duckdb_error_data_has_error": (c.c_bool, (Handle,)),
    "duckdb_destroy_error_data": (None, (_out,)),
    "duckdb_create_scalar_function": (Handle, ()),
    "duckdb_destroy_scalar_function": (None, (_out,)),
    "duckdb_scalar_function_set_name": (None, (Handle, _text)),
    "duckdb_scalar_function_add_parameter": (None, (Handle, Handle)),
    "duckdb_scalar_function_set_return_type": (None, (Handle, Handle)),
    "duckdb_scalar_function_set_function": (None, (Handle, ScalarCallback)),
    "duckdb_scalar_function_set_special_handling": (None, (Handle,)),
    "duckdb_scalar_function_set_volatile": (None, (Handle,)),
    "duckdb_scalar_function_set_error": (None, (Handle, _text)),
    "duckdb_destroy_logical_type": (None, (_out,)),
    "duckdb_destroy_value": (None, (_out,)),
    "duckdb_create_null_value": (Handle, ()),
    "duckdb_create_bool": (Handle, (c.c_bool,)),
    "duckdb_create_int32": (Handle, (c.c_int32,)),
    "duckdb_create_int64": (Handle, (c.c_int64,)),
    "duckdb_create_hugeint": (Handle, (HugeInt,)),
    "duckdb_create_double": (Handle, (c.c_double,)),
    "duckdb_create_varchar_length": (Handle, (_text, _count)),
    "duckdb_create_blob": (Handle, (_text, _count)),
    "duckdb_create_date": (Handle, (c.c_int32,)),
    "duckdb_create_time": (Handle, (c.c_int64,)),
    "duckdb_create_timestamp": (Handle, (c.c_int64,)),
    "duckdb_create_timestamp_tz": (Handle, (c.c_int64,)),
    "duckdb_create_interval": (Handle, (Interval,)),
    "duckdb_create_decimal": (Handle, (Decimal,)),
    "duckdb_create_list_value": (Handle, (Handle, _out, _count)),
    "duckdb_create_logical_type": (Handle, (c.c_int,)),
    "duckdb_create_decimal_type": (Handle, (c.c_uint8, c.c_uint8)),
    "duckdb_create_list_type": (Handle, (Handle,)),
    "duckdb_get_type_id": (c.c_int, (Handle,)),
    "duckdb_logical_type_get_alias": (Handle, (Handle,)),
    "duckdb_decimal_width": (c.c_uint8, (Handle,)),
    "duckdb_decimal_scale": (c.c_uint8, (Handle,)),
    "duckdb_list_type_child_type": (Handle, (Handle,)),
    "duckdb_array_type_child_type": (Handle, (Handle,)),
    "duckdb_array_type_array_size": (_count, (Handle,)),
    "duckdb_map_type_key_type": (Handle, (Handle,)),
    "duckdb_map_type_value_type": (Handle, (Handle,)),
    "duckdb_struct_type_child_count": (_count, (Handle,)),
    "duckdb_struct_type_child_name": (Handle, (Handle, _count)),
    "duckdb_struct_type_child_type": (Handle, (Handle, _count)),
    "duckdb_union_type_member_count": (_count, (Handle,)),
    "duckdb_union_type_member_name": (Handle, (Handle, _count)),
    "duckdb_union_type_member_type": (Handle, (Handle, _count)),
    "duckdb_enum_dictionary_size": (c.c_uint32, (Handle,)),
    "duckdb_enum_dictionary_value": (Handle, (Handle, _count)),
}

# Without these a statement can only be run whole, on one slot.
LEASING = (
    "duckdb_create_task_state",
    "duckdb_execute_tasks_state",
    "duckdb_finish_execution",
    "duckdb_destroy_task_state",
    "duckdb_pending_execute_check_state",
)


class MissingFunctions(QueryardError):
    """The installed DuckDB does not export what native execution needs."""


class Library:
    """The bound functions, as attributes without their `duckdb_` prefix."""

    def __init__(self, path: str) -> None:
        missing = []
        for bound, table in ((c.CDLL(path), _LONG), (c.PyDLL(path), _INSTANT)):
            for name, (returns, takes) in table.items():
                try:
                    function = getattr(bound, name)
                except AttributeError:
                    missing.append(name)
                    continue
                function.restype = returns
                function.argtypes = takes
                setattr(self, name.removeprefix("duckdb_"), function)
        self.missing: tuple[str, ...] = tuple(missing)

    def __getattr__(self, name: str) -> Any:
        raise MissingFunctions(
            f"the installed DuckDB exports no function duckdb_{name}; "
            "install the duckdb wheel from PyPI, version 2.0 or later"
        )

    @property
    def missing_for_leases(self) -> tuple[str, ...]:
        return tuple(name for name in LEASING if name in self.missing)

    @property
    def leases(self) -> bool:
        """Whether threads can be lent to one query and taken back."""
        return not self.missing_for_leases


@cache
def library() -> Library:
    """The shared library of the installed DuckDB wheel."""
    import _duckdb

    path = _duckdb.__file__
    if path is None:
        raise MissingFunctions("DuckDB's Python module has no shared library to bind to")
    return Library(path)


def take_text(pointer: int | None) -> str:
    """A C string that is ours to free."""
    if not pointer:
        return ""
    text = c.string_at(pointer).decode("utf-8", "replace")
    library().free(pointer)
    return text


def error_of(data: int | None) -> str | None:
    """The message in a `duckdb_error_data`, which is freed; None if it holds no error."""
    if not data:
        return None
    duck = library()
    message: bytes | None = None
    if duck.error_data_has_error(data):
        message = duck.error_data_message(data)
    text = message.decode("utf-8", "replace") if message is not None else None
    duck.destroy_error_data(c.byref(Handle(data)))
    return text
