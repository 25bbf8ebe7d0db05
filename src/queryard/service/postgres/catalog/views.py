"""The views of the catalogs, as queries of DuckDB on the relations that `rows` makes.

`{database}` and `{user}` are texts in quotes. A user has all tables to read that it can see.
"""

from __future__ import annotations

_CLASS = '"pg_catalog.pg_class"'
_NAMESPACE = '"pg_catalog.pg_namespace"'
_ATTRIBUTE = '"pg_catalog.pg_attribute"'
_TYPE = '"pg_catalog.pg_type"'
_CONSTRAINT = '"pg_catalog.pg_constraint"'

_NUMERIC_PRECISION = """CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64
    WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN CASE WHEN a.atttypmod <> -1 THEN ((a.atttypmod - 4) >> 16) & 65535 END END"""
_DATE_TYPES = "1083, 1114, 1184, 1266, 1186"

VIEWS: dict[str, str] = {
    "pg_catalog.pg_tables": f"""
        SELECT n.nspname AS schemaname, c.relname AS tablename, {{user}} AS tableowner,
            NULL::VARCHAR AS tablespace, c.relhasindex AS hasindexes, c.relhasrules AS hasrules,
            c.relhastriggers AS hastriggers, c.relrowsecurity AS rowsecurity
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace WHERE c.relkind = 'r'""",
    "pg_catalog.pg_views": f"""
        SELECT n.nspname AS schemaname, c.relname AS viewname, {{user}} AS viewowner,
            view_definition(c.oid) AS definition
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace WHERE c.relkind = 'v'""",
    "pg_catalog.pg_indexes": f"""
        SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname,
            NULL::VARCHAR AS tablespace, index_definition(i.oid, 0, false) AS indexdef
        FROM "pg_catalog.pg_index" x JOIN {_CLASS} c ON c.oid = x.indrelid
        JOIN {_CLASS} i ON i.oid = x.indexrelid JOIN {_NAMESPACE} n ON n.oid = c.relnamespace""",
    "pg_catalog.pg_user": """
        SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb,
            rolsuper AS usesuper, rolreplication AS userepl, rolbypassrls AS usebypassrls,
            rolpassword AS passwd, rolvaliduntil AS valuntil, rolconfig AS useconfig
        FROM "pg_catalog.pg_roles" WHERE rolcanlogin""",
    "pg_catalog.pg_stat_all_tables": f"""
        SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
            CASE WHEN c.reltuples >= 0 THEN c.reltuples::BIGINT END AS n_live_tup
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace WHERE c.relkind = 'r'""",
    "pg_catalog.pg_stat_user_tables": """
        SELECT * FROM "pg_catalog.pg_stat_all_tables"
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')""",
    "information_schema.information_schema_catalog_name": "SELECT {database} AS catalog_name",
    "information_schema.enabled_roles": "SELECT {user} AS role_name",
    "information_schema.applicable_roles": """
        SELECT {user} AS grantee, {user} AS role_name, 'NO' AS is_grantable WHERE false""",
    "information_schema.character_sets": """
        SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire,
            'UTF8' AS form_of_use, {database} AS default_collate_catalog,
            'pg_catalog' AS default_collate_schema, 'default' AS default_collate_name""",
    "information_schema.collations": """
        SELECT {database} AS collation_catalog, 'pg_catalog' AS collation_schema,
            collname AS collation_name, 'NO PAD' AS pad_attribute
        FROM "pg_catalog.pg_collation\"""",
    "information_schema.schemata": f"""
        SELECT {{database}} AS catalog_name, nspname AS schema_name, {{user}} AS schema_owner
        FROM {_NAMESPACE}""",
    "information_schema.tables": f"""
        SELECT {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'BASE TABLE' END AS table_type,
            CASE WHEN is_writable(c.oid) THEN 'YES' ELSE 'NO' END AS is_insertable_into,
            'NO' AS is_typed
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'v')""",
    "information_schema.views": f"""
        SELECT {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            view_definition(c.oid) AS view_definition, 'NONE' AS check_option,
            'NO' AS is_updatable, 'NO' AS is_insertable_into, 'NO' AS is_trigger_updatable,
            'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace WHERE c.relkind = 'v'""",
    "information_schema.view_table_usage": f"""
        SELECT {{database}} AS view_catalog, vn.nspname AS view_schema, v.relname AS view_name,
            {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name
        FROM "pg_catalog.pg_depend" d JOIN "pg_catalog.pg_rewrite" r ON r.oid = d.objid
        JOIN {_CLASS} v ON v.oid = r.ev_class JOIN {_NAMESPACE} vn ON vn.oid = v.relnamespace
        JOIN {_CLASS} c ON c.oid = d.refobjid JOIN {_NAMESPACE} n ON n.oid = c.relnamespace""",
    "information_schema.columns": f"""
        SELECT {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            a.attname AS column_name, a.attnum AS ordinal_position, d.adbin AS column_default,
            CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
            CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
                ELSE type_text(a.atttypid, NULL) END AS data_type,
            CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod <> -1
                THEN a.atttypmod - 4 END AS character_maximum_length,
            CASE WHEN a.atttypid IN (25, 1042, 1043) THEN
                CASE WHEN a.atttypmod = -1 THEN 1073741824 ELSE 4 * (a.atttypmod - 4) END
                END AS character_octet_length,
            {_NUMERIC_PRECISION} AS numeric_precision,
            CASE WHEN a.atttypid IN (20, 21, 23, 700, 701) THEN 2
                WHEN a.atttypid = 1700 THEN 10 END AS numeric_precision_radix,
            CASE WHEN a.atttypid IN (20, 21, 23) THEN 0
                WHEN a.atttypid = 1700 AND a.atttypmod <> -1
                THEN (a.atttypmod - 4) & 65535 END AS numeric_scale,
            CASE WHEN a.atttypid = 1082 THEN 0 WHEN a.atttypid IN ({_DATE_TYPES}) THEN 6
                END AS datetime_precision,
            {{database}} AS udt_catalog, 'pg_catalog' AS udt_schema, t.typname AS udt_name,
            a.attnum::VARCHAR AS dtd_identifier, 'NO' AS is_self_referencing,
            'NO' AS is_identity, 'NO' AS identity_cycle, 'NEVER' AS is_generated,
            CASE WHEN a.attcollation = 950 THEN {{database}} END AS collation_catalog,
            CASE WHEN a.attcollation = 950 THEN 'pg_catalog' END AS collation_schema,
            CASE WHEN a.attcollation = 950 THEN 'C' END AS collation_name,
            CASE WHEN is_writable(c.oid) THEN 'YES' ELSE 'NO' END AS is_updatable
        FROM {_ATTRIBUTE} a JOIN {_CLASS} c ON c.oid = a.attrelid
        JOIN {_NAMESPACE} n ON n.oid = c.relnamespace JOIN {_TYPE} t ON t.oid = a.atttypid
        LEFT JOIN "pg_catalog.pg_attrdef" d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relkind IN ('r', 'v') AND a.attnum > 0""",
    "information_schema.table_constraints": f"""
        SELECT {{database}} AS constraint_catalog, n.nspname AS constraint_schema,
            k.conname AS constraint_name, {{database}} AS table_catalog, n.nspname AS table_schema,
            c.relname AS table_name, CASE k.contype WHEN 'p' THEN 'PRIMARY KEY'
                WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END
                AS constraint_type,
            'NO' AS is_deferrable, 'NO' AS initially_deferred, 'YES' AS enforced,
            CASE k.contype WHEN 'u' THEN 'YES' END AS nulls_distinct
        FROM {_CONSTRAINT} k JOIN {_CLASS} c ON c.oid = k.conrelid
        JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        UNION ALL
        SELECT {{database}}, n.nspname, concat(n.oid, '_', c.oid, '_', a.attnum, '_not_null'),
            {{database}}, n.nspname, c.relname, 'CHECK', 'NO', 'NO', 'YES', NULL
        FROM {_ATTRIBUTE} a JOIN {_CLASS} c ON c.oid = a.attrelid
        JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        WHERE a.attnotnull AND a.attnum > 0 AND c.relkind = 'r'""",
    "information_schema.check_constraints": f"""
        SELECT {{database}} AS constraint_catalog, n.nspname AS constraint_schema,
            k.conname AS constraint_name, '(' || k.conbin || ')' AS check_clause
        FROM {_CONSTRAINT} k JOIN {_NAMESPACE} n ON n.oid = k.connamespace WHERE k.contype = 'c'
        UNION ALL
        SELECT {{database}}, n.nspname, concat(n.oid, '_', c.oid, '_', a.attnum, '_not_null'),
            a.attname || ' IS NOT NULL'
        FROM {_ATTRIBUTE} a JOIN {_CLASS} c ON c.oid = a.attrelid
        JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        WHERE a.attnotnull AND a.attnum > 0 AND c.relkind = 'r'""",
    "information_schema.key_column_usage": f"""
        SELECT {{database}} AS constraint_catalog, n.nspname AS constraint_schema,
            k.conname AS constraint_name, {{database}} AS table_catalog, n.nspname AS table_schema,
            c.relname AS table_name, a.attname AS column_name, k.place AS ordinal_position,
            CASE k.contype WHEN 'f' THEN list_position(x.indkey, k.target)
                END AS position_in_unique_constraint
        FROM (SELECT *, unnest(conkey) AS number, generate_subscripts(conkey, 1) AS place,
                unnest(coalesce(confkey, [])) AS target FROM {_CONSTRAINT}
                WHERE contype IN ('p', 'u', 'f')) k
        JOIN {_CLASS} c ON c.oid = k.conrelid JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        JOIN {_ATTRIBUTE} a ON a.attrelid = c.oid AND a.attnum = k.number
        LEFT JOIN "pg_catalog.pg_index" x ON x.indexrelid = k.conindid""",
    "information_schema.referential_constraints": f"""
        SELECT {{database}} AS constraint_catalog, n.nspname AS constraint_schema,
            k.conname AS constraint_name,
            CASE WHEN u.oid IS NOT NULL THEN {{database}} END AS unique_constraint_catalog,
            un.nspname AS unique_constraint_schema, u.conname AS unique_constraint_name,
            'NONE' AS match_option, 'NO ACTION' AS update_rule, 'NO ACTION' AS delete_rule
        FROM {_CONSTRAINT} k JOIN {_NAMESPACE} n ON n.oid = k.connamespace
        LEFT JOIN {_CONSTRAINT} u ON u.conindid = k.conindid AND u.contype IN ('p', 'u')
            AND k.conindid <> 0
        LEFT JOIN {_NAMESPACE} un ON un.oid = u.connamespace WHERE k.contype = 'f'""",
    "information_schema.constraint_column_usage": f"""
        SELECT {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            a.attname AS column_name, {{database}} AS constraint_catalog,
            kn.nspname AS constraint_schema, k.conname AS constraint_name
        FROM (SELECT *, unnest(CASE contype WHEN 'f' THEN confkey ELSE conkey END) AS number,
                CASE contype WHEN 'f' THEN confrelid ELSE conrelid END AS target
                FROM {_CONSTRAINT}) k
        JOIN {_CLASS} c ON c.oid = k.target JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        JOIN {_NAMESPACE} kn ON kn.oid = k.connamespace
        JOIN {_ATTRIBUTE} a ON a.attrelid = c.oid AND a.attnum = k.number""",
    "information_schema.constraint_table_usage": f"""
        SELECT {{database}} AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
            {{database}} AS constraint_catalog, kn.nspname AS constraint_schema,
            k.conname AS constraint_name
        FROM {_CONSTRAINT} k JOIN {_CLASS} c
            ON c.oid = CASE k.contype WHEN 'f' THEN k.confrelid ELSE k.conrelid END
        JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        JOIN {_NAMESPACE} kn ON kn.oid = k.connamespace WHERE k.contype <> 'c'""",
    "information_schema.table_privileges": f"""
        SELECT {{user}} AS grantor, {{user}} AS grantee, {{database}} AS table_catalog,
            n.nspname AS table_schema, c.relname AS table_name, p.privilege AS privilege_type,
            'NO' AS is_grantable,
            CASE p.privilege WHEN 'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy
        FROM {_CLASS} c JOIN {_NAMESPACE} n ON n.oid = c.relnamespace
        CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'))
            AS p(privilege)
        WHERE c.relkind IN ('r', 'v') AND (p.privilege = 'SELECT' OR is_writable(c.oid))""",
    "information_schema.role_table_grants": """
        SELECT * FROM "information_schema.table_privileges\"""",
}

USES = {
    name: tuple(
        other
        for other in sorted({part for part in sql.split('"')[1::2] if "." in part})
        if other != name
    )
    for name, sql in VIEWS.items()
}
"""The relations that a view reads."""
