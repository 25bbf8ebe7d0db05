"""Writes the facts about PostgreSQL that the catalog views of the service are made of.

They are read from a real server (version 15), once: relations with their columns, types, the
functions of types, operator classes, keywords. Run it again to follow a newer version:

    python -m tools.postgres_catalog_data "host=/tmp user=postgres"
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import psycopg

FOLDER = Path("src/queryard/service/postgres/catalog/data")

# ruff: noqa: SIM905 - lists of many names are read best as texts

# The types that values here can have, or that columns of the views below have.
TYPES = """bool bytea char name int8 int2 int2vector int4 regproc text oid tid xid cid oidvector
json pg_node_tree xid8 float4 float8 inet aclitem bpchar varchar date time timestamp timestamptz
interval timetz bit varbit numeric regprocedure regoper regoperator regclass regcollation regtype
regrole regnamespace uuid pg_lsn jsonb pg_ndistinct pg_dependencies pg_mcv_list
unknown record cstring any anyarray void trigger internal anyelement anynonarray""".split()

FILLED = """pg_am pg_attrdef pg_attribute pg_class pg_collation pg_constraint pg_database
pg_depend pg_description pg_index pg_indexes pg_language pg_namespace pg_opclass pg_proc pg_rewrite
pg_roles pg_settings pg_stat_all_tables pg_stat_user_tables pg_tables pg_tablespace pg_type pg_user
pg_views
information_schema.applicable_roles information_schema.character_sets
information_schema.check_constraints information_schema.collations
information_schema.columns information_schema.constraint_column_usage
information_schema.constraint_table_usage information_schema.enabled_roles
information_schema.information_schema_catalog_name information_schema.key_column_usage
information_schema.referential_constraints information_schema.role_table_grants
information_schema.schemata information_schema.table_constraints
information_schema.table_privileges information_schema.tables information_schema.view_table_usage
information_schema.views""".split()

# There are no such things here, so that no rows is the right answer.
EMPTY = """pg_auth_members pg_available_extension_versions pg_available_extensions pg_conversion
pg_db_role_setting pg_default_acl pg_enum pg_event_trigger pg_extension
pg_foreign_data_wrapper pg_foreign_server pg_foreign_table pg_group pg_inherits pg_init_privs
pg_largeobject_metadata pg_locks pg_matviews pg_parameter_acl pg_partitioned_table pg_policies
pg_policy pg_prepared_xacts pg_publication pg_publication_namespace pg_publication_rel
pg_publication_tables pg_range pg_replication_origin pg_replication_slots pg_rules
pg_seclabel pg_seclabels pg_sequence pg_sequences pg_shdepend pg_shdescription pg_shseclabel
pg_statistic_ext pg_stats pg_stats_ext pg_subscription pg_subscription_rel pg_transform pg_trigger
pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_user_mappings
information_schema.administrable_role_authorizations information_schema.attributes
information_schema.column_domain_usage information_schema.column_options
information_schema.domain_constraints information_schema.domain_udt_usage
information_schema.domains
information_schema.foreign_data_wrapper_options information_schema.foreign_data_wrappers
information_schema.foreign_server_options information_schema.foreign_servers
information_schema.foreign_table_options information_schema.foreign_tables
information_schema.sequences information_schema.triggered_update_columns
information_schema.triggers information_schema.user_defined_types
information_schema.user_mapping_options information_schema.user_mappings""".split()


def main(dsn: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with psycopg.connect(dsn) as connection:
        relations(connection)
        table(
            connection,
            "types.csv",
            """SELECT t.oid, t.typname, t.typlen, t.typbyval, t.typtype, t.typcategory,
                t.typispreferred, t.typdelim, t.typsubscript::oid, t.typelem, t.typarray,
                t.typinput::oid,
                t.typoutput::oid, t.typreceive::oid, t.typsend::oid, t.typmodin::oid,
                t.typmodout::oid, t.typalign,
                t.typstorage, t.typcollation, format_type(t.oid, NULL) AS formatted
            FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
            WHERE t.typnamespace = 11 AND (t.typname = ANY(%(t)s) OR e.typname = ANY(%(t)s))
            ORDER BY t.oid""",
        )
        table(
            connection,
            "functions.csv",
            """SELECT p.oid, p.proname, p.prolang, p.procost, p.prorows, p.prokind, p.prosecdef,
                p.proleakproof, p.proisstrict, p.proretset, p.provolatile, p.proparallel,
                p.pronargs, p.prorettype, p.proargtypes, p.prosrc,
                pg_get_function_result(p.oid) AS result,
                pg_get_function_arguments(p.oid) AS arguments
            FROM pg_proc p WHERE p.oid IN (
                SELECT unnest(ARRAY[t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin,
                    t.typmodout, t.typsubscript]::oid[])
                FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
                WHERE t.typnamespace = 11 AND (t.typname = ANY(%(t)s) OR e.typname = ANY(%(t)s)))
            ORDER BY p.oid""",
        )
        table(
            connection,
            "opclasses.csv",
            """SELECT o.oid, opcmethod, opcname, opcnamespace, opcowner, opcfamily, opcintype,
                opcdefault, opckeytype
            FROM pg_opclass o JOIN pg_type t ON t.oid = opcintype
            WHERE opcmethod = 403 AND t.typname = ANY(%(t)s) ORDER BY o.oid""",
        )
        table(connection, "keywords.csv", "SELECT * FROM pg_get_keywords() ORDER BY word")


def relations(connection: psycopg.Connection) -> None:
    """A line per relation: schema, name, oid, kind, whether it has rows, columns with types."""
    found = connection.execute(
        """SELECT n.nspname, c.relname, c.oid, c.relkind, string_agg(a.attname || ':'
            || coalesce(b.typname, t.typname) || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ' '
            ORDER BY a.attnum)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
        WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
        GROUP BY 1, 2, 3, 4 ORDER BY 1 DESC, 2"""
    ).fetchall()
    lines = []
    for schema, name, oid, kind, columns in found:
        known = name if schema == "pg_catalog" else f"{schema}.{name}"
        if known in FILLED or known in EMPTY:
            rows = "filled" if known in FILLED else "empty"
            lines.append(f"{schema} {name} {oid} {kind} {rows} {columns}\n")
        else:
            lines.append(f"{schema} {name} {oid} {kind} refused\n")
    (FOLDER / "relations.txt").write_text("".join(lines))


def table(connection: psycopg.Connection, name: str, sql: str) -> None:
    cursor = connection.cursor()
    cursor.execute("SET search_path TO pg_catalog")
    cursor.execute(sql, {"t": TYPES} if "%(t)s" in sql else None)
    with open(FOLDER / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in cursor.description or ()])
        writer.writerows(cursor.fetchall())


if __name__ == "__main__":
    main(sys.argv[1])
