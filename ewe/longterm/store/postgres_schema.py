"""The tables of a memory store in PostgreSQL, and the policies that hide from one tenant what another one holds."""

from ewe.longterm.store.schema import POSTGRES, POSTGRES_VOICES

SCHEMA_VERSION = 2
LOCKED_FIRST = "state"
"""The table that every snapshot reads first, so that whoever holds on to deleted rows holds a lock on it."""
TABLES = (
    *(LOCKED_FIRST, "encoder", "scopes", "voices", "memories", "revisions"),
    *("deletions", "words", "postings", "erasing"),
)

# The setting `ewe.scopes` says whom a transaction is for: a JSON list of scopes, or "all"; without it no row of a
# tenant is seen. revisions.scope and postings.scope: of their memory, so that a policy need not look for it.
# memories.embedding: the vector; its `cell` is 0 then.
_ADDED = """
ALTER TABLE state ADD version integer NOT NULL;
ALTER TABLE memories ADD embedding vector;
ALTER TABLE revisions ADD scope bigint NOT NULL, ADD FOREIGN KEY (memory) REFERENCES memories ON DELETE CASCADE;
ALTER TABLE postings ADD scope bigint NOT NULL;
ALTER SEQUENCE memories_number_seq RENAME TO memory_numbers;
"""

_TRIGGERS = """
CREATE FUNCTION take_scope() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.scope := (SELECT scope FROM memories WHERE number = NEW.memory);
    RETURN NEW;
END $$;
CREATE TRIGGER postings_have_a_scope BEFORE INSERT ON postings FOR EACH ROW EXECUTE FUNCTION take_scope();
CREATE TRIGGER revisions_have_a_scope BEFORE INSERT ON revisions FOR EACH ROW EXECUTE FUNCTION take_scope();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is never changed', TG_TABLE_NAME;
END $$;
CREATE TRIGGER revisions_stay_as_they_are BEFORE UPDATE ON revisions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER deletions_stay_as_they_are BEFORE UPDATE ON deletions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION keep_revision() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM memories WHERE number = OLD.memory) THEN
        RAISE EXCEPTION 'revisions go with their memory only';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER revisions_stay BEFORE DELETE ON revisions FOR EACH ROW EXECUTE FUNCTION keep_revision();

CREATE FUNCTION keep_deletion() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM erasing WHERE "user" = OLD."user") THEN
        RAISE EXCEPTION 'the log of deletions is never shortened';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER deletions_stay BEFORE DELETE ON deletions FOR EACH ROW EXECUTE FUNCTION keep_deletion();
"""

# In a policy, "(SELECT ...)" is evaluated once per statement, not once per row. PL/pgSQL keeps the plan of a query.
_POLICIES = """
CREATE FUNCTION asked_scopes() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT nullif(current_setting('ewe.scopes', true), '')::jsonb
$$;
CREATE FUNCTION asked_numbers() RETURNS bigint[] LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN ARRAY(
        SELECT number
        FROM jsonb_to_recordset(CASE jsonb_typeof(asked_scopes()) WHEN 'array' THEN asked_scopes() ELSE '[]' END)
            AS asked("user" text COLLATE "C", agent text COLLATE "C")
        JOIN scopes USING ("user", agent)
    );
END $$;
"""
_POLICY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON {table} USING ((SELECT asked_scopes() = '"all"') OR {is_asked});
"""
_BY_NAME = "(SELECT asked_scopes()) @> jsonb_build_array(jsonb_build_object('user', \"user\", 'agent', agent))"
_BY_NUMBER = "scope = ANY ((SELECT asked_numbers())::bigint[])"

SCRIPT = "".join(
    (
        POSTGRES,
        _ADDED,
        _TRIGGERS,
        _POLICIES,
        *(_POLICY.format(table=table, is_asked=_BY_NAME) for table in ("scopes", "deletions")),
        *(
            _POLICY.format(table=table, is_asked=_BY_NUMBER)
            for table in ("voices", "memories", "revisions", "words", "postings")
        ),
        f"INSERT INTO state VALUES (1, '', 0, {SCHEMA_VERSION});",  # noqa: S608
    )
)
"""Makes an empty store in the current schema."""

_GUARDED = (("revisions", "revisions_stay_as_they_are"), ("deletions", "deletions_stay_as_they_are"))
BEFORE_CHECKSUMS = "".join(
    (
        "ALTER TABLE scopes ADD checksum bigint NOT NULL DEFAULT 0;",
        "ALTER TABLE deletions ADD checksum bigint NOT NULL DEFAULT 0;",
        "ALTER TABLE memories ADD observed_at double precision;",
        "ALTER TABLE memories ADD supersedes text NOT NULL DEFAULT '[]';",
        POSTGRES_VOICES + ";",
        _POLICY.format(table="voices", is_asked=_BY_NUMBER),
        *(f"ALTER TABLE {table} DISABLE TRIGGER {trigger};" for table, trigger in _GUARDED),
    )
)
"""Makes the columns and the table of version 2 in a store of version 1."""
AFTER_CHECKSUMS = "".join(
    (
        *(f"ALTER TABLE {table} ENABLE TRIGGER {trigger};" for table, trigger in _GUARDED),
        "UPDATE state SET version = 2;",
    )
)
"""Ends what `BEFORE_CHECKSUMS` began."""
