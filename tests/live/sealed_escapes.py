"""Ways out of a sealed client that must lead nowhere, and which line stops each of them.

`class`: the statement is refused when it is put. `seal`: DuckDB was not allowed to, since the
instance is sealed. `empty`: it runs, and finds nothing. `{secret}` is a file with the canary,
`{folder}` the folder of all data, `{mine}` the file of a granted table, `{new}` a file that does
not exist, `{kept}` the folder `.queryard`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Line = Literal["class", "seal", "empty"]


class Escape(NamedTuple):
    name: str
    line: Line
    sql: str
    # Whether an instance that is sealed stops it without the first line.
    alone: bool = True


FILES = (
    Escape("a file by its path", "class", "FROM '{secret}'"),
    Escape("a file in a join", "class", "SELECT * FROM orders JOIN '{secret}' ON true"),
    Escape("a file after a comma", "seal", "SELECT * FROM orders, '{secret}'"),
    Escape("a file as a quoted name", "seal", 'FROM "{secret}"'),
    Escape("a file by a relative path", "class", "FROM '../{relative}/secret.csv'"),
    Escape("a path that leads out of a granted one", "class", "FROM '{mine}/../secret.csv'"),
    Escape("a pattern for files", "class", "FROM '{folder}/*.csv'"),
    Escape("a pattern as a quoted name", "seal", 'FROM "{folder}/secr*.csv"'),
    Escape("a file in a CTE", "class", "WITH c AS (FROM '{secret}') FROM c"),
    Escape("a CTE that bears the name of a file", "seal", 'WITH c AS (FROM "{secret}") FROM c'),
    Escape("a file in a subquery", "seal", 'SELECT (SELECT max(word) FROM "{secret}")'),
    Escape("a file after EXISTS", "seal", 'SELECT 1 WHERE EXISTS (FROM "{secret}")'),
    Escape("a file in UNION", "seal", 'SELECT 1 UNION ALL SELECT 2 FROM "{secret}"'),
    Escape("DESCRIBE of a file", "class", "DESCRIBE '{secret}'"),
    Escape("DESCRIBE of a quoted file", "seal", 'DESCRIBE "{secret}"'),
    Escape("SUMMARIZE of a file", "class", "SUMMARIZE '{secret}'"),
    Escape("SUMMARIZE of a quoted file", "seal", 'SUMMARIZE "{secret}"'),
    Escape("EXPLAIN of a file", "seal", 'EXPLAIN SELECT * FROM "{secret}"'),
    Escape("EXPLAIN ANALYZE of a file", "seal", 'EXPLAIN ANALYZE SELECT * FROM "{secret}"'),
    Escape("a file with a comment inside", "class", "FROM /* a table */ '{secret}'"),
    Escape("a Parquet file by its path", "class", "FROM '{folder}/theirs.parquet'"),
    Escape("the file of a granted table", "class", "FROM '{mine}'", alone=False),
    Escape("a file of the history", "class", "FROM '{kept}/history.sqlite'"),
    Escape("the statistics", "seal", 'FROM "{kept}/statistics/x.parquet"'),
    Escape("the environment of the process", "class", "FROM read_text('/proc/self/environ')"),
    Escape("an address", "class", "FROM 'https://example.org/secret.csv'"),
    Escape("an address as a quoted name", "seal", 'FROM "https://example.org/secret.parquet"'),
    Escape("a bucket", "seal", 'FROM "s3://bucket/secret.parquet"'),
    Escape("a database file", "seal", 'FROM "{folder}/theirs.duckdb"'),
    Escape("a positional join", "class", "FROM orders POSITIONAL JOIN '{secret}'"),
    Escape("a lateral join", "seal", 'FROM orders, LATERAL (FROM "{secret}")'),
    Escape("PIVOT of a file", "seal", 'PIVOT "{secret}" ON word USING count(*)'),
    Escape("a temporary table of a file", "seal", 'CREATE TEMP TABLE c AS FROM "{secret}"'),
    Escape("a view over a file", "seal", 'CREATE VIEW c AS FROM "{secret}"; FROM c'),
    Escape("a macro over a file", "seal", 'CREATE MACRO c() AS TABLE FROM "{secret}"; FROM c()'),
    Escape("a prepared file", "seal", 'PREPARE c AS FROM "{secret}"; EXECUTE c'),
    Escape(
        "rows from a file", "seal", 'CREATE TEMP TABLE c (w VARCHAR); INSERT INTO c FROM "{secret}"'
    ),
    Escape(
        "an update from a file",
        "seal",
        "CREATE TEMP TABLE c AS SELECT '' w; UPDATE c SET w = s.word FROM \"{secret}\" s",
    ),
    Escape("a variable from a file", "seal", 'SET VARIABLE c = (SELECT max(word) FROM "{secret}")'),
    Escape("another tenant's table", "empty", "FROM theirs"),
    Escape("another tenant's table by its schema", "empty", "FROM memory.main.theirs"),
    Escape("a table of a database not granted", "empty", "FROM theirdb.words"),
)

FUNCTIONS = (
    Escape("read_text", "class", "FROM read_text('{secret}')"),
    Escape("read_text in quotes", "class", "FROM \"read_text\"('{secret}')"),
    Escape("read_text in capitals", "class", "FROM READ_TEXT ('{secret}')"),
    Escape("read_text by its schema", "class", "FROM system.main.read_text('{secret}')"),
    Escape(
        "read_text after a space of another kind", "class", "FROM\u00a0read_text\u2003('{secret}')"
    ),
    Escape("a text in dollars", "empty", "FROM $${secret}$$"),
    Escape("read_text after a comment", "class", "FROM read_text /* ( */ ('{secret}')"),
    Escape("read_text as a method", "class", "SELECT ('{secret}').read_text()"),
    Escape("read_blob", "class", "FROM read_blob('{secret}')"),
    Escape("read_csv", "class", "FROM read_csv('{secret}')"),
    Escape("read_csv_auto", "class", "FROM read_csv_auto(['{secret}'])"),
    Escape("read_json", "class", "FROM read_json('{secret}')"),
    Escape("read_ndjson_objects", "class", "FROM read_ndjson_objects('{secret}')"),
    Escape("read_parquet", "class", "FROM read_parquet('{folder}/theirs.parquet')"),
    Escape("parquet_scan", "class", "FROM parquet_scan('{folder}/theirs.parquet')"),
    Escape(
        "read_duckdb", "class", "FROM read_duckdb('{folder}/theirs.duckdb', table_name='words')"
    ),
    Escape("parquet_metadata", "class", "FROM parquet_metadata('{folder}/theirs.parquet')"),
    Escape("parquet_schema", "class", "FROM parquet_schema('{folder}/theirs.parquet')"),
    Escape("sniff_csv", "class", "FROM sniff_csv('{secret}')"),
    Escape("glob", "class", "FROM glob('{folder}/*')"),
    Escape("glob of the root", "class", "FROM glob('/*')"),
    Escape("query", "class", "FROM query('FROM read_text(''{secret}'')')"),
    Escape("query_table", "class", "FROM query_table('{secret}')"),
    Escape(
        "a serialised statement",
        "class",
        "FROM json_execute_serialized_sql("
        "json_serialize_sql('SELECT * FROM read_text(''{secret}'')'))",
    ),
    Escape("histogram of a file", "seal", "FROM histogram('{secret}', word)"),
    Escape(
        "a file in a lambda",
        "class",
        "SELECT list_transform([1], x -> (FROM read_text('{secret}')))",
    ),
    Escape(
        "a file in a CTE by a function", "class", "WITH c AS (FROM read_text('{secret}')) FROM c"
    ),
    Escape("a view over a function", "class", "CREATE TEMP VIEW c AS FROM read_text('{secret}')"),
    Escape(
        "a macro over a function",
        "class",
        "CREATE TEMP MACRO c(p) AS TABLE FROM read_text(p); FROM c('{secret}')",
    ),
    Escape("a prepared function", "class", "PREPARE c AS FROM read_text(?); EXECUTE c('{secret}')"),
    Escape("EXPLAIN of a function", "class", "EXPLAIN FROM read_text('{secret}')"),
    Escape("getenv", "class", "SELECT getenv('CANARY')"),
    Escape("a pointer", "class", "FROM arrow_scan(1, 2, 3)", alone=False),
    Escape("seq_scan", "class", "FROM seq_scan()"),
    Escape("the secrets", "class", "FROM duckdb_secrets()", alone=False),
    Escape("which_secret", "class", "FROM which_secret('s3://a', 's3')", alone=False),
    Escape("the settings", "class", "FROM duckdb_settings()", alone=False),
    Escape("one setting", "class", "SELECT current_setting('allowed_paths')", alone=False),
    Escape(
        "a computed setting", "class", "SELECT current_setting('allowed' || '_paths')", alone=False
    ),
    Escape(
        "the setting of the folder for spilling",
        "class",
        "SELECT current_setting('temp_directory')",
        alone=False,
    ),
    Escape("the logs", "class", "FROM duckdb_logs()", alone=False),
    Escape("the views' texts", "class", "FROM duckdb_views()", alone=False),
    Escape("the view of views", "class", "SELECT * FROM duckdb_views", alone=False),
    Escape("information_schema.views", "class", "FROM information_schema.views", alone=False),
    Escape("pg_views", "class", "FROM pg_catalog.pg_views", alone=False),
    Escape("sqlite_master", "class", "FROM sqlite_master", alone=False),
    Escape("the databases", "class", "FROM duckdb_databases()", alone=False),
    Escape("the temporary files", "class", "FROM duckdb_temporary_files()", alone=False),
    Escape("the cache of files", "class", "FROM duckdb_external_file_cache()", alone=False),
    Escape("the extensions", "class", "FROM duckdb_extensions()"),
    Escape(
        "logging to a file",
        "class",
        "CALL enable_logging(storage='file', storage_path='{new}')",
        alone=False,
    ),
    Escape(
        "profiling to a file", "class", "CALL enable_profiling(save_location='{new}')", alone=False
    ),
    Escape("a log entry", "class", "SELECT write_log('x')", alone=False),
    Escape(
        "a macro that reads the views' texts",
        "class",
        "SELECT relname, pg_get_viewdef(oid) FROM pg_catalog.pg_class",
        alone=False,
    ),
    Escape(
        "such a macro in quotes, by its schema",
        "class",
        'SELECT system.pg_catalog."PG_Get_ViewDef"(oid) FROM pg_class',
        alone=False,
    ),
    Escape(
        "such a macro as a method",
        "class",
        "SELECT oid.pg_get_viewdef() FROM pg_class",
        alone=False,
    ),
    Escape(
        "such a macro in a macro",
        "class",
        "CREATE TEMP MACRO c(o) AS pg_get_viewdef(o); SELECT c(oid) FROM pg_class",
        alone=False,
    ),
    Escape(
        "such a macro for each of a list",
        "class",
        "SELECT list_transform(list(oid), lambda o: pg_get_viewdef(o)) FROM pg_class",
        alone=False,
    ),
    Escape("a macro that waits", "class", "SELECT pg_sleep(0)", alone=False),
    Escape("a macro of sizes on disk", "class", "SELECT get_block_size('memory')", alone=False),
    Escape(
        "a plan with the files of a view",
        "class",
        "SELECT json_serialize_plan('SELECT * FROM orders')",
        alone=False,
    ),
    Escape("the texts of macros", "class", "FROM duckdb_functions()", alone=False),
    Escape(
        "pg_proc with the texts of macros",
        "class",
        "SELECT prosqlbody FROM pg_catalog.pg_proc",
        alone=False,
    ),
)

STATEMENTS = (
    Escape("COPY FROM", "class", "CREATE TEMP TABLE c (w VARCHAR); COPY c FROM '{secret}'"),
    Escape("COPY TO", "class", "COPY orders TO '{new}'"),
    Escape("COPY of a query", "class", "COPY (SELECT 1) TO '{new}' (FORMAT parquet)"),
    Escape("COPY over a granted file", "class", "COPY (SELECT 1) TO '{mine}'", alone=False),
    Escape("EXPLAIN ANALYZE COPY", "class", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{new}'"),
    Escape("a prepared COPY", "class", "PREPARE c AS COPY (SELECT 1) TO '{new}'; EXECUTE c"),
    Escape("COPY to the terminal", "class", "COPY (SELECT 1) TO '/dev/stdout'"),
    Escape("COPY FROM DATABASE", "class", "COPY FROM DATABASE memory TO temp", alone=False),
    Escape("ATTACH", "class", "ATTACH '{folder}/theirs.duckdb' AS t (READ_ONLY); FROM t.words"),
    Escape("ATTACH of a new file", "class", "ATTACH '{new}' AS t"),
    Escape("ATTACH of another kind", "class", "ATTACH '{kept}/history.sqlite' AS t (TYPE sqlite)"),
    Escape("DETACH", "class", "DETACH memory"),
    Escape("INSTALL", "class", "INSTALL httpfs"),
    Escape("INSTALL from the community", "class", "INSTALL quack FROM community"),
    Escape("LOAD", "class", "LOAD httpfs"),
    Escape("LOAD of a file", "class", "LOAD '{folder}/x.duckdb_extension'"),
    Escape("UPDATE EXTENSIONS", "class", "UPDATE EXTENSIONS"),
    Escape("EXPORT DATABASE", "class", "EXPORT DATABASE '{new}'"),
    Escape("IMPORT DATABASE", "class", "IMPORT DATABASE '{folder}'"),
    Escape("CREATE SECRET", "class", "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')"),
    Escape("CREATE TEMPORARY SECRET", "class", "CREATE TEMPORARY SECRET s (TYPE s3)"),
    Escape("CREATE PERSISTENT SECRET", "class", "CREATE PERSISTENT SECRET s (TYPE s3)"),
    Escape("DROP SECRET", "class", "DROP SECRET IF EXISTS s", alone=False),
    Escape("CREATE TABLE", "class", "CREATE TABLE c (a INTEGER)", alone=False),
    Escape("a change of a granted file", "seal", "INSERT INTO orders VALUES (1, 2)", alone=False),
    Escape("external access", "class", "SET enable_external_access = true"),
    Escape("more paths", "class", "SET allowed_paths = ['{secret}']"),
    Escape("more folders", "class", "SET allowed_directories = ['/']"),
    Escape("SET in quotes", "class", "SET \"allowed_directories\" = ['/']"),
    Escape("SET GLOBAL", "class", "SET GLOBAL allowed_directories = ['/']"),
    Escape("RESET", "class", "RESET enable_external_access", alone=False),
    Escape("the folder for spilling", "class", "SET temp_directory = '{folder}'"),
    Escape(
        "the folder for extensions", "class", "SET extension_directory = '{folder}'", alone=False
    ),
    Escape("the folder for secrets", "class", "SET secret_directory = '{folder}'", alone=False),
    Escape("the home folder", "class", "SET home_directory = '{folder}'", alone=False),
    Escape("a log of queries", "class", "SET log_query_path = '{new}'"),
    Escape("a profile", "class", "SET profiling_output = '{new}'", alone=False),
    Escape(
        "no file systems for others",
        "class",
        "SET disabled_filesystems = 'LocalFileSystem'",
        alone=False,
    ),
    Escape("the memory", "class", "SET memory_limit = '1 TB'", alone=False),
    Escape("the threads", "class", "SET threads = 64", alone=False),
    Escape("a time zone for all", "class", "SET GLOBAL TimeZone = 'Asia/Tokyo'", alone=False),
    Escape("a locked configuration", "class", "SET lock_configuration = true", alone=False),
    Escape("PRAGMA that sets", "class", "PRAGMA temp_directory = '{folder}'"),
    Escape("PRAGMA profiling", "class", "PRAGMA enable_profiling", alone=False),
    Escape("PRAGMA database_list", "class", "PRAGMA database_list", alone=False),
    Escape("PRAGMA database_size", "class", "PRAGMA database_size", alone=False),
    Escape("PRAGMA storage_info", "class", "PRAGMA storage_info('orders')", alone=False),
    Escape("PRAGMA import_database", "class", "PRAGMA import_database('{folder}')"),
    Escape("CALL of a pragma", "class", "CALL pragma_database_size()", alone=False),
    Escape("CHECKPOINT", "class", "CHECKPOINT", alone=False),
    Escape("USE of the system", "class", "USE system.information_schema; FROM views", alone=False),
    Escape(
        "a computed schema", "class", "SET search_path = 'information' || '_schema'", alone=False
    ),
    Escape("a second statement", "class", "SELECT 1; ATTACH '{new}' AS t"),
    Escape("a statement after a comment", "class", "-- SELECT\nATTACH '{new}' AS t"),
)

ESCAPES = FILES + FUNCTIONS + STATEMENTS
